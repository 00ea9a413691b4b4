"""What is chosen for an ALLOC: FREE frames, each from its queue once, and victims that may be evicted."""

from amaranth import Module, Signal
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import wiring

from hw.formal.harness import Harness
from hw.formal.node.small import small_params
from hw.formal.property import Pdr, Property
from hw.rtl.node.clock import Clock
from hw.rtl.node.free_queues import FreeQueues

FRAMES = 4


class FreeItems(Harness):
    """Follows one frame: it is offered only while it is in the queue, and the queue is empty only when it is not.

    The user pops what is offered, and pushes what it has.
    """

    def __init__(self) -> None:
        super().__init__(FreeQueues(firsts=[0], sizes=[FRAMES], width=2, ecc=False))

    def claim(self, m: Module) -> None:
        inside, offers = Signal(init=1), Signal()
        acts = self.pop | self.push | self.idle
        m.d.comb += [
            Assume(~(self.pop & self.push) & ~(self.idle & (self.pop | self.push | self.offer))),
            Assume(self.ready | ~(acts | self.offer)),
            Assume(~self.pop | (offers & self.any)),
            Assume(~(self.push & (self.push_item == 0)) | ~inside),
            Assume((self.queue == 0) & (self.push_queue == 0)),
        ]
        # Others push what they have: so there is always room for what is out.
        out = Signal(range(FRAMES + 1))
        m.d.sync += out.eq(out + self.pop - self.push)
        m.d.comb += Assume(~self.push | (out > (~inside & (self.push_item != 0))))
        with m.If(self.offer):
            m.d.sync += offers.eq(~self.push)
        with m.Elif(acts):
            m.d.sync += offers.eq(0)
        with m.If(self.pop & (self.item == 0)):
            m.d.sync += inside.eq(0)
        with m.If(self.push & (self.push_item == 0)):
            m.d.sync += inside.eq(1)
        m.d.comb += [
            Assert(~(offers & self.any & (self.item == 0)) | inside, "what is out is offered"),
            Assert(~(offers & inside) | self.any, "nothing is offered, and it is there"),
            Cover(offers & self.any & (self.item == 0) & (out == FRAMES - 1)),
        ]


ASKED = ("start", "partition", "rewind", "rewind_partition", "idle")
"""What the core asks of `Clock`; there is one pool."""

MARKED = ("mark", "frame", "evictable", "referenced", "claimed", "owner")
"""What it notes in the words beside it."""


class Victims(wiring.Component):
    """Follows one frame: it is found only while it may be evicted, and for the partition that has it.

    Nothing is marked while a search is under way; only what is claimed changes its owner.

    Interface
    ---------
    The inputs of `Clock` and of its words that the core drives.
    """

    def __init__(self) -> None:
        self.unit = Clock(small_params())
        clock, words = self.unit.signature.members, self.unit.words.signature.members
        super().__init__({n: clock[n] for n in ASKED} | {n: words[n] for n in MARKED})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        words, frame = unit.words, 0
        m.d.comb += [getattr(unit, name).eq(getattr(self, name)) for name in ASKED]
        m.d.comb += [getattr(words, name).eq(getattr(self, name)) for name in MARKED]

        evictable, owner, wanted, searching = (Signal(name=n) for n in ("may_evict", "owned_by", "wanted", "searching"))
        with m.If(self.mark & (self.frame == frame)):
            m.d.sync += evictable.eq(self.evictable)
            with m.If(self.claimed):
                m.d.sync += owner.eq(self.owner)
        found = searching & unit.done
        with m.If(self.start):
            m.d.sync += [searching.eq(1), wanted.eq(self.partition)]
        with m.Elif(unit.done):
            m.d.sync += searching.eq(0)
        busy = searching & ~found
        m.d.comb += [
            Assume(~(busy | self.start | ~unit.ready) | ~(self.mark | self.rewind)),
            Assume(~(busy | ~unit.ready) | ~self.start),
            Assume(~(busy | self.start | self.mark) | ~self.idle),
            Assert(~(found & unit.found & (unit.victim == frame)) | (evictable & (owner == wanted)), "no such victim"),
            Cover(found & unit.found & (unit.victim == frame)),
        ]
        return m


PROPERTIES = (
    Property(
        name="replacement.free",
        shows="invariant 8: a FREE frame is offered while it is in its queue, and until it is taken",
        design=FreeItems,
        method=Pdr(),
        cover=24,
    ),
    Property(
        name="replacement.victim",
        shows="invariants 5, 8: a victim may be evicted, and is of the partition that it is searched for",
        design=Victims,
        method=Pdr(),
        cover=40,
    ),
)
