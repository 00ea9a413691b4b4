"""What commands in flight wait for."""

from amaranth import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import ITEM_BITS
from hw.rtl.gpu.layouts import acknowledgement_layout, context_bits

COURSE = data.StructLayout({"invalid": 1, "longer": 1, "brought": 1, "abandoned": 1, "poisoned": 1})
"""What a command has met.

- `invalid`: memory has refused some of its data. `longer`: some had no room.
- `brought`: it is a READ, and all of its data came.
- `abandoned`: it ends without the node.
- `poisoned`: some of its data is not what was stored.
"""


class Waits(wiring.Component):
    """Keeps of each context whether its command has ended, and what it has met until then.

    Parameters
    ----------
    params
        Commands in flight.

    Interface
    ---------
    begins, beginning, refused, task, read : In
        A command begins in context `beginning`: one that has ended already, one that an engine ends, or a READ.
    sent, moved, acknowledged, ended : In, streams of `acknowledgement_layout(params)`, always ready
        As of `Contexts`; data that has `ended` is `longer` than there was room.
    longer : In(1)
    issued, checking, recorded, released : In, streams of the number of a context, always ready
        As of `Contexts`.
    checked : In, stream of `acknowledgement_layout(params)`, always ready
        As of `Contexts`.
    answer_valid, answering, complete, streamed, writes : In
        The node, or the engine, has answered the command of context `answering`; the answer `writes` a result.
    abandon : as of `Contexts`
    used, reads, done : Out, a bit a context
        It has a command; that is a READ; it waits for nothing, and was not taken yet.
    picked : In
        A command that is done, and is `taken`.
    taken : In(1)
    course : Out, `COURSE`
        What the picked one has met.

    Latency and throughput
    ----------------------
    One cycle from what happens to `used`, `done` and `course`.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    Reset forgets all commands.

    Invariants
    ----------
    Part of 10: a command is done when the node has answered, everything is sent, all of its data was issued, memory
    has acknowledged each burst, and each segment was checked.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        commands, number = params.requester.commands, context_bits(params)
        acknowledgements = In(stream.Signature(acknowledgement_layout(params), always_ready=True))
        numbers = In(stream.Signature(number, always_ready=True))
        super().__init__(
            {
                "begins": In(1),
                "beginning": In(number),
                "refused": In(1),
                "task": In(1),
                "read": In(1),
                "sent": acknowledgements,
                "moved": acknowledgements,
                "acknowledged": acknowledgements,
                "ended": acknowledgements,
                "longer": In(1),
                "issued": numbers,
                "checking": numbers,
                "checked": acknowledgements,
                "recorded": numbers,
                "released": numbers,
                "answer_valid": In(1),
                "answering": In(number),
                "complete": In(1),
                "streamed": In(1),
                "writes": In(1),
                "abandon": In(1),
                "used": Out(commands),
                "reads": Out(commands),
                "done": Out(commands),
                "picked": In(number),
                "taken": In(1),
                "course": Out(COURSE),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        courses = Signal(data.ArrayLayout(COURSE, len(self.used)))
        m.d.comb += self.course.eq(courses[self.picked])
        for i in range(len(self.used)):
            self._follow(m, i, courses[i])
        return m

    def _follow(self, m: Module, i: int, course: data.View) -> None:
        """Follow the command of context `i`."""
        names = ("answered", "streamed", "sent", "taken", "task")
        answered, streamed, sent, taken, task = (Signal(name=f"{name}_{i}") for name in names)
        bursts = Signal(ITEM_BITS + 2, name=f"bursts_{i}")
        used, read, ended = self.used[i], self.reads[i], course.brought

        def its(port: str) -> Value:
            number = getattr(self, port)
            return number.valid & (number.payload == i)

        def ack(port: str) -> Value:
            end = getattr(self, port)
            return end.valid & (end.payload.token == i)

        answers = self.answer_valid & (self.answering == i)
        begun = (answers & self.writes) + its("issued") + its("checking")
        m.d.sync += bursts.eq(bursts + begun - its("recorded") - ack("acknowledged") - ack("checked"))
        m.d.comb += self.done[i].eq(used & ~taken & answered & sent & (ended | ~streamed) & (bursts == 0))
        with m.If(self.begins & (self.beginning == i)):
            m.d.sync += [
                used.eq(1),
                read.eq(self.read),
                answered.eq(self.refused),
                streamed.eq(0),
                sent.eq(self.refused | self.task),
                task.eq(self.task),
                taken.eq(0),
                course.eq(0),
            ]
        with m.Else():
            with m.If(answers & self.complete):
                m.d.sync += [answered.eq(1), streamed.eq(self.streamed)]
            waits = used & ~task & (~answered | (streamed & ~ended))
            with m.If(self.abandon & waits):
                m.d.sync += [answered.eq(1), streamed.eq(0), course.abandoned.eq(1)]
            with m.If(ack("sent") | ack("moved")):
                m.d.sync += sent.eq(1)
            with m.If(ack("ended")):
                m.d.sync += [ended.eq(1), course.longer.eq(self.longer)]
            with m.If(ack("checked") & self.checked.payload.error):
                m.d.sync += course.poisoned.eq(1)
            with m.If(self.taken & (self.picked == i)):
                m.d.sync += taken.eq(1)
            with m.If(its("released")):
                m.d.sync += used.eq(0)
            for port in ("sent", "moved", "acknowledged", "ended"):
                with m.If(ack(port) & getattr(self, port).payload.error):
                    m.d.sync += course.invalid.eq(1)
