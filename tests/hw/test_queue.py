"""The queue between two streams: everything once and in order, at once where it may, and nothing withdrawn."""

import random
from collections import deque

import pytest
from amaranth.sim import SimulatorContext

from hw.rtl import queue
from hw.rtl.queue import Queue
from hw.tb.mutate import mutate
from tests.hw.simulate import Restart, simulate

CYCLES = 1_000
PAYLOADS = 1 << 16


def check(*, depth: int, passing: bool, seed: int) -> int:
    """Offer and take at random, in phases of their own; return the least cycles from entry to exit."""
    dut = Queue(PAYLOADS.bit_length() - 1, depth=depth, passing=passing)
    inside: deque[tuple[int, int]] = deque()
    waits: list[int] = []

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        chance = random.Random(seed)
        stands: int | None = None
        went_in = False
        for cycle in range(CYCLES):
            if cycle % 100 == 0:
                offers, takes = (chance.choice((0.1, 0.5, 1.0)) for _ in range(2))
            if cycle % 300 == 299:
                await restart(ctx)
                inside.clear()
                stands = None
            if not ctx.get(dut.i.valid) or went_in:
                ctx.set(dut.i.valid, chance.random() < offers)
                ctx.set(dut.i.payload, chance.randrange(PAYLOADS))
            ctx.set(dut.o.ready, chance.random() < takes)
            went_in = ctx.get(dut.i.valid) and ctx.get(dut.i.ready)
            held = len(inside)
            assert ctx.get(dut.level) == held
            assert ctx.get(dut.i.ready) == (held < depth)
            if went_in:
                inside.append((ctx.get(dut.i.payload), cycle))
            assert ctx.get(dut.o.valid) == (held > 0 or (passing and bool(inside)))
            if ctx.get(dut.o.valid):
                offer, entered = inside[0]
                assert ctx.get(dut.o.payload) == offer
                assert stands in (None, offer)
                stands = offer
                if ctx.get(dut.o.ready):
                    waits.append(cycle - entered)
                    inside.popleft()
                    stands = None
            await ctx.tick()

    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_queue.py", flush=True)
    simulate(dut, bench)
    assert len(waits) > CYCLES // 10
    return min(waits)


@pytest.mark.parametrize("depth", [2, 3, 8])
@pytest.mark.parametrize("passing", [False, True])
def test_everything_comes_out_once_and_in_order(depth: int, passing: bool, seed: int) -> None:
    assert check(depth=depth, passing=passing, seed=seed) == (0 if passing else 1)


MUTANTS = {
    "passed, and kept": ("put.eq(self.i.valid & ~self.o.ready)", "put.eq(self.i.valid)"),
    "passed by what waits": ("with m.If(held == 0):", "with m.If(held == 1):"),
    "taken from nothing": ("take.eq((held != 0) & self.o.ready)", "take.eq(self.o.ready)"),
    "one too many": ("self.i.ready.eq(held != self._depth)", "self.i.ready.eq(1)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Queue", mutate(queue.Queue, *MUTANTS[name]))
    with pytest.raises(AssertionError):
        check(depth=3, passing=True, seed=0)
