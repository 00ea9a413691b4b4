"""The table of READs under way, against a model."""

from collections.abc import Callable
from random import Random

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.sections import MemoryParams, RequesterParams
from hw.rtl.gpu.prefetch.fills import Fills
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.simulate import Restart, simulate

FILLS, WINDOW = 4, 5
PARAMS = Params(
    memory=MemoryParams(beat_bytes=16, segment_bytes=512),
    requester=RequesterParams(commands=8, prefetches=2, fills=FILLS, fill_segments=2, window_segments=WINDOW),
)


def run(seed: int, build: Callable[[Params], Fills] = Fills, *, cycles: int = 600) -> int:  # noqa: PLR0915 (a model)
    """Return how many were merged. CheckError if the table differs from the model."""
    rng, dut, merges = Random(seed), build(PARAMS), 0

    async def bench(ctx: SimulatorContext, _: Restart) -> None:  # noqa: PLR0912, PLR0915
        nonlocal merges
        reads: dict[int, tuple[int, int]] = {}  # by fill: segment and count
        users: dict[int, int] = {}
        over: dict[int, int] = {}  # by fill: status
        begun: list[int] = []  # to be seen on starts, in order
        running: list[int] = []
        ready = False
        for _ in range(cycles):
            wanted = rng.randrange(3), rng.randint(1, 2)
            ctx.set(dut.ask, ask := rng.random() < 0.6)
            ctx.set(dut.read, {"segment": wanted[0], "count": wanted[1], "room": 512})
            ctx.set(dut.starts.ready, ready := rng.random() < 0.5)
            ends = rng.choice(running) if running and rng.random() < 0.3 else None
            status = rng.randrange(18)
            ctx.set(dut.ended.valid, ends is not None)
            if ends is not None:
                ctx.set(dut.ended.payload.job, ends)
                ctx.set(dut.ended.payload.outcome.status, status)
            leaves = rng.choice(list(over)) if over and rng.random() < 0.4 else None
            ctx.set(dut.release, leaves is not None)
            ctx.set(dut.releasing, leaves or 0)
            if leaves is not None and ctx.get(dut.fate.status) != over[leaves]:
                raise CheckError(f"fill {leaves} has another fate than {over[leaves]}")
            if ctx.get(dut.over) != sum(1 << fill for fill in over):
                raise CheckError(f"{ctx.get(dut.over):b} are over, expected {sorted(over)}")
            same = [fill for fill, read in reads.items() if read == wanted and fill not in over]
            flying = sum(count for fill, (_, count) in reads.items() if fill not in over)
            offered = bool(begun)
            if ctx.get(dut.starts.valid) != offered:
                raise CheckError("a READ begins that none has asked for, or does not begin")
            if offered and ctx.get(dut.starts.payload.job) != begun[0]:
                raise CheckError("another READ begins")
            room = len(reads) < FILLS and flying + wanted[1] <= WINDOW and (not offered or ready)
            granted, fill = ctx.get(dut.granted), ctx.get(dut.fill)
            if granted != (ask and (bool(same) or room)):
                raise CheckError(f"granted {granted}, with {flying} segments under way and {same} the same")
            if offered and ready:
                running.append(begun.pop(0))
            if ends is not None:
                running.remove(ends)
                over[ends] = status
            if leaves is not None:
                users[leaves] -= 1
                if not users[leaves]:
                    del over[leaves], users[leaves], reads[leaves]
            if granted and same:
                if fill != same[0]:
                    raise CheckError(f"fill {fill} is not the one that is the same, {same}")
                users[fill] += 1
                merges += 1
            elif granted:
                if fill in reads:
                    raise CheckError(f"fill {fill} is given twice")
                reads[fill], users[fill] = wanted, 1
                begun.append(fill)
            await ctx.tick()

    simulate(dut, bench)
    return merges


def test_fills_are_granted_merged_and_released(seed: int) -> None:
    print(f"seed {seed}")
    assert run(seed) > 10


MUTANTS = {
    "a fill that is over is merged into": ("& used[i] & ~self.over[i]", "& used[i]"),
    "another READ is merged into": ("(reads[i] == read)", "(reads[i].segment == read.segment)"),
    "the window is one segment larger": ("flying + read.count <= window", "flying + read.count <= window + 1"),
    "an end is not counted": ("Mux(allocate, read.count, 0) - ending", "Mux(allocate, read.count, 0)"),
    "a fill that is merged into is freed by the first": ("left & (users == 1)", "left"),
    "a start is overwritten": ("(~starts.valid | starts.ready)", "1"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str) -> None:
    good, bad = MUTANTS[name]
    mutant = mutate(Fills, good, bad)
    with pytest.raises(CheckError):
        for seed in range(4):
            run(seed, mutant)
