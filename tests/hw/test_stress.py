"""A compiled slice under stress: millions of commands, what they have met, how long they took, what losses leave."""

import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import google_crc32c
import pytest

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.params import Params
from hw.params.protocol import REGISTERS, ModelState, Opcode, RingId
from hw.rtl.emit import emit
from hw.rtl.node import fences, parking
from hw.rtl.node import slice as top
from hw.rtl.node.core import internal, tables
from hw.rtl.node.slice import Slice
from hw.tb.core.world import NOT_OURS
from hw.tb.harness.harness import Links, Memory
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.slice import aftermath, coverage
from hw.tb.slice.aftermath import Aftermath
from hw.tb.slice.compiled import CompiledWorld
from hw.tb.slice.coverage import UNREACHABLE, Asker, Bin, Met, problems
from hw.tb.slice.latency import Latencies, Span, Surroundings, bounds
from pymodel.spec import IllegalOperation, InvariantViolation
from pymodel.spec import Slice as Specification
from pymodel.stimulus.probes import ProbingTraffic
from tests.hw.corebench import small
from tests.hw.test_slice import LATE, SHAPES, SLOW

FAR = Memory(latency=300, jitter=100, reorder=True, interleave=True)
PACES: tuple[Mapping[str, Any], ...] = ({}, {"memory": LATE, "links": SLOW}, {"memory": FAR, "links": Links(latency=1)})
"""In a hurry; everything late; memory so far away that much waits for it."""

LIFE = 5_000
"""Commands of a world: in a small slice, generations and slots run out after some thousands."""

MILLIONS = {"small": 3_000_000, "wide": 2_000_000}
"""Commands of each shape in a night; the wider one takes longer for each, and meets rarely what is rare."""

MOMENTS = 1_000
"""Losses of a ring in a night, at the least."""


@dataclass
class Seen:
    """What worlds have seen: bytes read and placed, bins hit; by pace, the longest of each span and its limit; of lost
    rings, how many there were, how many of them had anything, and the most cycles and operations until it was gone."""

    hit: Counter[Bin] = field(default_factory=Counter)
    longest: dict[tuple[int, Span], int] = field(default_factory=lambda: defaultdict(int))
    limits: dict[tuple[int, Span], int] = field(default_factory=dict)
    compared: int = 0
    placed: int = 0
    losses: int = 0
    busy: int = 0
    stocks: int = 0
    crowds: int = 0
    expired: int = 0
    cycles: int = 0
    operations: int = 0

    def add(self, pace: int, compiled: CompiledWorld) -> None:
        """One world more."""
        world, after = compiled.world, compiled.world.aftermath
        self.hit += world.coverage.hit
        for span, cycles in world.latencies.longest.items():
            self.longest[pace, span] = max(self.longest[pace, span], cycles)
            self.limits[pace, span] = compiled.limits[span]
        self.compared += world.compared
        self.placed += world.placed
        self.losses += after.losses
        self.busy += after.busy
        self.stocks += compiled.stocks
        self.crowds += world.latencies.crowds
        self.expired += world.expired
        self.cycles, self.operations = max(self.cycles, after.longest), max(self.operations, after.most)

    def report(self, params: Params) -> None:
        """Print how near anything came to its bound."""
        for (pace, span), limit in self.limits.items():
            print(f"pace {pace}: {span.name} {self.longest[pace, span]:,} cycles, bound {limit:,}")
        print(
            f"{self.losses:,} lost rings, {self.busy:,} of them with something, gone in {self.cycles:,} cycles and"
            f" {self.operations} operations; bounds, for one ring, {aftermath.cycles(params, 1):,} and"
            f" {aftermath.operations(params, 1)}"
        )
        print(f"{self.stocks:,} times counted after a loss; {self.crowds:,} commands at a crowded port")


def stress(params: Params, seed: int, commands: int, life: int = LIFE) -> Seen:
    """Worlds that share so many commands, at one pace after the other; every other has questions put where it hurts."""
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_stress.py")
    seen = Seen()
    for i in range(commands // life):
        script = ProbingTraffic(params, seed + i, without=NOT_OURS) if i % 2 else None
        pace = i % len(PACES)
        compiled = CompiledWorld(params, seed + i, script=script, **PACES[pace])
        try:
            compiled.play(life)
        except (CheckError, IllegalOperation, InvariantViolation):
            print(f"world {i}, seed {seed + i}")
            raise
        compiled.harness.close()
        seen.add(pace, compiled)
        if i % 50 == 0:
            print(f"{(i + 1) * life:,} commands", flush=True)
    seen.report(params)
    assert seen.compared, "no bytes were compared"
    assert seen.placed, "no block was looked for in memory"
    return seen


def test_a_slice_under_stress_keeps_its_bounds(seed: int) -> None:
    seen = stress(small(), seed, 6_000, life=2_000)
    assert problems(seen.hit, complete=False) == []
    assert seen.busy, "no ring was lost that had anything"
    assert seen.stocks, "nothing was counted after a loss"


@pytest.mark.nightly
@pytest.mark.parametrize("shape", SHAPES)
def test_millions_of_commands_meet_everything_and_losses_leave_nothing(shape: str) -> None:
    seen = stress(SHAPES[shape](), int(os.environ["KVNODE_SEED"]), MILLIONS[shape])
    assert problems(seen.hit, complete=shape == "small") == []
    assert min(seen.busy, seen.stocks) >= MOMENTS
    assert seen.expired, "no command was overtaken by a BIND of its ring"


def test_the_table_of_unreachable_bins_is_exact() -> None:
    reachable = Counter(coverage.BINS - {each for row in UNREACHABLE for each in row.bins})
    assert problems(reachable, complete=True) == []
    assert all(row.bins for row in UNREACHABLE)
    listed = Bin(Opcode.UNPIN, Met.HELD, Asker.OTHER_PORT)
    assert len(problems(reachable + Counter([listed]), complete=False)) == 1
    missing = Bin(Opcode.READ, Met.SEALING, Asker.OWN_RING)
    assert len(problems(reachable - Counter([missing]), complete=True)) == 1


RING, OTHER = RingId(0, 0), RingId(1, 0)
AROUND = Surroundings(flit=4, memory=100)


def test_what_takes_too_long_is_found() -> None:
    limits = bounds(small(), AROUND)
    for span, opcode in ((Span.TURN, Opcode.DROP), (Span.SEAL, Opcode.SEAL), (Span.MIGRATION, Opcode.MIGRATE)):
        for late in (0, 1):
            seen = Latencies(small())
            seen.ask((RING, 1), opcode, 0)
            taken = limits[span] + late if span is Span.TURN else 5
            seen.take((RING, 1), taken)
            seen.end((RING, 1), taken if span is Span.TURN else taken + limits[span] + late)
            if late:
                with pytest.raises(CheckError, match=span.name):
                    seen.check(limits)
            else:
                seen.check(limits)
                assert seen.longest[span] == limits[span]


def test_a_command_behind_another_waits_from_its_turn_on() -> None:
    seen = Latencies(small())
    for tag in (1, 2, 3):
        seen.ask((RING, tag), Opcode.DROP, 0)
    seen.take((RING, 1), 100)
    seen.take((RING, 3), 150)
    seen.end((RING, 3), 150)
    assert seen.longest[Span.TURN] == 100, "the third was behind the second, which its port refused"
    seen.answer((RING, 3), 170)
    assert seen.longest[Span.ANSWER] == 20


def lost_and_left(operations: int, apart: int) -> Aftermath:
    """A ring with a pin is lost, and then so many operations of another ring are taken without a turn of the hands."""
    specification = Specification(small())
    after = Aftermath(small(), specification.core)
    cycle = 0

    def follow(op: log.Operation) -> list[Any]:
        told = specification.execute(op)
        after.follow(op, cycle, AROUND)
        return told

    def take(ring: RingId, tag: int, command: c.Command) -> Any:
        return follow(log.Taken(ring, tag, command, 0))[-1]

    take(REGISTERS, 0, c.SetEpoch(1))
    take(REGISTERS, 0, c.SetPartition(0, quota=4))
    take(REGISTERS, 0, c.SetModel(0, ModelState.LIVE))
    for ring in (RING, OTHER):
        take(REGISTERS, 0, c.Bind(ring, 0))
    session = take(RING, 0, c.OpenSession()).session
    handle = take(RING, 0, c.Alloc(0, 7, 512, session)).handle
    data = bytes(512)
    follow(log.Taken(RING, 0, c.Write(handle, 0, data), 0))
    follow(log.Landed(handle.frame, 1))
    follow(log.Taken(RING, 0, c.Seal(handle, 512, google_crc32c.value(data)), 0))
    follow(log.Sealed(handle.frame))
    assert take(RING, 0, c.Lookup(0, [7], pin=True)).count == 1
    take(RING, 0, c.CloseSession(session))
    follow(log.Lost(RING))
    for _ in range(operations):
        cycle += apart
        take(OTHER, 0, c.Drop(0, 8))
    follow(log.Step(log.Hand.PINS, 0, RING))
    return after


def test_a_pin_that_stays_too_long_after_a_loss_is_found() -> None:
    most = aftermath.operations(small(), 1)
    after = lost_and_left(most - 1, 1)
    assert after.settle()
    assert (after.losses, after.busy, after.longest) == (1, 1, most - 1)
    with pytest.raises(CheckError, match="still 1 pins"):
        lost_and_left(most + 1, 1)
    with pytest.raises(CheckError, match="still 1 pins"):
        lost_and_left(2, aftermath.cycles(small(), 1))


def test_a_level_that_is_wrong_after_a_loss_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read = CompiledWorld._read

    def wrong(self: CompiledWorld, statistics: Any) -> dict[str, int]:
        found = read(self, statistics)
        return found | {"parked_used": found["parked_used"] + 1}

    monkeypatch.setattr(CompiledWorld, "_read", wrong)
    with pytest.raises(CheckError, match="the register of parked_used"):
        CompiledWorld(small(), 0).play(3_000)


MUTANTS: dict[str, tuple[Any, Any, str, str]] = {
    "a fence waits for too long": (tables, fences.Fences, "tables.fence_cycles)", "16 * tables.fence_cycles)"),
    "a READ stays parked for too long": (tables, parking.Parking, "tables.park_cycles)", "64 * tables.park_cycles)"),
    "a pin of a lost ring is passed over": (
        internal,
        internal._hands,
        "pin_hand == tables.pins_per_ring - 1",
        "pin_hand == tables.pins_per_ring - 2",
    ),
    "parked READs are not counted": (
        top,
        Slice._report,
        "control.levels.parked_used.eq(core.levels.parked)",
        "control.levels.parked_used.eq(0)",
    ),
}
"""Name to where it is looked up, what it is, what is right and what is wrong."""


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_has_its_place(name: str) -> None:
    _, target, good, bad = MUTANTS[name]
    assert mutate(target, good, bad)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_stress_finds_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    owner = Slice if target is Slice._report else where
    monkeypatch.setattr(owner, target.__name__, mutate(target, good, bad))
    params = small(park_cycles=2_000)  # so that READs are parked when there is rest
    emission = emit(Slice(params), "slice")
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        for seed in range(4):
            script = ProbingTraffic(params, seed, without=NOT_OURS) if seed % 2 else None
            CompiledWorld(params, seed, script=script, memory=LATE, links=SLOW, emission=emission).play(4_000)
