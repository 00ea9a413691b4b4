"""A session moves between two rings while they write: judged by a ledger of its own, and by the specification."""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from hw.params.protocol import Status
from hw.rtl.node.core import blocks, core, sessions, tables
from hw.tb.migrations import Migrations
from hw.tb.migrations.traffic import FATES, KIND
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import CompiledWorld
from pymodel.spec import IllegalOperation, InvariantViolation, internal
from pymodel.spec import blocks as spec_blocks
from pymodel.spec.check.monitor import Monitor
from tests.everyday import everyday
from tests.hw.corebench import play, small
from tests.hw.test_slice import LATE, SLOW

LIFE = 100
"""Migrations of one slice: its slots and generations last for some more."""


def interleave(seed: int, count: int) -> Counter[tuple[str, Status]]:
    """So many migrations, on compiled slices, in turn in a hurry and with everything late; return how they ended."""
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_migrations.py", flush=True)
    paces: tuple[dict[str, Any], ...] = ({"memory": LATE, "links": SLOW}, {})
    ends: Counter[tuple[str, Status]] = Counter()
    reads: Counter[str] = Counter()
    flying = 0
    for i in range(0, count, LIFE):
        moves = Migrations(small(), seed + i, min(LIFE, count - i))
        world = CompiledWorld(small(), seed + i, script=moves, **paces[i // LIFE % len(paces)])
        world.play(1 << 30)
        world.harness.close()
        ends += moves.ends
        reads += moves.ledger.reads
        flying += moves.flying
        print(f"{ends.total():,} of {count:,} migrations: {flying:,} answered with WRITEs under way", flush=True)
    assert ends.total() == count
    assert flying > count // 10
    assert min(reads[kind] for kind in ("sealed", "unsealed", "dead")) > count // 10
    return ends


def test_nothing_is_read_early_and_nothing_is_lost(seed: int) -> None:
    assert Status.OK in {status for _, status in interleave(seed, 60)}


@pytest.mark.nightly
def test_ten_thousand_interleavings() -> None:
    ends = interleave(int(os.environ["KVNODE_SEED"]), 10_000)
    assert {fate for fate, _ in ends} == set(FATES)
    assert {status for _, status in ends} == {Status.OK, Status.STALE, Status.UNAVAILABLE}


def play_kindly(seed: int, count: int) -> Migrations:
    """Migrations in the core alone, in the Amaranth simulator, all of which go well in time: no fence runs out."""
    params = small(generation_bits=16, slot_generation_bits=16, fence_cycles=1 << 20)
    moves = Migrations(params, seed, count, KIND)
    play(params, seed, script=moves)
    assert moves.over
    return moves


def test_a_fence_that_is_answered_rightly_passes() -> None:
    assert {status for _, status in play_kindly(0, 4).ends} == {Status.OK}


MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "fence passes without its writes": (
        sessions,
        sessions._answer_fence,
        "fences.land.eq(owner.settled >= op.length)",
        "fences.land.eq(1)",
    ),
    "read by the ring that the session moves to": (
        blocks,
        blocks.reading,
        "& t.owned",
        "& (t.owned | t.owner.moving)",
    ),
    "given up writes not settled": (blocks, blocks.drop, "t.settle(t.frame.accepted - t.frame.answered)", ""),
    "former ring not refused": (
        core,
        tables.Tables,
        "(self.owned & (~owner.moving",
        "((self.owned | (owner.moved & (owner.former == self.op.stamp))) & (~owner.moving",
    ),
    "accepted writes not counted": (blocks, blocks._append, "t.change_session(written=t.owner.written + 1)", ""),
}
"""Name to where it is looked up, what it is, what is right and what is wrong."""

EVERYDAY = "fence passes without its writes"


@pytest.mark.parametrize("name", everyday(MUTANTS, EVERYDAY))
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        for seed in range(4):
            play_kindly(seed, 30)


SHARED = {
    "fence passes without its writes": (
        internal,
        internal.passable,
        "return session.settled >= fence.writes",
        "return True",
        "accepted before the fence ended|writes were to come",
    ),
    "read by the ring that the session moves to": (
        spec_blocks,
        spec_blocks.reading,
        "session.ring is ring",
        "(session.ring is ring or session.fence is not None)",
        "by a ring that had not the session",
    ),
}
"""Bugs of the specification as well, so that it agrees with the core; and what the ledger says."""


@pytest.mark.parametrize("name", everyday(SHARED, EVERYDAY))
def test_ledger_finds_what_the_specification_has_wrong_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    where, target, good, bad, says = SHARED[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    for check in ("before", "after", "audit"):
        monkeypatch.setattr(Monitor, check, lambda *_: None)
    with pytest.raises(InvariantViolation, match=says):
        for seed in range(4):
            play_kindly(seed, 30)
