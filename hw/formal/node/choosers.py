"""Stand-ins for what chooses a frame for an ALLOC: each does all that the part may do by its docstring, and more."""

from collections.abc import Sequence

from amaranth import Module, Mux, Signal
from amaranth.hdl import Assume
from amaranth.lib import data, wiring
from amaranth.utils import bits_for

from hw.formal.node.free import anything, ports
from hw.params import Params
from hw.rtl.node.clock import Clock
from hw.rtl.node.free_queues import FreeQueues
from hw.rtl.node.packed_words import PackedWords
from hw.rtl.node.replacement import Replacement
from hw.rtl.node.usage import Usage


class AnyUsage(wiring.Component):
    """`hw.rtl.node.usage.Usage` that says anything."""

    def __init__(self, params: Params):
        signature = ports(Usage, params)
        answers = ("limits_of", "used", "configured", "full", "entitled", "donor", "promised")
        self._open = {name: anything(signature.members[name].shape, f"usage_{name}") for name in answers}
        super().__init__(signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [getattr(self, name).eq(value) for name, value in self._open.items()]
        return m


class AnyWords(wiring.Component):
    """The side of `hw.rtl.node.packed_words.PackedWords` that marks: what may be evicted, and whose it is."""

    def __init__(self, params: Params):
        owner = bits_for(params.tables.partitions - 1)
        self.may_evict = Signal(params.frames)
        self.owners = Signal(data.ArrayLayout(owner, params.frames))
        super().__init__(ports(PackedWords, params))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.mark):
            m.d.sync += self.may_evict.bit_select(self.frame, 1).eq(self.evictable)
            with m.If(self.claimed):
                m.d.sync += self.owners[self.frame].eq(self.owner)
        return m


class AnyClock(wiring.Component):
    """`hw.rtl.node.clock.Clock` that finds any frame of the partition that may be evicted, or none, at any time.

    Attributes
    ----------
    searching, searched
        Whether a search is under way, and of which partition.
    """

    def __init__(self, params: Params):
        partition = bits_for(params.tables.partitions - 1)
        self.words = AnyWords(params)
        self.searched, self.searching = Signal(partition), Signal()
        self._ends, self._finds = anything(1, "search_ends"), anything(1, "search_finds")
        self._choice = anything(bits_for(params.frames - 1), "search_victim")
        super().__init__(ports(Clock, params))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = self.words
        p, searching = self.searched, self.searching
        m.d.comb += self.ready.eq(1)
        with m.If(self.start):
            m.d.sync += [p.eq(self.partition), searching.eq(1), self.done.eq(0)]
        with m.Elif(searching & self._ends):
            m.d.sync += [searching.eq(0), self.done.eq(1), self.found.eq(self._finds), self.victim.eq(self._choice)]
            with m.If(self._finds):
                m.d.comb += Assume(words.may_evict.bit_select(self._choice, 1) & (words.owners[self._choice] == p))
        return m


class AnyFrames(wiring.Component):
    """`hw.rtl.node.free_queues.FreeQueues` over frames: it offers any that is inside, or none if it likes.

    Attributes
    ----------
    inside
        The frames that are inside, a bit each.
    """

    def __init__(self, *, firsts: Sequence[int], sizes: Sequence[int], width: int, ecc: bool):
        self._any = anything(1, "free_frame_any")
        self._choice = anything(width, "free_frame")
        self.inside = Signal(sum(sizes), init=-1)
        super().__init__(ports(FreeQueues, firsts=firsts, sizes=sizes, width=width, ecc=ecc))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        there = self.inside.bit_select(self.item, 1)
        m.d.comb += [self.ready.eq(1), self.any.eq(self._any & there)]
        with m.If(self.offer):
            m.d.sync += self.item.eq(self._choice)
        with m.If(self.pop):
            m.d.sync += there.eq(0)
        with m.If(self.push):
            m.d.sync += self.inside.bit_select(self.push_item, 1).eq(1)
        return m


class AnyReplacement(wiring.Component):
    """`hw.rtl.node.replacement.Replacement` that finds any frame that it may find, or none, at any time.

    Attributes
    ----------
    free
        The frames that are FREE and not taken, a bit each.
    """

    def __init__(self, params: Params):
        signature = ports(Replacement, params)
        self.usage = AnyUsage(params)
        self.clock = AnyClock(params)
        self.free = Signal(params.frames, init=-1)
        answers = ("found", "frame", "evict", "at_quota")
        self._open = {name: anything(signature.members[name].shape, f"choice_{name}") for name in answers}
        self._done = anything(1, "choice_done")
        super().__init__(signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.usage, m.submodules.clock = self.usage, self.clock
        words = self.clock.words
        m.d.comb += self.ready.eq(1)
        m.d.comb += [getattr(self, name).eq(value) for name, value in self._open.items()]
        choosing = Signal()
        m.d.comb += self.done.eq(choosing & self._done)
        with m.If(self.choose):
            m.d.sync += choosing.eq(1)
        with m.Elif(self.done):
            m.d.sync += choosing.eq(0)
        may = Mux(self.evict, words.may_evict, self.free).bit_select(self.frame, 1)
        m.d.comb += Assume(~(self.done & self.found) | may)
        with m.If(self.take):
            m.d.sync += self.free.bit_select(self.frame, 1).eq(0)
        with m.If(self.give):
            m.d.sync += self.free.bit_select(self.give_frame, 1).eq(1)
        return m
