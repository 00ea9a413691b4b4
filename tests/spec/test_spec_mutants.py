"""Each invariant's check can fail: a seeded bug for every number, and who notices it.

A mutant changes one place in the source of one function, everywhere that it is used. The traffic that finds it finds
nothing in the specification as it is.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import test_spec_lifetimes as lifetimes
import test_spec_quotas as quotas
import test_spec_replacement as replacement
from specbench import SMALL, A, Bench, fuzz, seed_bug
from stories import stories
from test_spec_statuses import SCENARIOS

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.protocol import REGISTERS, Opcode, Status
from pymodel.spec import InvariantViolation, admin, blocks, internal, sessions
from pymodel.spec.core import Core
from pymodel.spec.replacement import Replacement
from pymodel.spec.scope import Scope
from pymodel.spec.slots import Slots

SEEDS = range(8)
OPERATIONS = 4000


def fuzzed(seed: int) -> None:
    """Traffic of one seed."""
    fuzz(SMALL, seed, OPERATIONS, audit_every=4)


def migrations(seed: int) -> None:
    """Every interleaving of a small migration with the loss of its old ring."""
    for _ in stories(log.Lost(A)):
        pass


def directed(test: Callable[..., None], *arguments: object) -> Callable[[int], None]:
    """A directed test."""
    return lambda _: test(*arguments)


def told(story: Callable[[Bench], object]) -> Callable[[int], None]:
    """A story told on the bench."""
    return lambda _: story(Bench())


def abort_of_a_dropped_block(bench: Bench) -> None:
    """ABORT of a block whose partition has died, before the sweep."""
    handle = bench.alloc(A, bench.open(), 1)
    bench.must(REGISTERS, c.DropPartition(0))
    bench.do(A, c.Abort(handle))


class Mutant(NamedTuple):
    """What is changed, into what, the invariant that this breaks (or one of several), and what notices."""

    invariant: int | tuple[int, ...]
    function: Callable[..., Any]
    old: str
    new: str
    hunt: Callable[[int], None] = fuzzed


MUTANTS = {
    "reads what has not landed": Mutant(1, blocks.reading, "mine and end <= frame.landed", "mine"),
    "hits what is being written": Mutant(
        1, blocks.look, "own is not None and own.state is FrameState.SEALED", "own is not None"
    ),
    "seals what has not landed": Mutant(1, internal.decidable, " and frame.answered == frame.accepted", ""),
    "seals in spite of a memory error": Mutant(
        1,
        internal.sealed,
        "if frame.landed < frame.accepted:",
        "if frame.landed < 0:",
        told(SCENARIOS[Opcode.SEAL, Status.MEM_ERROR]),
    ),
    "counts failed writes as landed": Mutant(
        1,
        internal.landed,
        "good = op.segments - (not op.ok)",
        "good = op.segments",
        told(SCENARIOS[Opcode.SEAL, Status.MEM_ERROR]),
    ),
    "returns a segment too few": Mutant(
        2, internal.read_done, "command.segment + command.count]", "command.segment + command.count - 1]"
    ),
    "takes any CRC": Mutant(2, blocks.seal, "if command.crc != frame.crc:", "if False:"),
    "hides public blocks": Mutant(
        2, blocks.look, "if shared is not None and shared.state is FrameState.SEALED:", "if False:"
    ),
    "prefers a public block to the own": Mutant(
        2, blocks.look, "if own is not None and own.state is FrameState.SEALED:", "if False:"
    ),
    "stores segments in the wrong order": Mutant(
        3, blocks.write, "frame.segments.append(data)", "frame.segments[:0] = [data]"
    ),
    "forgets bytes while they are read": Mutant(
        3, Core.drain, "frame.state = FrameState.DRAINING", "frame.state, frame.segments = FrameState.DRAINING, []"
    ),
    "outlives its model": Mutant(
        4, Core.alive, "if not self.models[frame.tag.model].scope.alive(frame.model_stamp):", "if False:"
    ),
    "outlives its partition": Mutant(
        4, Core.alive, "if not frame.partition.scope.alive(frame.partition_stamp):", "if False:"
    ),
    "reads without a mask": Mutant(
        4, Core.readable, "owner.public and bool(reader.read_mask >> owner.id & 1)", "owner.public"
    ),
    "lets stamps come back": Mutant(
        4,
        Scope.bump,
        "elif self.bumps < self.stamps - 1:",
        "elif True:",
        directed(lifetimes.test_a_dead_generation_never_comes_back_however_often_its_scope_dies),
    ),
    "forgets what a closed scope has killed": Mutant(4, Scope.bump, "self.stale += self.live", "self.stale += 0"),
    "frees what is being read": Mutant(5, internal.drainable, "not frame.held", "frame.pins == 0"),
    "frees what memory has not answered": Mutant(5, internal.drainable, " and frame.answered == frame.accepted", ""),
    "evicts what is held": Mutant(5, Replacement._candidate, "and not frame.held", ""),
    "gives names of pins and sessions out again": Mutant(
        (5, 7), Slots.release, "self._generations[slot] += 1", "self._generations[slot] += 0"
    ),
    "does not count a pin": Mutant(5, blocks.lookup, "frame.pins += 1", "frame.pins += 0"),
    "grants a second writer": Mutant(
        6, blocks.alloc, "if old is not None and core.alive(old):", "if old is not None and old.state.name == 'SEALED':"
    ),
    "leaves an evicted tag in the index": Mutant(
        6,
        Core.evict,
        "self._unlink(frame)",
        "pass",
        directed(replacement.test_victims_are_taken_in_the_order_of_the_hand),
    ),
    "takes handles of other generations": Mutant(7, Core.block, " and handle.generation == frame.generation", ""),
    "lets the rings of a migration write at once": Mutant(7, sessions.standing, "if ring is session.ring:", "if True:"),
    "lets a dead block be aborted": Mutant(
        7, blocks.writable, "require(core.alive(frame), Status.STALE)", "pass", told(abort_of_a_dropped_block)
    ),
    "grows beyond its quota": Mutant(
        8, Replacement.choose, "partition.used >= partition.quota", "partition.used > partition.quota"
    ),
    "lends what is guaranteed": Mutant(
        8,
        Replacement.choose,
        "self.borrowed(pool) < self.lendable(pool)",
        "True",
        directed(quotas.test_guaranteed_frames_are_not_lent),
    ),
    "counts guarantees as lendable": Mutant(
        8,
        Replacement.lendable,
        " - sum(p.guarantee for p in self._sharers(pool))",
        "",
        directed(quotas.test_guaranteed_frames_are_not_lent),
    ),
    "counts nothing as borrowed": Mutant(
        8, Replacement.borrowed, "p.used - p.guarantee", "0", directed(quotas.test_guaranteed_frames_are_not_lent)
    ),
    "lends what is worn out": Mutant(
        8,
        Replacement.lendable,
        " - pool.quarantined",
        "",
        directed(quotas.test_what_is_worn_out_is_not_lent),
    ),
    "loses frames": Mutant(8, Core.free, "frame.pool.free.append(frame)", "pass"),
    "does not count what drains": Mutant(
        8,
        Core.drain,
        "frame.state = FrameState.DRAINING",
        "frame.state = FrameState.DRAINING; frame.partition.used -= 1",
    ),
    "passes a fence before its writes": Mutant(
        9, internal.passable, "return session.settled >= fence.writes", "return True", migrations
    ),
    "answers own landed reads PENDING": Mutant(
        9, blocks.reading, "mine and end <= frame.landed", "mine and end < frame.landed"
    ),
    "moves a session without its ring": Mutant(
        9, internal.fenced, "session.former, session.ring = session.ring, fence.target", "session.former = session.ring"
    ),
    "completes twice": Mutant(10, Core.finish, "self.outstanding.pop((ring, tag))", "self.outstanding[ring, tag]"),
    "forgets a parked READ": Mutant(
        10, internal.step_parked, "core.finish(parked.ring.id, parked.tag, verdict)", "pass"
    ),
    "forgets a SEAL": Mutant(
        10,
        Core.drain,
        "self.finish(*frame.sealing, Status.STALE)",
        "pass",
        directed(lifetimes.test_whatever_kills_a_sealing_block_its_seal_ends_stale, "drop"),
    ),
    "binds a ring with pins": Mutant(
        11,
        admin.quiet,
        "len(ring.pins) or ",
        "",
        directed(lifetimes.test_a_ring_changes_hands_only_when_nothing_of_it_is_left, "pin"),
    ),
    "binds a ring with sessions": Mutant(
        11,
        admin.quiet,
        "ring.sessions or ",
        "",
        directed(lifetimes.test_a_ring_changes_hands_only_when_nothing_of_it_is_left, "session"),
    ),
    "binds a ring with commands under way": Mutant(
        11,
        admin.quiet,
        " or any(owner == ring.id for owner, _ in core.outstanding)",
        "",
        directed(lifetimes.test_a_ring_changes_hands_only_when_nothing_of_it_is_left, "read"),
    ),
    "moves a session of a lost ring": Mutant(11, internal.passable, " or session.ring.lost", "", migrations),
}


def broken(mutant: Mutant) -> tuple[int, ...]:
    """The invariants that a mutant may break first."""
    return mutant.invariant if isinstance(mutant.invariant, tuple) else (mutant.invariant,)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught_by_its_invariant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    seed_bug(monkeypatch, mutant.function, mutant.old, mutant.new)
    with pytest.raises(InvariantViolation) as caught:
        for seed in SEEDS:
            mutant.hunt(seed)
    assert caught.value.number in broken(mutant)


@pytest.mark.parametrize("number", SEEDS)
def test_the_same_stimulus_finds_nothing_in_the_specification(number: int) -> None:
    fuzzed(number)


def test_every_invariant_without_a_clock_has_mutants() -> None:
    assert {number for mutant in MUTANTS.values() for number in broken(mutant)} == set(range(1, 12))
