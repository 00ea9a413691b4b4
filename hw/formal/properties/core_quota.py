"""Use of frames: what partitions have, may have and have been lent."""

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import Assert, Cover
from amaranth.lib import data

from hw.formal.node.bench import CoreBench, claim_kinds, claim_rows, codes
from hw.formal.node.stand_ins import AnyClock, AnyFrames
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
        t, e, state, frames = self.t, self.e, self.state, range(self.params.frames)
        rows, usage, clock = t.frames.rows, t.replacement.usage, t.replacement.clock
        inside = t.replacement._free.inside
        registers = {name: self.registers[f"replacement.usage.{name}"] for name in ("used", "borrowed", "promised")}
        serving = self.registers["replacement.usage.serving"]
        configured = self.registers["replacement.usage.configured"]
        partitions = self.params.tables.partitions
        limits = data.View(
            data.ArrayLayout(self.limits, partitions), Value.cast(self.registers["replacement.usage.limits"])
        )
        used = [registers["used"].word_select(p, len(usage.used)) for p in range(partitions)]
        borrowed, promised = registers["borrowed"], registers["promised"]

        taken = [state(*AFTER_CHOICE) & (t.chosen == f) for f in frames]
        above = []
        for p in range(partitions):
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
            m.d.comb += Assert(configured[p] | (limits[p].as_value() == 0))
            m.d.comb += Assert((limits[p].guarantee <= limits[p].quota) & (limits[p].quota <= self.params.frames))
            m.d.comb += Assert(limits[p].pool == 0)
        m.d.comb += [
            Assert(borrowed == sum(above)),
            Assert(promised == sum(limits[p].guarantee for p in range(partitions))),
            Assert(promised <= self.params.frames),
        ]
        out = [rows[f].state == State.QUARANTINED for f in frames]
        with m.If(t.frames_ready):
            m.d.comb += Assert(serving == self.params.frames - sum(out), "out of service, and lent")
        with m.Else():
            m.d.comb += Assert(serving == self.params.frames)
            m.d.comb += [Assert(inside.all()), Assert(clock.words.may_evict == 0), Assert(state("IDLE") & ~e._chained)]
        for f in frames:
            free = (rows[f].state == State.FREE) & ~taken[f]
            live = rows[f].state.matches(State.WRITING, State.SEALED)
            with m.If(t.frames_ready):
                m.d.comb += Assert(inside[f] == free, "FREE and in no queue, or the reverse")
                m.d.comb += Assert(~live | (clock.words.owners[f] == rows[f].partition))
                m.d.comb += Assert(~clock.words.may_evict[f] | (rows[f].state == State.SEALED))
                m.d.comb += Assert(~clock.words.may_evict[f] | ~rows[f].generation.all())
                m.d.comb += Assert((rows[f].state == State.QUARANTINED) <= rows[f].generation.all())
                m.d.comb += Assert((rows[f].state == State.FREE) <= ~rows[f].generation.all())

        # The choice that the core waits for.
        p, now = t.ring.partition, _of(used, t.ring.partition)
        mine = limits[p]
        full = now >= mine.quota
        entitled = (now < mine.guarantee) | (borrowed + promised < serving)
        replacing = t.replacement
        machine = self.registers["replacement.fsm_state"]
        idle, offers, decides, searches, own = (codes(machine)[name] for name in MACHINE)
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
                m.d.comb += Assert((clock.searched == p) | ((machine == searches) & ~full & self._gives(used, limits, clock)))
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
                m.d.comb += Assert(~full & entitled & inside.bit_select(replacing.frame, 1))

        # What an ALLOC does to its partition.
        before, lent = Signal.like(now), Signal.like(borrowed)
        with m.If(state("CHOOSE")):
            m.d.sync += [before.eq(now), lent.eq(borrowed)]
        growing, borrows = usage.gain, now >= mine.guarantee
        with m.If(growing):
            m.d.comb += [
                Assert(usage.gain_index == p),
                Assert((now < mine.quota) | (now < before), "beyond the quota"),
                Assert(~borrows | (borrowed + promised < serving) | (borrowed < lent), "lent what is guaranteed"),
            ]
        m.d.comb += [
            Cover(growing & borrows),
            Cover(growing & (now < before)),
            Cover(state("EVICT") & (t.frame.partition != p)),
            Cover(state("CHOOSE") & full),
        ]

    def _gives(self, used: list[Value], limits: data.View, clock: AnyClock) -> Value:
        """Whether the partition that is searched has more than it is guaranteed."""
        return _of(used, clock.searched) > limits[clock.searched].guarantee


MACHINE = ("IDLE", "OFFER", "DECIDE", "SEARCH", "OWN")


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
