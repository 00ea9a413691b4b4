"""Commands that begin, of software and of engines."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import TAG_BITS, Status
from hw.rtl.gpu.check import check
from hw.rtl.gpu.layouts import (
    ENGINE_OPCODES,
    Owner,
    context_layout,
    engine_owners,
    issued_layout,
    send_layout,
    start_layout,
    task_layout,
)


class Starter(wiring.Component):
    """Judges each command, gives it a context, and hands it on: to the node, or a task to its engine.

    Parameters
    ----------
    params
        What a command may ask for, and which engines there are.

    Interface
    ---------
    software : In, stream of `start_layout(params)`
        What was fetched.
    own : In, streams of `start_layout(params)`, one an engine
        Commands of engines.
    urgent : In(1)
        Those of write-back come before those of prefetch.
    away : In(1)
        The node cannot be reached: nothing begins.
    free, spare, crowded, next_tag, allocate, allocated : as of `Contexts`
    sends : Out, stream of `send_layout()`
        Commands for the node.
    tasks : Out, streams of `task_layout(params)`, one an engine
        What software asks of it, in the order of each ring. An engine takes a task whatever else it waits for.
    issued_valid, issued : Out, `issued_layout(params)`
        A command goes to the node, in this cycle.

    Latency and throughput
    ----------------------
    One cycle; a command a cycle.

    Ordering and stalls
    -------------------
    Software's commands come first, then those of the manager of sessions, then those of other engines, which take
    turns, but for what is `urgent`. A command of an engine leaves a context free to software. Stalls with `sends` and
    `tasks`.

    Reset and errors
    ----------------
    Reset forgets the command in hand. What can be seen to be wrong ends at once (`check`); and so does, UNAVAILABLE,
    what comes while the node is `away`, and, NO_SPACE, a task that would leave fewer than two contexts to commands:
    those that engines need to end any.

    Invariants
    ----------
    Part of 10: every command that begins has a context.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        self._owners = engine_owners(params)
        engines = len(self._owners)
        super().__init__(
            {
                "software": In(stream.Signature(start_layout(params))),
                "own": In(stream.Signature(start_layout(params))).array(engines),
                "urgent": In(1),
                "away": In(1),
                "free": In(1),
                "spare": In(1),
                "crowded": In(1),
                "next_tag": In(TAG_BITS),
                "allocate": Out(1),
                "allocated": Out(context_layout(params)),
                "sends": Out(stream.Signature(send_layout())),
                "tasks": Out(stream.Signature(task_layout(params))).array(engines),
                "issued_valid": Out(1),
                "issued": Out(issued_layout(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, allocated, sends = self._params, self.allocated, self.sends
        start, judged = Signal(start_layout(params)), Signal(context_layout(params))
        free, is_task = Signal(), Signal()
        self._choose(m, start, free)
        check(m, params, start.descriptor, judged)
        m.d.comb += [
            judged.ring.eq(start.ring),
            allocated.eq(judged),
            self.issued_valid.eq(self.allocate & ~allocated.refused & ~is_task),
            self.issued.ring.eq(start.ring),
            self.issued.tag.eq(start.descriptor.tag),
            self.issued.link_tag.eq(self.next_tag),
        ]
        if self._owners:
            m.d.comb += [
                is_task.eq(judged.task),
                judged.owner.eq(start.owner),
                judged.job.eq(start.job),
                self.issued.owner.eq(start.owner),
            ]
            with m.If(is_task & self.crowded & ~judged.refused):
                m.d.comb += [allocated.refused.eq(1), allocated.refusal.eq(Status.NO_SPACE)]
        with m.If(self.away & ~judged.refused):
            m.d.comb += [allocated.refused.eq(1), allocated.refusal.eq(Status.UNAVAILABLE)]

        outputs = [sends, *self.tasks]
        m.d.comb += free.eq(Cat(~out.valid | out.ready for out in outputs).all())
        for out in outputs:
            with m.If(out.ready):
                m.d.sync += out.valid.eq(0)
        with m.If(self.issued_valid):
            m.d.sync += [
                sends.valid.eq(1),
                sends.payload.ring.eq(start.ring),
                sends.payload.tag.eq(self.next_tag),
                sends.payload.descriptor.eq(start.descriptor),
            ]
        for owner, tasks in zip(self._owners, self.tasks, strict=True):
            its = start.descriptor.opcode.matches(*ENGINE_OPCODES[owner])
            with m.If(self.allocate & ~allocated.refused & its):
                m.d.sync += [
                    tasks.valid.eq(1),
                    tasks.payload.ring.eq(start.ring),
                    tasks.payload.context.eq(self.next_tag),
                    tasks.payload.descriptor.eq(start.descriptor),
                ]
        return m

    def _choose(self, m: Module, start: Signal, free: Signal) -> None:
        """Take the next command that is to begin, if there is room for it."""
        software = self.software
        m.d.comb += [software.ready.eq(self.free & free), self.allocate.eq(software.valid & software.ready)]
        if not self._owners:
            m.d.comb += start.eq(software.payload)
            return
        last, chosen = Signal(), Signal(range(max(2, len(self._owners))))
        m.d.comb += chosen.eq(0)
        if Owner.PREFETCH in self._owners and Owner.WRITE_BACK in self._owners:
            prefetch, write_back = self.own[:2]
            m.d.comb += chosen.eq(Mux(prefetch.valid & write_back.valid, self.urgent | ~last, write_back.valid))
        if Owner.SESSIONS in self._owners:
            manager = self._owners.index(Owner.SESSIONS)
            with m.If(self.own[manager].valid):
                m.d.comb += chosen.eq(manager)
        m.d.comb += start.eq(software.payload)
        with m.If(~software.valid & self.spare & free):
            for i, own in enumerate(self.own):
                with m.If(chosen == i):
                    m.d.comb += [start.eq(own.payload), own.ready.eq(1), self.allocate.eq(own.valid)]
                    if self._owners[i] is not Owner.SESSIONS:
                        with m.If(own.valid):
                            m.d.sync += last.eq(i)
