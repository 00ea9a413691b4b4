"""A wire in hardware that goes wrong by itself, to take the place of `hw.rtl.fabric.span.Wire` in a compiled system."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.fabric.span import Wire
from hw.rtl.fabric.words import wire

TAPS = 0x80000057
"""Of a shift register of 32 bits that goes through all states but 0."""


class NoisyWire(wiring.Component):
    """As `Wire`; a bit of one piece in `every` is flipped, and all are lost in the last `cut` of every `period` cycles.

    Parameters
    ----------
    bits, latency
        As of `Wire`.
    every
        A power of two; 0: none.
    cut, period
        Cycles; without a `period` nothing is lost.

    Interface
    ---------
    i, o : In, Out, `wire(bits)`
    """

    def __init__(self, bits: int, *, latency: int, every: int = 64, cut: int = 0, period: int = 0):
        self._every, self._cut, self._period = every, cut, period
        self._wire = Wire(bits, latency=latency)
        super().__init__({"i": In(wire(bits)), "o": Out(wire(bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.wire = inner = self._wire
        noise, passed, cut = Signal(32, init=1), Signal(range(self._period + 1)), Signal()
        m.d.sync += [
            noise.eq((noise << 1)[:32] ^ Mux(noise[31], TAPS, 0)),
            passed.eq(Mux(passed == self._period - 1, 0, passed + (self._period != 0))),
        ]
        flips = noise[: (self._every - 1).bit_length()] == 0 if self._every else 0
        m.d.comb += [
            cut.eq((self._period != 0) & (passed >= self._period - self._cut)),
            inner.i.valid.eq(self.i.valid & ~cut),
            inner.i.first.eq(self.i.first),
            inner.i.bits.eq(self.i.bits ^ Mux(flips, 1 << (noise[16:] % len(self.i.bits)), 0)),
        ]
        wiring.connect(m, inner.o, wiring.flipped(self.o))
        return m
