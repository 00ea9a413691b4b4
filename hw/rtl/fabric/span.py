"""A link with replay: both ends, and the wires between them."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.fabric.layouts import from_node_buffers, link, to_node_buffers
from hw.rtl.fabric.link_end import LinkEnd
from hw.rtl.fabric.words import wire
from hw.rtl.shared import shared
from hw.rtl.two_port_sram import TwoPortSram


class Wire(wiring.Component):
    """One direction of a wire, so many cycles long.

    Parameters
    ----------
    bits
        Of a piece.
    latency
        Cycles from `i` to `o`.

    Interface
    ---------
    i, o : In, Out, `wire(bits)`

    Latency and throughput
    ----------------------
    `latency` cycles; a piece a cycle.

    Ordering and stalls
    -------------------
    In order.

    Reset and errors
    ----------------
    Reset leaves alone what is under way. After power-up anything comes out, for `latency` cycles.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, bits: int, *, latency: int):
        self._latency = latency
        super().__init__({"i": In(wire(bits)), "o": Out(wire(bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arriving = Cat(self.i.valid, self.i.first, self.i.bits)
        leaving = Cat(self.o.valid, self.o.first, self.o.bits)
        if self._latency == 0:
            m.d.comb += leaving.eq(arriving)
            return m
        if self._latency == 1:
            m.d.sync += leaving.eq(arriving)
            return m
        m.submodules.under_way = under_way = TwoPortSram(rows=self._latency, width=len(arriving))
        place, next_place = Signal(range(self._latency)), Signal(range(self._latency))
        m.d.comb += [
            next_place.eq(Mux(place == self._latency - 1, 0, place + 1)),
            under_way.write.eq(1),
            under_way.write_address.eq(place),
            under_way.write_data.eq(arriving),
            under_way.read.eq(1),
            under_way.read_address.eq(next_place),
            leaving.eq(under_way.read_data),
        ]
        m.d.sync += place.eq(next_place)
        return m


@shared
class Span(wiring.Component):
    """Connects a requester to a port by a link with replay, as long as `link.latency` says.

    Parameters
    ----------
    params
        Section `link`, and the width of a flit.

    Interface
    ---------
    requester, node : In, Out, `link(params)`
        As if connected.
    down : In(1)
        The port's end of the link is being reset.
    port_renewed : Out(1)
        What the port is told of the other end: the link was lost, or the port is `down`. Nothing else has to be waited
        for, since nothing of before comes over the link afterwards.
    restarting : Out(1)
        The requester's end of the link is reset as long as this is high.
    renewed : In(1)
        Meanwhile: it may be used again.

    Latency and throughput
    ----------------------
    As of `LinkEnd`.

    Ordering and stalls
    -------------------
    As of `LinkEnd`.

    Reset and errors
    ----------------
    A link that is given up is lost at both ends, as if by a reset of the other.

    Invariants
    ----------
    Those of `LinkEnd`.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "requester": In(link(params)),
                "node": Out(link(params)),
                "down": In(1),
                "port_renewed": Out(1),
                "restarting": Out(1),
                "renewed": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, params = Module(), self._params
        to_node, from_node = to_node_buffers(params), from_node_buffers(params)
        m.submodules.near = near = LinkEnd(params, sent=to_node, received=from_node)
        m.submodules.far = far = LinkEnd(params, sent=from_node, received=to_node)
        for name, source, sink in (("to_node", near, far), ("from_node", far, near)):
            m.submodules[name] = way = Wire(len(source.outgoing.bits), latency=params.link.latency)
            wiring.connect(m, source.outgoing, way.i)
            wiring.connect(m, way.o, sink.incoming)
        wiring.connect(m, wiring.flipped(self.requester.to_node), near.send)
        wiring.connect(m, near.receive, wiring.flipped(self.requester.from_node))
        wiring.connect(m, wiring.flipped(self.node.from_node), far.send)
        wiring.connect(m, far.receive, wiring.flipped(self.node.to_node))
        m.d.comb += [
            self.restarting.eq(~near.up),
            near.hold.eq(near.lost | (self.restarting & ~self.renewed)),
            far.hold.eq(self.down),
            self.port_renewed.eq(far.lost | self.down),
        ]
        return m
