"""A window that follows what the link and the node carry."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import ITEM_BITS
from hw.rtl.gpu.prefetch.layouts import fill_bits

ROUND_BITS = 16
"""Of a round trip in cycles; a longer one counts as the longest."""

LOG2_AGE = 8
"""The least round trip is forgotten when 2**8 have been judged."""


class Window(wiring.Component):
    """Adapts the segments that may be under way to the round trip of a READ.

    It is delay-based congestion control (Brakmo and Peterson, TCP Vegas, IEEE JSAC 13(8), 1995): a window that does not
    cover the latency leaves the round trip as it is, one that is larger only waits in a queue, and makes it longer.

    Parameters
    ----------
    params
        `requester.window_segments`, the limit; `requester.fill_segments`, with which it begins and below which it never
        is.

    Interface
    ---------
    begin, fill, count : In
        A READ of `count` segments begins in this cycle, as number `fill`.
    end, ending : In
        The READ `ending` has ended.
    held : In(1)
        A READ waits for the window, and for nothing else.
    segments : Out
        The window.

    Latency and throughput
    ----------------------
    One READ at a time is timed, of the longest that come. Every other round trip is judged, by the least that was seen:
    below 9/8 of it, and if a READ was held up meanwhile, the window is one larger; above 5/4, one smaller. In the
    beginning it is twice as large instead, until a round trip is longer; the last time is taken back if that is above
    5/4.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    Reset begins anew. The least round trip is forgotten from time to time: half the window is then given up, so that
    nothing of it waits when the next is measured.

    Invariants
    ----------
    At least a READ of `requester.fill_segments`, and at most `requester.window_segments`.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._least = params.requester.fill_segments
        self._most = params.requester.window_segments
        super().__init__(
            {
                "begin": In(1),
                "fill": In(fill_bits(params)),
                "count": In(ITEM_BITS),
                "end": In(1),
                "ending": In(fill_bits(params)),
                "held": In(1),
                "segments": Out(range(self._most + 1), init=self._least),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        least, most, segments = self._least, self._most, self.segments
        timing, timed, longest = Signal(), Signal.like(self.fill), Signal.like(self.count)
        cycles, base = Signal(ROUND_BITS), Signal(ROUND_BITS, init=-1)
        judged, doubling, held = Signal(), Signal(init=1), Signal()
        age, half = Signal(LOG2_AGE), Signal.like(segments)
        m.d.comb += half.eq(segments >> 1)

        with m.If(timing):
            m.d.sync += [cycles.eq(cycles + ~cycles.all()), held.eq(held | self.held)]
            with m.If(self.end & (self.ending == timed)):
                m.d.sync += [timing.eq(0), judged.eq(~judged)]
                with m.If(judged):
                    m.d.sync += age.eq(age + 1)
                    with m.If(cycles < base):
                        m.d.sync += base.eq(cycles)
                    with m.If(age.all()):
                        m.d.sync += [
                            base.eq(-1),
                            longest.eq(0),
                            doubling.eq(1),
                            segments.eq(Mux(half < least, least, half)),
                        ]
                    with m.Elif((cycles < base + (base >> 3)) & held):
                        more = Mux(doubling, segments << 1, segments + 1)
                        m.d.sync += segments.eq(Mux(more > most, most, more))
                    with m.Elif(cycles >= base + (base >> 3)):
                        m.d.sync += doubling.eq(0)
                        with m.If(cycles > base + (base >> 2)):
                            less = Mux(doubling, half, segments - 1)
                            m.d.sync += segments.eq(Mux(less < least, least, less))
        with m.Elif(self.begin & (self.count >= longest)):
            m.d.sync += [timing.eq(1), timed.eq(self.fill), longest.eq(self.count), cycles.eq(0), held.eq(0)]
            with m.If(self.count > longest):
                m.d.sync += base.eq(-1)
        return m
