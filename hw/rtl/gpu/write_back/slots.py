"""What each slot of a write-back buffer waits for."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import STATUS_BITS, Status
from hw.rtl.gpu.first import lowest
from hw.rtl.gpu.layouts import context_bits
from hw.rtl.gpu.write_back.layouts import (
    Phase,
    end_layout,
    new_layout,
    phases_layout,
    slot_bits,
    slot_layout,
    step_layout,
)


class Slots(wiring.Component):
    """Follows each slot from its descriptor to its completion.

    A PUT: ALLOC, WRITE, SEAL, an answer; without ALLOC if it is appended, without WRITE if it is empty, without SEAL if
    it is open. A WRITE or SEAL that fails is followed by an ABORT. A FLUSH: an answer, when those before it are free.

    Parameters
    ----------
    params
        Slots, and commands in flight.

    Interface
    ---------
    free, next : Out
        A slot is free, and which one is taken next.
    take, new : In, `new_layout(params)`
        It is taken. A PUT that is empty is appended and not open.
    over : In, a bit a slot
        Its FLUSH has nothing to wait for any more.
    stale : In(1)
        What has `passed` ends STALE, if it is not dead.
    passed, started : In, `step_layout(params)`
    answered : In, `slot_layout(params)`
        A slot leaves WAIT, `ASK_` or ANSWER.
    ended : In, `end_layout(params)`
        The command of a slot has ended.
    summed : In, `slot_layout(params)`
        The CRC32C of a slot's WRITE is known, before or after its end.
    released, context : In
        The completion of this context is in memory, or was not to be written.
    phases : Out, `phases_layout(params)`
    status : Out, an array
        How each slot ends, as far as is known.
    moved : Out, a bit a slot
        Its WRITE has ended.

    Latency and throughput
    ----------------------
    One cycle for each step; two from the end of a WRITE to the next.

    Ordering and stalls
    -------------------
    Slots do not wait for each other here.

    Reset and errors
    ----------------
    Reset frees all slots. The first failure is the one that is told.

    Invariants
    ----------
    Part of 10. A slot, and with it the source of a PUT, is held until its completion; that follows the SEAL, or its
    failure and then the ABORT, unless the ring or the link is dead. A SEAL follows the end of the WRITE and its CRC.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        step, happens = In(step_layout(params)), In(slot_layout(params))
        slots = params.requester.slots
        super().__init__(
            {
                "free": Out(1),
                "next": Out(slot_bits(params)),
                "take": In(1),
                "new": In(new_layout(params)),
                "over": In(slots),
                "passed": step,
                "stale": In(1),
                "started": step,
                "answered": happens,
                "ended": In(end_layout(params)),
                "summed": happens,
                "released": In(1),
                "context": In(context_bits(params)),
                "phases": Out(phases_layout(params)),
                "status": Out(data.ArrayLayout(STATUS_BITS, slots)),
                "moved": Out(slots),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots = self._params.requester.slots
        free = Signal(slots)
        m.d.comb += [
            free.eq(Cat(self.phases[i] == Phase.FREE for i in range(slots))),
            self.free.eq(free.any()),
            self.next.eq(lowest(m, free, name="lowest_free")),
        ]
        for i in range(slots):
            self._follow(m, i)
        return m

    def _follow(self, m: Module, i: int) -> None:  # noqa: PLR0915 (one machine, phase by phase)
        """Follow slot `i`."""
        phase = Signal(Phase, name=f"phase_{i}")
        status, moved = Signal(STATUS_BITS, name=f"status_{i}"), Signal(name=f"moved_{i}")
        known = Signal(new_layout(self._params), name=f"known_{i}")
        summed = Signal(name=f"summed_{i}")
        m.d.comb += [self.phases[i].eq(phase), self.status[i].eq(status), self.moved[i].eq(moved)]

        def takes(step: data.View) -> Signal:
            it = Signal(name=f"{step.as_value().name}_{i}")
            m.d.comb += it.eq(step.valid & (step.slot == i))
            return it

        passed, started, answered = takes(self.passed), takes(self.started), takes(self.answered)
        ended, sums = takes(self.ended), takes(self.summed)
        with m.If(sums):
            m.d.sync += summed.eq(1)

        def give_up() -> None:
            m.d.sync += phase.eq(Phase.ANSWER)
            with m.If(status == Status.OK):
                m.d.sync += status.eq(Status.UNAVAILABLE)

        def start(then: int) -> None:
            with m.If(started):
                m.d.sync += phase.eq(then)
                with m.If(self.started.dead):
                    give_up()

        with m.Switch(phase):
            with m.Case(Phase.FREE), m.If(self.take & (self.next == i)):
                m.d.sync += [
                    phase.eq(Mux(self.new.flush, Phase.FLUSH, Phase.WAIT)),
                    known.eq(self.new),
                    status.eq(Status.OK),
                    moved.eq(0),
                    summed.eq(0),
                ]
            with m.Case(Phase.WAIT), m.If(passed):
                m.d.sync += phase.eq(Phase.ASK_ALLOC)
                with m.If(known.appended):
                    m.d.sync += phase.eq(Mux(known.empty, Phase.ASK_SEAL, Phase.ASK_WRITE))
                with m.If(self.passed.dead):
                    give_up()
                with m.Elif(self.stale):
                    m.d.sync += [phase.eq(Phase.ANSWER), status.eq(Status.STALE)]
            with m.Case(Phase.ASK_ALLOC):
                start(Phase.ALLOC)
            with m.Case(Phase.ALLOC), m.If(ended):
                m.d.sync += phase.eq(Phase.ASK_WRITE)
                with m.If(self.ended.status != Status.GRANTED):
                    m.d.sync += [phase.eq(Phase.ANSWER), status.eq(self.ended.status)]
            with m.Case(Phase.ASK_WRITE):
                start(Phase.WRITE)
            with m.Case(Phase.WRITE):
                with m.If(ended):
                    m.d.sync += [moved.eq(1), status.eq(self.ended.status)]
                with m.If(moved & summed):
                    m.d.sync += phase.eq(Mux(known.open, Phase.ANSWER, Phase.ASK_SEAL))
                    with m.If(status != Status.OK):
                        m.d.sync += phase.eq(Phase.ASK_ABORT)
            with m.Case(Phase.ASK_SEAL):
                start(Phase.SEAL)
            with m.Case(Phase.SEAL), m.If(ended):
                m.d.sync += [phase.eq(Phase.ANSWER), status.eq(self.ended.status)]
                with m.If(self.ended.status != Status.OK):
                    m.d.sync += phase.eq(Phase.ASK_ABORT)
            with m.Case(Phase.ASK_ABORT):
                start(Phase.ABORT)
            with m.Case(Phase.ABORT), m.If(ended):
                m.d.sync += phase.eq(Phase.ANSWER)
            with m.Case(Phase.ANSWER), m.If(answered):
                m.d.sync += phase.eq(Phase.COMPLETE)
            with m.Case(Phase.COMPLETE), m.If(self.released & (self.context == known.context)):
                m.d.sync += phase.eq(Phase.FREE)
            with m.Case(Phase.FLUSH), m.If(self.over[i]):
                m.d.sync += phase.eq(Phase.ANSWER)
