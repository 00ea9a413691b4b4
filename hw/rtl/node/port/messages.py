"""Messages on their way to the link."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.fabric.layouts import MESSAGE, flit_layout
from hw.rtl.fabric.packet import cut
from hw.rtl.node.layouts import NOTICE
from hw.rtl.queue import Queue


class Messages(wiring.Component):
    """Holds what a port is told until its link takes it, loses what there is no room for, and says so.

    Parameters
    ----------
    params
        Width of a flit, and `link.messages`.

    Interface
    ---------
    notices : In, stream of `NOTICE`, always ready
        What this port is told.
    flits : Out, stream of `flit_layout(params)`
        MESSAGE packets.

    Latency and throughput
    ----------------------
    One cycle; a flit a cycle.

    Ordering and stalls
    -------------------
    In order. Stalls with `flits`; `notices` never wait.

    Reset and errors
    ----------------
    Reset forgets all messages, and that any were lost. A message that finds the queue full is lost, and so is one that
    comes as `lost`; the next one that is held has the flag LOST.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "notices": In(stream.Signature(NOTICE, always_ready=True)),
                "flits": Out(stream.Signature(flit_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        notice = self.notices.payload
        m.submodules.queue = queue = Queue(MESSAGE, depth=self._params.link.messages)
        missed = Signal()
        m.d.comb += [
            queue.i.valid.eq(self.notices.valid & ~notice.lost),
            queue.i.payload.eq(notice.message),
            queue.i.payload.flags.lost.eq(notice.message.flags.lost | missed),
        ]
        with m.If(self.notices.valid):
            m.d.sync += missed.eq(notice.lost | ~queue.i.ready)
        payload = queue.o.payload.as_value()
        m.d.comb += queue.o.ready.eq(cut(m, self._params, payload=payload, valid=queue.o.valid, flits=self.flits))
        return m
