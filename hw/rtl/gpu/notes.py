"""What a requester tells the node unasked."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import RING_BITS, NoteKind
from hw.rtl.fabric.layouts import NOTE, Channel, flit_layout
from hw.rtl.queue import Queue


class Notes(wiring.Component):
    """Makes MESSAGE flits of the losses of rings, and says that the requester is there when nothing else was sent.

    Parameters
    ----------
    params
        Width of a flit, `link.heartbeat_cycles` and `link.message_flits`.

    Interface
    ---------
    losses : In, stream of ring numbers
        As of `Rings`.
    flits : Out, stream of `flit_layout(params)`
        MESSAGE packets, of a flit each.
    spoken : In(1)
        A flit goes over the link, of any channel.
    credit : In(1)
        The node has taken a MESSAGE flit.
    loss_taken : Out(1)
        It was a loss.

    Latency and throughput
    ----------------------
    A loss is offered in the cycle in which it comes, a heartbeat in the cycle after `heartbeat_cycles` without a flit.

    Ordering and stalls
    -------------------
    In order. A heartbeat that is offered goes before a loss that comes later.

    Reset and errors
    ----------------
    Reset forgets what the node has not taken; both ends of the link have to be reset too.

    Invariants and counters
    -----------------------
    Part of 11. None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "losses": In(stream.Signature(RING_BITS)),
                "flits": Out(stream.Signature(flit_layout(params))),
                "spoken": In(1),
                "credit": In(1),
                "loss_taken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, flits, flit = self._params.link, self.flits, self.flits.payload
        m.submodules.untaken = untaken = Queue(1, depth=link.message_flits)
        quiet, beating = Signal(range(link.heartbeat_cycles + 1)), Signal()
        due = (quiet == link.heartbeat_cycles) & (link.heartbeat_cycles != 0)
        note = Signal(NOTE)
        sent = flits.valid & flits.ready
        m.d.comb += [
            note.kind.eq(Mux(beating, NoteKind.HEARTBEAT, NoteKind.LOST)),
            flits.valid.eq(beating | self.losses.valid),
            flit.channel.eq(Channel.MESSAGE),
            flit.ring.eq(Mux(beating, 0, self.losses.payload)),
            flit.data.eq(note),
            flit.count.eq(1),
            flit.last.eq(1),
            self.losses.ready.eq(flits.ready & ~beating),
            untaken.i.valid.eq(sent),
            untaken.i.payload.eq(~beating),
            untaken.o.ready.eq(self.credit),
            self.loss_taken.eq(self.credit & untaken.o.payload),
        ]
        with m.If(self.spoken):
            m.d.sync += quiet.eq(0)
        with m.Elif(~due):
            m.d.sync += quiet.eq(quiet + 1)
        with m.If(beating):
            m.d.sync += beating.eq(~flits.ready)
        with m.Elif(due & ~self.losses.valid):
            m.d.sync += [beating.eq(~self.spoken), quiet.eq(0)]
        return m
