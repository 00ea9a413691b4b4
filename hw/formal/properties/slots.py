"""Tables of slots: an identifier names one use, and a slot is free or used until it wears out."""

from amaranth import Array, Cat, Module, Signal
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.property import Pdr, Property
from hw.rtl.node.slots import SlotOp, SlotTables

TABLES, SLOTS, GENERATION_BITS = 2, 2, 1
"""Two tables of two slots, each of which is used twice."""


class SlotNames(wiring.Component):
    """Knows of every slot whether it is used, under which generation, and what it holds; the unit says the same.

    Its user takes what is offered, and updates and releases what it has read in use; it asks again after every
    operation, at the earliest in the next cycle, but for an offer after a TAKE, which may come with it.

    Interface
    ---------
    table, slot, read, offer, offer_table, op, new_entry : In
        Of the unit.
    """

    def __init__(self) -> None:
        self.unit = SlotTables(tables=TABLES, slots=SLOTS, generation_bits=GENERATION_BITS, shape=1, ecc=False)
        bits = dict.fromkeys(("table", "slot", "read", "offer", "offer_table", "new_entry"), In(1))
        super().__init__({**bits, "op": In(SlotOp)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        names = ("table", "slot", "read", "offer", "offer_table", "new_entry", "op")
        m.d.comb += [getattr(unit, name).eq(getattr(self, name)) for name in names]

        row = data.StructLayout({"used": 1, "worn": 1, "generation": GENERATION_BITS, "entry": 1, "given": 2})
        rows = [Signal(row, name=f"slot_{i}") for i in range(TABLES * SLOTS)]
        fields = {name: Array(each[name] for each in rows) for name in ("used", "worn", "generation", "entry", "given")}
        was_read, was_offered = Signal(), Signal()
        asked, offered = Signal(2), Signal()
        operates = self.op != SlotOp.NONE
        m.d.sync += [was_read.eq((was_read | self.read) & ~operates), was_offered.eq(was_offered & ~operates)]
        with m.If(self.read):
            m.d.sync += asked.eq(Cat(self.slot, self.table))
        with m.If(self.offer):
            m.d.sync += [was_offered.eq(1), offered.eq(self.offer_table)]
        next_free = Cat(unit.free_slot, offered)
        used, generation = fields["used"][asked], fields["generation"][asked]

        takes = self.op == SlotOp.TAKE
        m.d.comb += [
            Assume(unit.ready | ~(self.read | self.offer | operates)),
            Assume(~(operates & self.read) & (takes | ~(operates & self.offer))),
            Assume(~takes | (was_offered & unit.free)),
            Assume(~operates | takes | (was_read & used)),
            unit.idle.eq(0),
        ]
        for i, each in enumerate(rows):
            with m.If(takes & (next_free == i)):
                m.d.sync += [each.used.eq(1), each.entry.eq(self.new_entry)]
                m.d.sync += each.given.eq(each.given | (1 << each.generation))
            with m.If((self.op == SlotOp.UPDATE) & (asked == i)):
                m.d.sync += each.entry.eq(self.new_entry)
            with m.If((self.op == SlotOp.RELEASE) & (asked == i)):
                m.d.sync += each.used.eq(0)
                with m.If(each.generation.all()):
                    m.d.sync += each.worn.eq(1)
                with m.Else():
                    m.d.sync += each.generation.eq(each.generation + 1)

        with m.If(was_read):
            m.d.comb += [
                Assert(unit.used == used, "used, but not taken, or the reverse"),
                Assert(unit.generation == generation, "another generation"),
                Assert(~used | (unit.entry == fields["entry"][asked]), "another entry"),
            ]
        in_table = [~each.used & ~each.worn & (offered == i // SLOTS) for i, each in enumerate(rows)]
        with m.If(was_offered):
            m.d.comb += Assert(unit.free == Cat(in_table).any(), "a slot is lost, or comes from nowhere")
            with m.If(unit.free):
                m.d.comb += [
                    Assert(~fields["used"][next_free], "offered while in use"),
                    Assert(~fields["worn"][next_free], "offered when worn out"),
                    Assert(unit.free_generation == fields["generation"][next_free], "another generation is offered"),
                    Assert(~(fields["given"][next_free] >> unit.free_generation)[0], "a name is given twice"),
                ]
        m.d.comb += [
            Cover(was_offered & ~unit.free & rows[0].worn & rows[1].used),
            Cover(was_offered & unit.free & (unit.free_generation == 1) & (unit.free_slot == 1)),
        ]
        return m


PROPERTIES = (
    Property(
        name="slots.names",
        shows="invariants 5, 7, 10: an identifier names one use; a slot is free, used or worn out, and never lost",
        design=SlotNames,
        method=Pdr(),
        cover=24,
    ),
)
