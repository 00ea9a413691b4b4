"""The pins that software has, as far as the requester sees."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import ITEM_BITS, RING_BITS
from hw.rtl.gpu.sessions.layouts import PIN_BITS, pins_layout


class PinCounts(wiring.Component):
    """Counts the pins of each ring: what LOOKUPs were given, less what UNPINs have given back.

    Parameters
    ----------
    params
        Rings.

    Interface
    ---------
    ring : In
        Whose command has ended.
    given, returned : In, a number and a flag
        The pins that it was given; it has given one back. Both 0 in a cycle in which none ends.
    lost : In, a bit a ring
        None of their pins is left.
    clear : In(1)
        None at all is left.
    pins : Out, `pins_layout(params)`

    Latency and throughput
    ----------------------
    One cycle.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    Reset clears all.

    Invariants
    ----------
    Part of 5, as far as it can be seen from here.

    Counters
    --------
    `pins`.
    """

    def __init__(self, params: Params):
        super().__init__(
            {
                "ring": In(RING_BITS),
                "given": In(ITEM_BITS),
                "returned": In(1),
                "lost": In(params.tables.rings_per_port),
                "clear": In(1),
                "pins": Out(pins_layout(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for i in range(len(self.lost)):
            pins = Signal(PIN_BITS, name=f"pins_{i}")
            m.d.comb += self.pins[i].eq(pins)
            with m.If(self.ring == i):
                m.d.sync += pins.eq(pins + self.given - self.returned)
            with m.If(self.lost[i] | self.clear):
                m.d.sync += pins.eq(0)
        return m
