"""One end of a link with replay."""

from typing import Any

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.fabric.acceptance import Acceptance
from hw.rtl.fabric.credits import Credits
from hw.rtl.fabric.framer import Deframer, Framer
from hw.rtl.fabric.join import Join
from hw.rtl.fabric.layouts import lane
from hw.rtl.fabric.patience import Patience
from hw.rtl.fabric.replay import Replay
from hw.rtl.fabric.words import Buffers, Phase, piece_bits, wire, word_layout
from hw.rtl.timer import tick


class LinkEnd(wiring.Component):
    """Lets lanes go over wires that are long, and alter or lose what is on them.

    Parameters
    ----------
    params
        Section `link`, and the width of a flit.
    sent, received
        The credits of who sends here, and of who sends to here.

    Interface
    ---------
    send, receive : In, Out, `lane(params)`
        Who uses the link.
    outgoing, incoming : Out, In, `wire(bits)`
        The other end: the `incoming` of one is the `outgoing` of the other, at most `link.latency` cycles later.
    hold : In(1)
        Who uses the link is being reset, and the link is down. A cycle is enough: from the next one on nothing comes of
        what was before.
    up : Out(1)
        The link is up here.
    lost : Out(1)
        It was up, and is not any more: until `hold` has been high.
    failed : Out(1)
        It has been given up, for one cycle: it is down in the next.

    Latency and throughput
    ----------------------
    A flit takes 7 cycles and the wire's from lane to lane, and with more pieces than one as many cycles as these are
    less one, and at most as many again until there is a word for it. A credit takes as many.
    A word is sent every `flit_cycles`, with a flit if there is one. `Params.link_round_trip` is a round trip.

    Ordering and stalls
    -------------------
    In order. A lane never waits: there is room for a flit for each credit. Credits and acknowledgements are part of
    every word, and cost nothing else.

    Reset and errors
    ----------------
    Reset takes the link down at both ends. A word that is altered or lost is sent again, with all behind it. After
    `link.tries` times in vain, the link goes down. It comes up when both ends are free to be; what was sent before is
    gone.

    Invariants
    ----------
    Part of 10: of the flits sent between two resets the first so many come out, each once, in order and unaltered
    (`link.order`, `link.join`, `link.held`), and no credit is lost or made (`link.credits`), as long as no altered word
    has the right CRC.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params, *, sent: Buffers, received: Buffers):
        self._params, self._sent, self._received = params, sent, received
        self._says = word_layout(params, sent=sent, received=received)
        self._hears = word_layout(params, sent=received, received=sent)
        super().__init__(
            {
                "send": In(lane(params)),
                "receive": Out(lane(params)),
                "outgoing": Out(wire(piece_bits(params, self._says.size))),
                "incoming": In(wire(piece_bits(params, self._hears.size))),
                "hold": In(1),
                "up": Out(1),
                "lost": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, params = Module(), self._params
        renew: Any = ResetInserter(self.hold)
        m.submodules.framer = framer = Framer(params, self._says.size)
        m.submodules.deframer = deframer = Deframer(params, self._hears.size)
        m.submodules.join = join = Join(quiet_cycles=params.link_round_trip)
        m.submodules.patience = patience = Patience(timer_cycles=params.link_timer, tries=params.link.tries)
        replay, acceptance = Replay(params, self._sent), Acceptance(self._received)
        credits = Credits(sent=self._sent, received=self._received)
        m.submodules.replay, m.submodules.acceptance, m.submodules.credits = map(renew, (replay, acceptance, credits))
        wiring.connect(m, framer.wire, wiring.flipped(self.outgoing))
        wiring.connect(m, wiring.flipped(self.incoming), deframer.wire)

        ask = tick(m, params.link.flit_cycles)
        word, filled, load = Signal(self._says), Signal(), Signal()
        m.d.sync += [filled.eq(ask), load.eq(filled)]
        with m.If(filled):
            m.d.sync += [
                word.phase.eq(join.phase),
                word.flow.eq(replay.flow),
                word.answer.eq(acceptance.answer),
                word.taken.eq(credits.taken),
                word.flit.eq(replay.carried),
            ]
        m.d.comb += [framer.load.eq(load), framer.word.eq(word)]

        said, heard = Signal(self._hears), Signal()
        m.d.comb += [
            said.eq(deframer.word),
            join.heard.eq(deframer.heard),
            join.said.eq(said.phase),
            heard.eq(deframer.heard & join.up & (said.phase == Phase.UP)),
            acceptance.heard.eq(heard),
            acceptance.flow.eq(said.flow),
            replay.answered.eq(heard),
            replay.answer.eq(said.answer),
            credits.heard.eq(heard),
            credits.told.eq(said.taken),
        ]
        m.d.comb += [
            replay.valid.eq(self.send.valid),
            replay.flit.eq(self.send.flit),
            replay.ask.eq(ask),
            replay.joined.eq(join.joined),
            replay.again.eq(patience.again),
            *(self.send.credits[each.value].eq(credits.given[each.name.lower()]) for each in self._sent),
            *(credits.returned[each.name.lower()].eq(self.receive.credits[each.value]) for each in self._received),
            patience.up.eq(join.up),
            patience.advanced.eq(replay.advanced),
            patience.replayed.eq(replay.replayed),
            join.hold.eq(self.hold),
            join.give_up.eq(patience.give_up),
            self.up.eq(join.up),
            self.lost.eq(join.lost),
            self.failed.eq(patience.give_up & ~self.hold),
        ]
        m.d.sync += [self.receive.valid.eq(acceptance.take & ~self.hold), self.receive.flit.eq(said.flit)]
        return m
