"""What jobs want, in turn, and where it goes."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.params.protocol import ITEM_BITS, TAG_BITS
from hw.params.records import ALIGNMENT, PAGE_SHIFTS
from hw.rtl.arbiter import next_in_turn
from hw.rtl.gpu.layouts import ADDRESS_BITS, found_layout, walk_layout
from hw.rtl.gpu.prefetch.layouts import READ, fill_bits, given_layout, want_layout


class Issuer(wiring.Component):
    """Takes what one job after the other wants, finds its place, and asks for a fill.

    Parameters
    ----------
    params
        `requester.prefetches`, the jobs; segment.

    Interface
    ---------
    wants : In, streams of `want_layout()`, one a job
    stopping : In, a bit a job
        What it wants is given up.
    given : Out, `given_layout(params)`
        What has become of the want that is taken in this cycle.
    walks, found : Out and In, as of a `PageWalker`
    ask, read, tag, granted, fill : as of `Fills`

    Latency and throughput
    ----------------------
    Three cycles and those of a walk, less one, for each want.

    Ordering and stalls
    -------------------
    Jobs that want something take turns, a READ each. One at a time: a list of pages that memory is slow to give, or a
    full table or window, holds up all.

    Reset and errors
    ----------------
    Reset forgets the want in hand. A page size that is none, a list that is not aligned, and what a walk says is in
    error, have no place.

    Invariants
    ----------
    Part of 10: every want is taken once.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        jobs = params.requester.prefetches
        super().__init__(
            {
                "wants": In(stream.Signature(want_layout())).array(jobs),
                "stopping": In(jobs),
                "given": Out(given_layout(params)),
                "walks": Out(stream.Signature(walk_layout())),
                "found": In(stream.Signature(found_layout())),
                "ask": Out(1),
                "read": Out(READ),
                "tag": Out(TAG_BITS),
                "granted": In(1),
                "fill": In(fill_bits(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        segment_shift = exact_log2(self._params.memory.segment_bytes)
        asking = Cat(want.valid for want in self.wants)
        turn, take = Signal(range(max(2, len(self.wants)))), Signal()
        want = Signal(want_layout())
        place = want.place
        chosen = next_in_turn(m, asking, turn)
        wrong, left, paged = Signal(), Signal(PAGE_SHIFTS.stop), Signal(PAGE_SHIFTS.stop)
        shift, address = Signal(range(PAGE_SHIFTS.stop)), Signal(ADDRESS_BITS)
        m.d.comb += [
            want.eq(Array(each.payload for each in self.wants)[turn]),
            shift.eq(place.page_shift - segment_shift),
            paged.eq(1 << shift),
            left.eq(paged - (want.number & (paged - 1))),
            wrong.eq(
                place.scattered
                & (
                    place.address[: exact_log2(ALIGNMENT)].any()
                    | (place.page_shift < max(PAGE_SHIFTS.start, segment_shift))
                    | (place.page_shift >= PAGE_SHIFTS.stop)
                )
            ),
            self.walks.payload.place.eq(place),
            self.walks.payload.segment.eq(want.number),
            self.read.ring.eq(want.ring),
            self.read.handle.eq(want.handle),
            self.read.segment.eq(want.segment),
            self.read.count.eq(self.given.count),
            self.read.address.eq(address),
            self.read.room.eq(want.room),
            self.tag.eq(want.tag),
            self.given.fill.eq(self.fill),
            self.given.count.eq(Mux(place.scattered & (left < want.count), left[:ITEM_BITS], want.count)),
        ]
        for i, each in enumerate(self.wants):
            m.d.comb += each.ready.eq(take & (turn == i))

        with m.FSM():
            with m.State("IDLE"), m.If(asking.any()):
                m.d.sync += turn.eq(chosen)
                m.next = "WALK"

            with m.State("WALK"):
                m.d.comb += self.walks.valid.eq(~wrong)
                with m.If(wrong):
                    m.d.comb += [self.given.error.eq(1), take.eq(1)]
                    m.next = "IDLE"
                with m.Elif(self.walks.ready):
                    m.next = "FOUND"

            with m.State("FOUND"):
                m.d.comb += self.found.ready.eq(1)
                m.d.sync += address.eq(self.found.payload.address)
                with m.If(self.found.valid):
                    m.next = "ASK"
                    with m.If(self.found.payload.error):
                        m.d.comb += [self.given.error.eq(1), take.eq(1)]
                        m.next = "IDLE"

            with m.State("ASK"):
                with m.If((self.stopping >> turn)[0]):
                    m.d.comb += take.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += [self.ask.eq(1), self.given.made.eq(self.granted), take.eq(self.granted)]
                    with m.If(self.granted):
                        m.next = "IDLE"
        return m
