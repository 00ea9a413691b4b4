"""Quotas, guarantees and what is borrowed: invariant 8, among any choices that the unit itself allows."""

from dataclasses import replace
from enum import IntEnum

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from amaranth.utils import bits_for

from hw.formal.internals import open_up
from hw.formal.property import Induction, Property
from hw.params import TINY
from hw.params.sections import PoolParams
from hw.rtl.node.layouts import limits_layout
from hw.rtl.node.usage import Usage

PARAMS = replace(
    TINY,
    pools=(PoolParams(frame_bytes=4096, frames=3), PoolParams(frame_bytes=8192, frames=2)),
    tables=replace(TINY.tables, partitions=3),
)
"""Three partitions, in pools of three and two frames."""

PARTITIONS, POOLS = PARAMS.tables.partitions, len(PARAMS.pools)
COUNT = bits_for(PARAMS.frames)
SUM = COUNT + 2
PASSED = ("set", "index", "limits", "gain", "lose", "lose_index", "quarantine", "quarantine_pool", "query")


class Step(IntEnum):
    """How far the choice of a frame is."""

    NONE = 0
    FREE = 1
    VICTIM = 2
    EVICTED = 3


class UsageQuota(wiring.Component):
    """Counts every frame that is gained and lost by itself; the unit answers by these counts, and who gains by the
    unit's answers never exceeds a quota, nor borrows what others are guaranteed.

    Around the unit: a frame is chosen when nothing has changed since the query. It is a FREE one if the partition may
    have that, or else the victim is of the partition itself or, below its quota, of the donor; then it is gained, and
    meanwhile frames only get lost. Limits change, and frames leave service, while nothing is chosen. Only what was
    gained is lost, only what serves is gained, and limits are such as the core admits.

    Interface
    ---------
    set, index, limits, gain, lose, lose_index, quarantine, quarantine_pool, query : In
        Of the unit; what is gained is gained by the partition that chose.
    choose, free, other, abandon : In
        A frame is chosen: a FREE one, or a victim of the donor. The choice comes to nothing.
    """

    def __init__(self) -> None:
        self.unit = Usage(PARAMS)
        members = self.unit.signature.members
        super().__init__(
            {name: In(members[name].shape) for name in PASSED}
            | dict.fromkeys(("choose", "free", "other", "abandon"), In(1))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit, self.registers = open_up(self.unit)
        m.d.comb += [getattr(self.unit, name).eq(getattr(self, name)) for name in PASSED]
        self.counts(m)
        self.choice(m)
        self.surroundings(m)
        self.claim_registers(m)
        self.claim_answers(m)
        self.claim_gains(m)
        return m

    def counts(self, m: Module) -> None:
        """What each partition uses and may use, and what that makes in all: by what was gained, lost and set."""
        self.used = used = Signal(data.ArrayLayout(COUNT, PARTITIONS), name="frames_used")
        self.given = given = Signal(data.ArrayLayout(limits_layout(PARAMS), PARTITIONS), name="limits_given")
        self.configured = Signal(PARTITIONS, name="have_limits")
        self.frames = Signal(data.ArrayLayout(COUNT, POOLS))
        pools = [pool.frames for pool in PARAMS.pools]
        self.serving = Signal(data.ArrayLayout(COUNT, POOLS), init=pools, name="in_service")
        self.above = Signal(data.ArrayLayout(COUNT, PARTITIONS), name="above_guarantee")
        self.all_used, self.borrowed, self.promised = (
            Signal(data.ArrayLayout(SUM, POOLS), name=f"sum_{name}") for name in ("used", "borrowed", "promised")
        )
        self.chooser = Signal.like(self.query)
        m.d.comb += self.frames.eq(Cat(Const(frames, COUNT) for frames in pools))
        for p in range(PARTITIONS):
            guarantee = given[p].guarantee
            m.d.comb += self.above[p].eq(Mux(used[p] > guarantee, used[p] - guarantee, 0))
            gains, loses = self.gain & (self.chooser == p), self.lose & (self.lose_index == p)
            m.d.sync += used[p].eq(used[p] + gains - loses)
        for i in range(POOLS):
            inside = [self.configured[p] & (given[p].pool == i) for p in range(PARTITIONS)]
            m.d.comb += [
                self.all_used[i].eq(sum(Mux(inside[p], used[p], 0) for p in range(PARTITIONS))),
                self.borrowed[i].eq(sum(Mux(inside[p], self.above[p], 0) for p in range(PARTITIONS))),
                self.promised[i].eq(sum(Mux(inside[p], given[p].guarantee, 0) for p in range(PARTITIONS))),
            ]
        with m.If(self.set):
            m.d.sync += [given[self.index].eq(self.limits), self.configured.bit_select(self.index, 1).eq(1)]
        with m.If(self.quarantine):
            m.d.sync += self.serving[self.quarantine_pool].eq(self.serving[self.quarantine_pool] - 1)

    def choice(self, m: Module) -> None:
        """Which partition chooses, how far it is, and how things stood when it began."""
        unit = self.unit
        self.step, self.victim = Signal(Step), Signal.like(self.query)
        self.asked, self.fresh = Signal.like(self.query), Signal()
        self.before, self.borrowed_before = Signal(COUNT), Signal(SUM)
        self.change = self.set | self.gain | self.lose | self.quarantine
        m.d.sync += [self.asked.eq(self.query), self.fresh.eq(~self.change)]
        m.d.comb += unit.gain_index.eq(self.chooser)
        self.evicts = (self.step == Step.VICTIM) & self.lose & (self.lose_index == self.victim)
        with m.If(self.choose):
            m.d.comb += Assume(self.fresh & ~self.change & (self.step == Step.NONE))
            m.d.comb += Assume(self.configured.bit_select(self.asked, 1))
            m.d.comb += Assume(~self.free | (~unit.full & unit.entitled))
            m.d.sync += [
                self.step.eq(Mux(self.free, Step.FREE, Step.VICTIM)),
                self.chooser.eq(self.asked),
                self.victim.eq(Mux(self.other & ~unit.full, unit.donor, self.asked)),
                self.before.eq(self.used[self.asked]),
                self.borrowed_before.eq(self.borrowed[self.given[self.asked].pool]),
            ]
        with m.If(self.evicts):
            m.d.sync += self.step.eq(Step.EVICTED)
        with m.If(self.gain | (self.abandon & (self.step != Step.NONE))):
            m.d.sync += self.step.eq(Step.NONE)

    def surroundings(self, m: Module) -> None:
        """What the core and the queues of FREE frames see to."""
        pool, retired = self.given[self.chooser].pool, self.quarantine_pool
        leaves = self.lose & (self.given[self.lose_index].pool == pool)
        new, old = self.limits, self.given[self.index]
        m.d.comb += [
            Assume(self.query < PARTITIONS),
            Assume((self.step == Step.NONE) | ~(self.set | self.quarantine)),
            Assume(~self.gain | (self.step == Step.FREE) | (self.step == Step.EVICTED) | self.evicts),
            Assume(~self.gain | (self.all_used[pool] - leaves < self.serving[pool])),
            Assume(~self.lose | ((self.lose_index < PARTITIONS) & (self.used[self.lose_index] != 0))),
            Assume(~self.quarantine | ((retired < POOLS) & ~self.gain & ~self.lose & ~self.set)),
            Assume(~self.quarantine | (self.all_used[retired] < self.serving[retired])),
        ]
        with m.If(self.set):
            m.d.comb += [
                Assume(~self.gain & ~self.lose & (self.index < PARTITIONS) & (new.pool < POOLS)),
                Assume((new.guarantee <= new.quota) & (new.quota <= self.frames[new.pool])),
                Assume(self.unit.promised + new.guarantee <= self.frames[new.pool]),
                Assume((self.used[self.index] == 0) | (old.pool == new.pool)),
            ]

    def claim_registers(self, m: Module) -> None:
        """The unit's registers are those counts: this carries the induction."""
        per_pool = data.ArrayLayout(COUNT, POOLS)
        borrowed, promised = (data.View(per_pool, self.registers[name]) for name in ("borrowed", "promised"))
        m.d.comb += [
            Assert(self.registers["used"] == self.used.as_value(), "the frames of a partition are lost count of"),
            Assert(self.registers["limits"] == self.given.as_value()),
            Assert(self.registers["serving"] == self.serving.as_value()),
            Assert(self.registers["configured"] == self.configured),
            Assert((self.asked < PARTITIONS) & (self.chooser < PARTITIONS) & (self.victim < PARTITIONS)),
        ]
        for i in range(POOLS):
            m.d.comb += [
                Assert(borrowed[i] == self.borrowed[i], "what is borrowed is lost count of"),
                Assert(promised[i] == self.promised[i], "what is guaranteed is lost count of"),
                Assert(self.promised[i] <= self.frames[i], "more is guaranteed than there is"),
                Assert(self.all_used[i] <= self.serving[i], "more is used than there is"),
                Assert(self.serving[i] <= self.frames[i]),
            ]
        for p in range(PARTITIONS):
            given = self.given[p]
            m.d.comb += [
                Assert(self.configured[p] | ((self.used[p] == 0) & (given.as_value() == 0))),
                Assert((given.guarantee <= given.quota) & (given.quota <= self.frames[given.pool])),
                Assert(given.pool < POOLS),
            ]

    def claim_answers(self, m: Module) -> None:
        """What the counts say, whenever nothing has changed since the query."""
        unit, asked = self.unit, self.asked
        limit, used = self.given[asked], self.used[asked]
        spare = self.borrowed[limit.pool] + self.promised[limit.pool] < self.serving[limit.pool]
        inside = [self.configured[p] & (self.given[p].pool == limit.pool) for p in range(PARTITIONS)]
        ranks = [Mux(inside[p], self.above[p], 0) for p in range(PARTITIONS)]
        most = Signal(COUNT)
        m.d.comb += most.eq(_largest(ranks))
        with m.If(self.fresh):
            m.d.comb += [
                Assert(unit.used == used),
                Assert(unit.limits_of.as_value() == limit.as_value()),
                Assert(unit.configured == self.configured.bit_select(asked, 1)),
                Assert(unit.full == (used >= limit.quota), "a quota is missed"),
                Assert(unit.entitled == ((used < limit.guarantee) | spare), "entitled to what is not there"),
                Assert((most != 0) | (unit.donor == asked), "a donor that has nothing to give"),
            ]
            for p in range(PARTITIONS):
                with m.If(most != 0):
                    m.d.comb += [
                        Assert((unit.donor != p) | (ranks[p] == most), "another donor is further above"),
                        Assert((unit.donor <= p) | (ranks[p] != most), "a tie does not go to the lowest"),
                    ]

    def claim_gains(self, m: Module) -> None:
        """Invariant 8 in every gain, and what carries it there from the choice."""
        mine = self.given[self.chooser]
        now, borrowed, promised = self.used[self.chooser], self.borrowed[mine.pool], self.promised[mine.pool]
        serving, step, lender = self.serving[mine.pool], self.step, self.given[self.lose_index]
        spare = Mux(serving > promised, serving - promised, 0)
        own = self.lose & (self.lose_index == self.chooser)
        repays = self.lose & (self.above[self.lose_index] != 0) & (lender.pool == mine.pool)
        after, borrowed_after = Signal(COUNT + 1), Signal(SUM)
        borrows = after > mine.guarantee
        m.d.comb += [
            after.eq(now + 1 - own),
            borrowed_after.eq(Mux(own, borrowed, borrowed - repays + borrows)),
        ]
        with m.If(self.gain):
            m.d.comb += [
                Assert((after <= mine.quota) | (after <= self.before), "a partition grows beyond its quota"),
                Assert(
                    ~borrows | (borrowed_after <= spare) | (borrowed_after <= self.borrowed_before),
                    "a frame is borrowed that others are guaranteed",
                ),
            ]
        with m.If(step != Step.NONE):
            m.d.comb += [
                Assert(self.configured.bit_select(self.chooser, 1) & (self.given[self.victim].pool == mine.pool)),
                Assert((now <= self.before) & (borrowed <= self.borrowed_before)),
                Assert(
                    (now < mine.quota)
                    | ((step == Step.VICTIM) & (self.victim == self.chooser))
                    | ((step == Step.EVICTED) & (now < self.before))
                ),
            ]
        lent = borrowed < self.borrowed_before
        m.d.comb += [
            Assert((step != Step.FREE) | (now < mine.guarantee) | (borrowed + promised < serving)),
            Assert((step != Step.VICTIM) | (self.victim == self.chooser) | (self.above[self.victim] != 0) | lent),
            Assert((step != Step.EVICTED) | (now < mine.guarantee) | lent),
            Cover(self.gain & (step == Step.FREE) & (now >= mine.guarantee) & (mine.guarantee != 0)),
            Cover(self.gain & (step == Step.EVICTED) & (self.victim != self.chooser)),
            Cover(self.gain & (step == Step.EVICTED) & (self.before > mine.quota)),
            Cover(self.gain & (serving < self.frames[mine.pool])),
        ]


def _largest(values: list[Value]) -> Value:
    """Return the largest of `values`."""
    largest = values[0]
    for value in values[1:]:
        largest = Mux(value > largest, value, largest)
    return largest


PROPERTIES = (
    Property(
        name="usage.quota",
        shows="invariant 8: none grows beyond its quota, nor borrows what others are guaranteed",
        design=UsageQuota,
        method=Induction(1),
        cover=16,
    ),
)
