"""One frame of the core: what becomes of its row, and who may make something of it."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover

from hw.formal.node.bench import CHOOSING, CoreBench, claim_kinds
from hw.formal.node.stories import LIFE
from hw.formal.property import Induction, Property
from hw.formal.symbolic import constant
from hw.params.protocol import Status
from hw.rtl.layouts import CamOp
from hw.rtl.node.layouts import Kind, State
from hw.rtl.node.slots import SlotOp

KEPT = (
    "generation",
    "partition",
    "partition_stamp",
    "model",
    "model_stamp",
    "session_slot",
    "session_generation",
    "bound",
    "length",
    "whole",
    "accepted",
    "landed",
    "crc",
    "place",
)
"""Fields of a row that stay from the done bit on."""


class OneFrame(CoreBench):
    """Follows any one frame, and what memory owes of it, by its rows alone.

    Memory answers what it was given, each once: LANDED no more writes than were accepted and have not been answered,
    READ_DONE no more READs than were started.
    """

    def claim(self, m: Module) -> None:
        t, op = self.t, self.operation
        self.index = constant(m, self.frame_choice, "frame")
        self.row = Signal(t.frames.rows.shape().elem_shape, name="the_row")
        m.d.comb += self.row.eq(t.frames.rows[self.index])
        self.written = Signal()
        self.new = t.frames.write_data
        m.d.comb += self.written.eq(t.frames.write & (t.frames.write_address == self.index))

        # What memory owes: writes and READs.
        self.writes, self.reads = Signal(4), Signal.like(self.row.reads)
        self.answers_ok = self.e._answers & (self.e._status == Status.OK)
        starts = self.answers_ok & t.op.kind.matches(Kind.READ, Kind.STEP_PARKED) & (t.index == self.index)
        stored = self.answers_ok & (t.op.kind == Kind.WRITE) & (t.index == self.index)
        about = op.handle.frame == self.index
        landed = self.taken & (op.kind == Kind.LANDED) & about
        done = self.taken & (op.kind == Kind.READ_DONE) & about
        self.starts, self.stored = starts, stored
        with m.If(landed):
            m.d.comb += Assume((op.count <= self.writes) & (op.count != 0))
        with m.If(done):
            m.d.comb += Assume(self.reads != 0)
        m.d.comb += Assume(~(starts & self.reads.all()))
        m.d.sync += [
            self.writes.eq(self.writes + stored - Mux(landed, op.count, 0)),
            self.reads.eq(self.reads + starts - done),
        ]
        self.rules_of_the_row(m)

    def rules_of_the_row(self, m: Module) -> None:
        """What holds between operations of every row, and in them of the row in hand: it carries the induction."""
        t, e, row, index, state = self.t, self.e, self.row, self.index, self.state
        ready = t.frames_ready
        size = self.params.memory.segment_bytes
        op = t.op
        landing = (op.kind == Kind.LANDED) & (op.handle.frame == index) & state("ADMIT", "OWNER", "JUDGE")
        done = (op.kind == Kind.READ_DONE) & (op.handle.frame == index) & state("ADMIT", "OWNER", "JUDGE")
        sealed, sealing = row.state == State.SEALED, row.sealing
        held = Signal(4)
        m.d.comb += held.eq(sum(pin.used & (pin.entry == index) for pin in t.pins.rows))
        claim_kinds(m, self)
        evictable = t.replacement.clock.words.may_evict.bit_select(index, 1)
        with m.If(~ready):
            m.d.comb += Assert(state("IDLE") & ~e._chained & ~evictable)
            m.d.comb += Assert((held == 0) & (self.reads == 0) & (self.writes == 0))
        follows = (e._chained & (e._chain_frame == index)) | (state("OWNER", "JUDGE") & (t.op.handle.frame == index))
        following = Mux(e._chained, e._chain, t.op.kind)
        most = self.params.pools[0].frame_bytes
        m.d.comb += Assert(~state(*CHOOSING) | (t.op.length <= most))
        with m.If(state("ADVANCE", "APPEND") & (t.index == index)):
            m.d.comb += [
                Assert((t.frame.as_value() == row.as_value()) & (t.frames.content == row.as_value()) & t.frames.known),
                Assert((row.state == State.WRITING) & (op.segment == row.accepted) & row.whole),
                Assert((op.length != 0) & (op.length < size) & (op.segment * size + op.length <= row.bound)),
            ]
        with m.If(ready & follows & (following == Kind.SEALED)):
            m.d.comb += Assert((row.state == State.WRITING) & row.sealing & (row.answered == row.accepted))
        with m.If(ready & follows & (following == Kind.DRAINED)):
            idle = (row.pins == 0) & (row.reads == 0) & (row.answered == row.accepted)
            m.d.comb += Assert((row.state == State.DRAINING) & idle)
        with m.If(ready):
            m.d.comb += [
                Assert(row.state <= State.QUARANTINED, "no such state"),
                Assert(row.accepted - row.answered == self.writes + Mux(landing, op.count, 0), "writes are lost"),
                Assert(row.pins == held, "pins and their table disagree"),
                Assert(row.reads == self.reads + done, "READs are lost"),
                Assert((row.landed <= row.answered) & (row.answered <= row.accepted)),
                Assert(row.accepted <= self.params.pools[0].frame_bytes // size),
                Assert(row.length <= row.bound),
                Assert(row.bound <= self.params.pools[0].frame_bytes),
                Assert(
                    ~sealed | ((row.landed == row.accepted) & ~sealing & (row.bound == row.length)),
                    "the done bit before memory's answer",
                ),
                Assert(~sealing | ((row.state == State.WRITING) & (row.bound == row.length))),
                Assert((row.state != State.QUARANTINED) | row.generation.all()),
                Assert((row.state != State.FREE) | ~row.generation.all()),
                Assert(
                    ~row.state.matches(State.FREE, State.QUARANTINED)
                    | ((row.pins == 0) & (row.reads == 0) & (self.writes == 0))
                ),
                Assert(~t.replacement.free.bit_select(index, 1) | (row.state == State.FREE)),
            ]
            with m.If(row.state != State.FREE):
                end = row.accepted * size
                m.d.comb += Assert(Mux(row.whole, row.length == end, (row.length < end) & (row.length + size > end)))
            chosen = t.replacement.frame
            with m.If(t.replacement.done & t.replacement.found & state("CHOOSE")):
                taken = t.frames.rows[chosen]
                m.d.comb += Assume(Mux(t.replacement.evict, _evictable(taken), taken.state == State.FREE))
            with m.If(evictable):
                m.d.comb += Assert(_evictable(row))


class UnsealedFrame(OneFrame):
    """Invariant 1: a READ of the frame starts only if it is SEALED, or for its own session up to what has landed; and a
    HIT names it only if it is SEALED, by its generation."""

    def claim(self, m: Module) -> None:
        super().claim(m)
        t, e, op, row = self.t, self.e, self.t.op, self.row
        end = op.segment + op.count
        session = t.sessions.rows[row.session_slot]
        mine = session.used & (session.generation == row.session_generation) & (session.entry.ring == op.stamp)
        with m.If(self.starts):
            m.d.comb += [
                Assert((row.state == State.SEALED) | ((row.state == State.WRITING) & mine & (end <= row.landed))),
                Assert(end <= row.accepted),
                Assert(op.handle.frame == self.index),
            ]
        verdict, says = e._verdicts.i.payload, e._emits | e._verdicts.i.valid
        waiting = e._say & state_is(e._verdict, Kind.LOOKUP, Status.HIT) & (e._verdict.handle.frame == self.index)
        hit = says & state_is(verdict, Kind.LOOKUP, Status.HIT) & (verdict.handle.frame == self.index)
        telling = self.state("FETCH", "CLAIM", "EMIT") & (e._other.kind != Kind.LOOKUP)
        m.d.comb += [Assert(~e._say | self.state("EMIT")), Assert(~e._tell_other | telling)]
        for when, said in ((waiting, e._verdict), (hit, verdict)):
            with m.If(when):
                m.d.comb += Assert((row.state == State.SEALED) & (said.handle.generation == row.generation))
        m.d.comb += [
            Cover(self.starts & (row.state == State.SEALED)),
            Cover(self.starts & (row.state == State.WRITING)),
            Cover(hit & self.state("STREAM")),
            Cover(hit & self.state("EMIT")),
        ]


def state_is(verdict: Any, kind: Kind, status: Status) -> Value:
    """Whether a verdict is that of a command, with a status."""
    return (verdict.kind == kind) & (verdict.status == status)


class FinalFrame(OneFrame):
    """Invariant 3: what describes the bytes of a SEALED frame stays until it is FREE, or evicted and claimed; and a
    WRITE appends, to a frame that its own session is writing, and replaces nothing."""

    def claim(self, m: Module) -> None:
        super().claim(m)
        t, op, row, new = self.t, self.t.op, self.row, self.new
        claimed = self.state("CLAIM")
        session = t.sessions.rows[row.session_slot]
        own = session.used & (session.generation == row.session_generation) & (session.entry.ring == op.stamp)
        kept = Cat(Value.cast(new[name]) == Value.cast(row[name]) for name in KEPT).all()
        after = {
            State.FREE: (State.WRITING,),
            State.WRITING: (State.WRITING, State.SEALED, State.DRAINING),
            State.SEALED: (State.SEALED, State.DRAINING, State.WRITING),
            State.DRAINING: (State.DRAINING, State.FREE, State.QUARANTINED),
            State.QUARANTINED: (),
        }
        with m.If(self.written & t.frames_ready):
            with m.Switch(row.state):
                for state, states in after.items():
                    with m.Case(state):
                        m.d.comb += Assert(new.state.matches(*states) if states else 0, "a state that cannot follow")
            with m.If(claimed):
                m.d.comb += [
                    Assert(row.state.matches(State.FREE, State.SEALED) & (new.state == State.WRITING)),
                    Assert(new.generation == row.generation + 1),
                ]
            with m.Elif(row.state.matches(State.SEALED, State.DRAINING)):
                m.d.comb += Assert(kept | (new.landed != row.landed) & (row.state == State.DRAINING))
            with m.If(~claimed & (new.accepted != row.accepted)):
                m.d.comb += [
                    Assert(self.stored & (row.state == State.WRITING) & own & (op.segment == row.accepted)),
                    Assert((new.accepted == row.accepted + 1) & (new.length == row.length + op.length)),
                ]
        appends = self.state("ADVANCE", "APPEND") & (t.index == self.index)
        m.d.comb += Assert(~appends | own)
        m.d.comb += Assert(~self.stored | (self.written & (new.accepted == row.accepted + 1)))
        m.d.comb += [
            Cover(self.written & claimed & (row.state == State.SEALED)),
            Cover(self.written & ~claimed & (row.state == State.SEALED) & (new.state == State.SEALED)),
            Cover(self.stored & (row.accepted != 0) & self.state("APPEND")),
        ]


class PinnedFrame(OneFrame):
    """Invariant 5: what is pinned or read is neither claimed nor FREE; its pins are those in the tables of rings, and
    only the ring that holds one gives it back, once, or a hand when the ring is lost."""

    def claim(self, m: Module) -> None:
        super().claim(m)
        t, op, row, new = self.t, self.t.op, self.row, self.new
        held = (row.pins != 0) | (row.reads != 0)
        with m.If(self.written & t.frames_ready & held):
            m.d.comb += Assert(~self.state("CLAIM") & ~new.state.matches(State.FREE, State.QUARANTINED))
        pin = t.pins.rows[t.pins.asked]
        table = t.pins.asked[len(t.pins.slot) :]
        with m.Switch(t.pins.op):
            with m.Case(SlotOp.TAKE):
                m.d.comb += Assert((op.kind == Kind.LOOKUP) & (t.pins.offered == t.ring_index(op.stamp)))
            with m.Case(SlotOp.RELEASE):
                unpins = (table == t.ring_index(op.stamp)) & (t.pins.asked[: len(t.pins.slot)] == op.slot.slot)
                m.d.comb += [
                    Assert(pin.used, "a pin that nobody holds"),
                    Assert(op.kind.matches(Kind.UNPIN, Kind.STEP_PINS)),
                    Assert((op.kind != Kind.UNPIN) | (unpins & (pin.generation == op.slot.generation))),
                    Assert((op.kind != Kind.STEP_PINS) | t.rings[table].lost),
                ]
            with m.Case(SlotOp.UPDATE):
                m.d.comb += Assert(0)
        m.d.comb += [
            Cover(row.pins == 2),
            Cover((t.pins.op == SlotOp.RELEASE) & (op.kind == Kind.UNPIN) & (pin.entry == self.index)),
            Cover((t.pins.op == SlotOp.RELEASE) & (op.kind == Kind.STEP_PINS)),
            Cover(self.written & self.state("CLAIM") & (row.state == State.SEALED)),
        ]


class NamedFrame(OneFrame):
    """Invariant 7: a handle of the frame in another generation or epoch, or of a block that is dead, changes nothing,
    nor does the name of a pin or session of another use; and all of these are refused."""

    def claim(self, m: Module) -> None:
        super().claim(m)
        t, e, op, row = self.t, self.e, self.t.op, self.row
        session = t.sessions.rows[row.session_slot]
        lives = session.used & (session.generation == row.session_generation) & ~t.is_lost(session.entry.ring)
        alive = (row.state == State.SEALED) | ((row.state == State.WRITING) & lives)
        for scopes, index, stamp in (
            (self.scopes("partition"), row.partition, row.partition_stamp),
            (self.scopes("model"), row.model, row.model_stamp),
        ):
            scope = scopes[index]
            alive &= ~scope.closed & (scope.generation == stamp)
        named = (op.handle.generation == row.generation) & (op.handle.epoch == t.epoch) & alive
        by_handle = op.kind.matches(Kind.WRITE, Kind.SEAL, Kind.ABORT, Kind.READ, Kind.STEP_PARKED) & (
            op.handle.frame == self.index
        )
        stale = by_handle & ~named
        pin = t.pins.rows[t.pins.asked]
        stale |= (op.kind == Kind.UNPIN) & ~(pin.used & (pin.generation == op.slot.generation))
        closed = t.sessions.rows[op.slot.slot[: len(t.sessions.slot)]]
        stale |= op.kind.matches(Kind.CLOSE_SESSION, Kind.MIGRATE, Kind.ANSWER_FENCE) & ~(
            closed.used & (closed.generation == op.slot.generation)
        )
        judged = self.state("JUDGE", "ADVANCE", "APPEND") & t.frames_ready
        words, usage = t.replacement.clock.words, t.replacement.usage
        changes = Cat(
            t.frames.write,
            t.pins.op,
            t.sessions.op,
            t.partition_scopes.op,
            t.model_scopes.op,
            t.cam.requests.valid & (t.cam.requests.payload.op == CamOp.UPDATE),
            words.mark,
            usage.gain,
            usage.lose,
            usage.set,
            usage.quarantine,
            t.replacement.take,
            t.replacement.give,
            t.discard,
            t.parking.take,
            t.fences.begin,
            t.fences.answer,
            t.fences.end,
            e._ends_other,
        ).any()
        with m.If(judged & stale):
            m.d.comb += [
                Assert(~changes, "a stale name has an effect"),
                Assert(~e._answers | e._status.matches(Status.STALE, Status.DENIED)),
                Assert(self.state("JUDGE")),
            ]
        m.d.comb += [
            Cover(judged & stale & by_handle & (op.kind == Kind.WRITE) & (row.state == State.WRITING)),
            Cover(judged & stale & by_handle & (op.kind == Kind.READ) & (row.state == State.SEALED)),
            Cover(judged & stale & (op.kind == Kind.UNPIN)),
            Cover(judged & by_handle & ~stale & changes),
        ]


def _evictable(row: Any) -> Value:
    """SEALED, held by nothing, with a generation to go."""
    return (row.state == State.SEALED) & (row.pins == 0) & (row.reads == 0) & ~row.generation.all()


PROPERTIES = (
    Property(
        name="core_frames.unsealed",
        shows="invariant 1: a READ starts of SEALED frames, or of what has landed for its own session; a HIT is SEALED",
        design=UnsealedFrame,
        method=Induction(8),
        cover=LIFE,
    ),
    Property(
        name="core_frames.final",
        shows="invariant 3: what a SEALED frame holds stays until it is FREE or evicted; a WRITE replaces nothing",
        design=FinalFrame,
        method=Induction(8),
        cover=LIFE,
    ),
    Property(
        name="core_frames.pins",
        shows="invariant 5: a frame with a pin or READ is not reused; pins neither leak, nor are spent by others",
        design=PinnedFrame,
        method=Induction(8),
        cover=LIFE,
    ),
    Property(
        name="core_frames.handles",
        shows="invariant 7: names of another generation, epoch or scope have no effect, and are refused",
        design=NamedFrame,
        method=Induction(8),
        cover=LIFE,
    ),
)
