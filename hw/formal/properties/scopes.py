"""Scopes: what has died under one is never alive again, whatever enters, leaves and dies after it."""

from amaranth import Cat, Module, Signal
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.property import Pdr, Property
from hw.rtl.node.scopes import ScopeOp, ScopeTable

FRAMES = 2
STAMP_BITS = 2
"""Two frames in two scopes; after four bumps a stamp would come back."""


class ScopeDeath(wiring.Component):
    """Follows every frame: it is alive from when it enters until its scope is bumped, and never after that.

    A frame enters a scope that is not closed, and leaves with the stamp that it was given.

    Interface
    ---------
    op, index, frame : In
        What happens to which scope, and which frame enters or leaves.
    query : In
        The frame that is asked about.
    """

    def __init__(self) -> None:
        self.unit = ScopeTable(entries=2, stamp_bits=STAMP_BITS, frames=FRAMES)
        super().__init__({"op": In(ScopeOp), "index": In(1), "frame": In(range(FRAMES)), "query": In(range(FRAMES))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        row = data.StructLayout({"inside": 1, "dead": 1, "scope": 1, "stamp": STAMP_BITS})
        frames = Signal(data.ArrayLayout(row, FRAMES))
        mine, asked = frames[self.frame], frames[self.query]
        enters, leaves, bumps = (self.op == op for op in (ScopeOp.ENTER, ScopeOp.LEAVE, ScopeOp.BUMP))
        m.d.comb += [
            unit.op.eq(self.op),
            unit.index.eq(self.index),
            unit.stamp.eq(mine.stamp),
            unit.query.eq(asked.scope),
            unit.query_stamp.eq(asked.stamp),
            Assume(unit.ready | (self.op == ScopeOp.NONE)),
            Assume((self.frame < FRAMES) & (self.query < FRAMES)),
            Assume(~leaves | (mine.inside & (mine.scope == self.index))),
        ]
        with m.If(enters):
            m.d.comb += [Assume(~mine.inside), unit.query.eq(self.index), Assume(~unit.closed)]
            m.d.sync += mine.eq(Cat(1, 0, self.index, unit.generation))
        with m.If(leaves):
            m.d.sync += mine.inside.eq(0)
        for each in frames:
            with m.If(bumps & each.inside & (each.scope == self.index)):
                m.d.sync += each.dead.eq(1)

        died = Signal(range(8))
        with m.If(bumps & asked.inside & ~died.all()):
            m.d.sync += died.eq(died + 1)
        dead = [each.inside & each.dead for each in frames]
        under = [is_dead & (each.scope == asked.scope) for is_dead, each in zip(dead, frames, strict=True)]
        with m.If(unit.ready & ~enters):
            m.d.comb += [
                Assert(~asked.inside | (unit.alive == ~asked.dead), "the dead rise, or the living die"),
                Assert(~unit.closed | Cat(under).any(), "closed, though nothing dead is left"),
            ]
        m.d.comb += [
            Assert(unit.dirty == Cat(dead).any(), "what is dead is lost count of"),
            Cover(unit.closed & (died == 5) & asked.inside),
            Cover((died == 5) & asked.inside & ~asked.dead & Cat(dead).any()),
        ]
        return m


PROPERTIES = (
    Property(
        name="scopes.death",
        shows="invariants 4, 7: what has died under a scope is never alive again, and what lives is",
        design=ScopeDeath,
        method=Pdr(),
        cover=20,
    ),
)
