"""The receiving side of a link's end: each flit once and in order."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.fabric.words import Buffers, answer_layout, flow_layout, number_bits


class Acceptance(wiring.Component):
    """Tells the flit that comes next from those that have been, and from those behind one that is lost.

    Parameters
    ----------
    received
        The credits of who sends.

    Interface
    ---------
    heard, flow : In(1), In(`flow_layout(received)`)
        A word comes.
    take : Out(1)
        Its flit is the next one.
    answer : Out, `answer_layout(received)`
        What the other end is told, from the next cycle on.

    Latency and throughput
    ----------------------
    None to `take`, one cycle to `answer`. A word a cycle.

    Ordering and stalls
    -------------------
    In order. Every word has the number of its flit or of the next, so one word after a lost flit tells of it.

    Reset and errors
    ----------------
    Reset waits for number 0: both ends have to be reset.

    Invariants
    ----------
    Part of 10: `link.order`.

    Counters
    --------
    None.
    """

    def __init__(self, received: Buffers):
        self._bits = number_bits(received)
        super().__init__(
            {
                "heard": In(1),
                "flow": In(flow_layout(received)),
                "take": Out(1),
                "answer": Out(answer_layout(received)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ahead = Signal(self._bits)
        m.d.comb += [
            ahead.eq(self.flow.number - self.answer.number),
            self.take.eq(self.heard & self.flow.carries & (ahead == 0)),
        ]
        with m.If(self.heard):
            m.d.sync += [
                self.answer.number.eq(self.answer.number + self.take),
                self.answer.missing.eq((ahead != 0) & ~ahead[-1]),
                self.answer.turn.eq(self.flow.turn),
            ]
        return m
