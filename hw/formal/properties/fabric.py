"""Links: what is sent against a credit arrives once and in order, and no channel waits for another."""

from contextlib import ExitStack
from unittest.mock import patch

from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Cover, Fragment
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.conservation import Conservation
from hw.formal.property import Pdr, Property
from hw.formal.stream import watch
from hw.params import TINY
from hw.rtl.fabric import Channel, Receiver, Transmitter, layouts, receiver, transmitter

BUFFERS = {Channel.REQUEST: 5, Channel.DATA: 3}
"""Two channels, one with credits enough to send in every cycle."""

PATIENCE = 4
"""Cycles until a flit that is offered to a free channel is at the other end: the other's turn, and two registers."""


FLIT = data.StructLayout({"channel": Channel, "tag": 2})
"""Flits of a channel and two bits: a link treats all else alike, and no parameter makes flits that small."""


def small_flits() -> ExitStack:
    """Let flits be small while a link is built."""
    stack = ExitStack()
    for module in (layouts, transmitter, receiver):
        stack.enter_context(patch.object(module, "flit_layout", lambda params: FLIT))
    return stack


class LinkHarness(wiring.Component):
    """Both ends of a lane, with any sender and any receiver around them.

    Interface
    ---------
    request_valid, request_flit, data_valid, data_flit : In
        What is to be sent.
    request_ready, data_ready : In
        Whether what arrives is taken.
    pick : In
        Which flit is followed.
    """

    def __init__(self) -> None:
        with small_flits():
            self._ends = Transmitter(TINY, BUFFERS), Receiver(TINY, BUFFERS)
        each = {"valid": In(1), "ready": In(1), "flit": In(FLIT)}
        members = {f"{name}_{part}": flow for name in ("request", "data") for part, flow in each.items()}
        super().__init__({"pick": In(1)} | members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sender, taker = self._ends
        with small_flits():
            m.submodules.transmitter, m.submodules.receiver = (Fragment.get(end, platform) for end in self._ends)
        wiring.connect(m, sender.lane, taker.lane)
        for name in ("request", "data"):
            source, sink = getattr(sender, name), getattr(taker, name)
            m.d.comb += [
                source.valid.eq(getattr(self, f"{name}_valid")),
                source.payload.eq(getattr(self, f"{name}_flit")),
                sink.ready.eq(getattr(self, f"{name}_ready")),
            ]
            watch(m, f"{name}_source", source, assume=True)
        self.claim(m, sender, taker)
        return m

    def claim(self, m: Module, sender: Transmitter, taker: Receiver) -> None:
        """Say what is claimed."""
        raise NotImplementedError


class LinkStream(LinkHarness):
    """What arrives is offered as a stream has to be, whatever its receiver does."""

    def claim(self, m: Module, sender: Transmitter, taker: Receiver) -> None:
        """The rules of a stream."""
        watch(m, "rules", taker.request)


class LinkConservation(LinkHarness):
    """Every flit arrives once; never more of a channel are under way than its receiver has room for; and a channel that
    is not taken does not stop the other."""

    def claim(self, m: Module, sender: Transmitter, taker: Receiver) -> None:
        """Follow DATA, while REQUEST does what it likes."""
        source, sink = sender.data, taker.data
        m.submodules.inside = inside = Conservation(capacity=BUFFERS[Channel.DATA], wait=PATIENCE)
        m.d.comb += [
            inside.put.eq(source.valid & source.ready),
            inside.offered.eq(sink.valid),
            inside.taken.eq(sink.ready),
        ]
        waited = Signal(range(PATIENCE + 2))
        free = Signal()
        m.d.comb += free.eq(source.valid & ~source.ready & ~sink.valid)
        with m.If(~free):
            m.d.sync += waited.eq(0)
        with m.Elif(waited <= PATIENCE):
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += Assert(waited <= PATIENCE, "a channel with an empty buffer is not served")


class LinkOrder(LinkHarness):
    """Flits of a channel arrive in order, as they were sent: any one of them, with any content, among all others.

    Some flit is picked; those of its channel that are ahead of it are counted.
    """

    def claim(self, m: Module, sender: Transmitter, taker: Receiver) -> None:
        """Follow one flit of DATA by its number."""
        source, sink = sender.data, taker.data
        size = 1 << (BUFFERS[Channel.DATA] + 1).bit_length()
        ahead = Signal(range(size))
        under_way, gone = Signal(), Signal()
        mark, marked = Signal(), Signal.like(source.payload)
        put, taken = source.valid & source.ready, sink.valid & sink.ready
        m.d.comb += mark.eq(put & self.pick & ~under_way & ~gone)
        with m.If(mark):
            m.d.sync += [under_way.eq(1), marked.eq(source.payload), marked.channel.eq(Channel.DATA)]
        m.d.sync += ahead.eq(ahead + Mux(under_way | gone, 0, put & ~mark) - Mux(ahead != 0, taken, 0))
        here = under_way & (ahead == 0) & sink.valid
        with m.If(here & taken):
            m.d.sync += [under_way.eq(0), gone.eq(1)]
        m.d.comb += [
            Assert(~here | (sink.payload == marked), "another flit in its place"),
            Cover(gone & ~under_way),
        ]


PROPERTIES = (
    Property(
        name="fabric.stream",
        shows="what arrives over a link is offered as a stream has to be",
        design=LinkStream,
        method=Pdr(),
        cover=16,
    ),
    Property(
        name="fabric.conservation",
        shows="invariant 10: every flit arrives once, never beyond its credits; no channel waits for another",
        design=LinkConservation,
        method=Pdr(),
        cover=20,
    ),
    Property(
        name="fabric.order",
        shows="flits of a channel arrive in order and unchanged",
        design=LinkOrder,
        method=Pdr(),
        cover=16,
    ),
)
