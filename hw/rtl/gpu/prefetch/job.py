"""One PREFETCH under way: which segments it wants next."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params, records
from hw.params.protocol import ITEM_BITS, RING_BITS, TAG_BITS, Status
from hw.rtl.gpu.layouts import ADDRESS_BITS, answer_layout, record_layout, task_layout
from hw.rtl.gpu.prefetch.arrivals import Arrivals
from hw.rtl.gpu.prefetch.layouts import (
    ARRIVAL,
    BLOCK,
    FATE,
    fill_bits,
    given_layout,
    list_layout,
    listed_layout,
    order_layout,
    step_layout,
    want_layout,
)
from hw.rtl.queue import Queue


class Job(wiring.Component):
    """Walks over a list of blocks, the segments of each in order, and leaves what comes of them to its `Arrivals`.

    The entry of the next block is read while the one before is under way.

    Parameters
    ----------
    params
        `requester.fill_segments`, the most that is wanted at once; segment.
    number
        Of the job.

    Interface
    ---------
    tasks : In, stream of `task_layout(params)`
        A PREFETCH; is taken if there is none.
    busy, ring, tag : Out
        There is one, of `ring` with the descriptor's `tag`.
    cancelled : Out(1)
        It is to end by a CANCEL.
    cancel, order : In, `order_layout(params)`
        A CANCEL comes, in this cycle; only if the job is `busy` and not `cancelled`.
    running : In, a bit a ring
    cutting : In(1)
        No more READs, while or once the ring does not run or the link is reset.
    consumed : In
        CONSUMED of the ring of the job.
    lists, listed : Out, stream of `list_layout(params)`, and In, stream of `listed_layout(params)`, always ready
    wants, given, stopping : as of `Issuer`
    over, releases, fate : as of `Arrivals`
    marks, marked, mark_failed : as of `Arrivals`
    answers : Out, stream of `answer_layout(params)`
        The end of the PREFETCH, and then of the CANCEL.

    Latency and throughput
    ----------------------
    Three cycles from one block to the next, if its entry is there.

    Ordering and stalls
    -------------------
    In order. With STAGED, waits for room for the whole of what it wants next. Stalls with `wants`, and if more READs
    than the table has are in order.

    Reset and errors
    ----------------
    Reset forgets the PREFETCH. One that asks for nothing, for more than rows of the arrival table have room for, or for
    a ring in the GPU's memory that is not aligned, has no room for what is wanted at once, or more segments than are
    counted, ends INVALID at once. So does one of whose list or marks memory has refused some, at the end. What is
    stopped ends UNAVAILABLE. Otherwise, OK, and `count` says how many blocks have arrived.

    Invariants
    ----------
    Part of 10: it ends once, when all of its READs have ended and all marks are in memory.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params, *, number: int):
        self._params = params
        self._number = number
        super().__init__(
            {
                "tasks": In(stream.Signature(task_layout(params))),
                "busy": Out(1),
                "ring": Out(RING_BITS),
                "tag": Out(TAG_BITS),
                "cancelled": Out(1),
                "cancel": In(1),
                "order": In(order_layout(params)),
                "running": In(params.tables.rings_per_port),
                "cutting": In(1),
                "consumed": In(ITEM_BITS),
                "lists": Out(stream.Signature(list_layout(params))),
                "listed": In(stream.Signature(listed_layout(params), always_ready=True)),
                "wants": Out(stream.Signature(want_layout())),
                "given": In(given_layout(params)),
                "stopping": Out(1),
                "over": In(params.requester.fills),
                "releases": Out(stream.Signature(fill_bits(params))),
                "fate": In(FATE),
                "marks": Out(stream.Signature(record_layout(params, ARRIVAL))),
                "marked": In(1),
                "mark_failed": In(1),
                "answers": Out(stream.Signature(answer_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, task = self._params, Signal(task_layout(self._params))
        m.submodules.arrivals = arrivals = Arrivals(params, number=self._number)
        m.submodules.steps = steps = Queue(step_layout(params), depth=params.requester.fills)
        wiring.connect(m, steps.o, arrivals.steps)
        wiring.connect(m, arrivals.releases, wiring.flipped(self.releases))
        wiring.connect(m, arrivals.marks, wiring.flipped(self.marks))
        begins, runs, refused = Signal(), Signal(), Signal()
        m.d.comb += [
            begins.eq(self.tasks.valid & self.tasks.ready),
            self.ring.eq(task.ring),
            self.tag.eq(task.descriptor.tag),
            runs.eq((self.running >> task.ring)[0]),
            arrivals.begin.eq(begins),
            arrivals.runs.eq(runs),
            arrivals.descriptor.eq(task.descriptor),
            arrivals.over.eq(self.over),
            arrivals.fate.eq(self.fate),
            arrivals.marked.eq(self.marked),
            arrivals.mark_failed.eq(self.mark_failed),
        ]
        m.d.sync += self.stopping.eq(self.busy & (self.stopping | self.cutting | ~runs | self.cancelled | refused))
        with m.If(begins):
            m.d.sync += [task.eq(self.tasks.payload), self.stopping.eq(0), refused.eq(0)]
        block, there, next_one, reading = self._read_list(m, task.descriptor, begins, refused)
        self._walk(m, task, arrivals, steps, (block, there, next_one, reading, refused))
        return m

    def _read_list(
        self, m: Module, descriptor: data.View, begins: Signal, refused: Signal
    ) -> tuple[data.View, Signal, Signal, Signal]:
        """Read an entry ahead.

        Return the entry, whether it is there, what takes it, and whether one is being read.
        """
        block, there, taken, reading = Signal(BLOCK), Signal(), Signal(), Signal()
        left, address = Signal(ITEM_BITS), Signal(ADDRESS_BITS)
        mine = self.listed.valid & (self.listed.payload.job == self._number)
        m.d.comb += [self.lists.payload.address.eq(address), self.lists.payload.job.eq(self._number)]
        with m.FSM() as machine:
            with m.State("IDLE"), m.If(self.busy & ~there & (left != 0) & ~self.stopping):
                m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.lists.valid.eq(1)
                with m.If(self.lists.ready):
                    m.next = "WAIT"
            with m.State("WAIT"), m.If(mine):
                m.d.sync += [
                    block.eq(self.listed.payload.block),
                    there.eq(~self.listed.payload.error),
                    refused.eq(self.listed.payload.error),
                    left.eq(left - 1),
                    address.eq(address + records.BLOCK.size),
                ]
                m.next = "IDLE"
        with m.If(taken):
            m.d.sync += there.eq(0)
        with m.If(begins):
            m.d.sync += [
                there.eq(0),
                left.eq(self.tasks.payload.descriptor.count),
                address.eq(self.tasks.payload.descriptor.data),
            ]
        m.d.comb += reading.eq(~machine.ongoing("IDLE"))
        return block, there, taken, reading

    def _walk(  # noqa: PLR0915 (one machine, state by state)
        self, m: Module, task: data.View, arrivals: Arrivals, steps: Queue, ahead: Any
    ) -> None:
        """Want the segments of one block after the other, and end."""
        descriptor, step, want, given = task.descriptor, steps.i.payload, self.wants.payload, self.given
        segment_shift = exact_log2(self._params.memory.segment_bytes)
        most = self._params.requester.fill_segments
        block, there, next_one, reading, refused = ahead
        held, index = Signal(BLOCK), Signal(ITEM_BITS)
        offset, in_range, place = Signal(ITEM_BITS), Signal(ITEM_BITS), Signal(ITEM_BITS)
        size, used, to_end = Signal(ITEM_BITS + 1), Signal(ITEM_BITS), Signal(ITEM_BITS + 1)
        rest, wanted, count, room = Signal(ITEM_BITS), Signal(ITEM_BITS), Signal(ITEM_BITS), Signal()
        short, invalid, last = Signal(), Signal(), Signal()
        bytes_left, whole_left = held.length[:segment_shift], held.length[segment_shift:]
        segments_left = Signal.like(whole_left)
        staged = descriptor.flags.engine.prefetch.staged
        after, left = Signal(ITEM_BITS), Signal(ITEM_BITS)
        m.d.comb += [
            size.eq(1 << descriptor.subject.staging.log2_segments[:5]),
            used.eq(place - self.consumed),
            to_end.eq(size - (place & (size - 1))),
            rest.eq(descriptor.length - offset),
            room.eq(~staged | (used + wanted <= size)),
            after.eq(offset + given.count),
            left.eq(in_range - given.count),
            last.eq(after == descriptor.length),
            segments_left.eq(whole_left - offset),
        ]
        # The least of what is left of block and range, a fill, and what lies in one piece.
        least: Value = Mux(in_range < most, in_range, most)
        least = Mux(rest < least, rest, least)
        m.d.comb += wanted.eq(Mux(staged & (to_end < least), to_end, least))
        m.d.comb += [
            want.ring.eq(task.ring),
            want.tag.eq(descriptor.tag),
            want.handle.eq(held.handle),
            want.segment.eq(descriptor.segment + offset),
            want.count.eq(count),
            want.number.eq(Mux(staged, place & (size - 1), offset)),
            want.place.address.eq(Mux(staged, descriptor.subject.staging.address, held.data)),
            want.place.scattered.eq(held.flags.scattered & ~staged),
            want.place.page_shift.eq(held.page_shift),
            want.room.eq(Mux(whole_left >= offset, Cat(bytes_left, segments_left), 0)),
            step.made.eq(given.made),
            step.error.eq(given.error),
            step.fill.eq(given.fill),
            step.count.eq(given.count),
            step.range_ends.eq(given.made & ((left == 0) | last)),
            step.block_ends.eq(~given.made | last),
        ]
        with m.If(self.cancel):
            m.d.sync += self.cancelled.eq(1)
        context, other = Signal.like(task.context), Signal.like(task.context)
        with m.If(self.cancel):
            m.d.sync += other.eq(self.order.context)
        answer = self.answers.payload
        m.d.comb += [
            answer.context.eq(context),
            answer.complete.eq(1),
            answer.outcome.count.eq(arrivals.arrived),
        ]

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.tasks.ready.eq(1)
                m.d.sync += [self.cancelled.eq(0), index.eq(0), short.eq(0), invalid.eq(0)]
                with m.If(self.tasks.valid):
                    m.d.sync += self.busy.eq(1)
                    m.next = "JUDGE"

            with m.State("JUDGE"):
                m.d.sync += [place.eq(descriptor.crc), context.eq(task.context)]
                m.next = "BLOCK"
                with m.If(self._wrong(descriptor)):
                    m.d.sync += invalid.eq(1)
                    m.next = "DRAIN"

            with m.State("BLOCK"):
                m.d.sync += [held.eq(block), offset.eq(0), in_range.eq(descriptor.slot.as_value())]
                with m.If(self.stopping):
                    m.d.sync += short.eq(1)
                    m.next = "DRAIN"
                with m.Elif(there):
                    m.d.comb += next_one.eq(1)
                    m.next = "PREPARE"

            with m.State("PREPARE"):
                m.d.sync += count.eq(wanted)
                with m.If(self.stopping):
                    m.d.sync += short.eq(1)
                    m.next = "DRAIN"
                with m.Elif(arrivals.bad & (arrivals.block == index)):
                    m.d.comb += steps.i.valid.eq(1)
                    with m.If(steps.i.ready):
                        m.d.sync += place.eq(place + rest)
                        m.next = "NEXT"
                with m.Elif(room & steps.i.ready):
                    m.next = "WANT"

            with m.State("WANT"):
                m.d.comb += self.wants.valid.eq(1)
                with m.If(self.wants.ready):
                    m.d.comb += steps.i.valid.eq(given.made | given.error)
                    m.next = "PREPARE"
                    with m.If(given.made):
                        m.d.sync += [
                            offset.eq(after),
                            place.eq(place + given.count),
                            in_range.eq(Mux(left == 0, descriptor.slot.as_value(), left)),
                        ]
                    with m.If(given.error | (given.made & last)):
                        m.next = "NEXT"

            with m.State("NEXT"):
                m.d.sync += index.eq(index + 1)
                m.next = "BLOCK"
                with m.If(index + 1 == descriptor.count):
                    m.next = "DRAIN"

            with m.State("DRAIN"), m.If(arrivals.idle & ~steps.o.valid & ~reading):
                m.d.sync += self.busy.eq(0)
                m.next = "ANSWER"

            with m.State("ANSWER"):
                status = Mux(short, Status.UNAVAILABLE, Status.OK)
                m.d.comb += [
                    self.answers.valid.eq(1),
                    answer.outcome.status.eq(Mux(invalid | refused | arrivals.failed, Status.INVALID, status)),
                ]
                with m.If(self.answers.ready):
                    m.d.sync += context.eq(other)
                    m.next = "IDLE"
                    with m.If(self.cancelled):
                        m.next = "CANCELLED"

            with m.State("CANCELLED"):
                m.d.comb += [self.answers.valid.eq(1), answer.outcome.status.eq(Status.OK), answer.outcome.count.eq(0)]
                with m.If(self.answers.ready):
                    m.next = "IDLE"

    def _wrong(self, descriptor: data.View) -> Value:
        """Return whether a PREFETCH is malformed."""
        segment_shift = exact_log2(self._params.memory.segment_bytes)
        length, segments, shift = descriptor.length, descriptor.slot.as_value(), descriptor.page_shift
        staging = descriptor.subject.staging
        nothing = (descriptor.count == 0) | (length == 0) | (segments == 0)
        large = (length[ITEM_BITS:] != 0) | (segments >> ITEM_BITS != 0) | (shift >= ITEM_BITS)
        in_row = (segments[:ITEM_BITS] << shift[:4]) - segments[:ITEM_BITS]
        apart = staging.address[:segment_shift].any() | (staging.log2_segments >= ITEM_BITS - 1) | length[ITEM_BITS - 1]
        ring = Const(1) << staging.log2_segments[:4]
        # A range that does not fit would never be there as a whole, and so never be used.
        small = (ring < self._params.requester.fill_segments) | ((ring < segments) & (ring < length))
        return nothing | large | (in_row < length) | (descriptor.flags.engine.prefetch.staged & (apart | small))
