"""Stand-ins for what chooses a frame for an ALLOC: each does all that the part may do by its docstring, and more."""

from collections.abc import Sequence

from amaranth import Module, Mux, Signal
from amaranth.hdl import Assume
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.formal.node.free import anything
from hw.params import Params
from hw.rtl.node.layouts import limits_layout


class AnyUsage(wiring.Component):
    """`hw.rtl.node.usage.Usage` that says anything."""

    def __init__(self, params: Params):
        index = bits_for(params.tables.partitions - 1)
        count = bits_for(params.frames)
        self._answers = {
            "limits_of": limits_layout(params),
            "used": count,
            "configured": 1,
            "full": 1,
            "entitled": 1,
            "donor": index,
            "promised": count,
        }
        self._open = {name: anything(shape, f"usage_{name}") for name, shape in self._answers.items()}
        super().__init__(
            {
                "set": In(1),
                "index": In(index),
                "limits": In(limits_layout(params)),
                "gain": In(1),
                "gain_index": In(index),
                "lose": In(1),
                "lose_index": In(index),
                "quarantine": In(1),
                "quarantine_pool": In(bits_for(len(params.pools) - 1)),
                "query": In(index),
            }
            | {name: Out(shape) for name, shape in self._answers.items()}
        )

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
        super().__init__(
            {
                "mark": In(1),
                "frame": In(bits_for(params.frames - 1)),
                "evictable": In(1),
                "referenced": In(1),
                "claimed": In(1),
                "owner": In(owner),
            }
        )

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
        super().__init__(
            {
                "ready": Out(1),
                "rewind": In(1),
                "rewind_partition": In(partition),
                "start": In(1),
                "partition": In(partition),
                "pool": In(bits_for(len(params.pools) - 1)),
                "done": Out(1),
                "found": Out(1),
                "victim": Out(bits_for(params.frames - 1)),
                "stalled": Out(1),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

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
        queue = bits_for(len(sizes) - 1)
        super().__init__(
            {
                "ready": Out(1),
                "offer": In(1),
                "queue": In(queue),
                "any": Out(1),
                "item": Out(width),
                "pop": In(1),
                "push": In(1),
                "push_queue": In(queue),
                "push_item": In(width),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

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
        frame, pool = bits_for(params.frames - 1), bits_for(len(params.pools) - 1)
        self.usage = AnyUsage(params)
        self.clock = AnyClock(params)
        self.free = Signal(params.frames, init=-1)
        self._answers = {"found": 1, "frame": frame, "evict": 1, "at_quota": 1}
        self._open = {name: anything(shape, f"choice_{name}") for name, shape in self._answers.items()}
        self._done = anything(1, "choice_done")
        super().__init__(
            {
                "ready": Out(1),
                "choose": In(1),
                "done": Out(1),
                "partition": In(bits_for(params.tables.partitions - 1)),
                "take": In(1),
                "give": In(1),
                "give_frame": In(frame),
                "give_pool": In(pool),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
            | {name: Out(shape) for name, shape in self._answers.items()}
        )

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
