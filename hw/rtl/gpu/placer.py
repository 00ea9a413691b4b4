"""The data of READs, from the link to memory."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.params.protocol import ITEM_BITS
from hw.rtl.axi import Burst, is_error
from hw.rtl.fabric.layouts import flit_layout
from hw.rtl.gpu.layouts import (
    acknowledgement_layout,
    context_bits,
    found_layout,
    memory_write,
    placed_layout,
    target_layout,
    walk_layout,
)


class Placer(wiring.Component):
    """Writes the data of READs as it comes, a burst a segment.

    While a segment is written, the page of the next one of the same READ is looked up.

    Parameters
    ----------
    params
        Segment and beat; commands in flight.

    Interface
    ---------
    flits : In, stream of `flit_layout(params)`
        DATA packets, no longer than a segment. The segments of a READ come in order, from its first on; those of
        several READs in any order, but one after the other.
    context : Out
        The context of the flit that is offered: the low bits of its tag.
    target : In, `target_layout()`
        Where the data of this context and flit goes, in the same cycle. Stands as long as the READ is under way, but
        for `mute`.
    walks : Out, stream of `walk_layout()`
        Questions to a `PageWalker`.
    found : In, stream of `found_layout()`
        Its answers.
    axi : Out, `memory_write(params)`
        A burst for each segment, always of a whole one: the beats and bytes that a short one does not have come with
        their strobes off. AWID is the context.
    issued : Out, stream of the number of a context, always ready
        A burst of this READ will be acknowledged.
    acknowledged : Out, stream of `acknowledgement_layout(params)`, always ready
        Memory has a burst of the READ of context `token`, or has refused it.
    ended : Out, stream of `placed_layout(params)`, always ready
        The last flit of this READ was taken; its last burst is `issued` in the same cycle at the latest.

    Latency and throughput
    ----------------------
    A beat a cycle. A flit leaves one cycle after it came. Before the first segment of a READ, or one that follows that
    of another READ, two cycles are lost, if a walk takes one; between segments of a READ none, if the walk is done
    before a segment is.

    Ordering and stalls
    -------------------
    In order. AW and W wait for each other only from one segment to the next. A segment waits for the walk that is under
    way, its own or not: so none is under way when a READ ends. BREADY is always high.

    Reset and errors
    ----------------
    Reset forgets all; memory and walker have to be reset too. Bytes that have no `room` are not written. A segment
    whose page is in error, or that is `mute` when its first flit is there, is dropped; so are flits that are not
    `known`, and they end nothing. What a READ has met that was cut off is forgotten when the next one begins.

    Invariants
    ----------
    Part of 10: every READ ends once, behind its last burst.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "flits": In(stream.Signature(flit_layout(params))),
                "context": Out(context_bits(params)),
                "target": In(target_layout()),
                "walks": Out(stream.Signature(walk_layout())),
                "found": In(stream.Signature(found_layout())),
                "axi": Out(memory_write(params, id_bits=context_bits(params))),
                "issued": Out(stream.Signature(context_bits(params), always_ready=True)),
                "acknowledged": Out(stream.Signature(acknowledgement_layout(params), always_ready=True)),
                "ended": Out(stream.Signature(placed_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:  # noqa: PLR0915 (one machine, state by state)
        m = Module()
        flit, target, found = self.flits.payload, self.target, self.found
        start, move, pad, drop = (Signal(name=name) for name in ("start", "move", "pad", "drop"))
        number, room = Signal(ITEM_BITS), Signal(32)
        address_free, beat_free, beat, whole = self._write(m, start, move, pad, room)
        length = self._measure(m, number, beat, room)

        # A walk is under way, or its answer is held: of the next segment of the READ with this tag.
        asked, asked_tag = Signal(), Signal.like(flit.tag)
        unwanted, mine = Signal(), Signal()
        m.d.comb += [
            self.context.eq(flit.tag),
            self.flits.ready.eq(move | drop),
            number.eq(flit.segment - target.segment),
            unwanted.eq(~target.known | target.mute),
            mine.eq((asked_tag == flit.tag) & ~unwanted),
        ]

        def ask(segment: Value) -> None:
            """Look up a segment of the READ that the flit belongs to."""
            m.d.sync += [
                asked.eq(1),
                asked_tag.eq(flit.tag),
                self.walks.valid.eq(1),
                self.walks.payload.place.eq(target.place),
                self.walks.payload.segment.eq(segment),
            ]

        failed = Signal(1 << len(self.context))
        its_failed = failed.bit_select(self.context, 1)
        with m.If(self.walks.ready):
            m.d.sync += self.walks.valid.eq(0)
        with m.FSM():
            with m.State("HEAD"), m.If(self.flits.valid):
                with m.If(target.known & (number == 0)):
                    m.d.sync += its_failed.eq(0)
                with m.If(asked & found.valid & mine & ~found.payload.error):
                    m.d.comb += [start.eq(address_free & beat_free), move.eq(start), found.ready.eq(start)]
                    with m.If(start):
                        m.d.sync += asked.eq(0)
                        with m.If(~flit.end):
                            ask(number + 1)
                        m.next = "DATA"
                        with m.If(flit.last):
                            m.next = "PAD"
                with m.Elif(asked):
                    m.d.comb += found.ready.eq(found.valid)
                    with m.If(found.valid):
                        m.d.sync += asked.eq(0)
                        with m.If(mine):
                            m.d.sync += its_failed.eq(1)
                            m.next = "DROP"
                with m.Elif(unwanted):
                    m.next = "DROP"
                with m.Else():
                    ask(number)

            with m.State("DATA"):
                m.d.comb += move.eq(self.flits.valid & beat_free)
                with m.If(move & flit.last):
                    m.next = "PAD"
                    with m.If(whole):
                        m.next = "HEAD"

            with m.State("PAD"):
                m.d.comb += pad.eq(beat_free)
                with m.If(pad & whole):
                    m.next = "HEAD"

            with m.State("DROP"):
                m.d.comb += drop.eq(self.flits.valid)
                with m.If(drop & flit.last):
                    m.next = "HEAD"

        ends = Signal()
        m.d.comb += ends.eq((move | drop) & flit.last & flit.end & target.known)
        self._tell(m, start, ends)
        m.d.sync += [
            self.ended.payload.error.eq(its_failed),
            self.ended.payload.longer.eq(flit.count > room),
            self.ended.payload.length.eq(length),
        ]
        return m

    def _write(
        self, m: Module, start: Value, move: Value, pad: Value, room: Value
    ) -> tuple[Value, Value, Value, Value]:
        """Begin a burst, write the flit as far as there is `room`, or nothing.

        Return whether an address, and a beat, can go out, the number of that beat, and whether it is the last one of
        the burst.
        """
        params, axi, flit = self._params, self.axi, self.flits.payload
        beat_bytes = params.memory.beat_bytes
        beat = Signal(range(params.segment_beats))
        address_free, beat_free, whole = Signal(), Signal(), Signal()
        strobes = Cat((i < flit.count) & (i < room) for i in range(beat_bytes))
        m.d.comb += [
            address_free.eq(~axi.awvalid | axi.awready),
            beat_free.eq(~axi.wvalid | axi.wready),
            whole.eq(beat == params.segment_beats - 1),
            axi.awlen.eq(params.segment_beats - 1),
            axi.awsize.eq(exact_log2(beat_bytes)),
            axi.awburst.eq(Burst.INCR),
        ]
        with m.If(start):
            m.d.sync += [axi.awvalid.eq(1), axi.awid.eq(self.context), axi.awaddr.eq(self.found.payload.address)]
        with m.Elif(axi.awready):
            m.d.sync += axi.awvalid.eq(0)
        with m.If(move | pad):
            m.d.sync += [
                axi.wvalid.eq(1),
                axi.wdata.eq(flit.data),
                axi.wstrb.eq(Mux(pad, 0, strobes)),
                axi.wlast.eq(whole),
                beat.eq(beat + 1),
            ]
        with m.Elif(axi.wready):
            m.d.sync += axi.wvalid.eq(0)
        return address_free, beat_free, beat, whole

    def _measure(self, m: Module, number: Value, beat: Value, room: Signal) -> Value:
        """Drive `room`: the bytes that there is room for from this flit on, beat `beat` of segment `number`.

        Return the bytes of its READ up to the end of the flit.
        """
        memory = self._params.memory
        before = Signal(ITEM_BITS + exact_log2(memory.segment_bytes))
        m.d.comb += [
            before.eq(number * memory.segment_bytes + beat * memory.beat_bytes),
            room.eq(Mux(self.target.room > before, self.target.room - before, 0)),
        ]
        return before + self.flits.payload.count

    def _tell(self, m: Module, start: Value, ends: Value) -> None:
        """Say which READ has a burst under way, has one less, or has all its data."""
        m.d.comb += self.axi.bready.eq(1)
        m.d.sync += [
            self.issued.valid.eq(start),
            self.issued.payload.eq(self.context),
            self.acknowledged.valid.eq(self.axi.bvalid),
            self.acknowledged.payload.token.eq(self.axi.bid),
            self.acknowledged.payload.error.eq(is_error(self.axi.bresp)),
            self.ended.valid.eq(ends),
            self.ended.payload.token.eq(self.context),
        ]
