"""The ports of one number at all slices of a node: what one of them has lost, all have lost."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params


class Bond(wiring.Component):
    """Keeps the ports of a requester together: they are lost together, and come back together.

    There is one link to the requester, with one set of credits, and a reset forgets them all. So what ends the link of
    one slice, the loss of its port or its restart, ends those of the others.

    Parameters
    ----------
    params
        `node.slices`.

    Interface
    ---------
    down, rested : In, a bit a slice
        As of `Slice`, for this port.
    restarting : In, a bit a slice
        As of `Slice`.
    renewed : In(1)
        The requester's end of its link is reset: by itself, which is a loss, or because the port is `held`.
    held : Out(1)
        All links of the port are reset.
    lose : Out, a bit a slice
        The port is lost elsewhere.
    ends : Out(1)
        What slices are told as `renewed`.

    Latency and throughput
    ----------------------
    None; a slice is `down` in the cycle after the first of them is.

    Ordering and stalls
    -------------------
    No slice leaves `down` before all are `rested`, none restarts, and the requester is `renewed`: then all do, in the
    same cycle. So a slice whose memory does not answer keeps the port from coming back.

    Reset and errors
    ----------------
    Reset forgets whether the requester was being reset. A slice that comes out of its restart finds its ports lost,
    until the requester has been reset.

    Invariants and counters
    -----------------------
    Part of 11. None.
    """

    def __init__(self, params: Params):
        slices = params.node.slices
        super().__init__(
            {
                "down": In(slices),
                "rested": In(slices),
                "restarting": In(slices),
                "renewed": In(1),
                "held": Out(1),
                "lose": Out(slices),
                "ends": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        renewed_before = Signal()
        begins, away = Signal(), self.down | self.restarting
        m.d.sync += renewed_before.eq(self.renewed)
        m.d.comb += [
            self.held.eq(away.any()),
            begins.eq(self.renewed & ~renewed_before & ~self.held),
            self.ends.eq(self.renewed & self.rested.all() & ~self.restarting.any()),
        ]
        for i in range(len(self.lose)):
            m.d.comb += self.lose[i].eq(begins | (away & ~(1 << i)).any())
        return m
