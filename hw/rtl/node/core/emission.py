"""What the core says of an operation: its log entry, its verdict, that of a command that waited, notices to ports."""

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import ValueLike
from amaranth.lib import data, stream, wiring

from hw.params.protocol import STATUS_BITS, TAG_BITS, Status
from hw.rtl.node.core.notices import Notices
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import Kind, log_layout, ring_layout, verdict_layout
from hw.rtl.queue import Queue

RESUMING = (Kind.STEP_PARKED, Kind.EXPIRED_READ)
"""What goes on with a READ that was parked; the operation has its stamp and tag."""

DEPTH = 16
"""Verdicts and log entries that wait to be taken."""


class Emission:
    """Collects what a judgement says, and hands it to the queues before the streams in the state EMIT.

    The methods add statements where they are called. An operation ends in EMIT, whatever it says there; a verdict that
    finds its queue empty is offered in that cycle. `notices` are told from the judgement, and wait for nothing.
    """

    def __init__(
        self,
        m: Module,
        t: Tables,
        *,
        verdicts: stream.Interface,
        log: stream.Interface,
        messages: stream.Interface,
    ) -> None:
        self._m, self._t = m, t
        self.notices = Notices(m, t, messages)
        m.submodules.verdicts = self._verdicts = Queue(verdict_layout(), depth=DEPTH)
        m.submodules.log = self._log = Queue(log_layout(), depth=DEPTH)
        wiring.connect(m, self._log.o, wiring.flipped(log))
        self._verdict = Signal(verdict_layout())
        self._entry = Signal(log_layout())
        self._other = Signal(verdict_layout())
        self._say, self._write, self._tell_other, self._emits = (Signal() for _ in range(4))
        self._logs, self._answers, self._waits, self._completes, self._parks = (Signal() for _ in range(5))
        self._status, self._outcome = Signal(STATUS_BITS), Signal(STATUS_BITS)
        self._ends_other = Signal()
        self._ended = Signal(
            data.StructLayout({"kind": Kind, "stamp": ring_layout(), "tag": TAG_BITS, "status": STATUS_BITS})
        )
        self._chain = Signal(Kind)
        self._chain_frame = Signal.like(t.index)
        self._chained = Signal()
        said = Signal(verdict_layout())
        m.d.comb += [
            self._log.i.payload.eq(self._entry),
            said.eq(Mux(self._tell_other, self._other, self._verdict)),
            self._verdicts.i.payload.eq(said),
            self._verdicts.o.ready.eq(verdicts.ready),
            verdicts.valid.eq(self._verdicts.o.valid | self._emits),
            verdicts.payload.eq(Mux(self._verdicts.o.valid, self._verdicts.o.payload, said)),
        ]
        with m.If(t.failing):
            m.d.comb += [said[name].eq(Status.UNAVAILABLE) for name in ("status", "outcome")]
            m.d.comb += [said.complete.eq(1), said.parked.eq(0), said.named.eq(0), said.pinned.eq(0)]
        self._collect()

    def room(self, count: int) -> Value:
        """Whether `count` more operations can say what they have to say."""
        return (self._verdicts.level <= DEPTH - count) & (self._log.level <= DEPTH - count)

    def say(self, verdict: Value, entry: Value) -> None:
        """At once, in a state of one's own; there must be room."""
        self._m.d.comb += [
            self._verdicts.i.valid.eq(1),
            self._verdicts.i.payload.eq(verdict),
            self._log.i.valid.eq(~self._t.failing),
            self._log.i.payload.eq(entry),
        ]

    def log(self) -> None:
        """The operation in hand enters the order log."""
        self._m.d.comb += self._logs.eq(1)
        self._m.next = "EMIT"

    def answer(self, status: ValueLike, *, complete: ValueLike = 1, outcome: ValueLike | None = None) -> None:
        """The command in hand gets a verdict, and enters the log; its outcome is the status, unless one is given."""
        ended = status if outcome is None else outcome
        self._m.d.comb += [
            self._answers.eq(1),
            self._status.eq(status),
            self._outcome.eq(ended),
            self._completes.eq(complete),
        ]
        self.log()

    def wait(self) -> None:
        """The command in hand enters the log, and is answered later."""
        self._m.d.comb += self._waits.eq(1)
        self.log()

    def park(self) -> None:
        """The READ in hand is parked."""
        self._m.d.comb += self._parks.eq(1)
        self.answer(Status.PENDING, complete=0)

    def answer_other(self, kind: Kind, stamp: Value, tag: Value, status: ValueLike) -> None:
        """A command that has waited gets a verdict with this operation: one at most."""
        ended = self._ended
        self._m.d.comb += [
            self._ends_other.eq(1),
            ended.kind.eq(kind),
            ended.stamp.eq(stamp),
            ended.tag.eq(tag),
            ended.status.eq(status),
        ]

    def _collect(self) -> None:
        """What is said in any state comes together here, so that it is not written out for each."""
        m, t, op, verdict, entry = self._m, self._t, self._t.op, self._verdict, self._entry
        with m.If(self._logs):
            same = ("kind", "stamp", "tag", "item", "count", "ok", "ring")
            m.d.sync += [entry[name].eq(op[name]) for name in same]
            m.d.sync += [entry.frame.eq(op.handle.frame), entry.slot.eq(op.slot.slot), self._write.eq(1)]
        is_command = op.kind < Kind.LANDED
        lost = ~op.stamp.registers & t.ring.lost & self._completes & (self._status != Status.INVALID)
        with m.If(self._answers):
            m.d.sync += [verdict[name].eq(op[name]) for name in ("stamp", "tag", "item")]
            m.d.sync += [
                verdict.kind.eq(Mux(op.kind.matches(*RESUMING), Kind.READ, op.kind)),
                verdict.parked.eq(self._parks),
                verdict.status.eq(Mux(lost, Status.UNAVAILABLE, self._status)),
                verdict.outcome.eq(Mux(lost, Status.UNAVAILABLE, self._outcome)),
                verdict.complete.eq(self._completes),
                verdict.named.eq(0),
                verdict.pinned.eq(0),
                verdict.frame.eq(t.index),
                verdict.segment.eq(op.segment),
                verdict.count.eq(op.count),
                verdict.length.eq(t.frame.length),
                self._say.eq(1),
            ]
            with m.If(is_command):
                m.d.sync += t.stopped.eq((op.kind == Kind.LOOKUP) & self._completes & ~op.last)
        # What is outstanding on the stamping ring.
        begun = is_command & (op.item == 0)
        with m.If((self._answers | self._waits) & ~op.stamp.registers):
            t.count(t.ring_number, "outstanding", begun - self._completes)

        other, ended = self._other, self._ended
        ended_status = Mux(t.is_lost(ended.stamp), Status.UNAVAILABLE, ended.status)
        with m.If(self._ends_other):
            m.d.sync += [other[name].eq(ended[name]) for name in ("kind", "stamp", "tag")]
            m.d.sync += [
                other.item.eq(0),
                other.status.eq(ended_status),
                other.outcome.eq(ended_status),
                other.complete.eq(1),
                self._tell_other.eq(1),
            ]

    def name(self, frame: ValueLike, generation: ValueLike) -> None:
        """The verdict names a block."""
        handle = self._verdict.handle
        self._m.d.sync += [
            handle.epoch.eq(self._t.epoch),
            handle.generation.eq(generation),
            handle.frame.eq(frame),
            handle.slice.eq(self._t.number),
            handle.node.eq(0),
            self._verdict.named.eq(1),
        ]

    def slot(self, slot: ValueLike, generation: ValueLike) -> None:
        """The verdict gives a pin or a session."""
        given = self._verdict.slot
        self._m.d.sync += [given.slot.eq(slot), given.generation.eq(generation), self._verdict.pinned.eq(1)]

    def follow(self, kind: Kind) -> None:
        """The operation in hand is followed by another, of the frame in hand, which it has made possible."""
        self._m.d.sync += [self._chain.eq(kind), self._chain_frame.eq(self._t.index), self._chained.eq(1)]

    def states(self) -> None:
        """The state EMIT. What a core says that has failed is UNAVAILABLE, and all."""
        m, t = self._m, self._t
        log, verdicts = self._log.i, self._verdicts.i
        with m.State("EMIT"):
            m.d.comb += [
                log.valid.eq(self._write & ~t.failing),
                self._emits.eq(self._say | self._tell_other),
                verdicts.valid.eq(self._emits & (self._verdicts.o.valid | ~self._verdicts.o.ready)),
            ]
            with m.If(log.ready):
                m.d.sync += self._write.eq(0)
            with m.If(verdicts.ready & self._tell_other):
                m.d.sync += self._tell_other.eq(0)
                t.count(t.ring_index(self._other.stamp), "outstanding", -1)
            with m.Elif(verdicts.ready):
                m.d.sync += self._say.eq(0)
            with m.If(t.failing & (t.op.kind == Kind.LOOKUP)):
                m.d.sync += t.stopped.eq(~t.op.last)
            with m.If((~self._write | log.ready) & ~self._tell_other & (~self._say | verdicts.ready)):
                m.next = "IDLE"
                with m.If(self._chained & ~t.failing):
                    m.d.sync += [
                        self._chained.eq(0),
                        t.op.kind.eq(self._chain),
                        t.op.handle.frame.eq(self._chain_frame),
                    ]
                    t.read_frame(self._chain_frame)
                    m.next = "OWNER"
