"""Use of frames: what partitions have, may have and have been lent."""

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import Assert, Cover
from amaranth.lib import data

from hw.formal.node.bench import CoreBench, claim_kinds, claim_rows, codes
from hw.formal.node.choosers import AnyClock, AnyFrames
from hw.formal.node.stories import QUOTA
from hw.formal.property import Induction, Property
from hw.rtl.node.layouts import State
from hw.rtl.node.replacement import Replacement

AFTER_CHOICE = ("REACH", "OLD", "REPLACE", "FETCH", "CLAIM")


class Quota(CoreBench):
    """Every frame is FREE and in the queue, or taken by one partition and counted there, or out of service; a partition
    at its quota does not grow; and what is borrowed grows only while nobody's guarantee is touched.

    `Replacement` and `Usage` are those of the core, around any order of FREE frames and of victims.
    """

    def __init__(self) -> None:
        super().__init__({"Replacement": Replacement, "Clock": AnyClock, "FreeQueues": AnyFrames})

    def claim(self, m: Module) -> None:
        claim_kinds(m, self)
        claim_rows(m, self)
        t, partitions = self.t, self.params.tables.partitions
        registers = {name: self.registers[f"replacement.usage.{name}"] for name in KEPT}
        self.configured, self.serving = registers["configured"], registers["serving"]
        self.borrowed, self.promised = registers["borrowed"], registers["promised"]
        self.granted = data.View(data.ArrayLayout(self.limits, partitions), Value.cast(registers["limits"]))
        width = len(t.replacement.usage.used)
        self.used = [registers["used"].word_select(p, width) for p in range(partitions)]
        self.inside = t.replacement._free.inside
        # Of the partition that an ALLOC is for.
        self.now = _of(self.used, t.ring.partition)
        self.mine = self.granted[t.ring.partition]
        self.full = self.now >= self.mine.quota
        self.lendable = self.borrowed + self.promised < self.serving
        self._partitions(m)
        self._each_frame(m)
        self._choice(m)
        self._growth(m)

    def _partitions(self, m: Module) -> None:
        """What is counted is what there is."""
        t, state, frames, rows = self.t, self.state, range(self.params.frames), self.t.frames.rows
        used, limits = self.used, self.granted
        taken = [state(*AFTER_CHOICE) & (t.chosen == f) for f in frames]
        above = []
        for p in range(len(used)):
            has = [
                rows[f].state.matches(State.WRITING, State.SEALED, State.DRAINING)
                & (rows[f].partition == p)
                & ~taken[f]
                for f in frames
            ]
            above.append(Mux(used[p] > limits[p].guarantee, used[p] - limits[p].guarantee, 0))
            with m.If(t.frames_ready):
                m.d.comb += Assert(used[p] == sum(has), "a frame is lost, or counted twice")
            with m.Else():
                m.d.comb += Assert(used[p] == 0)
            m.d.comb += Assert(self.configured[p] | (limits[p].as_value() == 0))
            m.d.comb += Assert((limits[p].guarantee <= limits[p].quota) & (limits[p].quota <= self.params.frames))
            m.d.comb += Assert(limits[p].pool == 0)
        m.d.comb += [
            Assert(self.borrowed == sum(above)),
            Assert(self.promised == sum(limits[p].guarantee for p in range(len(used)))),
            Assert(self.promised <= self.params.frames),
        ]

    def _each_frame(self, m: Module) -> None:
        """A frame is FREE and in the queue, or somebody's, or out of service; what may be evicted is its owner's."""
        t, state, frames, rows = self.t, self.state, range(self.params.frames), self.t.frames.rows
        inside, serving, clock = self.inside, self.serving, t.replacement.clock
        out = [rows[f].state == State.QUARANTINED for f in frames]
        with m.If(t.frames_ready):
            m.d.comb += Assert(serving == self.params.frames - sum(out), "out of service, and lent")
        with m.Else():
            m.d.comb += Assert(serving == self.params.frames)
            m.d.comb += [Assert(inside.all()), Assert(clock.words.may_evict == 0)]
            m.d.comb += Assert(state("IDLE") & ~self.e._chained)
        for f in frames:
            free = (rows[f].state == State.FREE) & ~(state(*AFTER_CHOICE) & (t.chosen == f))
            live = rows[f].state.matches(State.WRITING, State.SEALED)
            with m.If(t.frames_ready):
                m.d.comb += Assert(inside[f] == free, "FREE and in no queue, or the reverse")
                m.d.comb += Assert(~live | (clock.words.owners[f] == rows[f].partition))
                m.d.comb += Assert(~clock.words.may_evict[f] | (rows[f].state == State.SEALED))
                m.d.comb += Assert(~clock.words.may_evict[f] | ~rows[f].generation.all())
                m.d.comb += Assert((rows[f].state == State.QUARANTINED) <= rows[f].generation.all())
                m.d.comb += Assert((rows[f].state == State.FREE) <= ~rows[f].generation.all())

    def _choice(self, m: Module) -> None:
        """What is known of a choice, while the core waits for it and when it is there."""
        t, state, rows, p = self.t, self.state, self.t.frames.rows, self.t.ring.partition
        usage, clock, limits, used, full = t.replacement.usage, t.replacement.clock, self.granted, self.used, self.full
        entitled = (self.now < self.mine.guarantee) | self.lendable
        replacing = t.replacement
        machine = self.registers["replacement.fsm_state"]
        idle, decides, searches, own = (codes(machine)[name] for name in MACHINE)
        found = replacing.done & replacing.found
        with m.If(~state("CHOOSE")):
            m.d.comb += Assert((machine == idle) & ~clock.searching)
        with m.Else():
            m.d.comb += [
                Assert(replacing.partition == p),
                Assert((usage.full == full) & (usage.entitled == entitled)),
                Assert(replacing.done == (machine == idle)),
                Assert(machine <= own),
            ]
            with m.If(machine.matches(decides, searches, own) | replacing.done):
                m.d.comb += Assert(replacing.at_quota == full)
            with m.If(machine.matches(searches, own)):
                m.d.comb += Assert(clock.searching | clock.done)
                m.d.comb += Assert(
                    (clock.searched == p) | ((machine == searches) & ~full & self._gives(used, limits, clock))
                )
            with m.Else():
                m.d.comb += Assert(~clock.searching)
            victim = rows[clock.victim]
            with m.If(clock.done & clock.found & machine.matches(searches, own)):
                m.d.comb += Assert(clock.words.may_evict.bit_select(clock.victim, 1))
                m.d.comb += Assert(victim.partition == clock.searched)
            with m.If(found & replacing.evict):
                m.d.comb += Assert(clock.words.may_evict.bit_select(replacing.frame, 1))
                gives = _of(used, victim.partition) > limits[victim.partition].guarantee
                m.d.comb += Assert((victim.partition == p) | (~full & gives))
            with m.If(found & ~replacing.evict):
                m.d.comb += Assert(~full & entitled & self.inside.bit_select(replacing.frame, 1))

    def _growth(self, m: Module) -> None:
        """What an ALLOC does to its partition."""
        t, state, now, borrowed = self.t, self.state, self.now, self.borrowed
        before, lent = Signal.like(now), Signal.like(borrowed)
        with m.If(state("CHOOSE")):
            m.d.sync += [before.eq(now), lent.eq(borrowed)]
        growing, borrows = t.replacement.usage.gain, now >= self.mine.guarantee
        with m.If(growing):
            m.d.comb += [
                Assert(t.replacement.usage.gain_index == t.ring.partition),
                Assert((now < self.mine.quota) | (now < before), "beyond the quota"),
                Assert(~borrows | self.lendable | (borrowed < lent), "lent what is guaranteed"),
            ]
        m.d.comb += [
            Cover(growing & borrows),
            Cover(growing & (now < before)),
            Cover(state("EVICT") & (t.frame.partition != t.ring.partition)),
            Cover(state("CHOOSE") & self.full),
        ]

    def _gives(self, used: list[Value], limits: data.View, clock: AnyClock) -> Value:
        """Whether the partition that is searched has more than it is guaranteed."""
        return _of(used, clock.searched) > limits[clock.searched].guarantee


MACHINE = ("IDLE", "DECIDE", "SEARCH", "OWN")
"""States of `Replacement`."""

KEPT = ("used", "borrowed", "promised", "serving", "configured", "limits")
"""Registers of `Usage`."""


def _of(values: list[Value], index: Value) -> Value:
    return Mux(index, values[1], values[0])


PROPERTIES = (
    Property(
        name="core_quota.use",
        shows="invariant 8: frames are conserved; a partition at its quota does not grow; guarantees are not lent",
        design=Quota,
        method=Induction(8),
        cover=QUOTA,
    ),
)
