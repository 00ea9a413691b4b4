"""The core of a slice: one operation at a time, in the order that its log tells."""

from amaranth import Cat, Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params.params import Params
from hw.params.protocol import SLICE_BITS
from hw.params.toeplitz import diagonal_bits
from hw.rtl.layouts import cam_event_layout, frame_bits
from hw.rtl.node.core import allocation, blocks, control, internal, parked, sessions, streaming
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.tables import HANDS_EVERY, Tables
from hw.rtl.node.layouts import (
    Kind,
    frame_event_layout,
    levels_layout,
    log_layout,
    notices_layout,
    operation_layout,
    ring_layout,
    verdict_layout,
)
from hw.rtl.node.rota import Turn, rota_member


class Core(wiring.Component):
    """Takes operations, judges each by all tables, and tells what it decided in which order.

    The decisions are those of `pymodel.spec`: for the order that `log` gives, every status, frame, slot and generation
    is the specification's. An operation goes through the states ADMIT (what needs no table: INVALID, UNAVAILABLE,
    DENIED), CAM, OWNER (the frame's row is there, its session is read), JUDGE and EMIT; ALLOC has states of its own
    between the last two. What an operation makes possible at once (a seal whose writes have all landed, a drain that
    has nothing to wait for) follows it directly.

    Parameters
    ----------
    params
        Everything.

    Interface
    ---------
    number : In
        Of the slice: what its handles carry. Constant.
    rota : In, `turn_layout(params)`
        Only where partitions are isolated: whose operations come, and whose hands may move. What comes must be sure to
        end in it, by `params.times`.
    diagonals : In
        Hash matrices of the CAM; change them before reset.
    ready : Out(1)
        The tables are initialised.
    operations : In, stream of `operation_layout(params)`
        Commands and internal operations. The items of one LOOKUP come without others between them; after a verdict
        that is `complete`, the rest of its command's items are taken and dropped.
    verdicts : Out, stream of `verdict_layout()`
        What was decided, for each command's item; none for internal operations but what they complete.
    log : Out, stream of `log_layout()`
        The order log.
    messages : Out, stream of `notices_layout(params)`, always ready
        What ports are told unasked: EVENT, INVALIDATE and FENCE.
    discards : Out, stream of frame numbers, always ready
        The block that was being written in this frame has been given up.
    cam_events : Out, stream of `cam_event_layout(params)`, always ready
        What the scrubber of the CAM has found.
    table_events : Out, stream of `frame_event_layout(params)`, always ready
        What the scrubber of the frame table has found; a lost row once.
    failed : Out(1)
        A word of a table is lost that the core cannot do without: it has stopped.
    may_resume : In, a bit a port
        The port has a place, and room for an answer, for a READ of its that was parked.
    resumed, stays : Out, a bit a port
        A parked READ of the port is looked at, and counts as begun; it has to wait on, and counts no more.
    rebound : Out, stream of `ring_layout()`, always ready
        This ring has been bound anew, or unbound.
    started : Out(1)
        An epoch is set.
    levels : Out, `levels_layout(params)`
        What is in use.
    evicted, refused, stalled : Out(1)
        A block was evicted; the CAM had no place; the hand moved further than usual: each for one cycle an event.

    Latency and throughput
    ----------------------
    A key a cycle within a LOOKUP, if the ring has no public partition to ask; else its keys go one at a time, and are
    looked up once more for each partition that is asked. All else goes one at a time. Cycles from operation to verdict,
    if no verdict before it waits: 9 by key in a LOOKUP, else 8; 4 by handle or frame, 5 by pin, 3 by session; 12 for an
    ALLOC in a FREE frame, and with a victim one and the search of `Replacement` more. What is taken behind the LANDED
    that a SEAL waits for finds the block; the verdict of the SEAL comes 7 cycles after that LANDED was taken. A message
    comes three cycles after the judgement, and no operation waits for it. A parked READ is looked at two cycles after
    it was woken, when it has its turn.

    Ordering and stalls
    -------------------
    One operation at a time, but for the keys of a LOOKUP. Verdicts and log entries wait in queues of 16; full queues
    stop the core. A verdict may be there a cycle before its log entry. Messages wait for nothing, so one may come
    before the log has its operation; they are in order.

    A parked READ or a migration that can go on has every second turn, whatever is offered and whatever else is to do.
    Without an operation to take, the hands work: they return pins and sessions of lost rings, and drain dead blocks;
    and the tables are scrubbed. When HANDS_EVERY = 16 operations have been taken (a LOOKUP with all its keys is one),
    the next turn is theirs whatever is offered: a step of a hand, if one has work, and two cycles for the scrubbers,
    which is a row of each table. No step comes before the further keys of a LOOKUP. So nothing of a lost ring is left
    after `pins_per_ring + sessions + frames` turns, nothing of several after `pins_per_ring` turns for each and
    `sessions + frames` for all, and a block that has died otherwise leaves its frame in `frames` turns more than the
    rings lost meanwhile take; what memory has to answer first comes on top of that. A ring with pins is found in
    `rings` cycles.

    Reset and errors
    ----------------
    Reset forgets everything; outstanding commands get no verdict. Nothing is taken before `ready`, and no command but
    SET_EPOCH before an epoch is set (UNAVAILABLE). A frame whose row is lost is QUARANTINED. What has become of
    a block whose key is lost in the CAM is told as `lost`. From `failed` on, and with the operation that has met the
    lost word, every command and READ_DONE ends UNAVAILABLE, other internal operations are taken without effect, and
    nothing is logged or told, until reset.

    Invariants
    ----------
    1 and 4 to 8, 10 for its part, and 11: all that can be decided without looking at bytes.

    Counters
    --------
    `evictions`, `cam_refusals`, `replacement_stall_steps` from the pulses; statuses from the verdicts.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "number": In(SLICE_BITS),
                **rota_member(params),
                "diagonals": In(data.ArrayLayout(diagonal_bits(params), params.cam.banks)),
                "ready": Out(1),
                "operations": In(stream.Signature(operation_layout(params))),
                "verdicts": Out(stream.Signature(verdict_layout())),
                "log": Out(stream.Signature(log_layout())),
                "messages": Out(stream.Signature(notices_layout(params), always_ready=True)),
                "discards": Out(stream.Signature(frame_bits(params), always_ready=True)),
                "cam_events": Out(stream.Signature(cam_event_layout(params), always_ready=True)),
                "table_events": Out(stream.Signature(frame_event_layout(params), always_ready=True)),
                "failed": Out(1),
                "may_resume": In(params.tables.ports),
                "resumed": Out(params.tables.ports),
                "stays": Out(params.tables.ports),
                "rebound": Out(stream.Signature(ring_layout(), always_ready=True)),
                "started": Out(1),
                "levels": Out(levels_layout(params)),
                "evicted": Out(1),
                "refused": Out(1),
                "stalled": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        t = Tables(m, self._params, Turn(self._params, self))
        e = Emission(m, t, verdicts=self.verdicts, log=self.log, messages=self.messages)
        taken = self.operations.payload
        m.d.comb += [
            t.number.eq(self.number),
            t.cam.diagonals.eq(self.diagonals),
            self.ready.eq(Cat(t.cam.requests.ready, t.frames_ready, *(part.ready for part in t.parts)).all()),
            self.discards.valid.eq(t.discard),
            self.discards.payload.eq(t.index),
            self.cam_events.valid.eq(t.cam.events.valid),
            self.cam_events.payload.eq(t.cam.events.payload),
            self.table_events.valid.eq(t.frames.events.valid),
            self.table_events.payload.uncorrectable.eq(t.frames.events.payload.uncorrectable),
            self.table_events.payload.frame.eq(t.frames.events.payload.row),
            self.failed.eq(t.failed),
            t.parking.may_resume.eq(self.may_resume),
            self.resumed.eq(t.resumed << t.parking.port),
            self.stays.eq(t.stays << t.op.stamp.port),
            self.rebound.valid.eq(t.rebound),
            self.rebound.payload.eq(t.op.ring),
            self.started.eq(t.epoch != 0),
            self.levels.eq(t.levels()),
            self.evicted.eq(t.evicted),
            self.refused.eq(t.refused),
            self.stalled.eq(t.replacement.clock.stalled),
            t.replacement.partition.eq(
                Mux(control.is_in(t.op, control.ADMINISTRATIVE), t.op.partition, t.ring.partition)
            ),
            t.replacement.usage.index.eq(t.op.partition),
            t.replacement.usage.limits.eq(t.op.limits),
            t.replacement.clock.rewind_partition.eq(t.op.partition),
        ]

        internal.find_pins(m, t)
        with m.FSM():
            with m.State("IDLE"):
                begins = (taken.kind != Kind.LOOKUP) | (taken.item == 0)
                m.d.comb += [
                    self.operations.ready.eq(self.ready & ~internal.due(t, begins)),
                    t.replacement.partition.eq(taken.partition),
                ]
                with m.If(self.operations.valid & self.operations.ready):
                    m.d.sync += [t.op.eq(taken), t.stepped.eq(0)]
                    with m.If(begins & (t.begun < HANDS_EVERY)):
                        m.d.sync += t.begun.eq(t.begun + 1)
                    with m.If(begins | ~t.stopped):
                        m.next = "ADMIT"
                with m.Elif(self.ready & ~t.failed):
                    internal.turn(m, t)

            with m.State("ADMIT"):
                control.admit(m, t, e)

            with m.State("CAM"), m.If(t.cam.responses.valid):
                answer = t.cam.responses.payload
                m.d.sync += [t.found.eq(answer), t.session_status.eq(t.standing(t.op.slot.generation))]
                m.next = "JUDGE"
                with m.If(answer.hit):
                    t.read_frame(answer.frame)
                    m.next = "OWNER"

            with m.State("PIN"):
                m.next = "JUDGE"
                with m.If(t.pins.used):
                    t.read_frame(t.pins.entry)
                    m.next = "OWNER"

            with m.State("OWNER"):
                t.read_session(t.arriving.session_slot)
                with m.If(control.is_in(t.op, control.TOLD)):
                    t.read_tag()
                m.next = "JUDGE"

            with m.State("JUDGE"), m.Switch(t.op.kind):
                for judge in (blocks, allocation, control, sessions, internal, parked):
                    judge.cases(m, t, e)

            streaming.states(m, t, e, self.operations)
            blocks.states(m, t, e)
            allocation.states(m, t, e)
            parked.states(m, t)
            e.states()
        return m
