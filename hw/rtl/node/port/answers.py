"""Answers on their way to the link."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.fabric.layouts import RESPONSE_BYTES, flit_layout
from hw.rtl.node.port.layouts import ANSWER
from hw.rtl.queue import Queue


class Answers(wiring.Component):
    """Holds the answers of a port until its link takes them, and cuts them into flits.

    Parameters
    ----------
    params
        Width of a flit, and `params.answers`.

    Interface
    ---------
    answers : In, stream of `ANSWER`
        There is always room if no more than `params.answers` are held.
    flits : Out, stream of `flit_layout(params)`
        RESPONSE packets.
    left : Out(1)
        An answer has left.

    Latency and throughput
    ----------------------
    One cycle; a flit a cycle.

    Ordering and stalls
    -------------------
    In order. Stalls with `flits`.

    Reset and errors
    ----------------
    Reset forgets all answers.

    Invariants and counters
    -----------------------
    Part of 10. None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "answers": In(stream.Signature(ANSWER)),
                "flits": Out(stream.Signature(flit_layout(params))),
                "left": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, flit = self._params, self.flits.payload
        m.submodules.queue = queue = Queue(ANSWER, depth=params.answers)
        wiring.connect(m, wiring.flipped(self.answers), queue.i)
        parts = params.flits(RESPONSE_BYTES)
        answer = queue.o.payload
        words = Signal(data.ArrayLayout(len(flit.data), parts))
        part = Signal(range(parts))
        m.d.comb += [
            words.as_value().eq(answer.response.as_value()),
            self.flits.valid.eq(queue.o.valid),
            flit.ring.eq(answer.ring),
            flit.tag.eq(answer.tag),
            flit.data.eq(words[part]),
            flit.count.eq(min(RESPONSE_BYTES, params.memory.beat_bytes)),
            flit.last.eq(part == parts - 1),
            self.left.eq(self.flits.valid & self.flits.ready & flit.last),
            queue.o.ready.eq(self.left),
        ]
        with m.If(self.flits.valid & self.flits.ready):
            m.d.sync += part.eq(part + 1)
            with m.If(flit.last):
                m.d.sync += part.eq(0)
        return m
