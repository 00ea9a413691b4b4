"""The table of commands in flight."""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import ITEM_BITS, TAG_BITS, Status
from hw.rtl.gpu.first import lowest
from hw.rtl.gpu.layouts import (
    ASKED,
    OUTCOME,
    Owner,
    acknowledgement_layout,
    answer_layout,
    context_bits,
    context_layout,
    ended_layout,
    engine_owners,
    place_layout,
    placed_layout,
)
from hw.rtl.gpu.rings import EVENT
from hw.rtl.gpu.waits import Waits

COUNTS = data.StructLayout({"hits": ITEM_BITS, "items": ITEM_BITS})


class Contexts(wiring.Component):
    """Commands from their descriptor to their completion, and what each of them still waits for.

    The tag of a command on the link is the number of its context, and above it how often that was used: an answer, or
    data, of a command that has ended is not taken for another's.

    Parameters
    ----------
    params
        Commands in flight.

    Interface
    ---------
    free : Out(1)
        A context is free: of a command that is allocated, the tag will be `next_tag`.
    spare, crowded : Out(1)
        At least two are free; engines have as many tasks as leave two contexts to others. Where there are engines.
    next_tag : Out
    allocate : In(1)
    allocated : In, `context_layout(params)`
        A command begins; one that is `refused` has ended, and a `task` is answered by an engine alone.
    sent, moved : In, streams of `acknowledgement_layout(params)`, always ready
        All of a command is on the link, `moved` with the data of a WRITE. `error`: memory refused some of it.
    answer_tag, answer_known, answered : In and Out
        The context of a tag, if its command is under way.
    answer_valid, answer : In, `answer_layout(params)`
        The node, or an engine, has answered.
    data_tag, data_known : In and Out
        Whether the data with this tag is of a READ under way.
    placing, placing_segment, place, first, room, known, mute : In and Out, the parts of `target_layout()`
        Where the data of a context goes. It is `mute` if its ring does not run, or the READ has no such segment.
    issued, acknowledged, ended : In, always-ready streams of a `Placer`
    checking, checked : In, always-ready streams of an `Inspector`
    recorded : In, stream of `acknowledgement_layout(params)`, always ready
        A result is in memory, or was refused.
    done : Out, stream of `ended_layout(params)`
        Commands that have ended.
    released : In, stream of `acknowledgement_layout(params)`, always ready
        The completion of this context is in memory, was refused, or was not to be written; or its engine knows.
    running : In, a bit a ring
    left, left_ring, result_failed, result_ring, completion_failed : Out
        A context of software's, of ring `left_ring`, becomes free; memory has refused a result of `result_ring`, or a
        completion of `left_ring`.
    cutting, abandon : In(1)
        What has `ended` is the end of no READ; with `abandon`, what the node has not answered, or whose data is not all
        issued, ends UNAVAILABLE, but no task.
    empty : Out(1)
        No command is under way.

    Latency and throughput
    ----------------------
    A command a cycle in; three cycles from the last thing that a command waits for to `done`, and from one to the next.

    Ordering and stalls
    -------------------
    Commands that have ended are done in turn, by their numbers.

    Reset and errors
    ----------------
    Reset forgets all commands; what is under way in memory and on the link has to be reset too.

    Invariants
    ----------
    Part of 10: a context is done once for each time it was allocated, when the node has answered, everything is sent,
    all of its data was issued, memory has acknowledged each burst, and each segment was checked.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        acknowledgements = In(stream.Signature(acknowledgement_layout(params), always_ready=True))
        number = context_bits(params)
        super().__init__(
            {
                "free": Out(1),
                "spare": Out(1),
                "crowded": Out(1),
                "next_tag": Out(TAG_BITS),
                "allocate": In(1),
                "allocated": In(context_layout(params)),
                "sent": acknowledgements,
                "moved": acknowledgements,
                "answer_tag": In(TAG_BITS),
                "answer_known": Out(1),
                "answered": Out(ASKED),
                "answer_valid": In(1),
                "answer": In(answer_layout(params)),
                "data_tag": In(TAG_BITS),
                "data_known": Out(1),
                "placing": In(number),
                "placing_segment": In(ITEM_BITS),
                "place": Out(place_layout()),
                "first": Out(ITEM_BITS),
                "room": Out(32),
                "known": Out(1),
                "mute": Out(1),
                "issued": In(stream.Signature(number, always_ready=True)),
                "acknowledged": acknowledgements,
                "ended": In(stream.Signature(placed_layout(params), always_ready=True)),
                "checking": In(stream.Signature(number, always_ready=True)),
                "checked": acknowledgements,
                "recorded": acknowledgements,
                "done": Out(stream.Signature(ended_layout(params))),
                "released": acknowledgements,
                "running": In(params.tables.rings_per_port),
                "left": Out(1),
                "left_ring": Out(EVENT["ring"].shape),
                "result_failed": Out(1),
                "result_ring": Out(EVENT["ring"].shape),
                "completion_failed": Out(1),
                "cutting": In(1),
                "abandon": In(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        commands, number = self._params.requester.commands, context_bits(self._params)
        m.submodules.waits = waits = Waits(self._params)
        used, released, picked = waits.used, self.released.payload.token, Signal(number)
        uses = Array(Signal(TAG_BITS - number, name=f"uses_{i}") for i in range(commands))
        ring_of = Array(Signal(EVENT["ring"].shape, name=f"ring_of_{i}") for i in range(commands))
        now = lowest(m, ~used, name="now")
        for name in ("sent", "moved", "acknowledged", "issued", "checking", "checked"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(waits, name))
        for name in ("recorded", "released"):
            ours, theirs = getattr(self, name), getattr(waits, name)
            m.d.comb += [theirs.valid.eq(ours.valid), theirs.payload.eq(ours.payload.token)]
        m.d.comb += [
            waits.begins.eq(self.allocate),
            waits.beginning.eq(now),
            waits.refused.eq(self.allocated.refused),
            waits.read.eq(self.allocated.read),
            waits.ended.valid.eq(self.ended.valid & ~self.cutting),
            waits.ended.payload.token.eq(self.ended.payload.token),
            waits.ended.payload.error.eq(self.ended.payload.error),
            waits.longer.eq(self.ended.payload.longer),
            waits.answer_valid.eq(self.answer_valid),
            waits.answering.eq(self.answer.context),
            waits.complete.eq(self.answer.complete),
            waits.streamed.eq(self.answer.streamed),
            waits.writes.eq(self.answer.counted & self.answer.written),
            waits.abandon.eq(self.abandon),
            waits.picked.eq(picked),
            waits.taken.eq(self.done.valid & self.done.ready),
            self.free.eq(~used.all()),
            self.empty.eq(~used.any()),
            self.next_tag.eq(Cat(now, uses[now])),
            self.left_ring.eq(ring_of[released]),
            self.completion_failed.eq(self.released.valid & self.released.payload.error),
            self.result_failed.eq(self.recorded.valid & self.recorded.payload.error),
            self.result_ring.eq(ring_of[self.recorded.payload.token]),
        ]
        with m.If(self.allocate):
            m.d.sync += ring_of[now].eq(self.allocated.ring)
        with m.If(self.released.valid):
            m.d.sync += uses[released].eq(uses[released] + 1)
        self._share(m, now, waits.task)

        # What does not change, and who looks at it.
        m.submodules.rows = rows = memory.Memory(shape=context_layout(self._params), depth=commands, init=[])
        write = rows.write_port()
        by_answer, by_data, by_end = (rows.read_port(domain="comb") for _ in range(3))
        beyond = Signal()
        m.d.comb += [
            write.en.eq(self.allocate),
            write.addr.eq(now),
            write.data.eq(self.allocated),
            by_answer.addr.eq(self.answer_tag),
            by_data.addr.eq(self.placing),
            by_end.addr.eq(picked),
            *(self.answered[name].eq(by_answer.data[name]) for name, _ in ASKED),
            self.answer_known.eq(self._known(used, uses, self.answer_tag)),
            self.data_known.eq(self._known(used, uses, self.data_tag) & (waits.reads >> self.data_tag[:number])[0]),
            self.place.eq(by_data.data.place),
            self.first.eq(by_data.data.segment),
            self.room.eq(by_data.data.room),
            self.known.eq((used >> self.placing)[0]),
            beyond.eq((self.placing_segment - by_data.data.segment)[:ITEM_BITS] >= by_data.data.count),
            self.mute.eq(~(self.running >> by_data.data.ring)[0] | beyond),
        ]

        self._pick(m, waits.done, picked)
        self._end(m, by_end.data, picked, waits.course, waits.ended.valid)
        self._count(m, now, picked)
        return m

    def _share(self, m: Module, now: Signal, is_task: Signal) -> None:
        """Tell software's commands from those of engines, and keep contexts for both."""
        commands, released = self._params.requester.commands, self.released
        if not engine_owners(self._params):
            m.d.comb += self.left.eq(released.valid)
            return
        foreign, tasks = Signal(commands), Signal(commands)
        in_use, held = Signal(range(commands + 1)), Signal(range(commands + 1))
        left, begins = Signal(), Signal()
        m.d.comb += [
            self.left.eq(released.valid & ~(foreign >> released.payload.token)[0]),
            is_task.eq(self.allocated.task),
            left.eq(released.valid & (tasks >> released.payload.token)[0]),
            begins.eq(self.allocate & self.allocated.task),
            self.spare.eq(in_use <= commands - 2),
            self.crowded.eq(held >= commands - 2),
        ]
        m.d.sync += [in_use.eq(in_use + self.allocate - released.valid), held.eq(held + begins - left)]
        with m.If(self.allocate):
            m.d.sync += [
                foreign.bit_select(now, 1).eq(self.allocated.owner != Owner.SOFTWARE),
                tasks.bit_select(now, 1).eq(self.allocated.task),
            ]

    def _known(self, used: Signal, uses: Array, tag: Signal) -> Value:
        """Return whether the command of a tag is under way."""
        bits = context_bits(self._params)
        number = tag[:bits]
        there = (used >> number)[0]
        return there & (uses[number] == tag[bits:])

    def _pick(self, m: Module, done: Signal, picked: Signal) -> None:
        """Pick one command after the other of those that are `done`; what is picked stays so until it is taken."""
        above, load = Signal(len(done)), Signal()
        m.d.comb += above.eq(done & ~((2 << picked) - 1))
        chosen = lowest(m, Mux(above.any(), above, done), name="chosen")
        with m.If(load):
            m.d.sync += [load.eq(0), self.done.valid.eq(1)]
        with m.Elif(self.done.valid):
            m.d.sync += self.done.valid.eq(~self.done.ready)
        with m.Else():
            m.d.sync += [load.eq(done.any()), picked.eq(chosen)]

    def _end(self, m: Module, row: data.View, picked: Signal, course: data.View, ended: Value) -> None:
        """Keep how the node says that each command has ended, and how long data that has `ended` is; say how the one
        that is picked did."""
        commands = self._params.requester.commands
        m.submodules.lengths = lengths = memory.Memory(shape=32, depth=commands, init=[])
        write_length, length = lengths.write_port(), lengths.read_port(domain="comb")
        m.submodules.outcomes = outcomes = memory.Memory(shape=OUTCOME, depth=commands, init=[])
        write, read = outcomes.write_port(), outcomes.read_port(domain="comb")
        done, told = self.done.payload, Signal()
        rows = {name for name, _ in context_layout(self._params)}
        m.d.comb += [
            write_length.en.eq(ended),
            write_length.addr.eq(self.ended.payload.token),
            write_length.data.eq(self.ended.payload.length),
            length.addr.eq(picked),
            write.en.eq(self.answer_valid & self.answer.complete),
            write.addr.eq(self.answer.context),
            write.data.eq(self.answer.outcome),
            read.addr.eq(picked),
            told.eq(row.read & course.brought & ~course.invalid & (read.data.status == Status.OK) & ~course.poisoned),
        ]
        m.d.sync += [
            done.number.eq(picked),
            *(done[name].eq(row[name]) for name, _ in ended_layout(self._params) if name in rows),
            done.outcome.eq(read.data),
        ]
        with m.If(~read.data.given):
            m.d.sync += done.outcome.slot.eq(Mux(told, length.data, 0))
        with m.If(told & course.longer):
            m.d.sync += done.outcome.status.eq(Status.RANGE)
        with m.If(course.poisoned & read.data.status.matches(Status.OK)):
            m.d.sync += done.outcome.status.eq(Status.POISON)
        with m.If(row.refused | course.abandoned):
            m.d.sync += [
                done.outcome.status.eq(Mux(row.refused, row.refusal, Status.UNAVAILABLE)),
                done.outcome.slot.eq(0),
                done.outcome.named.eq(0),
                done.outcome.given.eq(0),
            ]
        with m.If(course.invalid):
            m.d.sync += done.outcome.status.eq(Status.INVALID)
        # Of a WRITE the node has what it took, even if that was not what memory should have given.
        with m.If(row.refused | course.abandoned | course.longer | course.poisoned | (row.read & course.invalid)):
            m.d.sync += done.outcome.count.eq(0)

    def _count(self, m: Module, now: Signal, picked: Signal) -> None:
        """Count the results of each LOOKUP; a row means nothing before the first of them."""
        commands = self._params.requester.commands
        m.submodules.counts = counts = memory.Memory(shape=COUNTS, depth=commands, init=[])
        write = counts.write_port()
        by_answer, by_end = (counts.read_port(domain="comb") for _ in range(2))
        begun = Signal(commands)
        answer, done = self.answer, self.done.payload
        counted, more = Signal(), Signal()
        m.d.comb += [
            counted.eq(self.answer_valid & answer.counted),
            more.eq(begun.bit_select(answer.context, 1)),
            by_answer.addr.eq(answer.context),
            by_end.addr.eq(picked),
            write.en.eq(counted),
            write.addr.eq(answer.context),
            write.data.items.eq(Mux(more, by_answer.data.items, 0) + 1),
            write.data.hits.eq(Mux(more, by_answer.data.hits, 0) + answer.hit),
        ]
        any_counted = begun.bit_select(picked, 1)
        m.d.sync += [
            done.items.eq(Mux(any_counted, by_end.data.items, 0)),
            done.hits.eq(Mux(any_counted, by_end.data.hits, 0)),
        ]
        with m.If(self.allocate):
            m.d.sync += begun.bit_select(now, 1).eq(0)
        with m.If(counted):
            m.d.sync += begun.bit_select(answer.context, 1).eq(1)
