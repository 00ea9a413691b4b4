"""When a PUT may begin."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.gpu.layouts import FENCE_BITS, task_layout
from hw.rtl.gpu.write_back.halts import halted, reached
from hw.rtl.gpu.write_back.layouts import Phase, halt_layout, phases_layout, slot_bits, step_layout


class Gate(wiring.Component):
    """Looks at one slot after the other, and lets a PUT begin when its fence is reached.

    While a session is halted, each of its PUTs that waits leaves its slot at once: what was accepted before begins,
    and what came later, or whose fence is not reached, ends STALE.

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
    halt, drained : In and Out, as of `hook`
    early, late : In(1)
        As of `Admission`.
    take, next : In
    passed, stale : Out
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
    Part of 9: all that was accepted is drained, and nothing begins behind that.

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
                "early": In(1),
                "late": In(1),
                "take": In(1),
                "next": In(slot_bits(params)),
                "passed": Out(step_layout(params)),
                "stale": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots = self._params.requester.slots
        phase, late = Signal(Phase), Signal(slots)
        dead, may, leaves, too_late = Signal(), Signal(), Signal(), Signal()
        clean = Signal(range(slots + 1))  # slots in a row that have nothing of the session that is halted
        m.d.comb += [
            phase.eq(self.phases[self.turn]),
            dead.eq(self.cutting | ~(self.running >> self.row.ring)[0]),
            may.eq(reached(self.fences, self.row)),
            leaves.eq(halted(self.halt, self.row)),
            too_late.eq((late >> self.turn)[0]),
            self.passed.valid.eq((phase == Phase.WAIT) & (dead | may | leaves)),
            self.passed.slot.eq(self.turn),
            self.passed.dead.eq(dead),
            self.stale.eq(leaves & (too_late | ~may)),
            self.drained.eq(clean == slots),
        ]
        m.d.sync += self.turn.eq(Mux(self.turn == slots - 1, 0, self.turn + 1))
        with m.If(self.take):
            m.d.sync += late.bit_select(self.next, 1).eq(self.late)
        with m.If(~self.halt.valid):
            m.d.sync += late.eq(0)
        with m.If(~self.halt.valid | self.early | (leaves & ~too_late & (phase != Phase.FREE))):
            m.d.sync += clean.eq(0)
        with m.Elif(~self.drained):
            m.d.sync += clean.eq(clean + 1)
        return m
