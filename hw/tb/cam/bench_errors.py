"""cocotb tests of `hw.rtl.node.cam` with flipped bits in its SRAM; only with `tables.ecc`."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Self

import cocotb
from cocotb.handle import Immediate

from hw.rtl.node.cam.entry import EntryFormat
from hw.tb.cam.base import CamBench
from hw.tb.pace import Pace, always, randomly
from hw.tb.scoreboard import CheckError
from pymodel.spec.cam import Place, Tag

FLUSH = 6
"""Cycles after which a request has left the pipeline."""


class ErrorBench(CamBench):
    """Reaches into the SRAM, and compares the events of the scrubber.

    - `flipped`: entries with one wrong bit in some field; each owes one event, unless an UPDATE comes first.
    - `lost`: entries with two; reported in every round, until an UPDATE has written them. With each, its tag, if that
      can still be read.
    """

    def __init__(self, dut: Any, *, idle: Pace = always):
        super().__init__(dut, idle=idle)
        self.entries = EntryFormat(self.params)
        self.flipped: set[Place] = set()
        self.lost: dict[Place, Tag | None] = {}
        self.round = 8 * self.params.cam_slots + 2 * FLUSH
        self._overwritten: set[Place] = set()
        self._reported: set[Place] = set()
        self.events.listeners.append(self._on_event)

    async def __aenter__(self) -> Self:
        """Begin when the content is initialised: what is flipped before that does not last."""
        await super().__aenter__()
        await self.cycles(self.params.cam_sets + FLUSH)
        return self

    def read(self, place: Place) -> int:
        """Return the entry stored at `place`; only while nothing is being written."""
        size = self.entries.layout.size
        return int(self._row(place).value) >> place.way * size & (1 << size) - 1

    def flip(self, place: Place, *bits: int) -> None:
        """Flip bits of the entry stored at `place`; only while nothing is being written."""
        row, base = self._row(place), place.way * self.entries.layout.size
        row.value = Immediate(int(row.value) ^ sum(1 << base + bit for bit in bits))

    def flip_one(self, place: Place, *bits: int) -> None:
        """Flip bits of the entry stored at `place`, at most one a field: they are to be mended."""
        self.flip(place, *bits)
        self.flipped.add(place)

    def bits(self, field: str) -> range:
        """Return the bits of a field of an entry."""
        offset = self.entries.layout[field].offset
        return range(offset, offset + self.entries.codes[field].bits)

    def fill(self, count: int) -> list[Tag]:
        """Insert tags and return those that are stored."""
        tags = self.tags(count)
        for tag in tags:
            self.insert(tag)
        return [tag for tag in tags if self.cam.find(tag) is not None]

    def take_out_of_service(self, place: Place, readable: Tag | None = None) -> None:
        """In the reference, let nothing be stored at `place`, nor be placed there."""
        self.cam.insert(self._ghost(place), place, 0)
        self.lost[place] = readable

    def content(self, place: Place) -> Tag | None:
        """The tag that can be read at `place`."""
        return self.lost[place] if place in self.lost else super().content(place)

    async def restore(self, place: Place) -> None:
        """Bring a lost place back into service."""
        self.cam.remove(self._ghost(place))
        self.update(place, self.tag(), 0, valid=False)
        await self.settled()
        await self.cycles(FLUSH)
        del self.lost[place]

    def update(self, place: Place, tag: Tag, frame: int, *, valid: bool) -> None:
        """Queue an UPDATE, after which an entry need not be mended any more."""
        super().update(place, tag, frame, valid=valid)
        if place in self.flipped:
            self.flipped.discard(place)
            self._overwritten.add(place)

    async def settled(self) -> None:
        """Wait until all requests queued have left the pipeline."""
        await self.sent()
        await self.cycles(FLUSH)

    async def scrubbed(self) -> None:
        """Wait for rounds of the scrubber; then all that could be mended is, and all that is lost was reported."""
        await self.settled()
        await self.cycles(self.round)
        self._reported.clear()
        await self.cycles(self.round)
        if self._reported != set(self.lost):
            raise CheckError(f"reported as lost: {self._reported}, expected {set(self.lost)}")
        if self.flipped:
            raise CheckError(f"not mended: {self.flipped}")
        self._overwritten.clear()

    def _ghost(self, place: Place) -> Tag:
        """Return a tag that nobody looks for, for the reference to keep `place` taken."""
        return Tag(*place)._replace(partition=-1 - place.bank)

    def _row(self, place: Place) -> Any:
        sram = getattr(self.dut, f"bank_{place.bank}").sram
        return getattr(sram, "macro", sram).mem[place.set]

    def _on_event(self, event: dict[str, Any]) -> None:
        place = Place(**event["place"])
        if event["uncorrectable"]:
            self._reported.add(place)
        if place not in (self.lost if event["uncorrectable"] else self.flipped | self._overwritten):
            raise CheckError(f"nothing is wrong at {place}, got {event}")
        self.flipped.discard(place)


def places(bench: ErrorBench) -> Iterator[Place]:
    """Yield every place of a small CAM."""
    cam = bench.params.cam
    for bank in range(cam.banks):
        for index in range(bench.params.cam_sets):
            for way in range(cam.ways):
                yield Place(bank, index, way)


@cocotb.test()
async def single_errors(dut: Any) -> None:
    """A flipped bit in each field of every entry, every bit in turn: nothing changes but the events.

    Lookups at full rate leave the scrubber no slot until they are done; then it mends every bit.
    """
    async with ErrorBench(dut) as bench:
        stored = bench.fill(bench.params.cam_slots // 2)
        await bench.settled()
        before = {place: bench.read(place) for place in places(bench)}
        fields = [bench.bits(field) for field in bench.entries.codes]
        for step in range(max(map(len, fields))):
            for place in places(bench):
                bench.flip_one(place, *(bits[(step + place.way) % len(bits)] for bits in fields))
            for tag in [*stored, bench.tag(), bench.tag()]:
                bench.lookup(tag)
            for place in places(bench):
                bench.ask(place)
            await bench.scrubbed()
        after = {place: bench.read(place) for place in places(bench)}
        if after != before:
            raise CheckError(f"mended wrongly: {[place for place in before if after[place] != before[place]]}")


@cocotb.test()
async def double_errors(dut: Any) -> None:
    """Two flipped bits in a field: a miss, reported, not offered as free, and in service again after an UPDATE."""
    async with ErrorBench(dut) as bench:
        damages: list[Any] = [*combinations(bench.bits("valid"), 2)]
        damages += bench.random.sample([*combinations(bench.bits("frame"), 2)], 15)
        damages += [bench.random.sample(bench.bits("tag"), 2) for _ in range(40)]
        tags = bench.tags(3 * bench.params.cam_slots)
        for damage in damages:
            for tag in tags[: bench.params.cam_slots // 2]:
                if bench.cam.find(tag) is None:
                    bench.insert(tag)
            await bench.settled()
            victim = bench.random.choice([tag for tag in tags if bench.cam.find(tag) is not None])
            place = bench.cam.remove(victim)
            bench.take_out_of_service(place, readable=victim if damage[0] in bench.bits("frame") else None)
            bench.flip(place, *damage)
            bench.ask(place)
            for tag in [victim, *tags]:
                bench.lookup(tag)
                if bench.cam.find(tag) is None and bench.random.random() < 0.5:
                    bench.insert(tag)
            await bench.scrubbed()
            await bench.restore(place)
            for tag in tags:
                bench.lookup(tag)
                if bench.cam.find(tag) is not None and bench.random.random() < 0.7:
                    bench.remove(tag)


@cocotb.test()
async def double_errors_in_free_places(dut: Any) -> None:
    """A free way whose valid bit is lost is not offered; what else a free way has lost does not matter."""
    async with ErrorBench(dut) as bench:
        for damage in combinations(bench.bits("valid"), 2):
            tag = bench.tag()
            place = bench.cam.place(tag)
            assert place is not None
            bench.flip(place, *damage)
            bench.take_out_of_service(place)
            bench.lookup(tag)
            bench.ask(place)
            await bench.scrubbed()
            await bench.restore(place)
            bench.flip(place, *bench.bits("tag")[:2], *bench.bits("frame")[:2])
            bench.lookup(tag)
            await bench.scrubbed()
            bench.insert(tag)
            bench.lookup(tag)
            bench.remove(tag)
            await bench.settled()


@cocotb.test()
async def updates_overtake_the_scrubber(dut: Any) -> None:
    """An UPDATE of an entry with a flipped bit, at every cycle of the scrubber's round: what it wrote stays."""
    async with ErrorBench(dut) as bench:
        tag = bench.fill(bench.params.cam_slots // 2)[0]
        for delay in range(bench.round):
            await bench.settled()
            bench.flip_one(bench.cam.where(tag), bench.random.choice(bench.bits("tag")))
            await bench.cycles(delay)
            bench.rewrite(tag)
            for _ in range(delay % 4):
                bench.lookup(tag)
            bench.ask(bench.cam.where(tag))
            await bench.settled()
            bench.lookup(tag)
        await bench.scrubbed()


@cocotb.test()
async def scrubbing_in_traffic(dut: Any) -> None:
    """Random traffic with idle slots while bits flip: the scrubber disturbs nothing, and keeps up."""
    async with ErrorBench(dut, idle=randomly(0.5)) as bench:
        tags = bench.tags(bench.params.cam_slots)
        for _ in range(60):
            place = bench.random.choice(list(places(bench)))
            bench.flip_one(place, bench.random.choice(bench.bits("tag")))
            for tag in bench.random.sample(tags, 4):
                if bench.cam.find(tag) is None:
                    bench.insert(tag)
                else:
                    bench.random.choice([bench.rewrite, bench.remove])(tag)
                bench.lookup(tag)
                bench.ask(place)
            await bench.scrubbed()
