"""The link of a port, fanned out to the slices of a node."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.fabric.layouts import Channel, from_node_buffers, link, to_node_buffers
from hw.rtl.fabric.merge import Merge
from hw.rtl.fabric.receiver import Receiver
from hw.rtl.fabric.transmitter import Transmitter
from hw.rtl.shared import shared


@shared
class Fan(wiring.Component):
    """Gives each slice what is for it, and the requester what comes from them all.

    Every slice has buffers for all that the requester has credits for. So what the requester sends goes straight into
    the buffer of its slice, and waits for nothing here; only credits are counted. What slices send is buffered for each
    of them, and merged packet by packet.

    Parameters
    ----------
    params
        Section `link`, `node.slices`, and the width of a flit.

    Interface
    ---------
    link : In, `link(params)`
        The requester.
    slices : Out, `link(params)`, one a slice
        The ports of this number. REQUEST and DATA go to the slice in the header, of which the low bits count; MESSAGEs,
        which are about rings and about the requester, go to every slice.
    heard : Out(1)
        The requester has said something to any slice, or could not, because some have not taken its last MESSAGE.

    Latency and throughput
    ----------------------
    One cycle to a slice, and one for the credit back; two from a slice. A flit a cycle each way.

    Ordering and stalls
    -------------------
    In order for each slice and channel, either way. Of what comes from slices, those with a packet take turns, each
    channel by itself; a packet is never interleaved with another of its channel.

    The slices of a node share the credits of the requester: one that takes nothing keeps those of what it has, and when
    it has all of a channel, nothing more is sent on that channel, to any slice, until it goes on. A MESSAGE has its
    credit back when all have taken it. A slice that stops within a packet stops that channel of the others. So a slice
    stops others for no longer than it stops itself: what it has been sent has its place in its own buffer, and what it
    sends is taken as long as the requester takes anything.

    Reset and errors
    ----------------
    Reset restores all credits: both ends of all links have to be reset too. A flit without a credit is the sender's
    error.

    Invariants
    ----------
    Part of 10: what was sent against a credit comes out once, at a slice that has room; of a MESSAGE, at each.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        signature = link(params)
        super().__init__({"link": In(signature), "slices": Out(signature).array(params.node.slices), "heard": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._spread(m)
        self._gather(m)
        return m

    def _spread(self, m: Module) -> None:
        """From the requester: a flit to its slice, its credit back."""
        arriving, lanes = self.link.to_node, [each.to_node for each in self.slices]
        flit = Signal.like(arriving.flit)
        to_all = arriving.flit.channel == Channel.MESSAGE
        m.d.sync += flit.eq(arriving.flit)
        for i, lane in enumerate(lanes):
            mine = arriving.flit.slice[: self._params.node.slice_bits] == i
            m.d.sync += lane.valid.eq(arriving.valid & (mine | to_all))
            m.d.comb += lane.flit.eq(flit)

        credits, buffers = arriving.credits, to_node_buffers(self._params)
        for channel in (Channel.REQUEST, Channel.DATA):
            owed = Signal(range(buffers[channel] + 1), name=f"owed_{channel.name.lower()}")
            returned = owed + sum(lane.credits[channel.value] for lane in lanes)
            m.d.sync += [credits[channel.value].eq(returned != 0), owed.eq(returned - (returned != 0))]
        self._count_messages(m, Cat(lane.credits[Channel.MESSAGE.value] for lane in lanes), buffers[Channel.MESSAGE])

    def _count_messages(self, m: Module, returned: Value, size: int) -> None:
        """A MESSAGE has been taken when every slice has."""
        all_have, waits = Signal(), []
        taken = []
        for i in range(len(returned)):
            ahead = Signal(range(size + 1), name=f"ahead_{i}")
            taken.append((ahead != 0) | returned[i])
            waits.append(ahead != 0)
            m.d.sync += ahead.eq(ahead + returned[i] - all_have)
        m.d.comb += [all_have.eq(Cat(taken).all()), self.heard.eq(self.link.to_node.valid | Cat(waits).any())]
        m.d.sync += self.link.to_node.credits[Channel.MESSAGE.value].eq(all_have)

    def _gather(self, m: Module) -> None:
        """From the slices: whole packets, in turn."""
        buffers = from_node_buffers(self._params)
        m.submodules.transmitter = transmitter = Transmitter(self._params, buffers)
        wiring.connect(m, transmitter.lane, wiring.flipped(self.link.from_node))
        receivers = [Receiver(self._params, buffers) for _ in self.slices]
        for i, (receiver, slice_) in enumerate(zip(receivers, self.slices, strict=True)):
            m.submodules[f"receiver_{i}"] = receiver
            wiring.connect(m, receiver.lane, wiring.flipped(slice_.from_node))
        for channel in buffers:
            name = channel.name.lower()
            m.submodules[name] = merge = Merge(self._params)
            for receiver, packets in zip(receivers, merge.packets, strict=True):
                wiring.connect(m, getattr(receiver, name), packets)
            wiring.connect(m, merge.flits, getattr(transmitter, name))
