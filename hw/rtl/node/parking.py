"""READs that wait in the node for their block, and hold nothing but an entry here."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params.params import Params
from hw.params.protocol import PORT_BITS
from hw.rtl.layouts import frame_bits
from hw.rtl.node.layouts import parked_layout
from hw.rtl.node.rota import Turn, rota_member
from hw.rtl.node.slots import SlotOp, SlotTables
from hw.rtl.timer import tick


class Parking(wiring.Component):
    """The table of parked READs, and which of them is to be looked at next.

    An entry is looked at once it is woken, because of what has become of its block or because of what may have become
    of any, and when its time is up: it has waited for `park_cycles` at least, and for twice as long at most.

    Parameters
    ----------
    params
        `tables.parked_reads`, `tables.park_cycles`, and the `shares` that the slots are divided into: slot i is of
        share i modulo `shares`.

    Interface
    ---------
    rota : In, `turn_layout(params)`
        Only where partitions are isolated: whose entries may ask.
    ready : Out(1)
        The table is initialised.
    offer, share : In
        Ask for a free slot of a share, which stands until `take`.
    free : Out(1)
        The answer, from the next cycle on.
    take, new_entry : In
        The offered slot is taken.
    wake, frame : In
        The READs on this frame are to be looked at.
    wake_all : In, a bit a share
        All of it are.
    may_resume : In, a bit a port
        A READ of this port may go on.
    asks, slot, port, expired : Out
        An entry of a port that may go on is to be looked at, which one, and whose; nothing has woken it but the time.
    pick : In(1)
        It is being looked at.
    entry : Out, `parked_layout(params)`
        What was picked, from the next cycle on.
    release : In(1)
        What was picked leaves the table. It stays otherwise, until it is woken again.
    count : Out
        Entries in use.
    idle, uncorrectable
        As of `SlotTables`.

    Latency and throughput
    ----------------------
    `asks` two cycles after whatever it follows from; a slot may be picked every third cycle.

    Ordering and stalls
    -------------------
    Slots are taken in the order of `SlotTables`; those that ask are picked in turn, so none is passed over twice.

    Reset and errors
    ----------------
    Reset empties the table.

    Invariants
    ----------
    Part of 10 and 11: no entry is forgotten.

    Counters
    --------
    `parked_used` from `count`.
    """

    def __init__(self, params: Params):
        self._params = params
        tables = params.tables
        super().__init__(
            {
                **rota_member(params),
                "ready": Out(1),
                "offer": In(1),
                "share": In(exact_log2(params.shares)),
                "free": Out(1),
                "take": In(1),
                "new_entry": In(parked_layout(params)),
                "wake": In(1),
                "frame": In(frame_bits(params)),
                "wake_all": In(params.shares),
                "may_resume": In(tables.ports),
                "asks": Out(1),
                "slot": Out(bits_for(tables.parked_reads - 1)),
                "port": Out(PORT_BITS),
                "expired": Out(1),
                "pick": In(1),
                "entry": Out(parked_layout(params)),
                "release": In(1),
                "count": Out(bits_for(tables.parked_reads)),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tables = self._params.tables
        m.submodules.slots = slots = SlotTables(
            tables=self._params.shares,
            slots=tables.parked_reads // self._params.shares,
            generation_bits=0,
            shape=parked_layout(self._params),
            ecc=tables.ecc,
        )
        # Beside each entry, where all can be seen at once: whose it is, and why it should be looked at.
        watch = data.StructLayout(
            {"used": 1, "frame": frame_bits(self._params), "port": PORT_BITS, "woken": 1, "aged": 1, "late": 1}
        )
        watches = Signal(data.ArrayLayout(watch, tables.parked_reads))
        picked = Signal.like(self.slot)
        m.d.comb += [
            self.ready.eq(slots.ready),
            slots.offer.eq(self.offer),
            slots.offer_table.eq(self.share),
            self.free.eq(slots.free),
            slots.new_entry.eq(self.new_entry),
            slots.table.eq(self.slot[: len(self.share)]),
            slots.slot.eq(self.slot[len(self.share) :]),
            slots.read.eq(self.pick),
            self.entry.eq(slots.entry),
            slots.idle.eq(self.idle),
            self.uncorrectable.eq(slots.uncorrectable),
            self.port.eq(watches[self.slot].port),
        ]
        with m.If(self.take):
            m.d.comb += slots.op.eq(SlotOp.TAKE)
        with m.Elif(self.release):
            m.d.comb += slots.op.eq(SlotOp.RELEASE)
        with m.If(self.pick):
            m.d.sync += picked.eq(self.slot)
        m.d.sync += self.count.eq(self.count + self.take - self.release)

        now = tick(m, tables.park_cycles)
        for i in range(tables.parked_reads):
            each = watches[i]
            with m.If(self.wake_all[i % self._params.shares] | (self.wake & (each.frame == self.frame))):
                m.d.sync += each.woken.eq(1)
            with m.Elif(self.pick & (self.slot == i)):
                m.d.sync += each.woken.eq(0)
            with m.If(now):
                m.d.sync += [each.aged.eq(1), each.late.eq(each.aged)]
            with m.If(self.release & (picked == i)):
                m.d.sync += each.used.eq(0)
            with m.If(self.take & (Cat(self.share, slots.free_slot) == i)):
                m.d.sync += [
                    each.eq(0),
                    each.used.eq(1),
                    each.frame.eq(self.new_entry.frame),
                    each.port.eq(self.new_entry.stamp.port),
                ]
        turn = Turn(self._params, self)
        asking = Cat(
            turn.only(each.used & (each.woken | each.late) & self.may_resume.bit_select(each.port, 1), i)
            for i, each in enumerate(watches)
        )
        self._choose(m, turn, asking, Cat(each.woken for each in watches))
        return m

    def _choose(self, m: Module, turn: Turn, asking: Value, woken: Value) -> None:
        """The lowest slot that asks behind the one that was picked last, else the lowest of all."""
        behind, chosen = Signal(len(asking)), Signal(len(asking))
        passed = turn.each(len(asking), name="passed")
        m.d.comb += [
            behind.eq(asking & ~passed),
            chosen.eq(Mux(behind.any(), behind & -behind, asking & -asking)),
            self.expired.eq(~(woken.bit_select(self.slot, 1))),
        ]
        with m.If(self.pick):
            m.d.sync += passed.eq((2 << self.slot) - 1)
        # What is chosen stands for a cycle at least, until it is picked; it may have been picked just now.
        chosen_at, settled = Signal.like(self.slot), Signal()
        for i in range(len(asking)):
            with m.If(chosen[i]):
                m.d.comb += chosen_at.eq(i)
        m.d.sync += [self.slot.eq(chosen_at), settled.eq(asking.any() & ~self.pick & ~self.release)]
        m.d.comb += self.asks.eq(settled & asking.bit_select(self.slot, 1))
