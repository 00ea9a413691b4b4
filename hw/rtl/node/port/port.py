"""A port: the node's end of a link, and the commands, data and answers of its requester, and what it is told."""

from typing import Any

from amaranth import Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import PORT_BITS, RING_BITS, NoteKind
from hw.rtl.fabric import Channel, Receiver, Transmitter, link
from hw.rtl.fabric.layouts import NOTE, from_node_buffers, to_node_buffers
from hw.rtl.layouts import beat_layout
from hw.rtl.node.data.layouts import read_beat_layout, write_segment_layout
from hw.rtl.node.layouts import NOTICE, Kind, operation_layout, verdict_layout
from hw.rtl.node.port.answers import Answers
from hw.rtl.node.port.arrivals import Arrivals
from hw.rtl.node.port.loss import Loss
from hw.rtl.node.port.messages import Messages
from hw.rtl.node.port.mover import Mover
from hw.rtl.node.port.reader import CommandReader
from hw.rtl.node.port.watch import Watch
from hw.rtl.shared import shared


@shared
class Port(wiring.Component):
    """One port of a slice.

    Parameters
    ----------
    params
        Section `link`, and the widths of everything.

    Interface
    ---------
    number : In
        Of the port: half of the stamp. Constant.
    link : In, `link(params)`
        The requester.
    operations, expired, rebound, resumed, stays : as of `CommandReader`
    may_resume : Out(1)
        There is a place in the data path, and for the answer, for a READ that was parked.
    verdict_valid, verdict : In, `verdict_layout()`
        What the core says of a command of this port; always taken.
    segments, beats : Out, streams of `write_segment_layout(params)` and `beat_layout(beat_bytes)`
        Write data that the core has accepted.
    read_beats : In, stream of `read_beat_layout(params)`
        Data of READs of this port.
    notices : In, stream of `NOTICE`, always ready
        As of `Messages`.
    losses : Out, stream of ring numbers
        Rings that the requester has lost; all of them when the port is lost.
    renewed : In(1)
        The other end of the link is reset: by itself, which is a loss of the port, or because the port is `down`.
    heard : In(1)
        The requester has said something, if not to this port.
    lose : In(1)
        The port is lost, for a reason of somebody else. Means nothing while it is `down`.
    lost : Out(1)
        The port is lost, in this cycle.
    down : Out(1)
        The port has been lost: both ends of the link are to be reset as long as this is high.
    rested : Out(1)
        It is, and at rest: it works again once it is `renewed`.
    refused : Out(1)
        A command has expired, for one cycle: answered UNAVAILABLE, here.
    moving : Out(1)
        Write data that the core has decided of is still here.
    drain : In(1)
        The slice restarts: take the data of READs, and send none.

    Latency and throughput
    ----------------------
    From the last flit of a command of n flits to its operation n + 1 cycles, from verdict or notice to flit two, from a
    beat of read data to its flit one. A flit a cycle each way.

    Ordering and stalls
    -------------------
    Commands in order, as `CommandReader` says. Answers in the order of verdicts, data in that of READs, messages in
    that of notices; they share the link in turn, and none waits for another. A requester that gives no credits stops
    its own port alone, and loses messages.

    Reset and errors
    ----------------
    Reset forgets everything; both ends of the link have to be reset. So does the loss of the port, once it is at rest:
    until then it takes verdicts and data of READs, throws them away, and moves the data that the core has accepted.

    Invariants
    ----------
    Part of 4, 10 and 11.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        beats = stream.Signature(beat_layout(params.memory.beat_bytes))
        super().__init__(
            {
                "number": In(PORT_BITS),
                "link": In(link(params)),
                "operations": Out(stream.Signature(operation_layout(params))),
                "expired": Out(1),
                "rebound": In(params.tables.rings_per_port),
                "verdict_valid": In(1),
                "verdict": In(verdict_layout()),
                "segments": Out(stream.Signature(write_segment_layout(params))),
                "beats": Out(beats),
                "read_beats": In(stream.Signature(read_beat_layout(params))),
                "notices": In(stream.Signature(NOTICE, always_ready=True)),
                "losses": Out(stream.Signature(RING_BITS)),
                "resumed": In(1),
                "stays": In(1),
                "may_resume": Out(1),
                "renewed": In(1),
                "heard": In(1),
                "lose": In(1),
                "lost": Out(1),
                "down": Out(1),
                "rested": Out(1),
                "refused": Out(1),
                "moving": Out(1),
                "drain": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        buffers = to_node_buffers(params)
        m.submodules.loss = loss = Loss(params)
        renew: Any = ResetInserter(loss.renew)
        receiver, transmitter = Receiver(params, buffers), Transmitter(params, from_node_buffers(params))
        reader, arrivals = CommandReader(params), Arrivals(params, buffer=buffers[Channel.DATA])
        mover, answers, messages = Mover(params), Answers(params), Messages(params)
        m.submodules.receiver = renew(receiver)
        m.submodules.transmitter = ResetInserter(self.down)(transmitter)  # which takes everything, and sends nothing
        m.submodules.reader = renew(reader)
        m.submodules.arrivals = renew(arrivals)
        m.submodules.mover = renew(mover)
        m.submodules.answers = renew(answers)
        m.submodules.messages = renew(messages)
        wiring.connect(m, transmitter.lane, wiring.flipped(self.link.from_node))
        wiring.connect(m, receiver.request, reader.requests)
        wiring.connect(m, reader.operations, wiring.flipped(self.operations))
        wiring.connect(m, reader.moves, mover.moves)
        wiring.connect(m, arrivals.segments, reader.segments)
        wiring.connect(m, mover.segments, wiring.flipped(self.segments))
        wiring.connect(m, mover.beats, wiring.flipped(self.beats))
        wiring.connect(m, answers.flits, transmitter.response)
        wiring.connect(m, messages.flits, transmitter.message)
        wiring.connect(m, wiring.flipped(self.notices), messages.notices)

        # Data is put into shape on its way into the buffer.
        arriving, flit = Signal(), self.link.to_node.flit
        m.d.comb += [
            receiver.lane.valid.eq(self.link.to_node.valid & ~self.down),
            arriving.eq(receiver.taken),
            arrivals.valid.eq(arriving & (flit.channel == Channel.DATA)),
            receiver.lane.flit.eq(flit),
            self.link.to_node.credits.eq(receiver.lane.credits),
            mover.buffered.valid.eq(receiver.data.valid),
            receiver.data.ready.eq(mover.buffered.ready),
        ]
        for name, _ in beat_layout(params.memory.beat_bytes):
            m.d.comb += [
                arrivals.beat[name].eq(flit[name]),
                mover.buffered.payload[name].eq(receiver.data.payload[name]),
            ]
        with m.If(flit.channel == Channel.DATA):
            m.d.comb += [receiver.lane.flit[name].eq(arrivals.shaped[name]) for name in ("count", "last")]

        m.d.comb += [
            reader.port.eq(self.number),
            reader.arriving.eq(arriving & (flit.channel == Channel.REQUEST)),
            reader.arriving_ring.eq(flit.ring),
            reader.arriving_last.eq(flit.last),
            reader.rebound.eq(self.rebound),
            reader.resumed.eq(self.resumed),
            reader.stays.eq(self.stays),
            self.may_resume.eq(reader.may_resume & (reader.room != 0)),
            reader.verdict_valid.eq(self.verdict_valid),
            reader.verdict.eq(self.verdict),
            self.expired.eq(reader.expired),
        ]
        ended = self._answer(m, reader, answers)
        self._lose(m, loss, receiver)

        sent, read = transmitter.data.payload, self.read_beats.payload
        m.d.comb += [
            transmitter.data.valid.eq(self.read_beats.valid & ~self.drain),
            self.read_beats.ready.eq(transmitter.data.ready | self.drain),
            self.refused.eq(reader.refusals.valid & reader.refusals.ready & ~self.down),
            self.moving.eq(mover.moving),
            reader.lost.eq(self.down),
            reader.told.eq(loss.told),
            loss.resting.eq(reader.idle & ended & ~mover.moving),
        ]
        m.d.comb += [sent.ring.eq(read.stamp.ring), sent.port.eq(self.number)]
        shared = ("tag", "segment", "end", "ok", "crc", "data", "count", "last")
        m.d.comb += [sent[name].eq(read[name]) for name in shared]
        return m

    def _lose(self, m: Module, loss: Loss, receiver: Receiver) -> None:
        """What the requester says of its rings; and the port, when it says nothing any more."""
        m.submodules.watch = watch = Watch(self._params)
        message, note, lost = receiver.message, Signal(NOTE), Signal()
        m.d.comb += [
            note.eq(message.payload.data),
            lost.eq((note.kind == NoteKind.LOST) & (message.payload.ring < self._params.tables.rings_per_port)),
            loss.asked.valid.eq(message.valid & lost),
            loss.asked.payload.eq(message.payload.ring),
            message.ready.eq(loss.asked.ready | ~lost),
            watch.heard.eq(self.link.to_node.valid | self.heard),
            watch.waiting.eq(message.valid | self.drain),
            watch.down.eq(self.down),
            loss.silent.eq(watch.silent | self.lose),
            loss.renewed.eq(self.renewed),
            loss.hold.eq(self.drain),
            self.lost.eq(loss.lost),
            self.down.eq(loss.down),
            self.rested.eq(loss.renew),
        ]
        wiring.connect(m, loss.losses, wiring.flipped(self.losses))

    def _answer(self, m: Module, reader: CommandReader, answers: Answers) -> Value:
        """Verdicts become answers, but for what is no end of a command and no key; return whether all have left."""
        verdict, answer = self.verdict, answers.answers.payload
        response, is_lookup = answer.response, verdict.kind == Kind.LOOKUP
        told = Signal()
        m.d.comb += [
            told.eq(self.verdict_valid & (verdict.complete | is_lookup)),
            answers.answers.valid.eq(told | reader.refusals.valid),
            reader.refusals.ready.eq(~told),
            answer.eq(reader.refusals.payload),
        ]
        with m.If(told):
            m.d.comb += [
                answer.ring.eq(verdict.stamp.ring),
                answer.tag.eq(verdict.tag),
                response.status.eq(verdict.status),
                response.complete.eq(verdict.complete),
                response.outcome.eq(Mux(verdict.complete, verdict.outcome, 0)),
                response.named.eq(verdict.named),
                response.pinned.eq(verdict.pinned),
                response.streamed.eq(verdict.kind == Kind.READ_DONE),
                response.item.eq(verdict.item),
                response.slot.eq(Mux(verdict.pinned, verdict.slot.as_value(), 0)),
                response.handle.eq(Mux(verdict.named, verdict.handle.as_value(), 0)),
            ]

        # A LOOKUP is owed an answer a key, and nothing else is owed any while it is: counted as they come. A READ is
        # owed none while it is parked.
        most = self._params.answers
        owed = Signal(range(most + 1))
        asked = self.operations.valid & self.operations.ready
        asked_one = asked & (self.operations.payload.kind != Kind.LOOKUP)
        refused_lookup = asked & self.expired & (self.operations.payload.kind == Kind.LOOKUP)
        quiet = self.verdict_valid & ~told
        m.d.comb += reader.room.eq(most - owed)
        begun = asked_one + refused_lookup + (told & is_lookup) + self.resumed
        m.d.sync += owed.eq(owed + begun - quiet - self.stays - answers.left)
        parked = Signal(range(self._params.tables.parked_reads + 1))
        m.d.sync += parked.eq(parked + (self.verdict_valid & verdict.parked) + self.stays - self.resumed)
        return (owed == 0) & (parked == 0)
