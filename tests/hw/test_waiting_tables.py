"""The tables of parked READs and of migrations, in the Amaranth simulator."""

import pytest
from amaranth.sim import SimulatorContext

from hw.rtl.node import fences, parking
from hw.rtl.node.fences import Fences
from hw.rtl.node.layouts import Kind
from hw.rtl.node.parking import Parking
from hw.tb.mutate import mutate
from tests.hw.corebench import small
from tests.hw.simulate import Restart, simulate

SLOTS, PERIOD = 3, 16


async def park(ctx: SimulatorContext, dut: Parking, frame: int, port: int) -> bool:
    """Take a slot for a READ of a frame; whether there was one."""
    ctx.set(dut.offer, 1)
    await ctx.tick()
    ctx.set(dut.offer, 0)
    if not ctx.get(dut.free):
        return False
    ctx.set(dut.take, 1)
    ctx.set(dut.new_entry.frame, frame)
    ctx.set(dut.new_entry.stamp.port, port)
    await ctx.tick()
    ctx.set(dut.take, 0)
    return True


async def pick(ctx: SimulatorContext, dut: Parking, *, release: bool) -> int:
    """Look at what asks, and let it go or not; return its frame."""
    ctx.set(dut.pick, 1)
    await ctx.tick()
    ctx.set(dut.pick, 0)
    frame = ctx.get(dut.entry.frame)
    ctx.set(dut.release, release)
    await ctx.tick()
    ctx.set(dut.release, 0)
    for _ in range(3):
        await ctx.tick()
    return frame


def take_turns(table: type[Parking] = Parking) -> None:
    """Fill the table and wake all of it, for one port, then for both; wake one while it is looked at."""
    dut = table(small(parked_reads=SLOTS, park_cycles=1 << 20))

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        await ctx.tick().until(dut.ready)
        for frame in range(SLOTS):
            assert await park(ctx, dut, frame, frame % 2)
        assert not await park(ctx, dut, SLOTS, 0)
        assert ctx.get(dut.count) == SLOTS
        assert not ctx.get(dut.asks)

        ctx.set(dut.wake_all, 1)
        await ctx.tick().repeat(1)
        ctx.set(dut.wake_all, 0)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.asks), "no port has a place"
        ctx.set(dut.may_resume, 0b10)
        await ctx.tick().repeat(2)
        assert await pick(ctx, dut, release=False) == 1
        assert not ctx.get(dut.asks)
        ctx.set(dut.may_resume, 0b11)
        await ctx.tick().repeat(2)
        assert [await pick(ctx, dut, release=False) for _ in range(2)] == [2, 0], "in turn, and around"
        assert not ctx.get(dut.asks)

        # Woken in the cycle in which it is picked: what it is told may be old.
        ctx.set(dut.frame, 1)
        for _ in range(2):
            ctx.set(dut.wake, 1)
            await ctx.tick()
            ctx.set(dut.wake, 0)
            await ctx.tick().repeat(2)
        ctx.set(dut.wake, 1)
        ctx.set(dut.pick, 1)
        await ctx.tick()
        ctx.set(dut.wake, 0)
        ctx.set(dut.pick, 0)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.asks)
        assert not ctx.get(dut.expired)
        assert await pick(ctx, dut, release=True) == 1
        assert ctx.get(dut.count) == SLOTS - 1
        assert await park(ctx, dut, SLOTS, 0)

    simulate(dut, bench)


def test_parked_reads_have_their_turn() -> None:
    take_turns()


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("with m.Elif(self.pick & (self.slot == i)):", "with m.If(self.pick & (self.slot == i)):"),
        ("passed.eq((2 << self.slot) - 1)", "passed.eq(0)"),
        ("& self.may_resume.bit_select(each.port, 1)", ""),
    ],
    ids=["woken too early", "no turn", "port without a place"],
)
def test_mutant_of_turns_is_found(good: str, bad: str) -> None:
    with pytest.raises(AssertionError):
        take_turns(mutate(parking.Parking, good, bad))


PHASES = (0, 1, 7, PERIOD - 2, PERIOD - 1)
"""Of the clock, in which the time begins."""


def park_out(table: type[Parking] = Parking) -> list[int]:
    """Cycles until a parked READ asks because of the time, begun at some phases of the clock."""
    dut = table(small(parked_reads=SLOTS, park_cycles=PERIOD))
    waited = []

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        for phase in PHASES:
            await restart(ctx)
            ctx.set(dut.may_resume, 0b11)
            await ctx.tick().until(dut.ready)
            await ctx.tick().repeat(phase + 1)
            assert await park(ctx, dut, 1, 0)
            cycles = 0
            while not ctx.get(dut.asks):
                await ctx.tick()
                cycles += 1
                assert cycles <= 2 * PERIOD + 2
            assert ctx.get(dut.expired)
            waited.append(cycles)

    simulate(dut, bench)
    return waited


def test_the_time_of_a_parked_read_is_up_after_one_period_and_before_two() -> None:
    waited = park_out()
    assert len(set(waited)) == len(PHASES)
    assert min(waited) > PERIOD


def fence_out(table: type[Fences] = Fences) -> list[int]:
    """Cycles until a migration asks because of the time, begun at some phases of the clock."""
    dut = table(small(fences=2, fence_cycles=PERIOD))
    waited = []

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        for phase in PHASES:
            await restart(ctx)
            await ctx.tick().repeat(phase + 1)
            assert ctx.get(dut.room)
            ctx.set(dut.begin, 1)
            await ctx.tick()
            ctx.set(dut.begin, 0)
            cycles = 0
            while not ctx.get(dut.asks):
                await ctx.tick()
                cycles += 1
                assert cycles <= 2 * PERIOD + 1
            assert ctx.get(dut.kind) == Kind.EXPIRED_FENCE
            waited.append(cycles)
            ctx.set(dut.end, 1)
            await ctx.tick()
            ctx.set(dut.end, 0)
            assert not ctx.get(dut.asks)

    simulate(dut, bench)
    return waited


def test_the_time_of_a_fence_is_up_after_one_period_and_before_two() -> None:
    waited = fence_out()
    assert len(set(waited)) == len(PHASES)
    assert min(waited) >= PERIOD


def test_a_timer_that_is_up_at_the_first_tick_is_found() -> None:
    with pytest.raises(AssertionError):
        assert min(park_out(mutate(parking.Parking, "each.late.eq(each.aged)", "each.late.eq(1)"))) > PERIOD
    with pytest.raises(AssertionError):
        assert min(fence_out(mutate(fences.Fences, "each.late.eq(each.aged)", "each.late.eq(1)"))) >= PERIOD


def test_migrations_have_their_turn() -> None:
    dut = Fences(small(fences=2, sessions=3, fence_cycles=1 << 20))

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for slot in (1, 2):
            assert ctx.get(dut.room)
            ctx.set(dut.new_slot, slot)
            ctx.set(dut.begin, 1)
            await ctx.tick()
        ctx.set(dut.begin, 0)
        assert not ctx.get(dut.room)
        ctx.set(dut.land, 1)
        for index in (0, 1):
            ctx.set(dut.index, index)
            await ctx.tick()
        ctx.set(dut.land, 0)
        ctx.set(dut.pick, 1)
        picked = []
        for _ in range(2):
            assert ctx.get(dut.kind) == Kind.FENCED
            picked.append(ctx.get(dut.slot))
            await ctx.tick()
        assert sorted(picked) == [1, 2]
        assert not ctx.get(dut.asks)
        ctx.set(dut.pick, 0)
        ctx.set(dut.lost, 1)
        await ctx.tick()
        assert ctx.get(dut.kind) == Kind.STEP_SESSIONS, "they were moving to the first ring"

    simulate(dut, bench)
