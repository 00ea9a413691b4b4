"""The canary: nothing that a simulator could get wrong but time."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Canary(wiring.Component):
    """A register beside the same path without one.

    Interface
    ---------
    d : In, 8 bits
        Input.
    q : Out, 8 bits
        `d` as it was at the last rising edge; 0x5A after reset.
    y : Out, 8 bits
        `d` plus one, within the cycle.
    """

    def __init__(self) -> None:
        super().__init__({"d": In(8), "q": Out(8), "y": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        q = Signal(8, init=0x5A)
        m.d.sync += q.eq(self.d)
        m.d.comb += [self.q.eq(q), self.y.eq(self.d + 1)]
        return m
