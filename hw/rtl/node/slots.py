"""Bounded tables whose entries are named by slot and generation: pins and sessions."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import data, enum, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for


class SlotOp(enum.Enum, shape=unsigned(2)):
    """What happens to an entry."""

    NONE = 0
    TAKE = 1
    UPDATE = 2
    RELEASE = 3


class SlotTables(wiring.Component):
    """Equal tables (one a ring, or one in all); in each, the slot that has been free longest is taken next.

    A slot's generation counts its uses, so that an identifier of an earlier use finds nothing; a slot whose counter is
    at its limit leaves service until the next `clear`.

    Parameters
    ----------
    tables
        Number of tables.
    slots
        Entries of a table.
    generation_bits
        Width of the generation counter.
    shape
        What an entry holds.

    Interface
    ---------
    clear : In(1)
        Begin the initialising sweep: every slot free, in generation 0.
    ready : Out(1)
        The sweep has passed.
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

    Latency and throughput
    ----------------------
    One cycle from question to answer; one operation a cycle. What was read or offered before an operation is void
    after it, and is asked for again.

    Ordering and stalls
    -------------------
    Operations take effect in the order of cycles. While `ready` is low, nothing may be asked.

    Reset and errors
    ----------------
    After reset the sweep begins by itself. TAKE without `free`, or UPDATE or RELEASE of an entry that is not in use,
    is the user's error.

    Invariants
    ----------
    Part of invariants 5 and 7: an identifier names one use of one slot.

    Counters
    --------
    None.
    """

    def __init__(self, *, tables: int, slots: int, generation_bits: int, shape: ShapeLike):
        self._tables = tables
        self._slots = slots
        self._generation_bits = generation_bits
        self._shape = shape
        table, slot = bits_for(tables - 1), bits_for(slots - 1)
        super().__init__(
            {
                "clear": In(1),
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
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots, tables = self._slots, self._tables
        slot_bits = bits_for(slots - 1)
        row = data.StructLayout({"used": 1, "generation": self._generation_bits, "entry": self._shape})
        name = data.StructLayout({"slot": slot_bits, "generation": self._generation_bits})

        m.submodules.entries = entries = memory.Memory(shape=row, depth=tables << slot_bits, init=[])
        m.submodules.queue = queue = memory.Memory(shape=name, depth=tables << slot_bits, init=[])
        entry_read, entry_write = entries.read_port(), entries.write_port()
        queue_read, queue_write = queue.read_port(), queue.write_port()

        # The free slots of each table: a circular queue, with the place of its oldest and the number in it.
        oldest = Signal(data.ArrayLayout(slot_bits, tables))
        count = Signal(data.ArrayLayout(bits_for(slots), tables))

        asked = Signal(data.StructLayout({"slot": slot_bits, "table": bits_for(tables - 1)}))
        offered = Signal(bits_for(tables - 1))
        m.d.comb += [
            entry_read.en.eq(self.read),
            entry_read.addr.eq(Cat(self.slot, self.table)),
            self.used.eq(entry_read.data.used),
            self.generation.eq(entry_read.data.generation),
            self.entry.eq(entry_read.data.entry),
            queue_read.en.eq(self.offer),
            queue_read.addr.eq(Cat(oldest[self.offer_table], self.offer_table)),
            self.free.eq(count[offered] != 0),
            self.free_slot.eq(queue_read.data.slot),
            self.free_generation.eq(queue_read.data.generation),
        ]
        with m.If(self.read):
            m.d.sync += [asked.table.eq(self.table), asked.slot.eq(self.slot)]
        with m.If(self.offer):
            m.d.sync += offered.eq(self.offer_table)

        saturated = self.generation.all()
        place = Signal(bits_for(2 * slots))
        m.d.comb += place.eq(oldest[asked.table] + count[asked.table])
        newest = Mux(place >= slots, place - slots, place)
        with m.Switch(self.op):
            with m.Case(SlotOp.TAKE):
                m.d.comb += [
                    entry_write.en.eq(1),
                    entry_write.addr.eq(Cat(self.free_slot, offered)),
                    entry_write.data.used.eq(1),
                    entry_write.data.generation.eq(self.free_generation),
                    entry_write.data.entry.eq(self.new_entry),
                ]
                m.d.sync += [
                    oldest[offered].eq(Mux(oldest[offered] == slots - 1, 0, oldest[offered] + 1)),
                    count[offered].eq(count[offered] - 1),
                ]
            with m.Case(SlotOp.UPDATE):
                m.d.comb += [
                    entry_write.en.eq(1),
                    entry_write.addr.eq(asked),
                    entry_write.data.used.eq(1),
                    entry_write.data.generation.eq(self.generation),
                    entry_write.data.entry.eq(self.new_entry),
                ]
            with m.Case(SlotOp.RELEASE):
                m.d.comb += [
                    entry_write.en.eq(1),
                    entry_write.addr.eq(asked),
                    entry_write.data.used.eq(0),
                    entry_write.data.generation.eq(self.generation + ~saturated),
                ]
                with m.If(~saturated):
                    m.d.comb += [
                        queue_write.en.eq(1),
                        queue_write.addr.eq(Cat(newest[:slot_bits], asked.table)),
                        queue_write.data.slot.eq(asked.slot),
                        queue_write.data.generation.eq(self.generation + 1),
                    ]
                    m.d.sync += count[asked.table].eq(count[asked.table] + 1)
        return self._sweep(m, entry_write, queue_write, oldest, count)

    def _sweep(self, m: Module, entry_write, queue_write, oldest, count) -> Module:  # noqa: ANN001
        """After reset and `clear`: every slot of every table free, the lowest first."""
        slot = Signal(bits_for(self._slots - 1))
        table = Signal(bits_for(self._tables - 1))
        with m.If(~self.ready):
            m.d.comb += [
                entry_write.en.eq(1),
                entry_write.addr.eq(Cat(slot, table)),
                entry_write.data.eq(0),
                queue_write.en.eq(1),
                queue_write.addr.eq(Cat(slot, table)),
                queue_write.data.eq(slot),
            ]
            m.d.sync += [slot.eq(slot + 1), oldest[table].eq(0), count[table].eq(self._slots)]
            with m.If(slot == self._slots - 1):
                m.d.sync += [slot.eq(0), table.eq(table + 1)]
                with m.If(table == self._tables - 1):
                    m.d.sync += [table.eq(0), self.ready.eq(1)]
        with m.If(self.clear):
            m.d.sync += [slot.eq(0), table.eq(0), self.ready.eq(0)]
        return m
