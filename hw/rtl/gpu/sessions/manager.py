"""The manager of sessions of a requester."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.params.protocol import Opcode, Status
from hw.rtl.gpu.layouts import COUNTED_SESSIONS, Owner, ended_layout, start_layout
from hw.rtl.gpu.sessions.layouts import (
    COUNT_BITS,
    entry_bits,
    name_layout,
    note_layout,
    pins_layout,
    watched_layout,
)
from hw.rtl.gpu.sessions.pins import PinCounts
from hw.rtl.gpu.sessions.table import SessionTable
from hw.rtl.gpu.write_back.layouts import hook


class SessionManager(wiring.Component):
    """Follows the sessions of software's commands, and answers the FENCE of each that it has: when the write-back
    buffer has drained what it had accepted, with all segments that the node has appended.

    Parameters
    ----------
    params
        Section `requester`; rings; the widths of everything.

    Interface
    ---------
    starts, ended, running, cutting, idle : as of `Engines`
    buffer : In, `hook(params)`
        The write-back buffer.
    watched : In, `watched_layout(params)`
        What happens around it.
    managed : Out(1)
        The `fence` that is told in this cycle will be answered.
    sessions, pins : Out
        Entries that are used; pins of each ring, `pins_layout(params)`.
    counted : Out, `COUNTED_SESSIONS`
        What is to be counted in this cycle.

    Latency and throughput
    ----------------------
    Four cycles from a FENCE to its answer, beside what is drained and the `drained` of the buffer. One fence at a time.

    Ordering and stalls
    -------------------
    A FENCE waits until the one before is answered: the lowest entry is next. It holds up nothing but PUTs of its
    session.

    Reset and errors
    ----------------
    Reset forgets all. An answer that is RANGE is sent again when WRITEs that began before it have ended; with any other
    the session is managed no more. Sessions of a ring that is lost or does not run are forgotten, and all are when the
    link is cut off; a fence that was under way is not answered then.

    Invariants
    ----------
    Part of 9: a fence is answered with all that was accepted. Part of 10: it is answered once drained, or its session
    is gone.

    Counters
    --------
    None here but `pins` and `sessions`: `counted` is to be counted.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "starts": Out(stream.Signature(start_layout(params))),
                "ended": In(stream.Signature(ended_layout(params))),
                "running": In(params.tables.rings_per_port),
                "cutting": In(1),
                "idle": Out(1),
                "buffer": In(hook(params)),
                "watched": In(watched_layout(params)),
                "managed": Out(1),
                "sessions": Out(bits_for(params.requester.sessions)),
                "pins": Out(pins_layout(params)),
                "counted": Out(COUNTED_SESSIONS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = self._table = table = SessionTable(self._params)
        m.submodules.pins = self._pins = pins = PinCounts(self._params)
        fence, wrote, lost = self.watched.fence, self.buffer.wrote, Signal.like(self.watched.lost)
        m.d.comb += [
            lost.eq(self.watched.lost | ~self.running),
            table.lost.eq(lost),
            table.clear.eq(self.cutting),
            table.fence.eq(fence.valid),
            table.fenced.eq(fence.name),
            table.wrote.eq(wrote.valid),
            *(table.writer[name].eq(wrote.payload[name]) for name, _ in name_layout(self._params)),
            table.segments.eq(wrote.payload.segments),
            self.managed.eq(table.managed),
            self.sessions.eq(table.used),
            self.counted.unmanaged.eq(table.unmanaged),
            pins.lost.eq(lost),
            pins.clear.eq(self.cutting),
            self.pins.eq(pins.pins),
        ]
        self._watch(m, lost)
        self._answer(m)
        return m

    def _watch(self, m: Module, lost: Signal) -> None:
        """Follow software's commands: what was begun before the loss of its ring gives nothing."""
        begun, ended, table, pins = self.watched.begun, self.watched.ended, self._table, self._pins
        m.submodules.notes = notes = memory.Memory(
            shape=note_layout(self._params), depth=self._params.requester.commands, init=[]
        )
        write, read = notes.write_port(), notes.read_port(domain="comb")
        note, void = read.data, Signal(len(lost))
        good, valid, opened = Signal(), Signal(), Signal()
        m.d.sync += void.eq(void & ~self.watched.settled | lost)
        m.d.comb += [
            write.en.eq(begun.valid),
            write.addr.eq(begun.context),
            write.data.opcode.eq(begun.opcode),
            write.data.pin.eq(begun.pin),
            write.data.name.eq(begun.name),
            write.data.counted.eq(table.counted),
            write.data.entry.eq(table.entry),
            read.addr.eq(ended.context),
            table.begin.eq(begun.valid & (begun.opcode == Opcode.WRITE)),
            table.began.eq(begun.name),
            valid.eq(ended.valid & ~((void | lost) >> ended.ring)[0] & ~self.cutting),
            good.eq(valid & (ended.status == Status.OK)),
            opened.eq(note.opcode == Opcode.OPEN_SESSION),
            table.add.eq(good & ((opened & ended.given) | (note.opcode == Opcode.MIGRATE))),
            table.added.eq(note.name),
            table.removed.eq(note.name),
            table.end.eq(ended.valid & note.counted),
            table.ends.eq(note.entry),
            table.appended.eq(ended.count),
            pins.ring.eq(ended.ring),
            pins.given.eq(Mux(valid & (note.opcode == Opcode.LOOKUP) & note.pin, ended.count, 0)),
            pins.returned.eq(good & (note.opcode == Opcode.UNPIN)),
        ]
        with m.If(opened):
            m.d.comb += table.added.session.eq(ended.slot)
        with m.Switch(note.opcode):
            with m.Case(Opcode.CLOSE_SESSION):
                m.d.comb += table.remove.eq(valid & ended.status.matches(Status.OK, Status.STALE))
            with m.Case(Opcode.ANSWER_FENCE):
                m.d.comb += table.remove.eq(good)

    def _answer(self, m: Module) -> None:
        """Answer one fence after the other."""
        table, start, halt = self._table, self.starts.payload, self.buffer.halt
        at, gone, there = Signal(entry_bits(self._params)), Signal(), Signal()
        name, sent = Signal(name_layout(self._params)), Signal(COUNT_BITS)
        status, again = Signal.like(self.ended.payload.outcome.status), Signal()
        m.d.comb += [
            table.at.eq(at),
            there.eq(table.there & ~gone),
            halt.ring.eq(name.ring),
            halt.slice.eq(name.slice),
            halt.session.eq(name.session),
            start.ring.eq(name.ring),
            start.owner.eq(Owner.SESSIONS),
            start.descriptor.opcode.eq(Opcode.ANSWER_FENCE),
            start.descriptor.slice.eq(name.slice),
            start.descriptor.slot.id.eq(name.session),
            start.descriptor.length.eq(sent),
            self.ended.ready.eq(1),
            status.eq(self.ended.payload.outcome.status),
            again.eq((status == Status.RANGE) & there & (table.busy | (table.count != sent))),
        ]
        with m.If(~table.there):
            m.d.sync += gone.eq(1)
        with m.FSM():
            with m.State("REST"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [at.eq(table.next), gone.eq(0)]
                with m.If(table.moving):
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += name.eq(table.name)
                m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.comb += halt.valid.eq(1)
                m.d.sync += sent.eq(table.count)
                with m.If(self.buffer.drained):
                    with m.If(~there):
                        m.next = "REST"
                    with m.Elif(~table.busy):
                        m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [halt.valid.eq(1), self.starts.valid.eq(1)]
                with m.If(self.starts.ready):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += halt.valid.eq(1)
                with m.If(self.ended.valid):
                    m.next = "REST"
                    with m.If(again):
                        m.next = "DRAIN"
                    with m.Else():
                        m.d.comb += [
                            table.drop.eq(there),
                            self.counted.answered.eq(status == Status.OK),
                            self.counted.failed.eq(status != Status.OK),
                        ]
