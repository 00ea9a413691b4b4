"""Descriptors, on their way into slots."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import EngineOpcode, Status
from hw.rtl.gpu.layouts import answer_layout, task_layout
from hw.rtl.gpu.write_back.layouts import Phase, new_layout, phases_layout, slot_bits
from hw.rtl.queue import Queue


class Admission(wiring.Component):
    """Gives each descriptor a slot, and finds out which slots a FLUSH waits for. Those of a ring that has stopped are
    picked out, so that they need not wait for one.

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
    dropped : Out, stream of `answer_layout(params)`
        Descriptors of rings that do not run, UNAVAILABLE.
    waiting : Out(1)
        There is a descriptor that has no slot.

    Latency and throughput
    ----------------------
    One cycle; a PUT a cycle, a FLUSH in as many cycles as there are slots, and two. While those of a ring are picked
    out, a cycle for each that waits, and two, nothing is taken.

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
                "dropped": Out(stream.Signature(answer_layout(params))),
                "waiting": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots, slice_bits = self._params.requester.slots, self._params.node.slice_bits
        m.submodules.backlog = backlog = Queue(task_layout(self._params), depth=self._params.requester.commands)
        turning, dead, stopped = Signal(), Signal(), self._count(m)
        task, descriptor = backlog.o.payload, backlog.o.payload.descriptor
        used, found, left = Signal(slots), Signal(slots), Signal(range(slots))
        flush, same, its, of_session = Signal(), Signal(), Signal(), Signal()
        to_turn = Signal.like(backlog.level)
        m.d.comb += [
            self.task.eq(task),
            self.waiting.eq(backlog.o.valid),
            # What is not of the ring that has stopped goes round once, in its order; nothing comes in meanwhile.
            backlog.i.valid.eq(Mux(turning, backlog.o.valid & ~dead, self.tasks.valid & ~stopped)),
            backlog.i.payload.eq(Mux(turning, task, self.tasks.payload)),
            backlog.o.ready.eq(self.take | (turning & (~dead | self.dropped.ready))),
            self.tasks.ready.eq(backlog.i.ready & ~turning & ~stopped),
            dead.eq(~(self.running >> task.ring)[0]),
            self.dropped.valid.eq(turning & dead),
            self.dropped.payload.context.eq(task.context),
            self.dropped.payload.complete.eq(1),
            self.dropped.payload.outcome.status.eq(Status.UNAVAILABLE),
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
        with m.FSM():
            with m.State("TAKE"):
                m.d.sync += [found.eq(0), left.eq(slots - 1), to_turn.eq(backlog.level)]
                with m.If(stopped):
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
                    m.next = "TAKE"
            with m.State("FOUND"):
                m.d.comb += self.take.eq(1)
                m.next = "TAKE"
        return m

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
