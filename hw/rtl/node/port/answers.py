"""Answers on their way to the link."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.fabric.layouts import flit_layout
from hw.rtl.fabric.packet import cut
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
        answer = queue.o.payload
        payload = answer.response.as_value()
        m.d.comb += [
            flit.ring.eq(answer.ring),
            flit.tag.eq(answer.tag),
            self.left.eq(cut(m, params, payload=payload, valid=queue.o.valid, flits=self.flits)),
            queue.o.ready.eq(self.left),
        ]
        return m
