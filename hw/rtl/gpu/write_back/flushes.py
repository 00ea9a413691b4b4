"""What FLUSHes wait for."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.gpu.write_back.layouts import Phase, phases_layout, slot_bits


class Flushes(wiring.Component):
    """Remembers of each slot which others it waits for, until these have been free.

    Parameters
    ----------
    params
        Slots.

    Interface
    ---------
    take, slot, before : In
        A slot is taken, and waits for those `before` it.
    phases : In, `phases_layout(params)`
        As of `Slots`.
    over : Out, a bit a slot
        It waits for none any more.

    Latency and throughput
    ----------------------
    One cycle.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    Reset forgets all.

    Invariants
    ----------
    Part of 10: a slot that is free is waited for by none, also when it is taken again.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        slots = params.requester.slots
        super().__init__(
            {
                "take": In(1),
                "slot": In(slot_bits(params)),
                "before": In(slots),
                "phases": In(phases_layout(params)),
                "over": Out(slots),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots = len(self.over)
        used = Signal(slots)
        m.d.comb += used.eq(Cat(self.phases[i] != Phase.FREE for i in range(slots)))
        for i in range(slots):
            waits = Signal(slots, name=f"waits_{i}")
            m.d.comb += self.over[i].eq(waits == 0)
            m.d.sync += waits.eq(waits & used)
            with m.If(self.take & (self.slot == i)):
                m.d.sync += waits.eq(self.before)
        return m
