"""Descriptors, on their way into slots."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import EngineOpcode, Status
from hw.rtl.gpu.layouts import FENCE_BITS, answer_layout, task_layout
from hw.rtl.gpu.write_back.halts import halted, reached
from hw.rtl.gpu.write_back.layouts import Phase, halt_layout, new_layout, phases_layout, slot_bits
from hw.rtl.queue import Queue


class Admission(wiring.Component):
    """Gives each descriptor a slot, and finds out which slots a FLUSH waits for. Those of a ring that has stopped are
    picked out, so that they need not wait for one; so are those of a session that is halted that wait for a producer.

    Parameters
    ----------
    params
        Slots, and commands in flight: there is room for as many descriptors, so none is ever held up outside.

    Interface
    ---------
    tasks : In, stream of `task_layout(params)`
        PUTs and FLUSHes.
    free : In(1)
        As of `Slots`.
    take, task, new : Out
        The descriptor `task` goes into the next slot, as `new` says (`new_layout(params)`).
    before : Out, a bit a slot
        What it waits for if it is a FLUSH.
    phases : In, `phases_layout(params)`
        As of `Slots`.
    turn, row : In
        A slot and its descriptor, another one in every cycle, as of `Gate`.
    running : In, a bit a ring
    fences : In, an array
        What the producer of each ring has reached.
    halt : In, as of `hook`
    early, late : Out(1)
        Some PUT that was accepted before the halt has no slot yet; `task` is a PUT that came behind it.
    dropped : Out, stream of `answer_layout(params)`
        Descriptors of rings that do not run, UNAVAILABLE; PUTs of a session that is halted whose producer has not
        reached what they wait for, STALE.
    waiting : Out(1)
        There is a descriptor that has no slot.

    Latency and throughput
    ----------------------
    One cycle; a PUT a cycle, a FLUSH in as many cycles as there are slots, and two. While those of a ring, or of a
    session, are picked out, a cycle for each that waits, and two, nothing is taken.

    Ordering and stalls
    -------------------
    In order, while a slot is free.

    Reset and errors
    ----------------
    Reset forgets all descriptors.

    Invariants
    ----------
    Part of 10 and 11: a FLUSH waits for every descriptor of its ring, or of its ring and session, that came before;
    what is of a ring that does not run waits for no other ring.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "tasks": In(stream.Signature(task_layout(params))),
                "free": In(1),
                "take": Out(1),
                "task": Out(task_layout(params)),
                "new": Out(new_layout(params)),
                "before": Out(params.requester.slots),
                "phases": In(phases_layout(params)),
                "turn": In(slot_bits(params)),
                "row": In(task_layout(params)),
                "running": In(params.tables.rings_per_port),
                "fences": In(data.ArrayLayout(FENCE_BITS, params.tables.rings_per_port)),
                "halt": In(halt_layout(params)),
                "early": Out(1),
                "late": Out(1),
                "dropped": Out(stream.Signature(answer_layout(params))),
                "waiting": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots, slice_bits = self._params.requester.slots, self._params.node.slice_bits
        m.submodules.backlog = backlog = Queue(task_layout(self._params), depth=self._params.requester.commands)
        turning, turns, dead, gone, stopped = Signal(), Signal(), Signal(), Signal(), self._count(m)
        task, descriptor = backlog.o.payload, backlog.o.payload.descriptor
        used, found, left = Signal(slots), Signal(slots), Signal(range(slots))
        flush, same, its, of_session = Signal(), Signal(), Signal(), Signal()
        to_turn = Signal.like(backlog.level)
        m.d.comb += [
            self.task.eq(task),
            self.waiting.eq(backlog.o.valid),
            # What is not picked out goes round once, in its order; nothing comes in meanwhile.
            backlog.i.valid.eq(Mux(turning, backlog.o.valid & ~gone, self.tasks.valid & ~turns)),
            backlog.i.payload.eq(Mux(turning, task, self.tasks.payload)),
            backlog.o.ready.eq(self.take | (turning & (~gone | self.dropped.ready))),
            self.tasks.ready.eq(backlog.i.ready & ~turning & ~turns),
            dead.eq(~(self.running >> task.ring)[0]),
            self.dropped.valid.eq(turning & gone),
            self.dropped.payload.context.eq(task.context),
            self.dropped.payload.complete.eq(1),
            self.dropped.payload.outcome.status.eq(Mux(dead, Status.UNAVAILABLE, Status.STALE)),
            flush.eq(descriptor.opcode == EngineOpcode.FLUSH),
            of_session.eq(descriptor.flags.engine.flush.of_session),
            self.new.context.eq(task.context),
            self.new.flush.eq(flush),
            self.new.open.eq(descriptor.flags.engine.put.open),
            self.new.appended.eq(descriptor.flags.engine.put.appended),
            self.new.empty.eq(descriptor.length == 0),
            used.eq(Cat(self.phases[i] != Phase.FREE for i in range(slots))),
            its.eq(
                (self.row.descriptor.slot.id == descriptor.slot.id)
                & (self.row.descriptor.slice[:slice_bits] == descriptor.slice[:slice_bits])
            ),
            same.eq((self.row.ring == task.ring) & (~of_session | its)),
            self.before.eq(found & used),
        ]
        leaves, unmarked, marking = self._halt(m, turning & backlog.o.valid & ~gone)
        m.d.comb += [
            turns.eq(stopped | unmarked),
            gone.eq(dead | (marking & leaves & ~reached(self.fences, task))),
        ]
        with m.FSM():
            with m.State("TAKE"):
                m.d.sync += [found.eq(0), left.eq(slots - 1), to_turn.eq(backlog.level)]
                with m.If(turns):
                    m.d.sync += marking.eq(unmarked)
                    m.next = "TURN"
                with m.Elif(backlog.o.valid & self.free):
                    with m.If(flush):
                        m.next = "FIND"
                    with m.Else():
                        m.d.comb += self.take.eq(1)
            with m.State("FIND"):
                m.d.sync += [found.eq((found | (same << self.turn)) & used), left.eq(left - 1)]
                with m.If(left == 0):
                    m.next = "FOUND"
            with m.State("TURN"):
                m.d.comb += turning.eq(to_turn != 0)
                m.d.sync += to_turn.eq(to_turn - (backlog.o.valid & backlog.o.ready))
                with m.If(to_turn == 0):
                    m.d.sync += marking.eq(0)
                    m.next = "TAKE"
            with m.State("FOUND"):
                m.d.comb += self.take.eq(1)
                m.next = "TAKE"
        return m

    def _halt(self, m: Module, stays: Value) -> tuple[Signal, Signal, Signal]:
        """Count the PUTs of a session that is halted that were here before, in a turn of the backlog; later ones are
        behind them.

        Return whether `task` is of that session; whether such a turn is to come; and a register that says that it is
        under way: what `stays` in it is counted.
        """
        leaves, unmarked, marking, marked = Signal(), Signal(), Signal(), Signal()
        count = Signal(range(self._params.requester.commands + 1))
        m.d.comb += [
            leaves.eq(halted(self.halt, self.task)),
            unmarked.eq(self.halt.valid & ~marked),
            self.early.eq(unmarked | marking | (count != 0)),
            self.late.eq(leaves & (count == 0)),
        ]
        with m.If(marking):
            m.d.sync += [marked.eq(1), count.eq(count + (stays & leaves))]
        with m.Elif((self.take | (self.dropped.valid & self.dropped.ready)) & leaves & (count != 0)):
            m.d.sync += count.eq(count - 1)
        with m.If(~self.halt.valid):
            m.d.sync += [marked.eq(0), count.eq(0)]
        return leaves, unmarked, marking

    def _count(self, m: Module) -> Value:
        """Return whether a descriptor of a ring waits that does not run."""
        stopped = []
        for ring in range(len(self.running)):
            waiting = Signal(range(self._params.requester.commands + 1), name=f"waiting_{ring}")
            comes = self.tasks.valid & self.tasks.ready & (self.tasks.payload.ring == ring)
            leaves = (self.take | (self.dropped.valid & self.dropped.ready)) & (self.task.ring == ring)
            m.d.sync += waiting.eq(waiting + comes - leaves)
            stopped.append((waiting != 0) & ~self.running[ring])
        return Cat(stopped).any()
