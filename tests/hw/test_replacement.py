"""Replacement in RTL against the specification's, frame for frame, in the Amaranth simulator."""

import random
from collections import Counter
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.protocol import FrameState
from hw.params.sections import CamParams, MemoryParams, PoolParams, TableParams
from hw.rtl.node.replacement import Replacement
from pymodel.spec import replacement as spec
from pymodel.spec.scope import Scope
from pymodel.spec.state import Frame, Partition, make_pools
from tests.hw.simulate import Restart, simulate


def small(pools: tuple[int, ...], *, scan_frames: int = 4, victims: int = 3) -> Params:
    """A slice with pools of so many frames."""
    return Params(
        memory=MemoryParams(segment_bytes=512, beat_bytes=16),
        cam=CamParams(banks=2, ways=4),
        pools=tuple(PoolParams(frame_bytes=4096, frames=frames) for frames in pools),
        tables=TableParams(
            partitions=4, models=2, victims=victims, scan_frames=scan_frames, scan_steps=2, generation_bits=3
        ),
    )


class Machine:
    """The RTL, and the specification's classes beside it, given the same orders."""

    def __init__(self, ctx: SimulatorContext, dut: Replacement, params: Params) -> None:
        self.ctx, self.dut, self.params = ctx, dut, params
        self.counters: Counter[str] = Counter()
        self.pools = make_pools(params)
        self.frames = [frame for pool in self.pools for frame in pool.frames]
        self.partitions = [Partition(i, Scope(2)) for i in range(params.tables.partitions)]
        self.spec = spec.Replacement(params, self.partitions, self.counters)
        self.stalls = 0

    async def pulse(self, *signals: tuple[Any, Any]) -> None:
        """Set signals for one cycle; structures, which no one looks at without a bit beside them, stay."""
        for signal, value in signals:
            self.ctx.set(signal, value)
        await self.ctx.tick()
        for signal, value in signals:
            if isinstance(value, int):
                self.ctx.set(signal, 0)

    async def configure(self, index: int, pool: int, quota: int, guarantee: int) -> None:
        """SET_PARTITION."""
        partition, usage = self.partitions[index], self.dut.usage
        if partition.pool is not self.pools[pool]:
            assert partition.used == 0
            partition.pool, partition.hand = self.pools[pool], 0
            partition.victims.clear()
            await self.pulse((self.dut.clock.rewind, 1), (self.dut.clock.rewind_partition, index))
        partition.quota, partition.guarantee = quota, guarantee
        limits = {"pool": pool, "quota": quota, "guarantee": guarantee}
        await self.pulse((usage.set, 1), (usage.index, index), (usage.limits, limits))

    async def mark(self, frame: Frame, *, referenced: bool = False, claimed: bool = False) -> None:
        """Tell the clock what has become of a frame."""
        worn = frame.generation == (1 << self.params.tables.generation_bits) - 1
        evictable = frame.state is FrameState.SEALED and not frame.held and not worn
        words = self.dut.clock.words
        await self.pulse(
            (words.mark, 1),
            (words.frame, frame.index),
            (words.evictable, int(evictable)),
            (words.referenced, int(referenced)),
            (words.claimed, int(claimed)),
            (words.owner, frame.partition.id if claimed else 0),
        )

    async def choose(self, index: int) -> Frame | None:
        """ALLOC: both sides choose; the frame is claimed."""
        ctx, dut, partition = self.ctx, self.dut, self.partitions[index]
        at_quota = partition.used >= partition.quota
        expected = self.spec.choose(partition)
        ctx.set(dut.partition, index)
        await self.pulse((dut.choose, 1))
        for _ in range(10_000):
            if ctx.get(dut.done):
                break
            self.stalls += ctx.get(dut.clock.stalled)
            await ctx.tick()
        assert ctx.get(dut.done), "the search does not end"
        assert ctx.get(dut.at_quota) == at_quota
        assert ctx.get(dut.found) == (expected is not None)
        if expected is None:
            return None
        assert ctx.get(dut.frame) == expected.index
        assert ctx.get(dut.evict) == (expected.state is not FrameState.FREE)
        if expected.state is FrameState.FREE:
            expected.pool.free.popleft()
            await self.pulse((dut.take, 1), (dut.usage.gain, 1), (dut.usage.gain_index, index))
        else:
            lost = expected.partition
            lost.used -= 1
            await self.pulse(
                (dut.usage.gain, 1),
                (dut.usage.gain_index, index),
                (dut.usage.lose, 1),
                (dut.usage.lose_index, lost.id),
            )
        partition.used += 1
        expected.state, expected.partition = FrameState.WRITING, partition
        expected.generation += 1
        expected.referenced = expected.queued = False
        await self.mark(expected, claimed=True)
        return expected

    async def release(self, frame: Frame) -> None:
        """DRAINED."""
        index = frame.partition.id
        frame.partition.used -= 1
        frame.state = FrameState.FREE
        frame.pool.free.append(frame)
        pool = self.pools.index(frame.pool)
        usage = self.dut.usage
        await self.pulse(
            (self.dut.give, 1),
            (self.dut.give_frame, frame.index),
            (self.dut.give_pool, pool),
            (usage.lose, 1),
            (usage.lose_index, index),
        )


async def _mix(machine: Machine, rng: random.Random, steps: int) -> Counter[str]:
    """Allocate, seal, pin, reference, drop and reconfigure at random."""
    seen: Counter[str] = Counter()
    for _ in range(steps):
        owned = [f for f in machine.frames if f.state is not FrameState.FREE]
        frame = rng.choice(owned) if owned else None
        action = rng.choices(
            ["choose", "seal", "pin", "unpin", "reference", "drop", "limits"], [6, 8, 2, 3, 3, 1, 0.3]
        )[0]
        if action == "choose":
            chosen = await machine.choose(rng.randrange(3))
            seen["none" if chosen is None else "frame"] += 1
        elif action == "limits":
            index = rng.randrange(3)
            pool = machine.pools.index(machine.partitions[index].pool)
            size = len(machine.pools[pool].frames)
            others = sum(p.guarantee for p in machine.spec._sharers(machine.pools[pool]) if p.id != index)
            guarantee = rng.randrange(0, size - others + 1)
            await machine.configure(index, pool, rng.randrange(guarantee, size + 1), guarantee)
        elif frame is None:
            continue
        elif action == "seal" and frame.state is FrameState.WRITING:
            frame.state = FrameState.SEALED
            await machine.mark(frame)
        elif frame.state is FrameState.SEALED and action == "pin":
            frame.pins += 1
            frame.referenced = True
            await machine.mark(frame, referenced=True)
        elif action == "unpin" and frame.pins:
            frame.pins -= 1
            await machine.mark(frame)
        elif frame.state is FrameState.SEALED and action == "reference":
            frame.referenced = True
            await machine.mark(frame, referenced=True)
        elif action == "drop" and not frame.pins and frame.generation < 7:
            frame.state = FrameState.DRAINING
            await machine.mark(frame)
            await machine.release(frame)
        seen[action] += 1
    return seen


@pytest.mark.parametrize(
    ("pools", "scan_frames", "victims"),
    [
        ((8,), 4, 3),
        ((7, 3, 8), 8, 16),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in [((5, 9), 4, 2), ((16,), 1, 1)]),
    ],
)
def test_every_choice_is_the_specifications(pools: tuple[int, ...], scan_frames: int, victims: int) -> None:
    params = small(pools, scan_frames=scan_frames, victims=victims)
    dut = Replacement(params)
    results: Counter[str] = Counter()

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        for seed in range(3):
            await ctx.tick().until(dut.ready)
            machine = Machine(ctx, dut, params)
            for index in range(3):
                pool = index % len(pools)
                await machine.configure(index, pool, pools[pool], 1)
            results.update(await _mix(machine, random.Random(seed), 500))
            assert machine.stalls == machine.counters["replacement_stall_steps"]
            await restart(ctx)

    simulate(dut, bench)
    assert results["none"] and results["frame"] > 100
