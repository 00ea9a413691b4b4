"""Whether a requester still says something."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params


class Watch(wiring.Component):
    """Counts the cycles in which nothing comes over a link.

    Parameters
    ----------
    params
        `link.silence_cycles`.

    Interface
    ---------
    heard : In(1)
        A flit comes.
    waiting : In(1)
        The requester may be unable to say that it is there: what it has said waits here. Such a cycle does not count.
    down : In(1)
        The port is lost.
    silent : Out(1)
        Nothing has come for `silence_cycles`.

    Latency and throughput
    ----------------------
    `silent` rises `silence_cycles` after the cycle behind the last flit, if none of them is `waiting`.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    The watch begins with the first flit behind a reset, and behind `down`: a port that nobody is at is not lost.

    Invariants and counters
    -----------------------
    Part of 11. None.
    """

    def __init__(self, params: Params):
        self._cycles = params.link.silence_cycles
        super().__init__({"heard": In(1), "waiting": In(1), "down": In(1), "silent": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        begun, count = Signal(), Signal(range(self._cycles + 1))
        m.d.comb += self.silent.eq(begun & (count == self._cycles))
        with m.If(self.down):
            m.d.sync += [begun.eq(0), count.eq(0)]
        with m.Elif(self.heard):
            m.d.sync += [begun.eq(self._cycles != 0), count.eq(0)]
        with m.Elif(begun & ~self.waiting & ~self.silent):
            m.d.sync += count.eq(count + 1)
        return m
