"""Tables of slots: what is named is what was taken, and what is offered is nobody's."""

from amaranth import Cat, Module, Signal
from amaranth.hdl import Assert, Assume, Cover

from hw.formal.harness import Harness
from hw.formal.property import Pdr, Property
from hw.rtl.node.slots import SlotOp, SlotTables

SLOT = 0
"""The slot that is followed, of table 0: slots and tables are alike but for their place in memories."""


class SlotNames(Harness):
    """Follows one slot: what is read of it is what was stored, by its generation; it is offered only while nobody has
    it, with a generation that it has not had; and it is taken from nobody else by a TAKE of another slot.

    The user takes what is offered, and releases or updates what it has read and is in use, before it asks for anything
    else; and asks for nothing before `ready`.
    """

    def __init__(self, unit: type[SlotTables] = SlotTables):
        super().__init__(unit(tables=2, slots=2, generation_bits=2, shape=1, ecc=False))

    def claim(self, m: Module) -> None:
        used, generation, entry = Signal(), Signal(2), Signal()
        asked, offered, reads, offers = Signal(2), Signal(), Signal(), Signal()
        op, ready = self.op, self.ready
        acts = op != SlotOp.NONE
        with m.If(self.read):
            m.d.sync += [asked.eq(Cat(self.slot, self.table)), reads.eq(1)]
        with m.Elif(acts | self.idle):
            m.d.sync += reads.eq(0)
        with m.If(self.offer):
            m.d.sync += [offered.eq(self.offer_table), offers.eq(~acts)]
        with m.Elif(acts | self.idle):
            m.d.sync += offers.eq(0)
        with m.If(~ready):
            m.d.comb += Assume(~acts & ~self.read & ~self.offer)
        with m.If(acts | self.idle):
            m.d.comb += Assume(~self.read & ~self.offer)
        with m.Switch(op):
            with m.Case(SlotOp.TAKE):
                m.d.comb += Assume(offers & self.free)
            with m.Case(SlotOp.UPDATE, SlotOp.RELEASE):
                m.d.comb += Assume(reads & self.used)
        m.d.comb += Assume(~(acts & self.idle))

        mine, here = asked == SLOT, (self.free_slot == SLOT) & (offered == 0)
        with m.If((op == SlotOp.TAKE) & here):
            m.d.sync += [used.eq(1), entry.eq(self.new_entry), generation.eq(self.free_generation)]
        with m.If((op == SlotOp.UPDATE) & mine):
            m.d.sync += entry.eq(self.new_entry)
        with m.If((op == SlotOp.RELEASE) & mine):
            m.d.sync += [used.eq(0), generation.eq(generation + 1)]
        with m.If(ready & reads & mine):
            m.d.comb += Assert(self.used == used, "in use, or not")
            m.d.comb += Assert(~used | ((self.generation == generation) & (self.entry == entry)), "another's entry")
        with m.If(ready & offers & self.free & here):
            m.d.comb += Assert(~used, "what somebody has is offered")
            m.d.comb += Assert(self.free_generation == generation, "a name that was given before, or never will be")
        m.d.comb += [Cover(used & (generation == 1)), Cover((op == SlotOp.UPDATE) & mine)]


PROPERTIES = (
    Property(
        name="slots.names",
        shows="invariants 5, 7: a slot is offered while nobody has it, in a new generation, and keeps what it is given",
        design=SlotNames,
        method=Pdr(),
        cover=20,
    ),
)
