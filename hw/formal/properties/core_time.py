"""How long the core takes for an operation."""

from amaranth import Module, Signal
from amaranth.hdl import Assert, Assume, Cover

from hw.formal.node.bench import CoreBench, claim_kinds, require_rows
from hw.formal.node.stories import LIFE
from hw.formal.property import Induction, Property
from hw.rtl.node.layouts import Kind

BOUND = 24
"""Cycles from the cycle after an operation is taken, or a hand begins a step, until the core is back in IDLE."""

CHOICE = 2
"""Cycles that the stand-in for `Replacement` takes; what the real one takes more comes on top."""


class Bound(CoreBench):
    """The core is back in IDLE within `BOUND` cycles of whatever it has begun, and then has said all that it has to
    say: if its queues have room, the keys of a LOOKUP come without a pause, and a frame is chosen within `CHOICE`
    cycles."""

    def claim(self, m: Module) -> None:
        claim_kinds(m, self)
        require_rows(m, self)
        t, e, op = self.t, self.e, self.operation
        busy, waited = Signal(range(BOUND + 2)), Signal(range(CHOICE + 1))
        with m.If(self.state("IDLE")):
            m.d.sync += busy.eq(0)
        with m.Elif(busy <= BOUND):
            m.d.sync += busy.eq(busy + 1)
        keys = self.params.tables.lookup_keys
        m.d.comb += [
            Assert(busy < BOUND, "an operation does not end"),
            Assert(~self.state("IDLE") | ~(e._say | e._tell_other | e._write | e._chained), "something is left unsaid"),
            Assume(e._verdicts.i.ready & e._log.i.ready),
            Assume(self.operation_valid | ~self.within),
            Assume((op.kind != Kind.LOOKUP) | op.last | (op.item < keys - 1)),
        ]
        with m.If(~self.state("CHOOSE")):
            m.d.sync += waited.eq(0)
        with m.Else():
            m.d.sync += waited.eq(waited + 1)
            m.d.comb += Assume(t.replacement.done | (waited < CHOICE - 1))
        m.d.comb += [Cover(busy == 11), Cover(self.state("STREAM") & (busy > 5)), Cover(self.state("APPEND"))]


PROPERTIES = (
    Property(
        name="core_time.bound",
        shows="invariant 10: the core ends every operation in a counted number of cycles, with all that it has to say",
        design=Bound,
        method=Induction(BOUND + 1),
        cover=LIFE,
    ),
)
