"""Bounded tables whose entries are named by slot and generation: pins, sessions, parked READs."""

from enum import IntEnum

from amaranth import Cat, Const, Module, Shape, Signal
from amaranth.hdl import ShapeLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.rtl.node.free_queues import FreeQueues
from hw.rtl.table import Table


class SlotOp(IntEnum):
    """What happens to an entry."""

    NONE = 0
    TAKE = 1
    UPDATE = 2
    RELEASE = 3


class SlotTables(wiring.Component):
    """Equal tables (one a ring, or one in all); in each, the slot that has been free longest is taken next.

    A slot's generation counts its uses, so that an identifier of an earlier use finds nothing; a slot whose counter is
    at its limit leaves service until reset.

    Parameters
    ----------
    tables
        Number of tables.
    slots
        Entries of a table.
    generation_bits
        Width of the generation counter; 0 if nobody is told a name, and so no slot wears out.
    shape
        What an entry holds.
    ecc
        Whether what is in SRAM is coded.

    Interface
    ---------
    ready : Out(1)
        The initialising sweep has passed: every slot is free, in generation 0.
    table, slot, read : In
        Ask for an entry; the answer stands from the next cycle until the next `read`.
    used, generation, entry : Out
        The answer: whether the slot is in use, its generation, and what it holds.
    offer, offer_table : In
        Ask for the next free slot of `offer_table`.
    free, free_slot, free_generation : Out
        The answer, one cycle later: whether there is one, and which.
    op : In
        TAKE the slot that is offered, with `new_entry`; UPDATE or RELEASE the entry that was read.
    new_entry : In
        What a TAKE or UPDATE stores.
    idle : In(1)
        In this cycle nothing is asked or done, and no answer is needed any more: the scrubbers may work.
    uncorrectable : Out(1)
        The answer that stands, or what a scrubber has read, is lost.

    Latency and throughput
    ----------------------
    One cycle from question to answer; one operation a cycle. What was read or offered before an operation is void
    after it, and is asked for again.

    Ordering and stalls
    -------------------
    Operations take effect in the order of cycles. While `ready` is low, nothing may be asked.

    Reset and errors
    ----------------
    Reset begins the sweep. TAKE without `free`, or UPDATE or RELEASE of an entry that is not in use,
    is the user's error. After `uncorrectable`, no answer is to be trusted until reset.

    Invariants
    ----------
    Part of invariants 5 and 7: an identifier names one use of one slot.

    Counters
    --------
    None.
    """

    def __init__(self, *, tables: int, slots: int, generation_bits: int, shape: ShapeLike, ecc: bool):
        self._tables = tables
        self._slots = slots
        self._generation_bits = generation_bits
        self._shape = shape
        self._ecc = ecc
        table, slot = bits_for(tables - 1), bits_for(slots - 1)
        super().__init__(
            {
                "ready": Out(1),
                "table": In(table),
                "slot": In(slot),
                "read": In(1),
                "used": Out(1),
                "generation": Out(generation_bits),
                "entry": Out(shape),
                "offer": In(1),
                "offer_table": In(table),
                "free": Out(1),
                "free_slot": Out(slot),
                "free_generation": Out(generation_bits),
                "op": In(SlotOp),
                "new_entry": In(shape),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots, tables = self._slots, self._tables
        slot_bits = bits_for(slots - 1)
        row = data.StructLayout({"used": 1, "generation": self._generation_bits, "entry": self._shape})
        name = data.StructLayout({"slot": slot_bits, "generation": self._generation_bits})

        m.submodules.entries = entries = Table(shape=row, depth=tables << slot_bits, ecc=self._ecc)
        m.submodules.free = free = FreeQueues(
            firsts=[0] * tables, sizes=[slots] * tables, width=Shape.cast(name).width, ecc=self._ecc
        )

        asked = Signal(data.StructLayout({"slot": slot_bits, "table": bits_for(tables - 1)}))
        offered = Signal.like(self.offer_table)
        free_name, released = data.View(name, free.item), data.View(name, free.push_item)
        m.d.comb += [
            entries.idle.eq(self.idle),
            free.idle.eq(self.idle),
            self.uncorrectable.eq(entries.uncorrectable | free.uncorrectable),
            entries.read.eq(self.read),
            entries.read_address.eq(Cat(self.slot, self.table)),
            self.used.eq(entries.read_data.used),
            self.generation.eq(entries.read_data.generation),
            self.entry.eq(entries.read_data.entry),
            free.offer.eq(self.offer),
            free.queue.eq(self.offer_table),
            self.free.eq(free.any),
            self.free_slot.eq(free_name.slot),
            self.free_generation.eq(free_name.generation),
        ]
        with m.If(self.read):
            m.d.sync += [asked.table.eq(self.table), asked.slot.eq(self.slot)]
        with m.If(self.offer):
            m.d.sync += offered.eq(self.offer_table)

        saturated = self.generation.all() if self._generation_bits else Const(0)
        m.d.comb += [
            entries.write.eq(self.op != SlotOp.NONE),
            entries.write_address.eq(asked),
            entries.write_data.used.eq(self.op != SlotOp.RELEASE),
            entries.write_data.generation.eq(self.generation),
            entries.write_data.entry.eq(self.new_entry),
            free.push_queue.eq(asked.table),
            released.slot.eq(asked.slot),
            released.generation.eq(self.generation + 1),
        ]
        with m.Switch(self.op):
            with m.Case(SlotOp.TAKE):
                m.d.comb += [
                    entries.write_address.eq(Cat(self.free_slot, offered)),
                    entries.write_data.generation.eq(self.free_generation),
                    free.pop.eq(1),
                ]
            with m.Case(SlotOp.RELEASE), m.If(~saturated):
                m.d.comb += [entries.write_data.generation.eq(self.generation + 1), free.push.eq(1)]

        # The sweep: every entry out of use, beside the one that fills the queues.
        place = Signal(range(tables << slot_bits))
        swept = Signal()
        m.d.comb += self.ready.eq(swept & free.ready)
        with m.If(~swept):
            m.d.comb += [entries.write.eq(1), entries.write_address.eq(place), entries.write_data.eq(0)]
            m.d.sync += [place.eq(place + 1), swept.eq(place == (tables << slot_bits) - 1)]
        return m
