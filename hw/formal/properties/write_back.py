"""Slots of a write-back buffer: a source is held until its block is sealed or given up, and is told of once."""

from dataclasses import replace

from amaranth import Cat, Module, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.property import Pdr, Property
from hw.formal.symbolic import constant
from hw.params import TINY
from hw.params.protocol import Status
from hw.rtl.gpu.write_back.layouts import Phase
from hw.rtl.gpu.write_back.slots import Slots

PARAMS = replace(TINY, requester=replace(TINY.requester, commands=4, slots=2))
"""Two slots, and four contexts."""

ASKS = {Phase.ASK_ALLOC: "alloc", Phase.ASK_WRITE: "write", Phase.ASK_SEAL: "seal", Phase.ASK_ABORT: "abort"}

STORY = data.StructLayout(
    {
        "held": 1,
        "answered": 1,
        "under_way": 1,
        "granted": 1,
        "failed": 1,
        "dead": 1,
        "summed": 1,
        **{f"{kind}_{what}": 1 for kind in ASKS.values() for what in ("begun", "ended")},
    }
)
"""What has become of the descriptor in a slot: `granted` a frame; something has `failed` behind that, or the slot was
given up as `dead`; its CRC32C is known; which of its commands have begun and ended."""


class SlotOfBlock(wiring.Component):
    """Knows of one slot all that has happened to it. The others do anything.

    A slot is taken when one is free; what is empty is appended and not open, or a FLUSH. A slot goes on when it asks;
    commands end once, after they have begun, and an ALLOC never OK; a CRC32C comes once for each WRITE; a context is
    released once it is answered.

    Interface
    ---------
    picked : In
        Which slot is followed.
    take, new, over, passed, stale, started, answered, ended, summed, released, context : In
        Of the unit.
    """

    def __init__(self) -> None:
        self.unit = Slots(PARAMS)
        inputs = {name: In(member.shape) for name, member in self.unit.signature.members.items() if member.flow is In}
        self._inputs = tuple(inputs)
        super().__init__({"picked": In(1), **inputs})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        m.d.comb += [getattr(unit, name).eq(getattr(self, name)) for name in self._inputs]
        picked = constant(m, self.picked, "picked")
        story, known, phase = Signal(STORY), Signal.like(self.new), Signal(Phase)
        m.d.comb += phase.eq(unit.phases[picked])
        self.picked_slot = picked

        def here(event: str) -> Signal:
            it = Signal(name=f"{event}_here")
            m.d.comb += it.eq(getattr(self, event).valid & (getattr(self, event).slot == picked))
            return it

        passed, started, answered, ended, sums = map(here, ("passed", "started", "answered", "ended", "summed"))
        asks = Signal(len(ASKS))
        m.d.comb += [
            asks.eq(Cat(phase == each for each in ASKS)),
            Assume(~self.take | unit.free),
            Assume(~self.new.empty | self.new.flush | (self.new.appended & ~self.new.open)),
            Assume(~passed | (phase == Phase.WAIT)),
            Assume(~started | asks.any()),
            Assume(~answered | (phase == Phase.ANSWER)),
            Assume(~ended | story.under_way),
            Assume(~sums | (story.write_begun & ~story.summed)),
            Assume(~(self.released & story.held & (self.context == known.context)) | story.answered),
        ]
        for each, kind in ASKS.items():
            begun, its_end = story[f"{kind}_begun"], story[f"{kind}_ended"]
            with m.If(started & ~self.started.dead & (phase == each)):
                m.d.sync += [begun.eq(1), story.under_way.eq(1)]
            with m.If(ended & begun & ~its_end):
                m.d.sync += [its_end.eq(1), story.under_way.eq(0)]
                if kind == "alloc":
                    m.d.comb += Assume(self.ended.status != Status.OK)
                    m.d.sync += story.granted.eq(self.ended.status == Status.GRANTED)
                elif kind != "abort":
                    m.d.sync += story.failed.eq(self.ended.status != Status.OK)
        with m.If((passed & (self.passed.dead | self.stale)) | (started & self.started.dead)):
            m.d.sync += story.dead.eq(1)
        with m.If(sums):
            m.d.sync += story.summed.eq(1)
        with m.If(answered):
            m.d.sync += story.answered.eq(1)
        with m.If(self.released & story.held & (self.context == known.context)):
            m.d.sync += story.eq(0)
        with m.If(self.take & (unit.next == picked)):
            m.d.sync += [story.held.eq(1), known.eq(self.new)]
            m.d.comb += Assert(~story.held, "a slot is taken while it is held")
        self._claim(m, story, known, phase, asks)
        m.d.comb += [
            Cover(answered & story.seal_ended & ~story.failed & story.alloc_ended),
            Cover(answered & story.abort_ended & story.write_ended & ~story.dead),
            Cover(answered & story.dead & story.granted),
            Cover(self.take & (unit.next == picked) & (unit.phases[~picked] == Phase.SEAL)),
        ]
        return m

    def _claim(self, m: Module, story: data.View, known: data.View, phase: Value, asks: Value) -> None:
        """What the unit does with the slot."""
        begins = (story.granted & story.alloc_ended) | known.appended
        written = story.write_ended & story.summed & ~story.failed
        whole = written | (known.appended & known.empty)
        quiet = ~story.under_way & (~story.write_begun | (story.write_ended & story.summed))
        m.d.comb += Assert((phase == Phase.FREE) == ~story.held, "a slot is free while it is held, or lost")
        with m.If(asks.any()):
            m.d.comb += Assert(quiet & ~story.answered & ~story.dead, "a command too early or too late")
        with m.If(phase == Phase.ASK_ALLOC):
            m.d.comb += Assert(~story.alloc_begun, "ALLOC twice")
        with m.If(phase == Phase.ASK_WRITE):
            m.d.comb += Assert(begins & ~story.write_begun, "a WRITE without a frame, or twice")
        with m.If(phase == Phase.ASK_SEAL):
            m.d.comb += Assert(begins & whole & ~known.open & ~story.seal_begun, "a SEAL without all beats")
        with m.If(phase == Phase.ASK_ABORT):
            m.d.comb += Assert(begins & story.failed & ~story.abort_begun, "an ABORT of what did not fail, or twice")
        with m.If(phase == Phase.ANSWER):
            sealed = story.seal_ended & ~story.failed
            good = self.unit.status[self.picked_slot] == Status.OK
            m.d.comb += [
                Assert(quiet & ~story.answered, "an answer while a command is under way, or twice"),
                Assert(~good | known.flush | sealed | (known.open & whole), "OK, and not sealed"),
                Assert(~story.failed | story.abort_ended | story.dead, "a block is left behind"),
                Assert(~(story.failed & good), "a failure is not told"),
                Assert(~known.flush | ~story.alloc_begun, "a FLUSH begins something"),
            ]


PROPERTIES = (
    Property(
        name="write_back.slot",
        shows="invariant 10: a source is held until its block is sealed or given up; told once; SEAL after all beats",
        design=SlotOfBlock,
        method=Pdr(),
        cover=24,
    ),
)
