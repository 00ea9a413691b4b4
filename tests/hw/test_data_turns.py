"""Turns: reads and writes of a channel go in batches, neither starves, and one alone waits for nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.sections import MemoryParams, PoolParams
from hw.rtl.node.data import turns
from hw.rtl.node.data.turns import Turns
from hw.tb.mutate import mutate
from tests.hw.simulate import Restart, simulate

BATCHES = (1, 4, 16)
"""Bursts of a batch: the least, the usual, the most."""

USUAL = 4


def params_of(batch: int) -> Params:
    """Parameters with batches of so many bursts."""
    return Params(
        memory=MemoryParams(segment_bytes=512, beat_bytes=128, turn_bursts=batch),
        pools=(PoolParams(frame_bytes=4096, frames=4),),
    )


@dataclass
class Channel:
    """A channel that takes an address a cycle: what comes when, and what was let out when.

    - `batch`: bursts of a batch.
    - `reads`, `writes`: how many come in a cycle. A read is under way for `latency` cycles.
    - `log`: cycle and kind of what was let out.
    """

    batch: int
    reads: Callable[[int], int]
    writes: Callable[[int], int]
    latency: int = 20
    log: list[tuple[int, str]] = field(default_factory=list)

    def run(self, cycles: int) -> "Channel":
        """Run so many cycles."""
        dut = Turns(params_of(self.batch))

        async def bench(ctx: SimulatorContext, _: Restart) -> None:
            waiting = {"read": 0, "write": 0}
            until = 0
            for cycle in range(cycles):
                waiting["read"] += self.reads(cycle)
                waiting["write"] += self.writes(cycle)
                ctx.set(dut.reads.waits, waiting["read"] > 0)
                ctx.set(dut.reads.busy, waiting["read"] > 0 or cycle < until)
                ctx.set(dut.writes.waits, waiting["write"] > 0)
                ctx.set(dut.writes.presses, waiting["write"] >= self.batch)
                for kind, side in ("read", dut.reads), ("write", dut.writes):
                    begins = waiting[kind] > 0 and ctx.get(side.may)
                    ctx.set(side.begins, begins)
                    if begins:
                        waiting[kind] -= 1
                        self.log.append((cycle, kind))
                        until = cycle + self.latency if kind == "read" else until
                await ctx.tick()

        simulate(dut, bench)
        return self

    def runs(self) -> list[tuple[str, int]]:
        """How many of a kind were let out in a row."""
        return [(kind, len(list(each))) for kind, each in groupby(kind for _, kind in self.log)]

    def cycles(self, kind: str) -> list[int]:
        """When bursts of a kind were let out."""
        return [cycle for cycle, each in self.log if each == kind]


def each(cycle: int) -> int:
    """One comes in every cycle."""
    return 1


def none(cycle: int) -> int:
    """Nothing ever comes."""
    return 0


def at(*cycles: int) -> Callable[[int], int]:
    """One comes in each of these cycles."""
    return cycles.count


def check_alone(batch: int) -> None:
    assert Channel(batch, at(3, 4, 9), none).run(20).cycles("read") == [3, 4, 9]
    assert Channel(batch, none, at(3, 4, 9)).run(20).cycles("write") == [3, 4, 9]
    assert Channel(batch, each, none).run(50).cycles("read") == list(range(50))
    assert Channel(batch, none, each).run(50).cycles("write") == list(range(50))


def check_batches(batch: int) -> None:
    runs = Channel(batch, each, lambda cycle: cycle > 5).run(20 * batch).runs()[1:-1]
    assert {kind for kind, _ in runs} == {"read", "write"}
    assert {length for _, length in runs} == {batch}


def check_writes_gather(batch: int) -> None:
    channel = Channel(batch, each, lambda cycle: cycle % 8 == 7).run(40 * batch)
    assert {length for kind, length in channel.runs()[:-1] if kind == "write"} == {batch}


def check_late_write(batch: int) -> None:
    patience = params_of(batch).turn_cycles if batch > 1 else 0
    gone = Channel(batch, each, at(10)).run(20 + 2 * patience).cycles("write")
    assert len(gone) == 1
    assert 10 + patience <= gone[0] <= 11 + patience + batch


def check_read_among_writes(batch: int) -> None:
    for come in range(20, 20 + 2 * batch):
        channel = Channel(batch, at(5, come), each).run(50 + 4 * batch)
        gone = channel.cycles("read")
        assert len(gone) == 2, come
        assert sum(come <= cycle < gone[1] for cycle in channel.cycles("write")) <= batch, come


CHECKS = {
    "alone": check_alone,
    "batches": check_batches,
    "writes_gather": check_writes_gather,
    "late_write": check_late_write,
    "read_among_writes": check_read_among_writes,
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", CHECKS)
def test_turns(name: str, batch: int) -> None:
    CHECKS[name](batch)


MUTANTS = {
    "writes wait for nothing": ("quiet.eq(~reads.busy)", "quiet.eq(0)", "alone"),
    "any write turns the bus": ("(writes.presses | late)", "1", "writes_gather"),
    "a write waits for a batch for ever": ("late.eq(waited == patience)", "late.eq(0)", "late_write"),
    "writes go on": ("~writes.waits | (reads.waits & enough)", "~writes.waits", "read_among_writes"),
    "reads go on": ("& (~reads.waits | enough))", "& ~reads.waits)", "batches"),
    "batches of reads have no length": ("& (~reads.waits | enough))", ")", "batches"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad, finder = MUTANTS[name]
    mutant = mutate(turns.Turns, good, bad)
    monkeypatch.setitem(globals(), "Turns", mutant)
    with pytest.raises(AssertionError):
        CHECKS[finder](USUAL)
