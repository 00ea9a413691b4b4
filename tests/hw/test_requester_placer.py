"""The data of READs: every byte is written where it belongs, and nothing anywhere else."""

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.rtl.gpu import placer
from hw.rtl.gpu.placer import Placer
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.everyday import everyday
from tests.hw.agents import Memory, ReadSide, Sink, Source, WriteSide, expect, run
from tests.hw.requesterbench import CONTEXTS, HBM, HOST, LISTS, SEGMENT, Data, WithWalker, params
from tests.hw.simulate import Restart, simulate


@dataclass
class Read:
    """A READ: what comes of it, and where that goes.

    - `segments`: the bytes of each. `room`: how many of them may be written. `begun`: segments of which a flit has been
      offered. `mute_from`: the first that must not be written any more.
    """

    tag: int
    first: int
    data: Data
    segments: list[bytes]
    room: int
    background: bytes
    mute: bool
    begun: int = 0
    mute_from: int | None = None

    @property
    def target(self) -> dict[str, Any]:
        return {
            "place": self.data.place,
            "segment": self.first,
            "room": self.room,
            "known": 1,
            "mute": self.mute,
        }

    @property
    def length(self) -> int:
        """The bytes of all segments."""
        return sum(map(len, self.segments))

    def after(self, number: int) -> bytes:
        """What is in memory where segment `number` belongs, once that is written."""
        fits = self.segments[number][: max(0, self.room - SEGMENT * number)]
        return fits + self.background[len(fits) :]


class Targets:
    """Tells a Placer where data goes: combinational, so it is driven behind the flits."""

    def __init__(self, dut: Placer, random: Random):
        self.reads: dict[int, Read] = {}
        self._dut, self._random = dut, random

    def drive(self, ctx: SimulatorContext) -> None:
        flit = self._dut.flits.payload
        tag = ctx.get(flit.tag)
        expect(ctx.get(self._dut.context) == tag % CONTEXTS, f"context of {tag:#x}")
        read = self.reads.get(tag % CONTEXTS)
        if read and read.tag == tag:
            if ctx.get(self._dut.flits.valid):
                read.begun = max(read.begun, ctx.get(flit.segment) - read.first + 1)
            ctx.set(self._dut.target, read.target)
        else:
            noise = {"address": HBM, "scattered": 0, "page_shift": 0}
            ctx.set(self._dut.target, {"place": noise, "segment": 0, "room": 1 << 31, "known": 0, "mute": 0})

    def observe(self, ctx: SimulatorContext) -> None:
        for read in self.reads.values():
            if self._random.random() < 0.0005 and not read.mute:
                read.mute, read.mute_from = True, read.begun


class Reading:
    """The world of a Placer: batches of READs, whose segments come between each other, and flits of no READ."""

    def __init__(self, beat_bytes: int, seed: int, pace: float, latency: int = 0):
        print(f"seed {seed}")
        self.random = random = Random(seed)
        self.size = beat_bytes
        self.host, self.hbm = Memory(beat_bytes, random), Memory(beat_bytes, random)
        self.dut = WithWalker(params(beat_bytes), Placer)
        unit = self.dut.unit
        self.flits = Source(unit.flits, random, pace)
        self.targets = Targets(unit, random)
        self.writes = WriteSide(unit.axi, self.hbm, random, pace=pace)
        self.issued, self.acknowledged, self.refused = Counter[int](), Counter[int](), Counter[int]()
        self.ended: dict[int, tuple[dict[str, int], int]] = {}  # what is told, and bursts issued by then
        self.lists = ReadSide(self.dut.host, self.host, random, pace=pace, latency=latency)
        self.agents: list[Any] = [
            self.flits,
            self.targets,
            self.writes,
            self.lists,
            Sink("issued", unit.issued, random, 1, lambda context: self.issued.update([context])),
            Sink("acknowledged", unit.acknowledged, random, 1, self._acknowledge),
            Sink("ended", unit.ended, random, 1, self._end),
        ]

    def _acknowledge(self, ended: dict[str, int]) -> None:
        context = ended["token"]
        self.acknowledged[context] += 1
        self.refused[context] += ended["error"]
        expect(self.acknowledged[context] <= self.issued[context], f"{context}: acknowledged, but not issued")

    def _end(self, ended: dict[str, int]) -> None:
        expect(ended["token"] not in self.ended, f"{ended['token']} has ended twice")
        self.ended[ended["token"]] = ended, self.issued[ended["token"]]

    def read(self, context: int, use: int, region: int) -> Read:
        """A READ of some segments, of which the last may be short, with room for all of it, or for less."""
        random = self.random
        count = random.randint(1, 5)
        segments = [random.randbytes(SEGMENT) for _ in range(count)]
        if random.random() < 0.7:
            segments[-1] = segments[-1][: random.randint(1, SEGMENT)]
        length = sum(map(len, segments))
        over = random.choice([random.randint(1, self.size), self.size * random.randint(1, 8), SEGMENT, 2 * SEGMENT])
        room = random.choice([length, length, length + over, (1 << 32) - 1, max(0, length - over), 0])
        where = Data(self.host, count, region=region, at=LISTS[context], faults=0.3)
        background = random.randbytes(SEGMENT)
        for address in where.addresses:
            if address is not None:
                self.hbm.load(address, background)
                if random.random() < 0.05:
                    self.hbm.refused.add(address + self.size * random.randrange(SEGMENT // self.size))
        mute = random.random() < 0.1
        tag, first = use * CONTEXTS + context, random.randrange(1 << 15)
        return Read(tag, first, where, segments, room, background, mute, mute_from=0 if mute else None)

    def packet(self, tag: int, segment: int, content: bytes, end: bool) -> None:
        """Queue the flits of a segment."""
        flits = [content[i : i + self.size] for i in range(0, len(content), self.size)]
        for i, part in enumerate(flits):
            word = int.from_bytes(part + self.random.randbytes(self.size - len(part)), "little")
            last = i == len(flits) - 1
            flit = {"tag": tag, "segment": segment, "end": end, "last": last, "data": word, "count": len(part)}
            self.flits.queue.append(flit)

    def queue(self, reads: list[Read]) -> None:
        """Queue the segments of READs, and some of no READ."""
        random = self.random
        turns = [read for read in reads for _ in read.segments]
        if random.random() < 0.7:
            random.shuffle(turns)
        numbers = Counter[int]()
        for read in turns:
            if random.random() < 0.1:
                stray = read.tag ^ random.randint(1, 0x3FFF) * CONTEXTS
                self.packet(stray, random.getrandbits(8), random.randbytes(SEGMENT), end=True)
            number = numbers[read.tag]
            numbers[read.tag] += 1
            self.packet(read.tag, read.first + number, read.segments[number], end=number == len(read.segments) - 1)

    def queue_one(self, segments: list[bytes], page_shift: int) -> Read:
        """Queue the segments of one READ; with `page_shift` 0 it is plain."""
        where = Data(self.host, len(segments), region=0, at=HOST, faults=0)
        where.place = {"address": HOST if page_shift else HBM, "scattered": page_shift > 0, "page_shift": page_shift}
        self.targets.reads = {0: Read(0, 0, where, segments, 1 << 31, b"", mute=False)}
        for number, content in enumerate(segments):
            self.packet(0, number, content, end=number == len(segments) - 1)
        return self.targets.reads[0]

    def done(self) -> bool:
        """Whether all READs have ended, and all bursts are acknowledged."""
        return len(self.ended) == len(self.targets.reads) and self.acknowledged == self.issued and not self.flits.queue

    def check(self, read: Read) -> None:
        """All bytes that have room are where they belong, or, of a READ that is mute, nowhere; bursts, errors and bytes
        add up."""
        context, written, refused = read.tag % CONTEXTS, 0, 0
        for number, address in enumerate(read.data.addresses):
            if address is None:
                continue
            refused_beats = self.hbm.refused & {address + i for i in range(0, SEGMENT, self.size)}
            is_there = address in self.writes.bursts
            wanted, now = read.after(number) if is_there else read.background, self.hbm.dump(address, SEGMENT)
            good = (i for i in range(SEGMENT) if address + i - i % self.size not in refused_beats)
            wrong = [i for i in good if now[i] != wanted[i]]
            expect(not wrong, f"bytes {wrong} of segment {number}")
            allowed = read.mute_from is None or number < read.mute_from
            expect(is_there if read.mute_from is None else allowed or not is_there, f"segment {number}: {is_there}")
            written += is_there
            refused += is_there and bool(refused_beats)
        ended, issued = self.ended[context]
        expect(self.issued[context] == written == issued, f"{context}: bursts of {written} segments")
        expect(self.refused[context] == refused, f"{context}: errors of {refused} segments")
        if read.mute_from is None:
            expect(ended["error"] == (None in read.data.addresses), f"{context}: error of a page")
        elif read.mute_from == 0:
            expect(not ended["error"], f"{context}: error of a page that nothing is written to")
        if read.mute_from is None and not ended["error"]:
            expect(ended["length"] == read.length, f"{context}: {ended} after {read.length} bytes")
            expect(ended["longer"] == (read.length > read.room), f"{context}: {ended} with room for {read.room}")

    async def bench(self, ctx: SimulatorContext, _: Restart) -> None:
        """Batches, each with other lists in the same memory."""
        for batch in range(8):
            contexts = self.random.sample(range(CONTEXTS), self.random.randint(1, CONTEXTS))
            reads = [self.read(context, batch, CONTEXTS * batch + context) for context in contexts]
            self.targets.reads = dict(zip(contexts, reads, strict=True))
            for counts in (self.issued, self.acknowledged, self.refused, self.ended):
                counts.clear()
            self.queue(reads)
            await run(ctx, self.agents, self.done, within=10_000)
            for read in reads:
                self.check(read)
        await run(ctx, self.agents, lambda: True, within=1)
        expect(not self.writes.under_way, "a burst too many")


def place(beat_bytes: int, seed: int, pace: float) -> None:
    """Write the data of READs."""
    reading = Reading(beat_bytes, seed, pace)
    simulate(reading.dut, reading.bench)


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_data_of_reads_is_where_it_belongs(beat_bytes: int) -> None:
    place(beat_bytes, seed=0, pace=1)
    place(beat_bytes, seed=1, pace=0.5)
    place(beat_bytes, seed=2, pace=0.9)


def lost_cycles(page_shift: int, segments: int) -> int:
    """Return the cycles in which no flit of a READ is taken, if there always is one and memory takes all. Page lists
    come after ten cycles; with `page_shift` 0 there is none."""
    reading = Reading(16, seed=0, pace=1, latency=10)
    reading.queue_one([bytes(SEGMENT)] * segments, page_shift)
    flits, spent = len(reading.flits.queue), 0

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        nonlocal spent
        spent = await run(ctx, reading.agents, lambda: not reading.flits.queue, within=1_000)

    simulate(reading.dut, bench)
    return spent - flits


def test_only_the_first_segment_waits() -> None:
    assert lost_cycles(0, 1) == lost_cycles(0, 8) == 2
    assert lost_cycles(9, 1) == lost_cycles(9, 8) > 10


def reads_behind_the_end() -> int:
    """A READ becomes mute while the page of its last segment is looked up, which takes longer than all the rest;
    return the reads of its list that are under way when it has ended."""
    reading = Reading(16, seed=0, pace=1, latency=100)
    read = reading.queue_one([bytes(SEGMENT), bytes(SEGMENT), b"short"], page_shift=9)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        await run(ctx, reading.agents, lambda: read.begun == 2, within=1_000)
        read.mute = True
        await run(ctx, reading.agents, lambda: bool(reading.ended), within=1_000)

    simulate(reading.dut, bench)
    return reading.lists.under_way


def test_nothing_of_a_list_is_read_behind_the_end() -> None:
    assert reads_behind_the_end() == 0


def test_a_placer_that_does_not_wait_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        globals(), "Placer", mutate(placer.Placer, "with m.Elif(asked):", "with m.Elif(asked & ~unwanted):")
    )
    assert reads_behind_the_end() == 1


def error_behind() -> int:
    """A READ whose pages are in error is cut off before its end; return the error of a good one in the same context."""
    reading = Reading(16, seed=0, pace=1)
    bad = reading.queue_one([bytes(SEGMENT)] * 2, page_shift=9)
    reading.host.load(HOST, (HBM + 8).to_bytes(8, "little") * 2)
    for flit in reading.flits.queue:
        flit["end"] = False

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        await run(ctx, reading.agents, lambda: not reading.flits.queue, within=1_000)
        plain = Data(reading.host, 1, region=1, at=HOST, faults=0)
        plain.place = {"address": HBM, "scattered": 0, "page_shift": 0}
        reading.targets.reads = {0: Read(CONTEXTS, 0, plain, [b"good"], 1 << 31, b"", mute=False)}
        reading.packet(CONTEXTS, 0, b"good", end=True)
        await run(ctx, reading.agents, lambda: bool(reading.ended), within=1_000)

    simulate(reading.dut, bench)
    expect(bad.begun == 2, "the first READ was not offered")
    return reading.ended[0][0]["error"]


def test_an_error_is_of_one_read() -> None:
    assert error_behind() == 0


def test_an_error_that_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Placer", mutate(placer.Placer, "target.known & (number == 0)", "self.ended.valid"))
    assert error_behind() == 1


MUTANTS = {
    "an error of a page stays": ("m.d.sync += its_failed.eq(0)", "pass"),
    "the page of another segment": ("ask(number + 1)", "ask(number)"),
    "the page of another READ": ("(asked_tag == flit.tag) & ~unwanted", "~unwanted"),
    "the first page always": ("number.eq(flit.segment - target.segment)", "number.eq(0)"),
    "a short beat is whole": ("Mux(pad, 0, strobes)", "Mux(pad, 0, (1 << beat_bytes) - 1)"),
    "a short segment is whole": ("Mux(pad, 0, strobes)", "strobes"),
    "a short segment is a short burst": ("axi.wlast.eq(whole)", "axi.wlast.eq(whole | (move & flit.last))"),
    "bytes behind the room are written": ("(i < flit.count) & (i < room)", "(i < flit.count)"),
    "the room is that of each segment": ("number * memory.segment_bytes + beat", "beat"),
    "a byte has no room": ("(i < flit.count) & (i < room)", "(i < flit.count) & (i + 1 < room)"),
    "what is longer is not told": ("longer.eq(flit.count > room)", "longer.eq(0)"),
    "what just fits is told longer": ("longer.eq(flit.count > room)", "longer.eq(flit.count >= room)"),
    "the length is off by a beat": ("return before + self.flits.payload.count", "return before + memory.beat_bytes"),
    "an error of a page is swallowed": ("self.ended.payload.error.eq(its_failed)", "self.ended.payload.error.eq(0)"),
    "an error of memory is swallowed": ("is_error(self.axi.bresp)", "0"),
    "a page in error is written": ("mine & ~found.payload.error", "mine"),
    "what is mute is written": ("~target.known | target.mute", "~target.known"),
    "what is not known is written": ("~target.known | target.mute", "target.mute"),
    "what is not known ends": ("flit.last & flit.end & target.known", "flit.last & flit.end"),
    "an answer serves twice": ("found.ready.eq(start)", "found.ready.eq(0)"),
    "an address is overwritten": ("address_free.eq(~axi.awvalid | axi.awready)", "address_free.eq(1)"),
    "a beat is overwritten": ("beat_free.eq(~axi.wvalid | axi.wready)", "beat_free.eq(1)"),
}


EVERYDAY = (
    "the page of another READ",
    "a short segment is whole",
    "bytes behind the room are written",
    "an error of memory is swallowed",
    "what is mute is written",
)
"""The gravest; the others are found in nightly runs."""


@pytest.mark.parametrize("name", everyday(MUTANTS, *EVERYDAY))
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Placer", mutate(placer.Placer, *MUTANTS[name]))
    with pytest.raises(CheckError):
        place(16, seed=1, pace=0.5)
