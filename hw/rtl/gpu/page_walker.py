"""Where a segment of a command is in memory."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.params.protocol import ITEM_BITS
from hw.params.records import PAGE_SHIFTS
from hw.rtl.gpu.layouts import ADDRESS_BITS, found_layout, read_beat_layout, read_layout, walk_layout

ENTRY_BYTES = ADDRESS_BITS // 8
"""Of an entry of a list of pages: its address."""


class PageWalker(wiring.Component):
    """Finds the address of a segment, in a list of pages if the data is scattered.

    The beat of the list that was read last is kept. The first walk of a command, that of segment 0, reads anew: so
    what is kept is never older than the first walk of any command that has not ended, and holds what was in memory
    while that was under way, even if the same memory was another list before.

    Parameters
    ----------
    params
        Segment and beat.

    Interface
    ---------
    walks : In, stream of `walk_layout()`
        Questions; of each command that of segment 0 before any other. The size of a page is one of `PAGE_SHIFTS`, at
        least a segment, and a list begins at a multiple of a beat.
    found : Out, stream of `found_layout()`
        The answers.
    bursts : Out, stream of `read_layout()`
        Reads of a single beat of a list.
    beats : In, stream of `read_beat_layout(params)`, always ready
        What was read.

    Latency and throughput
    ----------------------
    One cycle, and one between an answer and the next question; two and the latency of `bursts` and `beats` more for a
    beat of a list that is not kept.

    Ordering and stalls
    -------------------
    One walk at a time.

    Reset and errors
    ----------------
    Reset forgets the walk and what is kept; the memory has to be reset too. A beat that memory refuses is not kept.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "walks": In(stream.Signature(walk_layout())),
                "found": Out(stream.Signature(found_layout())),
                "bursts": Out(stream.Signature(read_layout())),
                "beats": In(stream.Signature(read_beat_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_bytes = self._params.memory.beat_bytes
        segment_shift = exact_log2(self._params.memory.segment_bytes)
        lane_bits = exact_log2(beat_bytes // ENTRY_BYTES)
        walk, place = self.walks.payload, self.walks.payload.place

        # Of the walk that is offered: its distance from the first page, the entry of its page, the place in that.
        distance = Signal(ITEM_BITS + segment_shift)
        shift = Signal(range(PAGE_SHIFTS.stop))
        entry = Signal(ITEM_BITS)
        within = Signal(PAGE_SHIFTS.stop - 1)
        m.d.comb += [
            distance.eq(walk.segment << segment_shift),
            shift.eq(place.page_shift),
            entry.eq(distance >> shift),
            within.eq(distance & ((1 << shift) - 1)),
        ]

        kept, kept_data = Signal(), Signal(8 * beat_bytes)
        kept_list, kept_beat = Signal(ADDRESS_BITS), Signal(ITEM_BITS - lane_bits)
        same = Signal()
        m.d.comb += same.eq(
            kept & (walk.segment != 0) & (kept_list == place.address) & (kept_beat == entry[lane_bits:])
        )

        scattered, address = Signal(), Signal(ADDRESS_BITS)
        lane, offset = Signal(range(1 << lane_bits)), Signal(max(len(distance), len(within)))
        failed = Signal()
        base = Signal(ADDRESS_BITS)
        m.d.comb += [
            base.eq(Mux(scattered, kept_data.word_select(lane, ADDRESS_BITS), address)),
            self.found.payload.address.eq(base + offset),
            self.found.payload.error.eq(failed | base[:segment_shift].any()),
            self.bursts.payload.address.eq(kept_list + (kept_beat << exact_log2(beat_bytes))),
            self.bursts.payload.beats.eq(1),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.walks.ready.eq(1)
                m.d.sync += [
                    scattered.eq(place.scattered),
                    address.eq(place.address),
                    lane.eq(entry),
                    offset.eq(Mux(place.scattered, within, distance)),
                    failed.eq(0),
                ]
                with m.If(self.walks.valid):
                    m.next = "FOUND"
                    with m.If(place.scattered & ~same):
                        m.d.sync += [kept.eq(0), kept_list.eq(place.address), kept_beat.eq(entry[lane_bits:])]
                        m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.bursts.valid.eq(1)
                with m.If(self.bursts.ready):
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += kept_data.eq(self.beats.payload.data)
                with m.If(self.beats.valid):
                    m.d.sync += [kept.eq(~self.beats.payload.error), failed.eq(self.beats.payload.error)]
                    m.next = "FOUND"
            with m.State("FOUND"):
                m.d.comb += self.found.valid.eq(1)
                with m.If(self.found.ready):
                    m.next = "IDLE"
        return m
