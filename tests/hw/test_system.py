"""The system: requesters and a node together, compiled, with rings that are full."""

from collections import Counter

import pytest

from hw.params.protocol import Status
from hw.params.records import COMPLETION, PHASE
from hw.rtl.emit import emit
from hw.rtl.system import System
from hw.tb.harness import Memory
from hw.tb.harness.system import SystemHarness
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.system.load import Ring, busy
from tests.driver.driverbench import PARAMS

MUTANTS = {
    "requesters_reach_each_others_memory": ("wiring.flipped(self.hbm[i])", "wiring.flipped(self.hbm[i - 1])"),
    "what_is_issued_is_told_of_another_port": ("self.issued[i].valid", "self.issued[i - 1].valid"),
    "registers_of_another_port": ("self.axi[self._slices + i]", "self.axi[-1 - i]"),
}
LENGTH = PARAMS.pools[0].frame_bytes
READ, WRITTEN = (Status.OK, PARAMS.segments(LENGTH), LENGTH), (Status.WRITE_ONCE, 0, 0)
"""Status, count and slot of a completion."""
LATE = Memory(latency=40, jitter=30, reorder=True, interleave=True, answer_willing=0.7, data_willing=0.7)


def completions(ring: Ring) -> list[dict[str, int]]:
    """Those that software has not yet looked at."""
    size, found = COMPLETION.size, []
    for at in range(ring.head * size, len(ring.completions), size):
        completion = COMPLETION.unpack(bytes(ring.completions[at : at + size]))
        if not completion["flags"] & PHASE:
            break
        found.append(completion)
    return found


@pytest.mark.parametrize("memory", [Memory(), LATE], ids=["quick", "late"])
def test_full_rings_move_data_both_ways(memory: Memory, seed: int) -> None:
    """READs end OK, with all bytes, and WRITEs of sealed blocks WRITE_ONCE, each once, at every port; data stays."""
    print(f"seed {seed}")
    play(SystemHarness(PARAMS, seed=seed, memory=memory, host=memory, hbm=memory))


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_connection_is_found(name: str) -> None:
    emission = emit(mutate(System, *MUTANTS[name])(PARAMS), "system")
    with pytest.raises((AssertionError, CheckError)):
        play(SystemHarness(PARAMS, emission=emission))


def play(harness: SystemHarness) -> None:
    """Keep rings busy for a while, and judge what came of it."""
    rings = busy(harness, PARAMS)
    before = [bytes(ring.data) for ring in rings]
    harness.run(10_000)
    issued = harness.issued()
    for ring, data in zip(rings, before, strict=True):
        done = completions(ring)
        found = Counter((Status(each["status"]), each["count"], each["slot"]) for each in done)
        assert found.keys() == {READ, WRITTEN}
        assert len(done) > 10 and abs(found[READ] - found[WRITTEN]) <= PARAMS.requester.commands
        ended, sent = [each["tag"] for each in done], [each.tag for each in issued if each.port == ring.port]
        assert sent == list(range(len(sent)))
        assert len(set(ended)) == len(ended) and set(ended) <= set(sent[ring.head :])
        assert len(sent) - ring.head - len(ended) <= PARAMS.requester.commands
        assert ring.data == data
