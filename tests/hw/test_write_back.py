"""A write-back buffer alone: every block is sealed or given up, once, and no source is released before that. Most
mutants are for the nights."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from hw.params import records
from hw.params.protocol import Status
from hw.rtl.gpu.write_back import admission, gate, halts, write_back
from hw.rtl.gpu.write_back.admission import Admission
from hw.rtl.gpu.write_back.checksum import Checksum
from hw.rtl.gpu.write_back.flushes import Flushes
from hw.rtl.gpu.write_back.gate import Gate
from hw.rtl.gpu.write_back.issuer import Issuer
from hw.rtl.gpu.write_back.reporter import Reporter
from hw.rtl.gpu.write_back.slots import Slots
from hw.rtl.gpu.write_back.write_back import WriteBack
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.everyday import everyday
from tests.hw import write_back_bench
from tests.hw.agents import expect
from tests.hw.write_back_bench import RINGS, Bench, Task

Story = Generator[None, None, None]
SESSIONS = (3 << 48, 4 << 48 | 7, 5 << 48)


class Traffic:
    """PUTs of all kinds, and FLUSHes of rings and sessions; fences that are reached late."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.fence = [(1 << 32) - 1] * RINGS
        self.waiting: list[tuple[int, int]] = []
        self.open: list[Task] = []

    def some(self, count: int, rings: list[int]) -> Story:
        """So many descriptors on these rings."""
        bench, rng = self.bench, self.bench.random
        while count:
            if bench.room() and rng.random() < 0.25:
                count -= 1
                self._one(rng.choice(rings))
            if self.waiting and rng.random() < 0.05:
                ring, reached = self.waiting.pop(0)
                bench.fences[ring] = reached
            yield

    def reach(self) -> Story:
        """All fences."""
        for ring, reached in self.waiting:
            self.bench.fences[ring] = reached
            yield
        self.waiting = []

    def _one(self, ring: int) -> None:
        bench, rng = self.bench, self.bench.random
        kind = rng.random()
        session = rng.choice(SESSIONS)
        goes_on = next((each for each in self.open if each.released and each.ring == ring), None)
        if kind < 0.15:
            bench.flush(ring, rng.choice([None, session]))
        elif kind < 0.35:
            self.open.append(bench.put(ring, session, flags=records.OPEN))
        elif kind < 0.6 and goes_on:
            self.open.remove(goes_on)
            if goes_on.status is Status.OK:
                task = bench.put(ring, session, flags=rng.choice([0, records.OPEN]), after=goes_on)
                if task.flag(records.OPEN):
                    self.open.append(task)
        elif kind < 0.8:
            self.fence[ring] = self.fence[ring] + rng.choice([1, 2, 1 << 20]) & 0xFFFF_FFFF
            bench.put(ring, session, flags=records.FENCED, fence=self.fence[ring])
            self.waiting.append((ring, self.fence[ring]))
        else:
            bench.put(ring, session)


def plain(bench: Bench) -> Story:
    """Traffic alone."""
    traffic = Traffic(bench)
    bench.fences = list(traffic.fence)
    yield from traffic.some(16, [0, 1])
    yield from traffic.reach()
    while bench.by_context:
        yield
    expect(bench.counted["sealed"] > 0, "none was sealed")


def stopping(bench: Bench) -> Story:
    """A ring stops amid traffic, some of it behind fences that are not reached; another one goes on. It comes back."""
    traffic = Traffic(bench)
    bench.fences = list(traffic.fence)
    for _ in range(2):
        yield from traffic.some(12, [0, 1])
        bench.running[0] = False
        kept = [each for each in traffic.waiting if each[0] == 0]
        traffic.waiting = [each for each in traffic.waiting if each[0]]
        yield from traffic.some(4, [1])
        while any(each.ring == 0 for each in bench.by_context.values()):
            yield
        traffic.waiting += kept
        yield from traffic.reach()
        last = bench.put(1, SESSIONS[0])
        while not last.released:
            yield
        bench.running[0] = True
        traffic.open = [each for each in traffic.open if each.ring]


def cut_off(bench: Bench) -> Story:
    """The link is cut off amid traffic, until nothing is under way."""
    traffic = Traffic(bench)
    bench.fences = list(traffic.fence)
    for _ in range(2):
        yield from traffic.some(12, [0, 1])
        for _ in range(bench.random.choice([0, 100])):
            yield
        bench.cutting = True
        while bench.by_context:
            yield
        bench.cutting = False
        traffic.open = []
        yield from traffic.reach()


def halting(bench: Bench) -> Story:
    """A session is halted amid traffic, with PUTs behind the halt and some whose producer never comes; when it is
    drained it goes on."""
    rng, traffic = bench.random, Traffic(bench)
    bench.fences = list(traffic.fence)
    for _ in range(4):
        yield from traffic.some(rng.randint(1, 9), [0, 1])
        ring, session = rng.choice([0, 1]), rng.choice(SESSIONS)
        if rng.random() < 0.5 and bench.room():
            bench.put(ring, session, flags=records.FENCED, fence=traffic.fence[ring] + 1)
            for _ in range(rng.choice([0, 3, 20])):
                yield
        bench.halted = (ring, session)
        yield
        patience = 2000
        while not bench.drained:
            patience -= 1
            expect(patience > 0, "a session is not drained")
            if patience % 20 == 0 and bench.room():
                bench.put(ring, session)
            if patience == 1500:  # slots of others may stand in the way of what was accepted
                yield from traffic.reach()
            yield
        yield from traffic.some(4, [0, 1])
        bench.halted = None
        yield from traffic.reach()


def leaving(bench: Bench) -> Story:
    """All slots have PUTs of a session, or of others, whose producers never come; PUTs of the session that were
    accepted wait behind them. It is drained, without those."""
    bench.faults, slots = 0, bench.params.requester.slots
    for turn in range(6):
        for _ in range(slots - turn % 2):
            bench.put(0, SESSIONS[0], flags=records.FENCED, fence=1 << 30)
        accepted = [bench.put(0, SESSIONS[0]) for _ in range(4)]
        other = bench.put(0, SESSIONS[1])
        for _ in range(slots + 6):
            yield
        bench.halted = (0, SESSIONS[0])
        for _ in range(2):
            yield
        late = [bench.put(0, SESSIONS[0]) for _ in range(2)]
        while not bench.drained:
            yield
        expect(all(each.status is Status.OK for each in accepted), "what was accepted is lost")
        while not all(each.released for each in (*late, other)):
            yield
        expect(all(each.status is Status.STALE for each in late), "what came behind the halt is taken")
        expect(other.status is Status.OK, "a PUT of another session is lost")
        bench.halted = None
        while bench.by_context:
            yield


def crowded(bench: Bench) -> Story:
    """All slots have PUTs of another session, and wait. What was accepted of one that is halted is waited for; what
    waits for its producer is not."""
    bench.faults = 0
    for turn in range(1, 5):
        for _ in range(bench.params.requester.slots):
            bench.put(1, SESSIONS[1], flags=records.FENCED, fence=turn)
        accepted = bench.put(0, SESSIONS[0]) if turn % 2 else None
        waits = bench.put(0, SESSIONS[0], flags=records.FENCED, fence=1 << 30)
        for _ in range(20):
            yield
        bench.halted = (0, SESSIONS[0])
        for _ in range(60):
            yield
        expect(waits.status is Status.STALE, "what waits for its producer holds its session up")
        expect(bench.drained is (accepted is None), "drained too early, or too late")
        bench.fences[1] = turn
        while not bench.drained:
            yield
        expect(accepted is None or accepted.status is Status.OK, "what was accepted is lost")
        bench.halted = None
        while bench.by_context:
            yield


def growing(bench: Bench) -> Story:
    """Blocks of up to four PUTs."""
    bench.faults = 0
    for parts in (2, 3, 4, 2):
        block = None
        for part in range(parts):
            flags = records.OPEN if part < parts - 1 else 0
            block = bench.put(0, SESSIONS[0], flags=flags, after=block)
            while not block.released:
                yield
            other = bench.put(1, SESSIONS[1])  # in the same slot
            while not other.released:
                yield


def failing(bench: Bench) -> Story:
    """A WRITE fails, and the link is cut off before the ABORT."""
    for _ in range(4):
        bench.faults = 0
        task = bench.put(0, SESSIONS[0])
        while len(task.begun) < 2:
            yield
        bench.faults = 1
        while task.begun[-1][1] is None:
            yield
        bench.cutting = True
        while bench.by_context:
            yield
        bench.cutting = False
        expect(task.status is task.begun[-1][1], "another failure is told than the first")


def filling(bench: Bench) -> Story:
    """As many PUTs as there are slots, at once, behind a fence; then one more."""
    slots = bench.params.requester.slots
    for _ in range(slots):
        bench.put(0, SESSIONS[0], flags=records.FENCED, fence=1)
    for _ in range(slots + 4):
        yield
    expect(bench.counted["taken"] == slots and not bench.counted["full"], f"stalls: {dict(bench.counted)}")
    expect(bench.urgent, "all slots are used, and that is not urgent")
    bench.put(1, SESSIONS[0])
    for _ in range(4):
        yield
    expect(bench.counted["full"] > 0, "a descriptor waits for a slot, and that is not counted")
    bench.fences[0] = 1
    while bench.by_context:
        yield
    for _ in range(2):
        yield
    expect(not bench.urgent, "no slot is used, and that is urgent")


def play(story: Callable[[Bench], Story], seed: int, *, beat_bytes: int = 16, slots: int = 3) -> Bench:
    bench = Bench(beat_bytes, slots, seed)
    return bench.play(story(bench))


NIGHTLY = pytest.mark.nightly


@pytest.mark.parametrize(
    "story",
    [plain, cut_off, leaving, *(pytest.param(story, marks=NIGHTLY) for story in (crowded, stopping, halting))],
)
@pytest.mark.parametrize(("beat_bytes", "slots"), [(16, 3), pytest.param(64, 5, marks=NIGHTLY)])
def test_blocks_are_sealed_or_given_up(story: Callable[[Bench], Story], beat_bytes: int, slots: int, seed: int) -> None:
    print(f"seed {seed}")
    play(story, seed, beat_bytes=beat_bytes, slots=slots)


@pytest.mark.nightly
@pytest.mark.parametrize("slots", [1, 2])
def test_few_slots_are_enough(slots: int, seed: int) -> None:
    print(f"seed {seed}")
    for story in (plain, cut_off, failing, growing):
        play(story, seed, slots=slots)


def test_a_put_finds_its_slot_at_once_and_many_are_urgent() -> None:
    play(filling, 0, slots=4)


MUTANTS: dict[str, tuple[Any, str, str, Callable[[Bench], Story]]] = {
    "a SEAL does not wait for the CRC32C": (Slots, "with m.If(moved & summed)", "with m.If(moved)", plain),
    "a WRITE that fails is not given up": (Slots, "m.If(status != Status.OK)", "m.If(0)", plain),
    "a SEAL that fails is not given up": (Slots, "m.If(self.ended.status != Status.OK)", "m.If(0)", plain),
    "an open block is sealed": (Slots, "Mux(known.open, Phase.ANSWER, Phase.ASK_SEAL)", "Phase.ASK_SEAL", plain),
    "a source is released with its WRITE": (
        Slots,
        "Mux(known.open, Phase.ANSWER, Phase.ASK_SEAL)",
        "Phase.ANSWER",
        plain,
    ),
    "a slot is free with its answer": (
        Slots,
        "m.If(self.released & (self.context == known.context))",
        "m.If(1)",
        plain,
    ),
    "a slot is free with another's completion": (
        Slots,
        "self.released & (self.context == known.context)",
        "self.released",
        plain,
    ),
    "the last failure is told": (Slots, "with m.If(status == Status.OK):", "with m.If(1):", failing),
    "what EXISTS is written": (Slots, "self.ended.status != Status.GRANTED", "0", plain),
    "the CRC32C of the block before stays": (Slots, "summed.eq(0)", "summed.eq(summed)", plain),
    "a fence is not waited for": (Gate, "may.eq(reached(self.fences, self.row))", "may.eq(1)", plain),
    "a fence does not wrap": (halts.reached, "| ~ahead[-1]", "| (fences[row.ring] >= descriptor.results[:32])", plain),
    "the fence of another ring": (halts.reached, "fences[row.ring]", "fences[0]", plain),
    "a fence outlasts its ring": (Gate, "(dead | may | leaves)", "(may | leaves)", stopping),
    "a fence outlasts the link": (Gate, "dead.eq(self.cutting | ", "dead.eq(", cut_off),
    "a session is not halted": (Gate, "self.stale.eq(leaves & (too_late | ~may))", "self.stale.eq(0)", leaving),
    "what was accepted is dropped": (Gate, "leaves & (too_late | ~may)", "leaves", leaving),
    "what comes behind a halt is accepted": (Gate, "(too_late | ~may)", "~may", leaving),
    "a halt outlasts itself": (Gate, "m.d.sync += late.eq(0)", "pass", halting),
    "the session of another ring is halted": (halts.halted, "& (halt.ring == row.ring)", "", halting),
    "a session is drained while some of it waits for a slot": (Gate, " | self.early", "", crowded),
    "what waits for a slot is late": (Admission, "(stays & leaves)", "0", leaving),
    "what came behind a halt has a slot as if before": (Admission, "leaves & (count == 0)", "0", leaving),
    "what waits for a slot and a producer holds a session up": (
        Admission,
        "dead | (marking & leaves & ~reached(self.fences, task))",
        "dead",
        crowded,
    ),
    "a PUT of a session that ends untold stays counted": (
        Admission,
        "(self.take | (self.dropped.valid & self.dropped.ready)) & leaves",
        "self.take & leaves",
        halting,
    ),
    "a session is drained at once": (Gate, "self.drained.eq(clean == slots)", "self.drained.eq(clean != 0)", halting),
    "a session is never drained": (Gate, "(phase != Phase.FREE)", "1", halting),
    "the Mover is not waited for": (Issuer, "self.mover_free & ~moving", "1", plain),
    "a WRITE on its way is not waited for": (Issuer, "self.mover_free & ~moving", "self.mover_free", plain),
    "what arrives at the Mover is another's": (Issuer, " & (self.arrived.tag == moving_tag)", "", plain),
    "a block goes on at its beginning": (Issuer, "Mux(put.flags.engine.put.appended, put.segment, 0)", "0", growing),
    "a new block begins amid itself": (
        Issuer,
        "Mux(put.flags.engine.put.appended, put.segment, 0)",
        "put.segment",
        plain,
    ),
    "the length of a SEAL is that of its WRITE": (
        Issuer,
        "(first << segment_shift) + put.length",
        "put.length",
        growing,
    ),
    "an empty end is sealed with an old CRC32C": (Issuer, "Mux(self.moved, self.crc, put.crc)", "self.crc", growing),
    "the bound of an open block is its first part": (
        Issuer,
        "Mux(put.flags.engine.put.open, put.count << segment_shift, put.length)",
        "put.length",
        plain,
    ),
    "commands go on when the link is cut off": (Issuer, "dead.eq(self.cutting | ", "dead.eq(", cut_off),
    "segments of another are told": (Reporter, "Mux(moved, self.segments, 0)", "self.segments", plain),
    "segments are not told of what fails": (
        Reporter,
        "self.wrote.valid.eq(taken & moved)",
        "self.wrote.valid.eq(taken & moved & (status == Status.OK))",
        plain,
    ),
    "the CRC32C so far is not told": (Reporter, "answer.outcome.slot.eq(", "answer.outcome.slot.eq(0 & ", growing),
    "what is of a ring that has stopped waits for a slot": (Admission, "stopped | unmarked", "unmarked", stopping),
    "what has stopped is dropped too late": (Admission, "self.tasks.valid & ~turns", "self.tasks.valid", stopping),
    "others are dropped with what has stopped": (
        Admission,
        "dead.eq(~(self.running >> task.ring)[0])",
        "dead.eq(1)",
        stopping,
    ),
    "what waits is lost count of": (Admission, "waiting + comes - leaves", "waiting + comes", stopping),
    "a FLUSH waits for nothing": (Admission, "self.before.eq(found & used)", "self.before.eq(0)", plain),
    "a FLUSH misses the last slot": (Admission, "left.eq(slots - 1)", "left.eq(slots - 2)", plain),
    "a FLUSH forgets": (Flushes, "waits & used", "waits & used & (waits - 1)", plain),
    "a block goes on with a CRC32C of its own": (Checksum, "Mux(amid, 0, self.before)", "0", growing),
    "every beat goes on": (Checksum, "amid.eq(~end)", "amid.eq(0)", growing),
    "the data of others counts": (Checksum, " & (flit.tag == write.tag)", "", plain),
    "a WRITE ends with its first segment": (Checksum, "flit.last & (flit.segment == write.last)", "flit.last", plain),
    "the CRC32C of another slot": (Checksum, "out.slot.eq(order.o.payload)", "out.slot.eq(of_slot)", plain),
    "a new block goes on": (
        WriteBack,
        "Mux(descriptor.flags.engine.put.appended, descriptor.crc, 0)",
        "descriptor.crc",
        plain,
    ),
    "the handle of the WRITE is the block's": (WriteBack, "(phase == Phase.ALLOC)", "(phase == Phase.WRITE)", plain),
    "it is never urgent": (WriteBack, "used >= requester.high_mark", "0", filling),
    "it stays urgent": (WriteBack, "used < requester.low_mark", "0", filling),
}

EVERYDAY = "a source is released with its WRITE"
"""The gravest; the others are found in nightly runs."""


@pytest.mark.parametrize("name", everyday(MUTANTS, EVERYDAY))
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad, story = MUTANTS[name]
    for module in (admission, gate, write_back, write_back_bench):
        if hasattr(module, target.__name__):
            monkeypatch.setattr(module, target.__name__, mutate(target, good, bad))
    with pytest.raises((CheckError, AssertionError)):
        for seed in range(8):
            play(story, seed)
