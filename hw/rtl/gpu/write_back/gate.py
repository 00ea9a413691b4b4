"""When a PUT may begin."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.gpu.layouts import FENCE_BITS, task_layout
from hw.rtl.gpu.write_back.layouts import Phase, halt_layout, phases_layout, slot_bits, step_layout


class Gate(wiring.Component):
    """Looks at one slot after the other, and lets a PUT begin when its fence is reached and its session not halted.

    Parameters
    ----------
    params
        Slots and rings.

    Interface
    ---------
    turn, row : Out and In, `task_layout(params)`
        The slot that is looked at, and what it has, in the same cycle.
    phases : In, `phases_layout(params)`
        As of `Slots`.
    fences : In, an array
        What the producer of each ring has reached.
    running : In, a bit a ring
    cutting : In(1)
        What waits ends at once, as what is of a ring that does not run.
    halt : In, `halt_layout(params)`
        No PUT of this session begins.
    drained : Out(1)
        As long as `halt` is valid: none of the session is under way.
    passed : Out, `step_layout(params)`
        As of `Slots`.

    Latency and throughput
    ----------------------
    A slot a cycle, each once in as many cycles as there are slots.

    Ordering and stalls
    -------------------
    A PUT that waits holds up no other.

    Reset and errors
    ----------------
    Reset begins with the first slot.

    Invariants
    ----------
    Part of 9: none begins while its session is halted.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        rings = params.tables.rings_per_port
        super().__init__(
            {
                "turn": Out(slot_bits(params)),
                "row": In(task_layout(params)),
                "phases": In(phases_layout(params)),
                "fences": In(data.ArrayLayout(FENCE_BITS, rings)),
                "running": In(rings),
                "cutting": In(1),
                "halt": In(halt_layout(params)),
                "drained": Out(1),
                "passed": Out(step_layout(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots = self._params.requester.slots
        descriptor, ring = self.row.descriptor, self.row.ring
        phase = Signal(Phase)
        ahead = Signal(FENCE_BITS)  # how far the fence is beyond what the PUT waits for
        dead, reached, halted, under_way = Signal(), Signal(), Signal(), Signal()
        clean = Signal(range(slots + 1))  # slots in a row that have nothing under way of the session that is halted
        m.d.comb += [
            phase.eq(self.phases[self.turn]),
            ahead.eq(self.fences[ring] - descriptor.results),
            dead.eq(self.cutting | ~(self.running >> ring)[0]),
            reached.eq(~descriptor.flags.engine.put.fenced | ~ahead[-1]),
            halted.eq(
                self.halt.valid
                & (self.halt.session == descriptor.slot.id)
                & (self.halt.slice == descriptor.slice[: self._params.node.slice_bits])
            ),
            under_way.eq(halted & (phase != Phase.FREE) & (phase != Phase.WAIT) & (phase != Phase.FLUSH)),
            self.passed.valid.eq((phase == Phase.WAIT) & (dead | (reached & ~halted))),
            self.passed.slot.eq(self.turn),
            self.passed.dead.eq(dead),
            self.drained.eq(clean == slots),
        ]
        m.d.sync += self.turn.eq(Mux(self.turn == slots - 1, 0, self.turn + 1))
        with m.If(~self.halt.valid | under_way):
            m.d.sync += clean.eq(0)
        with m.Elif(~self.drained):
            m.d.sync += clean.eq(clean + 1)
        return m
