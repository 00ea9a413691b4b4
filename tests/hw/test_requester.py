"""A requester between a model of host memory and a model of a node: random commands on several rings, and everything
that can go wrong on either side."""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params import records
from hw.params.params import LinkParams, MemoryParams, Params, PoolParams, RequesterParams, TableParams
from hw.params.protocol import Opcode, Status
from hw.rdl import requester_map
from hw.rtl.gpu import requester, rings
from hw.rtl.gpu.completer import Completer
from hw.rtl.gpu.contexts import Contexts
from hw.rtl.gpu.finisher import Finisher
from hw.rtl.gpu.requester import Requester
from hw.rtl.gpu.ring import Ring
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.requester_models import AxiMemory, Memory, Node
from tests.hw.simulate import Restart, simulate

PORT = 3
SEGMENT = 512
FRAME = 4096
KEYS = 12
COMMANDS = 24
"""Of a world."""
PATIENCE = 1500
"""Cycles in which something has to end."""

Access = tuple[str, int] | tuple[str, int, int] | None
Software = Generator[Access, Any, None]


def params(beat_bytes: int) -> Params:
    return Params(
        memory=MemoryParams(beat_bytes=beat_bytes, segment_bytes=SEGMENT, channels=1, waiting_reads=2),
        link=LinkParams(commands=2, write_segments=2, answers=4, response_flits=4, data_flits=8, message_flits=2),
        requester=RequesterParams(commands=6, write_segments=2),
        tables=TableParams(ports=2, rings_per_port=3, lookup_keys=KEYS, sessions=4, pins_per_ring=4),
        pools=(PoolParams(frame_bytes=FRAME, frames=16),),
    )


@dataclass(eq=False)
class Submission:
    """A descriptor, what has become of it, and what it asks memory for.

    - `refusal`: the status by which it ends without the node.
    - `buffers`: where each segment of data is. `faults`: those that memory refuses. `cut`: it refuses keys, all but
      those that are `whole`.
    - `source`: the data, or the keys, that the node has to get.
    """

    ring: int
    fields: dict[str, int]
    refusal: Status | None = None
    faults: set[int] = field(default_factory=set)
    source: bytes = b""
    whole: bytes = b""
    buffers: list[int] = field(default_factory=list)
    seen: int = 0
    done: int = 0
    answer: dict[str, int] = field(default_factory=dict)
    results: list[dict[str, int]] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    received: bytes = b""
    keys: bytes = b""
    cut: bool = False


@dataclass(eq=False)
class SoftwareRing:
    """A ring as software has it: absolute numbers of what was submitted, completed and consumed."""

    entries: int
    submission: int
    completion: int
    submitted: int = 0
    consumed: int = 0
    written: set[int] = field(default_factory=set)
    alive: bool = True


class World:
    """A requester and all around it; `play` runs software against it.

    Raises CheckError for a completion that is wrong, too early, in a wrong place, doubled or missing, and for writes
    where nothing is to be written.
    """

    def __init__(self, beat_bytes: int, seed: int, *, rate: float = 0.0) -> None:
        self.params, self.random, self.rate = params(beat_bytes), Random(seed), rate
        self.host, self.hbm = Memory(), Memory()
        self.dut = Requester(self.params)
        self.node = Node(self.dut.link, self.params, self.random)
        self.memories = [
            AxiMemory(getattr(self.dut, name), memory, self.random, beat_bytes)
            for name, memory in (("host", self.host), ("hbm", self.hbm))
        ]
        self.rings: dict[int, SoftwareRing] = {}
        self.by_tag: dict[int, Submission] = {}
        self.map = requester_map(self.params)
        self.host.watch = self._watch
        self.restart = 0
        self.cycle = self.progress = 0
        self.completions = 0
        self.events: list[dict[str, int]] = []
        self.restarted = False

    # What software does: generators of register accesses, which give the response and the value read.

    def write(self, name: str, value: int, *, okay: bool = True) -> Software:
        response, _ = yield "write", self.map[name].offset, value
        if (response == 0) != okay:
            raise CheckError(f"a write of {value:#x} to {name} was answered {response}")

    def read(self, name: str) -> Generator[Access, Any, int]:
        response, value = yield "read", self.map[name].offset
        if response:
            raise CheckError(f"a read of {name} was answered {response}")
        return int(value)

    def sleep(self, cycles: int) -> Software:
        for _ in range(cycles):
            yield None

    def enable(self, number: int, *, log2_entries: int, bad: str = "") -> Software:
        entries, name = 1 << log2_entries, f"RING{number}_"
        ring = SoftwareRing(
            entries,
            self.host.allocate(64 * entries, align=128, bad=bad == "submission"),
            self.host.allocate(32 * entries, align=128, bad=bad == "completion"),
        )
        self.host.put(ring.completion, bytes(32 * entries))
        self.host.permit(ring.completion, 32 * entries)
        for side, address in (("SUBMISSION", ring.submission), ("COMPLETION", ring.completion)):
            yield from self.write(f"{name}{side}_LOW", address & 0xFFFF_FFFF)
            yield from self.write(f"{name}{side}_HIGH", address >> 32)
        yield from self.write(f"{name}SIZE", log2_entries)
        self.rings[number] = ring
        self.node.lost.discard(number)
        yield from self.write(f"{name}CONTROL", 1)
        yield from self.write(f"{name}SIZE", log2_entries, okay=False)

    def look_up(self, number: int) -> Submission:
        """Return a LOOKUP of some keys."""
        while True:
            submission = self.invent(number)
            if submission.fields["opcode"] == Opcode.LOOKUP and submission.fields["count"]:
                return submission
            self._forget(submission)

    def overrun(self) -> "World":
        """Submit more than there is room for completions, of which none is consumed for long."""

        def software() -> Software:
            yield from self.enable(0, log2_entries=2)
            for count in (3, 3, 2):
                for _ in range(count):
                    self.put(0)
                yield from self.ring_doorbell(0)
                yield from self.sleep(400)
            yield from self.settle(0)

        return self.play(software())

    def put(self, number: int, make: Callable[[int], Submission] | None = None) -> Submission:
        ring = self.rings[number]
        submission = (make or self.invent)(number)
        at = ring.submission + 64 * (ring.submitted % ring.entries)
        self.host.put(at, records.DESCRIPTOR.pack(**submission.fields))
        ring.submitted += 1
        return submission

    def ring_doorbell(self, number: int) -> Software:
        ring = self.rings[number]
        yield from self.write(f"RING{number}_TAIL", ring.submitted % ring.entries)

    def consume(self, number: int) -> Software:
        """Take what has completed, as far as its phase tells."""
        ring, before = self.rings[number], self.rings[number].consumed
        while self._entry(ring, ring.consumed)["flags"] & records.PHASE == self._phase(ring, ring.consumed):
            ring.consumed += 1
        if ring.consumed != before:
            yield from self.write(f"RING{number}_HEAD", ring.consumed % ring.entries)

    def room(self, number: int) -> bool:
        ring = self.rings[number]
        return ring.submitted - ring.consumed < ring.entries - 1

    def settle(self, number: int) -> Software:
        """Until everything on a ring has completed."""
        while self.rings[number].consumed != self.rings[number].submitted:
            yield from self.consume(number)
            yield from self.sleep(5)

    def inactive(self, number: int, *, failed: int, told: int) -> Software:
        """Until a ring has stopped; nothing of it may be written then, and the node has to know."""
        while (status := (yield from self.read(f"RING{number}_STATUS"))) & 1:
            yield from self.sleep(3)
        if status >> 1 & 1 != failed:
            raise CheckError(f"ring {number} has status {status:#x}, expected failed {failed}")
        if status >> 16:
            raise CheckError(f"{status >> 16} commands under way on a ring that is inactive")
        if self.node.losses[number] <= told and not self.restarted:
            raise CheckError(f"ring {number} is inactive, and the node was not told")
        if self.node.pending(number):
            raise CheckError(f"ring {number} is inactive, and the node has commands of it")
        self.forbid(number)
        del self.rings[number]

    def forbid(self, number: int) -> None:
        """Nothing of a ring may be written any more."""
        ring = self.rings[number]
        self.host.permit(ring.completion, 32 * ring.entries, yes=False)
        for submission in [each for each in self.by_tag.values() if each.ring == number]:
            self._forget(submission)

    # What a command asks for.

    def invent(self, number: int) -> Submission:
        rng = self.random
        tag = rng.choice([each for each in range(1 << 10) if each not in self.by_tag])
        opcode = rng.choice([Opcode.LOOKUP, Opcode.WRITE, Opcode.READ, Opcode.READ, Opcode.ALLOC, Opcode.UNPIN, 0xEE])
        fields = {
            "opcode": int(opcode),
            "flags": rng.getrandbits(4),
            "model": rng.getrandbits(16),
            "segment": rng.choice([0, rng.randrange(1 << 15)]),
            "count": rng.randint(0, 3),
            "length": rng.choice([0, 1, 511, 512, 513, 1500, FRAME]),
            "crc": rng.getrandbits(32),
            "subject": rng.getrandbits(128),
            "slot": rng.getrandbits(64),
            "tag": tag,
            "data": rng.getrandbits(64),
            "results": rng.getrandbits(64),
            "page_shift": rng.getrandbits(8),
        }
        submission = Submission(number, fields)
        self.by_tag[tag] = submission
        fault = rng.random() < self.rate
        if opcode == Opcode.LOOKUP:
            self._with_keys(submission, fault)
        elif opcode in (Opcode.WRITE, Opcode.READ):
            self._with_data(submission, fault)
        return submission

    def _with_keys(self, submission: Submission, fault: bool) -> None:
        rng, fields = self.random, submission.fields
        fields["count"] = count = rng.choice([0, 1, rng.randint(2, KEYS), KEYS])
        where = self.host.allocate(16 * max(count, 1), align=128)
        submission.source = rng.randbytes(16 * count)
        self.host.put(where, submission.source)
        fields["data"], fields["results"] = where, self.host.allocate(32 * max(count, 1), align=128)
        self.host.permit(fields["results"], 32 * count)
        kind = rng.choice(["keys", "results", "count", "unmapped"]) if fault else ""
        if kind == "keys":
            fields["data"] += 16 * rng.randint(1, 7)
        elif kind == "results":
            fields["results"] += 32
        elif kind == "count":
            fields["count"] = rng.choice([KEYS + 1, 0xFFFF])
        elif kind == "unmapped" and count:
            first = 16 * rng.randrange(count)
            self.host.bad.update(range(where + first, where + 16 * count))
            size = self.params.memory.beat_bytes
            submission.whole = submission.source[: first // size * size]
            submission.cut = True
        if kind in ("keys", "results", "count"):
            submission.refusal = Status.INVALID

    def _with_data(self, submission: Submission, fault: bool) -> None:  # noqa: PLR0912 (a fault after the other)
        rng, fields, write = self.random, submission.fields, submission.fields["opcode"] == Opcode.WRITE
        count = self.params.segments(fields["length"]) if write else fields["count"]
        kind = rng.choice(["data", "shift", "long", "unmapped", "page"]) if fault else ""
        unmapped = rng.randrange(count) if kind in ("unmapped", "page") and count else None
        if rng.random() < 0.5 or kind in ("shift", "page"):
            self._scatter(submission, count, unmapped, kind)
        else:
            start = self.hbm.allocate(SEGMENT * max(count, 1), align=SEGMENT)
            submission.buffers = [start + SEGMENT * i for i in range(count)]
            fields["data"] = start
            if kind == "data":
                fields["data"] += rng.choice([1, 128, 256])
        if unmapped is not None and kind == "unmapped":
            self.hbm.bad.update(range(submission.buffers[unmapped], submission.buffers[unmapped] + SEGMENT))
        if unmapped is not None:
            submission.faults.add(unmapped)
        for at in submission.buffers:
            if write:
                self.hbm.put(at, rng.randbytes(SEGMENT))
            else:
                self.hbm.permit(at, SEGMENT)
        if write:
            data = b"".join(
                bytes(SEGMENT) if i in submission.faults else self.hbm.get(at, SEGMENT)
                for i, at in enumerate(submission.buffers)
            )
            submission.source = data[: fields["length"]]
        if kind == "data":
            submission.refusal = Status.INVALID
            if fields["flags"] & records.SCATTERED:
                fields["data"] += rng.choice([8, 64])
        if kind == "shift":
            fields["page_shift"] = rng.choice([0, 8, 32, 255])
            submission.refusal = Status.INVALID
        if kind == "long" and write:
            fields["length"] = rng.choice([FRAME + 1, 0xFFFF_FFFF])
            submission.refusal = Status.RANGE

    def _scatter(self, submission: Submission, count: int, unmapped: int | None, kind: str) -> None:
        """Give a command a list of pages; with an `unmapped` segment, its page is not aligned."""
        rng, fields = self.random, submission.fields
        shift = rng.choice([9, 10, 11])
        pages = max(1, -(-count * SEGMENT >> shift))
        starts = [self.hbm.allocate(1 << shift, align=SEGMENT) for _ in range(pages)]
        submission.buffers = [starts[i * SEGMENT >> shift] + (i * SEGMENT & (1 << shift) - 1) for i in range(count)]
        if kind == "page" and unmapped is not None:
            page = unmapped * SEGMENT >> shift
            starts[page] += rng.choice([1, 256])
            submission.faults |= {i for i in range(count) if i * SEGMENT >> shift == page}
        fields["data"] = self.host.allocate(8 * pages, align=128)
        self.host.put(fields["data"], b"".join(at.to_bytes(8, "little") for at in starts))
        fields["page_shift"] = shift
        fields["flags"] |= records.SCATTERED

    # What hardware does.

    def _phase(self, ring: SoftwareRing, number: int) -> int:
        return 1 - number // ring.entries % 2

    def _entry(self, ring: SoftwareRing, number: int) -> dict[str, int]:
        return records.COMPLETION.unpack(self.host.get(ring.completion + 32 * (number % ring.entries), 32))

    def _watch(self, address: int, size: int) -> None:
        """Something was written to host memory: if to a completion ring, everything about it has to be right now."""
        for number, ring in self.rings.items():
            index, within = divmod(address - ring.completion, 32)
            if 0 <= index < ring.entries:
                if (within, size) != (0, 32):
                    raise CheckError(f"{size} bytes are written at byte {within} of a completion")
                absolute = ring.consumed + (index - ring.consumed) % ring.entries
                self._complete(number, ring, absolute, self._entry(ring, absolute))

    def _complete(self, number: int, ring: SoftwareRing, absolute: int, entry: dict[str, int]) -> None:
        if entry["flags"] & records.PHASE != self._phase(ring, absolute) or absolute in ring.written:
            raise CheckError(f"ring {number}: entry {absolute} is written as {entry}, with a wrong phase or again")
        if absolute >= ring.consumed + ring.entries - 1:
            raise CheckError(f"ring {number}: entry {absolute} is written, only {ring.consumed} are consumed")
        ring.written.add(absolute)
        submission = self.by_tag.get(entry["tag"])
        if submission is None or submission.ring != number:
            raise CheckError(f"ring {number}: {entry} is of no command")
        self.completions += 1
        self.progress = self.cycle
        self._judge(submission, entry)
        self._forget(submission)

    def _judge(self, submission: Submission, entry: dict[str, int]) -> None:  # noqa: PLR0912 (opcode by opcode)
        """Compare a completion, and all that has to be in memory by now, with what the node has seen and said."""
        if self.restarted and entry["status"] == Status.UNAVAILABLE:
            return
        fields, answer = submission.fields, submission.answer
        status = answer.get("status")
        count, items = 0, 0
        if submission.refusal is not None:
            if submission.seen:
                raise CheckError(f"{fields} was sent, expected {submission.refusal.name}")
            status = submission.refusal
        elif submission.seen != 1:
            raise CheckError(f"{fields} completes, and was sent {submission.seen} times")
        elif fields["opcode"] == Opcode.LOOKUP:
            items = self._judge_results(submission)
            count = sum(result["status"] == Status.HIT for result in submission.results)
            keys = submission.whole if submission.cut else submission.source
            if submission.keys != keys:
                raise CheckError(f"{len(submission.keys)} bytes of keys were sent, expected {len(keys)}")
            status = Status.INVALID if submission.cut else status
        elif fields["opcode"] == Opcode.WRITE:
            if submission.received != submission.source:
                raise CheckError(f"{len(submission.received)} bytes were sent, or others than {len(submission.source)}")
            status = Status.INVALID if submission.faults else status
            count = self.params.segments(fields["length"])
        elif fields["opcode"] == Opcode.READ:
            for i, (at, data) in enumerate(zip(submission.buffers, submission.sent, strict=False)):
                if i not in submission.faults and self.hbm.get(at, SEGMENT) != data.ljust(SEGMENT, b"\xa5"):
                    raise CheckError(f"segment {i} of a READ of {fields['count']} is not in memory")
            if submission.sent and submission.faults:
                status = Status.INVALID
            count = fields["count"]
        if fields["opcode"] != Opcode.LOOKUP and status != Status.OK:
            count = 0
        keeps = fields["opcode"] != Opcode.LOOKUP and submission.refusal is None
        named, given = (bool(answer.get(name)) and keeps for name in ("named", "pinned"))
        expected = {
            "status": status,
            "count": count,
            "items": items,
            "tag": fields["tag"],
            "handle": answer["handle"] if named else 0,
            "slot": answer["slot"] if given else 0,
            "flags": entry["flags"] & records.PHASE | records.NAMED * named | records.GIVEN * given,
        }
        if entry != expected:
            raise CheckError(f"completion {entry}, expected {expected}")

    def _judge_results(self, submission: Submission) -> int:
        """Compare what was written for each key; return the number of results."""
        results = submission.results if submission.fields["count"] else []
        for i, result in enumerate(results):
            got = records.COMPLETION.unpack(self.host.get(submission.fields["results"] + 32 * i, 32))
            hit = result["status"] == Status.HIT
            expected = {
                "handle": result["handle"] if hit else 0,
                "slot": result["slot"] if hit else 0,
                "tag": 0,
                "count": 0,
                "items": i,
                "status": result["status"],
                "flags": (records.NAMED | records.GIVEN) * hit,
            }
            if got != expected:
                raise CheckError(f"result {i} is {got}, expected {expected}")
        return len(results)

    def _forget(self, submission: Submission) -> None:
        """Nothing may be written for a command any more."""
        fields = submission.fields
        del self.by_tag[fields["tag"]]
        if fields["opcode"] == Opcode.LOOKUP:
            self.host.permit(fields["results"] // 128 * 128, 2 * len(submission.source), yes=False)
        if fields["opcode"] == Opcode.READ:
            for at in submission.buffers:
                self.hbm.permit(at, SEGMENT, yes=False)

    def play(self, software: Software) -> "World":
        """Run software to its end. CheckError if that takes too long, or if something is under way then."""

        async def bench(ctx: SimulatorContext, _: Restart) -> None:
            ctx.set(self.dut.number, PORT)
            bus = Bus(self.dut.axi, software)
            while bus.step(ctx) or not self._quiet(ctx):
                self.cycle += 1
                if self.cycle > self.progress + PATIENCE:
                    raise CheckError(f"nothing ends: {len(self.by_tag)} commands under way")
                self.restart -= self.restart > 0
                if self.restart:
                    self.node.reset()
                ctx.set(self.dut.restarting, self.restart > 0)
                for part in (*self.memories, self.node):
                    part.drive(ctx)
                if ctx.get(self.dut.issued_valid):
                    issued = self.dut.issued
                    tag = ctx.get(issued.tag)
                    self.node.names[ctx.get(issued.link_tag)] = self.by_tag.get(tag)
                if self.restart:
                    ctx.set(self.dut.link.from_node.valid, 0)
                    ctx.set(self.dut.link.to_node.credits, 0)
                for part in self.memories:
                    part.sample(ctx)
                if not self.restart:
                    self.node.sample(ctx)
                await ctx.tick()

        simulate(self.dut, bench)
        left = [each for each in self.by_tag.values() if each.ring in self.rings]
        if left:
            raise CheckError(f"{len(left)} commands have not completed")
        return self

    def _quiet(self, ctx: SimulatorContext) -> bool:
        return self.node.idle() and all(memory.idle() for memory in self.memories)


class Bus:
    """Does the register accesses of software, one after the other."""

    def __init__(self, axi: Any, software: Software) -> None:
        self.axi, self.software = axi, software
        self.access: Access = None
        self.offered: set[str] = set()
        self.taken: set[str] = set()
        self.ended = False

    def step(self, ctx: SimulatorContext) -> bool:
        """A cycle; whether software goes on."""
        axi = self.axi
        ctx.set(axi.bready, 1)
        ctx.set(axi.rready, 1)
        self.offered -= self.taken
        result = None
        if self.access is not None:
            write = self.access[0] == "write"
            if ctx.get(axi.bvalid if write else axi.rvalid):
                response = ctx.get(axi.bresp if write else axi.rresp)
                result = response.value, 0 if write else ctx.get(axi.rdata)
                self.access = None
        if self.access is None and not self.ended:
            try:
                self.access = self.software.send(result)
            except StopIteration:
                self.ended = True
            if self.access is not None:
                self.offered = {"aw", "w"} if self.access[0] == "write" else {"ar"}
                ctx.set(axi.awaddr, self.access[1])
                ctx.set(axi.araddr, self.access[1])
                ctx.set(axi.wdata, self.access[-1])
                ctx.set(axi.wstrb, 0xF)
        for channel in ("aw", "w", "ar"):
            ctx.set(getattr(axi, f"{channel}valid"), channel in self.offered)
        self.taken = {channel for channel in self.offered if ctx.get(getattr(axi, f"{channel}ready"))}
        return not self.ended


def traffic(world: World, commands: int, *, slow: bool = False, losses: float = 0.0) -> Software:
    """Random commands on all rings; now and then a ring is told lost, or disabled amid its commands."""
    rng = world.random
    for number in range(3):
        yield from world.enable(number, log2_entries=rng.choice([1, 2, 3]))
    left = commands
    while left:
        number = rng.randrange(3)
        kind = rng.random()
        if kind < 0.5 and world.room(number):
            world.put(number)
            left -= 1
        if kind < 0.5 and rng.random() < 0.7:
            yield from world.ring_doorbell(number)
        elif 0.5 <= kind < 0.5 + (0.05 if slow else 0.3):
            yield from world.consume(number)
        elif kind > 1 - losses:
            told = world.node.losses[number]
            if rng.random() < 0.5:
                yield from world.write(f"RING{number}_CONTROL", 0)
                yield from world.inactive(number, failed=0, told=told)
                yield from world.enable(number, log2_entries=rng.choice([1, 2, 3]))
            else:
                yield from world.write(f"RING{number}_CONTROL", 3)
                yield from world.ring_doorbell(number)
                yield from world.settle(number)
                while (yield from world.read(f"RING{number}_STATUS")) & 4:
                    yield from world.sleep(2)
                if world.node.losses[number] == told:
                    raise CheckError(f"ring {number} was told lost, and the node was not told")
                world.node.lost.discard(number)
        yield from world.sleep(rng.choice([0, 1, 20]))
    for number in world.rings:
        yield from world.ring_doorbell(number)
        yield from world.settle(number)
        status = yield from world.read(f"RING{number}_STATUS")
        if status != 1:
            raise CheckError(f"ring {number} has status {status:#x} in the end, expected 1")


def play(beat_bytes: int, seed: int, *, commands: int = COMMANDS, rate: float = 0.0, **options: Any) -> World:
    world = World(beat_bytes, seed, rate=rate)
    return world.play(traffic(world, commands, **options))


@pytest.mark.parametrize("beat_bytes", [16, 64, 128])
def test_commands_end_as_the_node_says(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    assert play(beat_bytes, seed).completions == COMMANDS


@pytest.mark.parametrize("beat_bytes", [16, 128])
def test_bad_descriptors_end_by_themselves(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    assert play(beat_bytes, seed, rate=0.6).completions == COMMANDS


@pytest.mark.parametrize("beat_bytes", [32, 64])
def test_rings_are_lost_and_come_back(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    play(beat_bytes, seed, rate=0.1, losses=0.1)


def failing(world: World, what: str) -> Software:
    """A ring fails amid traffic, another one goes on; then it is enabled again, and works."""
    yield from world.write("INTERRUPT_ENABLE", 0xF)
    yield from world.enable(0, log2_entries=3, bad=what)
    yield from world.enable(1, log2_entries=3)
    for number in (0, 0, 1, 0, 1):
        submission = world.put(number, world.look_up if what == "results" else None)
        if what == "results" and number == 0:
            world.host.bad.update(range(submission.fields["results"], submission.fields["results"] + 32))
    for number in (0, 1):
        yield from world.ring_doorbell(number)
    if what in ("TAIL", "HEAD"):
        yield from world.write(f"RING0_{what}", 8)
    yield from world.inactive(0, failed=1, told=0)
    yield from world.settle(1)
    happened = yield from world.read("INTERRUPT_STATUS")
    if happened & 0b1101 != 0b1101:
        raise CheckError(f"interrupts {happened:#x}, expected completion, failed and inactive")
    yield from world.write("INTERRUPT_STATUS", 0xF)
    yield from world.sleep(50)
    yield from world.write("RING0_CONTROL", 0)
    yield from world.enable(0, log2_entries=2)
    world.put(0)
    yield from world.ring_doorbell(0)
    yield from world.settle(0)
    if (yield from world.read("RING0_STATUS")) != 1:
        raise CheckError("a ring that was enabled again is not active, or still failed")


@pytest.mark.parametrize("what", ["submission", "completion", "results", "TAIL", "HEAD"])
def test_a_ring_that_fails_is_lost_alone(what: str, seed: int) -> None:
    print(f"seed {seed}")
    world = World(64, seed)
    world.play(failing(world, what))


def silenced(world: World) -> Software:
    """A ring is disabled while the node holds all of its answers and data back; all of that comes later."""
    yield from world.enable(0, log2_entries=3)
    yield from world.enable(1, log2_entries=3)
    world.node.hold = True
    for make in (world.look_up, world.invent, world.look_up, world.invent, world.invent):
        world.put(0, make)
    yield from world.ring_doorbell(0)
    yield from world.sleep(400)
    yield from world.write("RING0_CONTROL", 0)
    yield from world.sleep(200)
    world.forbid(0)
    if (yield from world.read("RING0_STATUS")) & 1 == 0:
        raise CheckError("a ring is inactive, and commands of it are under way")
    world.node.hold = False
    yield from world.inactive(0, failed=0, told=0)
    world.put(1)
    yield from world.ring_doorbell(1)
    yield from world.settle(1)


def play_silenced(seed: int) -> World:
    world = World(64, seed)
    return world.play(silenced(world))


def test_nothing_of_a_ring_that_is_lost_is_written(seed: int) -> None:
    print(f"seed {seed}")
    play_silenced(seed)


def telling(world: World) -> Software:  # noqa: PLR0915 (one story)
    """Messages, more than there is room for; the event ring is disabled, fails, and comes back."""
    rng, told, got = world.random, deque[bytes](), 0
    size = records.MESSAGE.size

    def tell(count: int) -> None:
        for _ in range(count):
            told.append(rng.randbytes(size - 2) + bytes([rng.getrandbits(8) & ~records.LOST, 0]))
            world.node.message(told[-1])

    def enable(*, bad: bool = False) -> Software:
        nonlocal base
        base = world.host.allocate(64 * 4, align=128, bad=bad)
        world.host.put(base, bytes(64 * 4))
        world.host.permit(base, 64 * 4)
        yield from world.write("EVENT_BASE_LOW", base & 0xFFFF_FFFF)
        yield from world.write("EVENT_BASE_HIGH", base >> 32)
        yield from world.write("EVENT_SIZE", 2)
        yield from world.write("EVENT_CONTROL", 1)

    def expect(number: int, *, lost: bool) -> None:
        entry = world.host.get(base + 64 * (number % 4), 64)
        message = told.popleft()
        want = message[:46] + bytes([message[46] | records.LOST * lost]) + message[47:] + bytes(15)
        if entry != want + bytes([1 - number // 4 % 2]):
            raise CheckError(f"event {number} is {entry.hex()}, expected {want.hex()}")

    base = 0
    tell(2)
    yield from world.sleep(60)
    told.clear()
    yield from enable()
    yield from world.write("EVENT_SIZE", 2, okay=False)
    tell(6)
    yield from world.sleep(300)
    for number in range(3):
        expect(number, lost=False)
    if (dropped := (yield from world.read("COUNT_DROPPED"))) != 5:
        raise CheckError(f"{dropped} messages are dropped, expected 5")
    told.clear()
    yield from world.write("EVENT_HEAD", 3)
    tell(3)
    yield from world.sleep(200)
    for number in range(3, 6):
        expect(number, lost=number == 3)
    got = yield from world.read("INTERRUPT_STATUS")
    if got != 2:
        raise CheckError(f"interrupts {got:#x}, expected event")
    yield from world.write("EVENT_CONTROL", 0)
    tell(1)
    while (yield from world.read("EVENT_STATUS")) & 1:
        yield from world.sleep(3)
    world.host.permit(base, 64 * 4, yes=False)
    yield from world.sleep(100)
    for bad in (True, False):
        yield from enable(bad=bad)
        if bad:
            tell(1)
        else:
            yield from world.write("EVENT_HEAD", 4)
        yield from world.sleep(100)
        status = yield from world.read("EVENT_STATUS")
        if status != 2:
            raise CheckError(f"the event ring has status {status}, expected failed")
        yield from world.write("EVENT_CONTROL", 0)
    told.clear()
    yield from enable()
    tell(1)
    yield from world.sleep(100)
    expect(0, lost=False)


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_messages_become_events_or_are_told_lost(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    world = World(beat_bytes, seed)
    world.play(telling(world))


def again(world: World) -> Software:
    """Traffic, in which old answers and data come once more when their commands have long ended."""
    yield from world.enable(0, log2_entries=3)
    for _ in range(6):
        for _ in range(3):
            world.put(0)
        yield from world.ring_doorbell(0)
        yield from world.settle(0)
        yield from world.sleep(100)
        old, world.node.stale = world.node.stale, []
        for _ in range(3):
            world.put(0)
        yield from world.ring_doorbell(0)
        yield from world.sleep(world.random.randint(10, 60))
        for channel, flits in old:
            world.node.between(channel, flits)
        yield from world.settle(0)


def play_again(seed: int) -> World:
    world = World(64, seed)
    return world.play(again(world))


def test_stale_answers_and_data_are_dropped(seed: int) -> None:
    print(f"seed {seed}")
    play_again(seed)


def restarting(world: World) -> Software:
    """The node restarts amid traffic, again and again: what was under way ends UNAVAILABLE, what comes then works."""
    rng = world.random
    for number in range(3):
        yield from world.enable(number, log2_entries=3)
    for _ in range(4):
        for number in (0, 1, 2, 0, 1, 2, 0, 1, 2):
            world.put(number)
            yield from world.ring_doorbell(number)
        yield from world.sleep(rng.randint(0, 150))
        world.restarted, world.restart = True, rng.choice([2, 20])
        for number in world.rings:
            yield from world.settle(number)
        world.restarted = False
        for number in world.rings:
            world.put(number)
            yield from world.ring_doorbell(number)
        for number in world.rings:
            yield from world.settle(number)


def play_restarting(seed: int, beat_bytes: int = 16) -> World:
    world = World(beat_bytes, seed)
    return world.play(restarting(world))


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_a_restart_of_the_node_ends_what_is_under_way(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    play_restarting(seed, beat_bytes)


def test_registers_are_locked_and_doorbells_read_back() -> None:
    world = World(64, 0)

    def software() -> Software:
        yield from world.enable(2, log2_entries=2)
        for name in ("SUBMISSION_LOW", "SUBMISSION_HIGH", "COMPLETION_LOW", "COMPLETION_HIGH", "SIZE"):
            yield from world.write(f"RING2_{name}", 0x80 if name.endswith("LOW") else 1, okay=False)
        for name in ("TAIL", "HEAD"):
            yield from world.write(f"RING2_{name}", 0)
        world.put(2)
        yield from world.ring_doorbell(2)
        yield from world.settle(2)
        assert (yield from world.read("RING2_TAIL")) == (yield from world.read("RING2_HEAD")) == 1
        assert (yield from world.read("ID")) == 0x4B565251
        assert (yield from world.read("CAP_RINGS")) == KEYS << 16 | 3
        assert (yield from world.read("COUNT_FETCHED")) == 1

    world.play(software())


MUTANTS: dict[str, tuple[type, str, str, Callable[[int], World]]] = {
    "a completion does not wait for its data": (
        Contexts,
        "(ended | ~streamed) & (bursts == 0)",
        "(ended | ~streamed)",
        lambda seed: play(64, seed),
    ),
    "the phase stays after a round": (
        Ring,
        "Mux(self.completed == mask, ~self.phase, self.phase)",
        "self.phase",
        lambda seed: play(64, seed),
    ),
    "room for completions is not counted": (
        Ring,
        "(self.next != state.tail) & (after_next != state.head)",
        "(self.next != state.tail)",
        lambda seed: World(64, seed).overrun(),
    ),
    "a loss is not told": (
        Ring,
        "settings.lose | self.failing | (self.running & ~settings.enable)",
        "settings.lose",
        lambda seed: play(64, seed, losses=0.2),
    ),
    "a ring is inactive before its commands have ended": (
        Ring,
        "~self.telling & (outstanding == 0)",
        "~self.telling",
        lambda seed: play(64, seed, losses=0.2),
    ),
    "a ring that is lost gets completions": (
        Completer,
        "runs.eq((self.running >> done.ring)[0])",
        "runs.eq(1)",
        play_silenced,
    ),
    "a ring that is lost gets results": (
        Finisher,
        "answer.written.eq((self.running >> context.ring)[0])",
        "answer.written.eq(1)",
        play_silenced,
    ),
    "a ring that is lost gets data": (
        Contexts,
        "self.mute.eq(~(self.running >> by_data.data.ring)[0] | beyond)",
        "self.mute.eq(beyond)",
        play_silenced,
    ),
    "a READ that is cut off is taken for whole": (
        Contexts,
        "self.cutting & waits & reads[i] & ~ended",
        "0",
        play_restarting,
    ),
    "a stale tag is accepted": (
        Contexts,
        "there & (uses[number] == tag[bits:])",
        "there",
        play_again,
    ),
    "an error of memory is forgotten": (
        Contexts,
        "m.d.sync += invalid[i].eq(1)",
        "m.d.sync += invalid[i].eq(0)",
        lambda seed: play(64, seed, rate=0.6),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad, run = MUTANTS[name]
    for module in (requester, rings):
        if hasattr(module, target.__name__):
            monkeypatch.setattr(module, target.__name__, mutate(target, good, bad))
    with pytest.raises(CheckError):
        for seed in range(4):
            run(seed)
