"""Sessions that move between two requesters of a compiled system: the new one has all that was accepted, or none of
what was not."""

import os

import pytest

from hw.params.protocol import Status
from hw.rtl.emit import emit
from hw.rtl.gpu import engines
from hw.rtl.gpu.sessions import SessionManager
from hw.rtl.system import System
from hw.tb.harness import Memory
from hw.tb.harness.system import SystemHarness
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.system.moves import Moves, moving_params
from tests.driver.driverbench import PARAMS

MOVING = moving_params(PARAMS)
LATE = Memory(latency=40, jitter=30, reorder=True, interleave=True, answer_willing=0.7, data_willing=0.7)


def move(seed: int, count: int, harness: SystemHarness) -> Moves:
    """So many sessions, two at a time; what has become of them."""
    moves = Moves(harness, MOVING, seed)
    while moves.moved < count:
        moves.round()
        if moves.moved % 1000 == 0:
            print(f"{moves.moved:,} sessions: {dict(moves.ends)}", flush=True)
    answered = sum(moves.level("COUNT_SESSIONS_ANSWERED", port) for port in (0, 1))
    failed = sum(moves.level("COUNT_SESSIONS_FAILED", port) for port in (0, 1))
    assert (answered, failed) == (moves.moved, 0)
    assert not any(moves.level("SESSIONS", port) for port in (0, 1))
    return moves


@pytest.mark.nightly
@pytest.mark.parametrize("memory", [Memory(), LATE], ids=["quick", "late"])
def test_ten_thousand_sessions_move_with_all_that_was_accepted(memory: Memory) -> None:
    seed = int(os.environ["KVNODE_SEED"])
    print(f"seed {seed}")
    moves = move(seed, 5_000, SystemHarness(MOVING, seed=seed, memory=memory, host=memory, hbm=memory))
    assert moves.ends[Status.OK, True] > 0 and moves.ends[Status.STALE, False] > 0


MUTANTS = {
    "the fence is answered before the buffer is drained": ("m.If(self.buffer.drained)", "m.If(1)"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_a_loss_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = mutate(SessionManager, *MUTANTS[name])
    monkeypatch.setitem(engines.KINDS, engines.Owner.SESSIONS, mutant)
    emission = emit(System(MOVING), "system")
    with pytest.raises(CheckError):
        move(0, 1_000, SystemHarness(MOVING, emission=emission, memory=LATE, host=LATE, hbm=LATE))
