"""READs under way, each for all who want it."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import ITEM_BITS, TAG_BITS, Opcode
from hw.rtl.gpu.first import lowest
from hw.rtl.gpu.layouts import Owner, ended_layout, start_layout
from hw.rtl.gpu.prefetch.layouts import FATE, READ, fill_bits
from hw.rtl.gpu.prefetch.window import Window


class Fills(wiring.Component):
    """A table of READs: allocates one, or merges a question into one that is the same; releases it behind the last who
    asked.

    Parameters
    ----------
    params
        `requester.fills`, the entries; `requester.window_segments` under way at most, or with
        `requester.window_adapts` what `Window` says.

    Interface
    ---------
    ask, read, tag : In
        This READ is wanted, by a PREFETCH of this tag. May be taken back.
    granted, fill : Out
        It is under way, in this cycle, as number `fill`.
    starts : Out, stream of `start_layout(params)`
        READs that begin, with the number of the fill as `job`.
    ended : In, stream of `ended_layout(params)`, always ready
        READs that have ended.
    over : Out, a bit a fill
        It has ended.
    release, releasing : In
        One who asked for the fill `releasing`, which is over, has seen its fate.
    fate : Out, `FATE`
        That of `releasing`.

    Latency and throughput
    ----------------------
    One cycle to `starts`; a question and a release a cycle.

    Ordering and stalls
    -------------------
    READs begin in order. One is granted if it is under way already, and has not ended; else if there is an entry and
    the window has room.

    Reset and errors
    ----------------
    Reset forgets all; the table of contexts has to be reset too.

    Invariants
    ----------
    Part of 10: a fill begins once and ends once, and is free when all who were granted it have released it, and not
    before.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "ask": In(1),
                "read": In(READ),
                "tag": In(TAG_BITS),
                "granted": Out(1),
                "fill": Out(fill_bits(params)),
                "starts": Out(stream.Signature(start_layout(params))),
                "ended": In(stream.Signature(ended_layout(params), always_ready=True)),
                "over": Out(params.requester.fills),
                "release": In(1),
                "releasing": In(fill_bits(params)),
                "fate": Out(FATE),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        requester = self._params.requester
        fills, window, adapts = requester.fills, requester.window_segments, None
        if requester.window_adapts:
            m.submodules.window = adapts = Window(self._params)
            window = adapts.segments
        ended, starts, read = self.ended, self.starts, self.read
        used, same = Signal(fills), Signal(fills)
        reads = Signal(data.ArrayLayout(READ, fills))
        fates = Signal(data.ArrayLayout(FATE, fills))
        flying, ending = Signal(range(requester.window_segments + 1)), Signal(ITEM_BITS)
        allocate, merge, room = Signal(), Signal(), Signal()
        free = lowest(m, ~used, name="free")
        found = lowest(m, same, name="found")
        m.d.comb += [
            same.eq(Cat((reads[i] == read) & used[i] & ~self.over[i] for i in range(fills))),
            room.eq((flying + read.count <= window) & ~used.all() & (~starts.valid | starts.ready)),
            merge.eq(self.ask & same.any()),
            allocate.eq(self.ask & ~same.any() & room),
            self.granted.eq(merge | allocate),
            self.fill.eq(free),
            self.fate.eq(fates[self.releasing]),
        ]
        with m.If(merge):
            m.d.comb += self.fill.eq(found)
        with m.If(ended.valid):
            m.d.comb += ending.eq(reads[ended.payload.job].count)
        m.d.sync += flying.eq(flying + Mux(allocate, read.count, 0) - ending)
        most_users = requester.prefetches * (fills + 2)  # a queue of steps each, and one at both ends
        for i in range(fills):
            users = Signal(range(most_users + 1), name=f"users_{i}")
            asked, left = self.granted & (self.fill == i), self.release & (self.releasing == i)
            m.d.sync += users.eq(users + asked - left)
            with m.If(allocate & (free == i)):
                m.d.sync += [used[i].eq(1), self.over[i].eq(0), reads[i].eq(read)]
            with m.If(ended.valid & (ended.payload.job == i)):
                m.d.sync += [
                    self.over[i].eq(1),
                    fates[i].status.eq(ended.payload.outcome.status),
                    fates[i].length.eq(ended.payload.outcome.slot.as_value()),
                ]
            with m.If(left & (users == 1)):
                m.d.sync += [used[i].eq(0), self.over[i].eq(0)]

        descriptor = starts.payload.descriptor
        with m.If(starts.ready):
            m.d.sync += starts.valid.eq(0)
        with m.If(allocate):
            m.d.sync += [
                starts.valid.eq(1),
                starts.payload.ring.eq(read.ring),
                starts.payload.owner.eq(Owner.PREFETCH),
                starts.payload.job.eq(free),
                descriptor.opcode.eq(Opcode.READ),
                descriptor.segment.eq(read.segment),
                descriptor.count.eq(read.count),
                descriptor.length.eq(read.room),
                descriptor.subject.handle.eq(read.handle),
                descriptor.data.eq(read.address),
                descriptor.tag.eq(self.tag),
                descriptor.slice.eq(read.handle.slice),
            ]
        if adapts is not None:
            m.d.comb += [
                adapts.begin.eq(allocate),
                adapts.fill.eq(free),
                adapts.count.eq(read.count),
                adapts.end.eq(ended.valid),
                adapts.ending.eq(ended.payload.job),
                adapts.held.eq(self.ask & ~same.any() & ~used.all() & (flying + read.count > window)),
            ]
        return m
