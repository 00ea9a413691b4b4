"""The commands of slots, on their way to the node."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params, crc32c
from hw.params.protocol import ITEM_BITS, TAG_BITS, Opcode
from hw.rtl.gpu.first import lowest
from hw.rtl.gpu.layouts import Owner, start_layout, task_layout
from hw.rtl.gpu.write_back.layouts import GIVEN, Phase, phases_layout, slot_bits, step_layout, writing_layout
from hw.rtl.layouts import handle_layout


class Issuer(wiring.Component):
    """Starts the command that a slot asks for: what ends a block first, then the data of one, then new ones.

    Parameters
    ----------
    params
        Slots and rings, and bytes of a segment.

    Interface
    ---------
    phases : In, `phases_layout(params)`
    started : Out, `step_layout(params)`
        As of `Slots`.
    slot, row, given, crc, moved : Out and In
        The slot that is served; its descriptor (`task_layout(params)`), what its ALLOC was given (`GIVEN`), the CRC32C
        that it has with its WRITE, and whether that has ended, in the same cycle.
    starts : Out, stream of `start_layout(params)`
        Commands; `job` is the slot.
    next_tag : In
        The tag that a command has on the link if it is taken in this cycle.
    writing : Out, `writing_layout(params)`
        A WRITE is taken.
    mover_free, arrived : In
        The `Mover` has asked memory for all the data that it was given; it is given that of the WRITE with this tag.
    running : In, a bit a ring
    cutting : In(1)
        Nothing begins; what was offered before is.

    Latency and throughput
    ----------------------
    A command in three cycles.

    Ordering and stalls
    -------------------
    Slots that ask for the same take turns. A WRITE waits until the data of those before it is asked for: so it never
    stands in the way of other commands to the node.

    Reset and errors
    ----------------
    Reset forgets the command in hand. A slot whose ring does not run, or any while the link is cut off, is dead.

    Invariants
    ----------
    Part of 10: a command is started once for each phase that asks for it.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        slot = slot_bits(params)
        super().__init__(
            {
                "phases": In(phases_layout(params)),
                "started": Out(step_layout(params)),
                "slot": Out(slot),
                "row": In(task_layout(params)),
                "given": In(GIVEN),
                "crc": In(crc32c.WIDTH),
                "moved": In(1),
                "starts": Out(stream.Signature(start_layout(params))),
                "next_tag": In(TAG_BITS),
                "writing": Out(writing_layout(params)),
                "mover_free": In(1),
                "arrived": In(data.StructLayout({"valid": 1, "tag": TAG_BITS})),
                "running": In(params.tables.rings_per_port),
                "cutting": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        start, row, phase = self.starts.payload, self.row, Signal(Phase)
        dead, asked = Signal(), Signal()
        moving, moving_tag = Signal(), Signal(TAG_BITS)  # a WRITE is on its way to the Mover
        segment_shift = exact_log2(self._params.memory.segment_bytes)
        chosen = self._choose(m, asked, self.mover_free & ~moving)
        m.d.comb += [
            phase.eq(self.phases[self.slot]),
            dead.eq(self.cutting | ~(self.running >> row.ring)[0]),
            self.started.slot.eq(self.slot),
            start.ring.eq(row.ring),
            start.owner.eq(Owner.WRITE_BACK),
            start.job.eq(self.slot),
            self.writing.valid.eq(self.starts.valid & self.starts.ready & (phase == Phase.ASK_WRITE)),
            self.writing.slot.eq(self.slot),
            self.writing.tag.eq(self.next_tag),
            self.writing.last.eq((row.descriptor.length - 1) >> segment_shift),
        ]
        self._describe(m, phase, start.descriptor)
        with m.If(self.writing.valid):
            m.d.sync += [moving.eq(1), moving_tag.eq(self.next_tag)]
        with m.Elif(self.arrived.valid & (self.arrived.tag == moving_tag)):
            m.d.sync += moving.eq(0)
        with m.FSM():
            with m.State("CHOOSE"):
                m.d.sync += self.slot.eq(chosen)
                with m.If(asked):
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.next = "OFFER"
                with m.If(dead):
                    m.d.comb += [self.started.valid.eq(1), self.started.dead.eq(1)]
                    m.next = "CHOOSE"
            with m.State("OFFER"):
                m.d.comb += [self.starts.valid.eq(1), self.started.valid.eq(self.starts.ready)]
                with m.If(self.starts.ready):
                    m.next = "CHOOSE"
        return m

    def _choose(self, m: Module, asked: Signal, may_move: Value) -> Signal:
        """Return the next slot that is served, if any has `asked`."""
        slots = range(self._params.requester.slots)

        def asking(*wanted: int) -> Value:
            return Cat(Cat(self.phases[i] == phase for phase in wanted).any() for i in slots)

        ends, writes, begins = asking(Phase.ASK_SEAL, Phase.ASK_ABORT), Signal(len(slots)), asking(Phase.ASK_ALLOC)
        first, above = Signal(len(slots)), Signal(len(slots))
        m.d.comb += [
            writes.eq(Mux(may_move, asking(Phase.ASK_WRITE), 0)),
            first.eq(Mux(ends.any(), ends, Mux(writes.any(), writes, begins))),
            above.eq(first & ~((2 << self.slot) - 1)),
            asked.eq(first.any()),
        ]
        return lowest(m, Mux(above.any(), above, first), name="chosen")

    def _describe(self, m: Module, phase: Signal, descriptor: data.View) -> None:
        """Describe the command that a slot in this phase asks for."""
        put, segment_shift = self.row.descriptor, exact_log2(self._params.memory.segment_bytes)
        first, handle = Signal(ITEM_BITS), Signal(handle_layout())
        m.d.comb += [
            first.eq(Mux(put.flags.engine.put.appended, put.segment, 0)),
            handle.eq(Mux(put.flags.engine.put.appended, put.subject.handle.as_value(), self.given.handle.as_value())),
            descriptor.tag.eq(put.tag),
            descriptor.slice.eq(put.slice),
            descriptor.subject.handle.eq(handle),
        ]
        with m.Switch(phase):
            with m.Case(Phase.ASK_ALLOC):
                m.d.comb += [
                    descriptor.opcode.eq(Opcode.ALLOC),
                    descriptor.model.eq(put.model),
                    descriptor.length.eq(Mux(put.flags.engine.put.open, put.count << segment_shift, put.length)),
                    descriptor.subject.key.eq(put.subject.key),
                    descriptor.slot.eq(put.slot),
                ]
            with m.Case(Phase.ASK_WRITE):
                m.d.comb += [
                    descriptor.opcode.eq(Opcode.WRITE),
                    descriptor.flags.scattered.eq(put.flags.scattered),
                    descriptor.segment.eq(first),
                    descriptor.length.eq(put.length),
                    descriptor.data.eq(put.data),
                    descriptor.page_shift.eq(put.page_shift),
                ]
            with m.Case(Phase.ASK_SEAL):
                m.d.comb += [
                    descriptor.opcode.eq(Opcode.SEAL),
                    descriptor.length.eq((first << segment_shift) + put.length),
                    descriptor.crc.eq(Mux(self.moved, self.crc, put.crc)),
                ]
            with m.Case(Phase.ASK_ABORT):
                m.d.comb += descriptor.opcode.eq(Opcode.ABORT)
