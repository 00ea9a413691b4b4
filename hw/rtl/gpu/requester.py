"""A requester: rings in host memory on one side, the link of a port on the other."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, ResetInserter, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.params.protocol import PORT_BITS, MessageKind
from hw.rtl.axi import axi4, axi4_lite
from hw.rtl.csr.registers import ADDRESS_BITS
from hw.rtl.fabric import Channel, Receiver, Transmitter, link
from hw.rtl.fabric.layouts import from_node_buffers, to_node_buffers
from hw.rtl.gpu.answers import Answers
from hw.rtl.gpu.completer import Completer
from hw.rtl.gpu.contexts import Contexts
from hw.rtl.gpu.control import RequesterControl
from hw.rtl.gpu.cutoff import Cutoff
from hw.rtl.gpu.ender import Ender
from hw.rtl.gpu.engines import Engines, host_owners
from hw.rtl.gpu.events import Events
from hw.rtl.gpu.fetcher import Fetcher
from hw.rtl.gpu.finisher import Finisher
from hw.rtl.gpu.host_reader import HostReader
from hw.rtl.gpu.host_writer import HostWriter
from hw.rtl.gpu.inspector import Inspector
from hw.rtl.gpu.layouts import (
    COMPLETION,
    EVENT,
    context_bits,
    engine_owners,
    host_id_layout,
    issued_layout,
    memory_read,
    memory_write,
)
from hw.rtl.gpu.mover import Mover
from hw.rtl.gpu.notes import Notes
from hw.rtl.gpu.page_walker import PageWalker
from hw.rtl.gpu.placer import Placer
from hw.rtl.gpu.record_writer import RecordWriter
from hw.rtl.gpu.rings import Rings
from hw.rtl.gpu.sender import Sender
from hw.rtl.gpu.starter import Starter
from hw.rtl.shared import shared

READERS, WRITERS = 4, 3
"""Who reads host memory: descriptors, keys, lists of pages for writing and for reading; who writes it: results,
completions, events. Behind those, engines do both."""


@shared
class Requester(wiring.Component):
    """The requester of one port.

    Parameters
    ----------
    params
        Sections `requester` and `link`, and the widths of everything. Without engines (`requester.prefetches` and
        `requester.slots` are 0) what is for them ends INVALID.

    Interface
    ---------
    number : In
        Of the port. Constant.
    link : Out, `link(params)`
        The node.
    host : Out, AXI4
        Memory of descriptors, keys, lists of pages, completions, results and events.
    hbm : Out, AXI4
        Memory of data.
    axi : In, AXI4-Lite
        The software's side: the registers of `requester.rdl`.
    irq : Out(1)
        Level.
    issued_valid, issued : Out, `issued_layout(params)`
        A command goes to the node, in the order of the link.
    restarting : In(1)
        The node forgets everything, or all that it has of this port: both ends of the link are reset as long as this
        is high.
    renewed : Out(1)
        Meanwhile: every command has ended, and the link may be used again.

    Latency and throughput
    ----------------------
    As docs/requester.md says.

    Ordering and stalls
    -------------------
    Commands of a ring in order. Answers and data as they come; completions as commands end. Memory that does not answer
    holds up what needs it, and no link but this one.

    Reset and errors
    ----------------
    Reset forgets everything; the node and both memories have to be reset too. When the node restarts, or the port is
    lost, commands end UNAVAILABLE once what they do in memory has ended, and nothing is fetched until all have. Other
    errors as docs/requester.md says.

    Invariants
    ----------
    Part of 10 and 11.

    Counters
    --------
    Those of `requester.rdl`.
    """

    def __init__(self, params: Params):
        self._params = params
        self._engines = Engines(params) if engine_owners(params) else None
        more = len(host_owners(params))
        self._readers, self._writers = READERS + more, WRITERS + more
        writer_bits, reader_bits = host_id_layout(params, self._writers).size, bits_for(self._readers - 1)
        super().__init__(
            {
                "number": In(PORT_BITS),
                "link": Out(link(params)),
                "host": Out(axi4(memory_write(params, id_bits=writer_bits), memory_read(params, id_bits=reader_bits))),
                "hbm": Out(axi4(memory_write(params, id_bits=context_bits(params)), memory_read(params, id_bits=1))),
                "axi": In(axi4_lite(address_bits=ADDRESS_BITS)),
                "irq": Out(1),
                "issued_valid": Out(1),
                "issued": Out(issued_layout(params)),
                "restarting": In(1),
                "renewed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, params = Module(), self._params
        self._reader = HostReader(params, clients=self._readers)
        self._writer = HostWriter(params, clients=self._writers)
        self._mover, self._placer = Mover(params), Placer(params)
        self._rings, self._contexts, self._events = Rings(params), Contexts(params), Events(params)
        self._fetcher, self._starter, self._sender = Fetcher(params), Starter(params), Sender(params)
        self._answers, self._ender = Answers(params), Ender(params)
        self._finisher, self._completer, self._cutoff = Finisher(params), Completer(params), Cutoff(params)
        self._control = control = RequesterControl(params)
        m.submodules.control = control
        m.submodules.rings = self._rings
        m.submodules.contexts = self._contexts
        m.submodules.events = self._events
        m.submodules.fetcher = self._fetcher
        m.submodules.starter = self._starter
        m.submodules.sender = self._sender
        m.submodules.answers = self._answers
        m.submodules.ender = self._ender
        m.submodules.finisher = self._finisher
        m.submodules.completer = self._completer
        m.submodules.cutoff = self._cutoff
        m.submodules.reader = self._reader
        m.submodules.writer = self._writer
        m.submodules.mover = self._mover
        m.submodules.placer = self._placer
        wiring.connect(m, wiring.flipped(self.axi), control.axi)
        m.d.comb += [
            self.irq.eq(control.irq),
            self.issued_valid.eq(self._starter.issued_valid),
            self.issued.eq(self._starter.issued),
        ]
        self._speak(m)
        self._reach_memory(m)
        self._serve(m, control)
        self._follow(m)
        self._cut(m)
        if self._engines is not None:
            self._employ(m, self._engines)
            if self._params.requester.prefetches:
                m.d.comb += self._engines.consumed.eq(control.consumed)
        return m

    def _speak(self, m: Module) -> None:
        """The link: what commands send while they are cut off goes nowhere, and losses while the node restarts."""
        params, lane = self._params, self.link.to_node
        renew: Any = ResetInserter(self.restarting)
        receiver = Receiver(params, from_node_buffers(params))
        transmitter = Transmitter(params, to_node_buffers(params))
        notes = Notes(params)
        m.submodules.receiver, m.submodules.transmitter = renew(receiver), renew(transmitter)
        m.submodules.notes = renew(notes)
        wiring.connect(m, receiver.lane, wiring.flipped(self.link.from_node))
        wiring.connect(m, receiver.response, self._finisher.flits)
        wiring.connect(m, receiver.message, self._events.flits)
        wiring.connect(m, receiver.data, self._cutoff.arriving)
        wiring.connect(m, notes.flits, transmitter.message)
        losses = self._rings.losses
        m.d.comb += [
            lane.valid.eq(transmitter.lane.valid),
            lane.flit.eq(transmitter.lane.flit),
            lane.flit.port.eq(self.number),
            transmitter.lane.credits.eq(lane.credits),
            transmitter.request.payload.eq(self._sender.flits.payload),
            transmitter.data.payload.eq(self._mover.flits.payload),
            notes.losses.payload.eq(losses.payload),
            notes.spoken.eq(lane.valid),
            notes.credit.eq(lane.credits[Channel.MESSAGE.value]),
            self._rings.loss_taken.eq(notes.loss_taken),
        ]
        for source, sink, cut in (
            (self._sender.flits, transmitter.request, self._cutoff.cutting),
            (self._mover.flits, transmitter.data, self._cutoff.cutting),
            (losses, notes.losses, self.restarting),
        ):
            m.d.comb += [sink.valid.eq(source.valid & ~cut), source.ready.eq(sink.ready | cut)]

    def _reach_memory(self, m: Module) -> None:
        """Who reads and writes what."""
        params, reader, writer, mover, placer = self._params, self._reader, self._writer, self._mover, self._placer
        m.submodules.mover_walker = mover_walker = PageWalker(params)
        m.submodules.placer_walker = placer_walker = PageWalker(params)
        readers: list[Any] = [self._fetcher, self._sender, mover_walker, placer_walker]
        for i, client in enumerate(readers):
            wiring.connect(m, client.bursts, reader.bursts[i])
            wiring.connect(m, reader.beats[i], client.beats)
        data: list[Any] = [(mover, mover_walker), (placer, placer_walker)]
        for path, walker in data:
            wiring.connect(m, path.walks, walker.walks)
            wiring.connect(m, walker.found, path.found)

        m.submodules.result_writer = results = RecordWriter(params, COMPLETION)
        m.submodules.completion_writer = completions = RecordWriter(params, COMPLETION)
        m.submodules.event_writer = entries = RecordWriter(params, EVENT)
        wiring.connect(m, self._finisher.results, results.records)
        wiring.connect(m, self._completer.records, completions.records)
        wiring.connect(m, self._events.records, entries.records)
        for i, record in enumerate((results, completions, entries)):
            wiring.connect(m, record.bursts, writer.bursts[i])
            wiring.connect(m, record.beats, writer.beats[i])
        wiring.connect(m, writer.acknowledgements[0], self._contexts.recorded)
        wiring.connect(m, writer.acknowledgements[1], self._completer.written)
        wiring.connect(m, writer.acknowledgements[2], self._events.written)
        managers: list[Any] = [(reader, self.host), (writer, self.host), (mover, self.hbm), (placer, self.hbm)]
        for part, whole in managers:
            for name, member in part.axi.signature.members.items():
                ours, theirs = getattr(part.axi, name), getattr(whole, name)
                m.d.comb += theirs.eq(ours) if member.flow is Out else ours.eq(theirs)

    def _serve(self, m: Module, control: RequesterControl) -> None:
        """The rings: what software says of them, who asks for them, and what fails them."""
        rings, contexts, fetcher, events = self._rings, self._contexts, self._fetcher, self._events
        m.d.comb += [
            rings.settings.eq(control.rings),
            control.states.eq(rings.states),
            events.settings.eq(control.event_ring),
            control.event_state.eq(events.state),
            fetcher.wanting.eq(rings.wanting),
            fetcher.turn.eq(rings.turn),
            fetcher.descriptor.eq(rings.descriptor),
            rings.fetching.eq(fetcher.busy),
            rings.fetching_ring.eq(fetcher.ring),
            rings.fetched.eq(fetcher.fetched),
            rings.completing.eq(self._completer.completing),
            self._completer.completion.eq(rings.completion),
            self._completer.phase.eq(rings.phase),
            rings.released.valid.eq(contexts.left),
            rings.released.ring.eq(contexts.left_ring),
            fetcher.running.eq(rings.running),
            contexts.running.eq(rings.running),
            self._finisher.running.eq(rings.running),
            self._completer.running.eq(rings.running),
        ]
        fails = (
            (fetcher.failed, fetcher.ring),
            (contexts.result_failed, contexts.result_ring),
            (contexts.completion_failed, contexts.left_ring),
        )
        for failure, (valid, ring) in zip(rings.failures, fails, strict=True):
            m.d.comb += [failure.valid.eq(valid), failure.ring.eq(ring)]
        counts = control.counts
        m.d.comb += [
            counts.fetched.eq(fetcher.fetched),
            counts.refused.eq(fetcher.fetched & self._starter.allocated.refused),
            counts.dropped.eq(events.dropped),
            counts.completion.eq(self._completer.completed),
            counts.event.eq(events.event),
            counts.failed.eq(rings.failed | events.failed),
            counts.inactive.eq(rings.inactive),
        ]

    def _follow(self, m: Module) -> None:
        """The table of contexts, and who tells it what."""
        contexts, starter, sender, finisher = self._contexts, self._starter, self._sender, self._finisher
        placer, mover, answers, ender = self._placer, self._mover, self._answers, self._ender
        wiring.connect(m, self._fetcher.starts, starter.software)
        wiring.connect(m, starter.sends, sender.sends)
        wiring.connect(m, sender.moves, mover.moves)
        wiring.connect(m, sender.sent, contexts.sent)
        wiring.connect(m, mover.ended, contexts.moved)
        wiring.connect(m, placer.issued, contexts.issued)
        wiring.connect(m, placer.acknowledged, contexts.acknowledged)
        wiring.connect(m, placer.ended, contexts.ended)
        wiring.connect(m, contexts.done, ender.done)
        wiring.connect(m, ender.released, contexts.released)
        wiring.connect(m, ender.software, self._completer.done)
        wiring.connect(m, self._completer.released, ender.completed)
        m.d.comb += [
            self._fetcher.free.eq(contexts.free),
            *(getattr(starter, name).eq(getattr(contexts, name)) for name in ("free", "spare", "crowded", "next_tag")),
            contexts.allocate.eq(starter.allocate),
            contexts.allocated.eq(starter.allocated),
            contexts.answer_tag.eq(finisher.answer_tag),
            finisher.answer_known.eq(contexts.answer_known),
            finisher.answered.eq(contexts.answered),
            answers.node_valid.eq(finisher.answer_valid),
            answers.node.eq(finisher.answer),
            contexts.answer_valid.eq(answers.answer_valid),
            contexts.answer.eq(answers.answer),
            contexts.placing.eq(placer.context),
            contexts.placing_segment.eq(placer.flits.payload.segment),
        ]

    def _cut(self, m: Module) -> None:
        """Data for the `Placer`, and the end of everything when the node restarts."""
        contexts, cutoff, placer = self._contexts, self._cutoff, self._placer
        m.submodules.inspector = inspector = Inspector(self._params)
        wiring.connect(m, cutoff.flits, placer.flits)
        wiring.connect(m, inspector.checking, contexts.checking)
        wiring.connect(m, inspector.checked, contexts.checked)
        m.d.comb += [
            inspector.valid.eq(placer.flits.valid & placer.flits.ready),
            inspector.known.eq(contexts.known & ~cutoff.cutting),
            *(
                inspector.flit[name].eq(placer.context if name == "context" else placer.flits.payload[name])
                for name, _ in inspector.flit.shape()
            ),
            contexts.data_tag.eq(cutoff.data_tag),
            cutoff.data_known.eq(contexts.data_known),
            placer.target.place.eq(contexts.place),
            placer.target.segment.eq(contexts.first),
            placer.target.room.eq(contexts.room),
            placer.target.known.eq(contexts.known | cutoff.cutting),
            placer.target.mute.eq(contexts.mute | cutoff.cutting),
            contexts.cutting.eq(cutoff.cutting),
            contexts.abandon.eq(cutoff.abandon),
            cutoff.restarting.eq(self.restarting),
            self.renewed.eq(cutoff.away),
            self._starter.away.eq(cutoff.away),
            self._control.away.eq(cutoff.away),
            cutoff.ended.eq(placer.ended.valid),
            cutoff.idle.eq(contexts.empty & self._sender.idle & ~self._fetcher.busy & self._engines_idle()),
            self._fetcher.hold.eq(cutoff.cutting & ~cutoff.away),
            self._rings.cut.eq(self.restarting),
            self._finisher.cut.eq(self.restarting),
            self._events.cut.eq(self.restarting),
        ]

    def _engines_idle(self) -> Value:
        """Whether no engine has anything in hand."""
        return Const(1) if self._engines is None else self._engines.idle

    def _employ(self, m: Module, engines: Engines) -> None:
        """The engines: commands as if of software, and memory as of a part."""
        m.submodules.engines = engines
        m.d.comb += [
            engines.running.eq(self._rings.running),
            engines.cutting.eq(self._cutoff.cutting),
            self._starter.urgent.eq(engines.urgent),
        ]
        if self._params.requester.slots:
            self._show(m, engines)
        if self._params.requester.sessions:
            self._watch(m, engines)
        for i in range(len(engines.tasks)):
            wiring.connect(m, self._starter.tasks[i], engines.tasks[i])
            wiring.connect(m, engines.starts[i], self._starter.own[i])
            wiring.connect(m, self._ender.engines[i], engines.ended[i])
            wiring.connect(m, engines.answers[i], self._answers.engines[i])
        for i in range(len(engines.bursts)):
            wiring.connect(m, engines.bursts[i], self._reader.bursts[READERS + i])
            wiring.connect(m, self._reader.beats[READERS + i], engines.beats[i])
            wiring.connect(m, engines.writes[i], self._writer.bursts[WRITERS + i])
            wiring.connect(m, engines.write_beats[i], self._writer.beats[WRITERS + i])
            wiring.connect(m, self._writer.acknowledgements[WRITERS + i], engines.written[i])

    def _show(self, m: Module, engines: Engines) -> None:
        """What the write-back buffer sees of all else."""
        seen, mover, moves, released = engines.seen, self._mover, self._sender.moves, self._completer.released
        m.d.comb += [
            *(fence.eq(ring.fence) for fence, ring in zip(seen.fences, self._control.rings, strict=True)),
            seen.released.eq(released.valid),
            seen.context.eq(released.payload.token),
            seen.next_tag.eq(self._contexts.next_tag),
            seen.mover_free.eq(mover.moves.ready),
            seen.moved.valid.eq(moves.valid & moves.ready),
            seen.moved.tag.eq(moves.payload.tag),
            seen.sent.valid.eq(mover.flits.valid & mover.flits.ready),
            seen.sent.flit.eq(mover.flits.payload),
            self._control.counts.puts.eq(engines.counted),
        ]

    def _watch(self, m: Module, engines: Engines) -> None:
        """What the manager of sessions sees of all else, and tells."""
        watched, starts, done = engines.watched, self._fetcher.starts, self._ender.software
        begun, ended, fence, heard = watched.begun, watched.ended, watched.fence, self._events.heard
        descriptor, control = starts.payload.descriptor, self._control
        m.d.comb += [
            begun.valid.eq(starts.valid & starts.ready),
            begun.context.eq(self._contexts.next_tag),
            begun.opcode.eq(descriptor.opcode),
            begun.pin.eq(descriptor.flags.pin),
            begun.name.ring.eq(starts.payload.ring),
            begun.name.slice.eq(descriptor.slice),
            begun.name.session.eq(descriptor.slot.id),
            ended.valid.eq(done.valid & done.ready),
            ended.context.eq(done.payload.number),
            ended.ring.eq(done.payload.ring),
            ended.status.eq(done.payload.outcome.status),
            ended.given.eq(done.payload.outcome.given),
            ended.slot.eq(done.payload.outcome.slot),
            ended.count.eq(Mux(done.payload.lookup, done.payload.hits, done.payload.outcome.count)),
            fence.valid.eq(heard.valid & (heard.message.kind == MessageKind.FENCE)),
            fence.name.ring.eq(heard.message.ring),
            fence.name.slice.eq(heard.slice),
            fence.name.session.eq(heard.message.slot),
            watched.lost.eq(Cat(ring.lose for ring in control.rings)),
            watched.settled.eq(Cat((state.outstanding == 0) & ~state.losing for state in self._rings.states)),
            self._events.managed.eq(engines.managed),
            control.sessions.eq(engines.sessions),
            control.pins.eq(engines.pins),
            control.counts.sessions.eq(engines.counted_sessions),
        ]
