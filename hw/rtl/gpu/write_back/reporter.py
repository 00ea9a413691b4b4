"""The ends of PUTs and FLUSHes."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, crc32c
from hw.params.protocol import ITEM_BITS, STATUS_BITS, EngineOpcode, Status
from hw.rtl.gpu.first import lowest
from hw.rtl.gpu.layouts import answer_layout, task_layout
from hw.rtl.gpu.write_back.layouts import GIVEN, Phase, phases_layout, slot_bits, slot_layout, wrote_layout


class Reporter(wiring.Component):
    """Answers each slot's descriptor.

    Parameters
    ----------
    params
        Slots, and commands in flight.

    Interface
    ---------
    phases, status, moved : In
    answered : Out, `slot_layout(params)`
        As of `Slots`.
    slot, row, given, crc, segments : Out and In
        The slot that is served; its descriptor (`task_layout(params)`), what its ALLOC was given (`GIVEN`), the CRC32C
        that it has with its WRITE, and the segments that this has appended, in the same cycle.
    answers : Out, stream of `answer_layout(params)`
    wrote : Out, stream of `wrote_layout(params)`, always ready
        Segments that were appended, in the cycle of the answer, OK or not.

    Latency and throughput
    ----------------------
    Two cycles; an answer every two cycles.

    Ordering and stalls
    -------------------
    Slots take turns.

    Reset and errors
    ----------------
    Reset forgets the slot in hand.

    Invariants
    ----------
    Part of 10: one answer for each descriptor.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        slots = params.requester.slots
        super().__init__(
            {
                "phases": In(phases_layout(params)),
                "status": In(data.ArrayLayout(STATUS_BITS, slots)),
                "moved": In(slots),
                "answered": Out(slot_layout(params)),
                "slot": Out(slot_bits(params)),
                "row": In(task_layout(params)),
                "given": In(GIVEN),
                "crc": In(crc32c.WIDTH),
                "segments": In(ITEM_BITS),
                "answers": Out(stream.Signature(answer_layout(params))),
                "wrote": Out(stream.Signature(wrote_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        descriptor, answer, wrote = self.row.descriptor, self.answers.payload, self.wrote.payload
        slots = range(self._params.requester.slots)
        waiting, above = Signal(len(slots)), Signal(len(slots))
        status, moved, put, taken = Signal(STATUS_BITS), Signal(), Signal(), Signal()
        m.d.comb += [
            waiting.eq(Cat(self.phases[i] == Phase.ANSWER for i in slots)),
            above.eq(waiting & ~((2 << self.slot) - 1)),
            status.eq(self.status[self.slot]),
            moved.eq((self.moved >> self.slot)[0]),
            put.eq(descriptor.opcode == EngineOpcode.PUT),
            taken.eq(self.answers.valid & self.answers.ready),
            self.answered.valid.eq(taken),
            self.answered.slot.eq(self.slot),
            answer.context.eq(self.row.context),
            answer.complete.eq(1),
            answer.outcome.status.eq(status),
            answer.outcome.count.eq(Mux(moved, self.segments, 0)),
            wrote.ring.eq(self.row.ring),
            wrote.slice.eq(descriptor.slice),
            wrote.session.eq(descriptor.slot.id),
            wrote.segments.eq(answer.outcome.count),
            self.wrote.valid.eq(taken & moved),
        ]
        # Where the block is, and how far it has come, are told of what went well.
        with m.If(put & (status == Status.EXISTS)):
            m.d.comb += [answer.outcome.named.eq(self.given.named), answer.outcome.handle.eq(self.given.handle)]
        with m.If(put & (status == Status.OK)):
            m.d.comb += [
                answer.outcome.named.eq(1),
                answer.outcome.handle.eq(self.given.handle),
                answer.outcome.given.eq(descriptor.flags.engine.put.open),
                answer.outcome.slot.eq(Mux(descriptor.flags.engine.put.open, self.crc, 0)),
            ]
            with m.If(descriptor.flags.engine.put.appended):
                m.d.comb += answer.outcome.handle.eq(descriptor.subject.handle)
        chosen = lowest(m, Mux(above.any(), above, waiting), name="chosen")
        with m.If(self.answers.valid):
            m.d.sync += self.answers.valid.eq(~self.answers.ready)
        with m.Else():
            m.d.sync += [self.slot.eq(chosen), self.answers.valid.eq(waiting.any())]
        return m
