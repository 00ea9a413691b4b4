"""Scope tables and slot tables against the specification's classes, in the Amaranth simulator."""

import random

import pytest
from amaranth.sim import SimulatorContext

from hw.rtl.node.scopes import ScopeOp, ScopeTable
from hw.rtl.node.slots import SlotOp, SlotTables
from pymodel.spec.scope import Scope
from pymodel.spec.slots import Slots
from tests.hw.simulate import Restart, simulate

ENTRIES = 3


async def _ready(ctx: SimulatorContext, dut: ScopeTable | SlotTables) -> None:
    await ctx.tick().until(dut.ready)


@pytest.mark.parametrize("stamp_bits", [1, 2, 3])
def test_scopes_follow_the_specification(stamp_bits: int) -> None:
    rng = random.Random(stamp_bits)
    dut = ScopeTable(entries=ENTRIES, stamp_bits=stamp_bits, frames=8)
    closed = []

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        for _ in range(2):
            await _ready(ctx, dut)
            scopes = [Scope(1 << stamp_bits) for _ in range(ENTRIES)]
            under: list[list[int]] = [[] for _ in range(ENTRIES)]
            for _ in range(600):
                index = rng.randrange(ENTRIES)
                op = rng.choice([ScopeOp.ENTER, ScopeOp.LEAVE, ScopeOp.LEAVE, ScopeOp.BUMP, ScopeOp.NONE])
                if op is ScopeOp.ENTER and (len(under[index]) == 8 or scopes[index].closed):
                    op = ScopeOp.NONE
                if op is ScopeOp.LEAVE and not under[index]:
                    op = ScopeOp.BUMP
                stamp = under[index].pop(rng.randrange(len(under[index]))) if op is ScopeOp.LEAVE else 0
                ctx.set(dut.op, op)
                ctx.set(dut.index, index)
                ctx.set(dut.stamp, stamp)
                if op is ScopeOp.ENTER:
                    expected = scopes[index].enter()
                    assert ctx.get(dut.generation) == expected
                    under[index].append(expected)
                elif op is ScopeOp.LEAVE:
                    scopes[index].leave(stamp)
                elif op is ScopeOp.BUMP:
                    scopes[index].bump()
                await ctx.tick()
                ctx.set(dut.op, ScopeOp.NONE)
                closed.append(any(scope.closed for scope in scopes))
                assert ctx.get(dut.dirty) == any(scope.stale for scope in scopes)
                for query, scope in enumerate(scopes):
                    for query_stamp in range(1 << stamp_bits):
                        ctx.set(dut.query, query)
                        ctx.set(dut.query_stamp, query_stamp)
                        assert ctx.get(dut.alive) == scope.alive(query_stamp)
                        assert ctx.get(dut.closed) == scope.closed
            await restart(ctx)

    simulate(dut, bench)
    assert any(closed), "no scope was ever closed: the stimulus is too weak"


@pytest.mark.parametrize(("tables", "slots", "generation_bits"), [(1, 1, 2), (2, 3, 2), (3, 4, 6)])
def test_slots_follow_the_specification(tables: int, slots: int, generation_bits: int) -> None:
    rng = random.Random(slots)
    dut = SlotTables(tables=tables, slots=slots, generation_bits=generation_bits, shape=8, ecc=True)
    seen = set()

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        for _ in range(3):
            await _ready(ctx, dut)
            model: list[Slots[int]] = [Slots(slots, generation_bits) for _ in range(tables)]
            for _ in range(300):
                table, slot = rng.randrange(tables), rng.randrange(slots)
                for signal, value in ((dut.table, table), (dut.slot, slot), (dut.offer_table, table)):
                    ctx.set(signal, value)
                ctx.set(dut.read, 1)
                ctx.set(dut.offer, 1)
                await ctx.tick()
                ctx.set(dut.read, 0)
                ctx.set(dut.offer, 0)
                held = model[table].at(slot)
                assert ctx.get(dut.used) == (held is not None)
                assert ctx.get(dut.generation) == model[table].name(slot).generation
                if held is not None:
                    assert ctx.get(dut.entry) == held
                value = rng.randrange(256)
                ctx.set(dut.new_entry, value)
                op = rng.choice([SlotOp.TAKE, SlotOp.UPDATE, SlotOp.RELEASE])
                if op is SlotOp.TAKE:
                    offered = ctx.get(dut.free_slot), ctx.get(dut.free_generation)
                    taken = model[table].take(value)
                    assert ctx.get(dut.free) == (taken is not None)
                    if taken is None:
                        op = SlotOp.NONE
                    else:
                        assert offered == taken
                elif held is None:
                    op = SlotOp.NONE
                elif op is SlotOp.UPDATE:
                    model[table]._entries[slot] = value
                else:
                    model[table].release(slot)
                seen.add(op)
                ctx.set(dut.op, op)
                await ctx.tick()
                ctx.set(dut.op, SlotOp.NONE)
            await restart(ctx)

    simulate(dut, bench)
    assert seen == set(SlotOp)
