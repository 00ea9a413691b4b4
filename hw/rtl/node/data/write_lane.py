"""The write side of one memory channel."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params, crc32c
from hw.rtl.axi import Burst, axi4_write, is_error
from hw.rtl.layouts import frame_bits
from hw.rtl.node.data.layouts import lane_beat_layout, write_widths
from hw.rtl.shared import shared
from hw.rtl.two_port_sram import TwoPortSram

HELD = 4
"""Segments whose burst has not ended that a lane keeps account of; of whole ones, it has room for two."""


@shared
class WriteLane(wiring.Component):
    """Writes segments to a channel, one burst each, and puts the answers in order.

    Beats go into a ring of two segments. When all beats of a segment are there, its address is offered, and from the
    next cycle on its data, whether or not the address has been taken; so the data channel never waits for the lane.

    Parameters
    ----------
    params
        Section `memory`, and what `hw.params.striping` needs.

    Interface
    ---------
    beats : In, stream of `lane_beat_layout(params)`
        The segments, one after the other; all but `beat` is the same in all beats of one.
    discard, discard_frame : In
        For one cycle: the data of this frame's segments no longer matters.
    answers : Out, stream of 1 bit
        Whether a segment has been stored, in the order in which they were taken.
    memory : Out, `axi4_write`
        Bursts of whole beats from the start of a segment. The CRC is on WUSER in the last beat, 0 before.

    Latency and throughput
    ----------------------
    A beat a cycle. AWVALID follows two cycles behind the last beat of a segment, WVALID one later. An answer follows
    one cycle behind BVALID.

    Ordering and stalls
    -------------------
    AW and W are in the order of `beats`. Each burst in flight has an ID of its own, given in turn: they may be
    answered in any order. BREADY is always high. At most `params.write_bursts` bursts have an answer that is not taken.

    Reset and errors
    ----------------
    Reset forgets all; the channel has to be reset too. SLVERR and DECERR make the answer 0. Discarded segments are
    written with all strobes off, from the next beat on; their answers come as usual.

    Invariants
    ----------
    Part of 10: each segment is answered once, given that memory answers each burst.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "beats": In(stream.Signature(lane_beat_layout(params))),
                "discard": In(1),
                "discard_frame": In(frame_bits(params)),
                "answers": Out(stream.Signature(1)),
                "memory": Out(axi4_write(**write_widths(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, memory, beats = self._params, self.memory, self.beats
        bursts, beat_bytes, ring = params.write_bursts, params.memory.beat_bytes, 2 * params.segment_beats
        m.submodules.ring = buffer = TwoPortSram(rows=ring, width=8 * beat_bytes)
        in_hand = beats.payload

        # Segments in the ring: a place each, taken in turn by filling, offering and sending.
        account = data.StructLayout(
            {
                "address": len(in_hand.address),
                "frame": len(in_hand.frame),
                "crc": crc32c.WIDTH,
                "last": range(params.segment_beats),
                "count": len(in_hand.beat.count),
            }
        )
        held = Array(Signal(account, name=f"held_{i}") for i in range(HELD))
        discarded = Array(Signal(name=f"discarded_{i}") for i in range(HELD))
        filling, offering, sending = (Signal(range(HELD), name=name) for name in ("filling", "offering", "sending"))
        places, unoffered, unsent = (Signal(range(HELD + 1), name=name) for name in ("places", "unoffered", "unsent"))
        level = Signal(range(ring + 1))
        unanswered = Signal(range(bursts + 1))
        filled, offered, sent, answered_one = (
            Signal(name=name) for name in ("filled", "offered", "sent", "answered_one")
        )
        take, send = Signal(), Signal()
        m.d.sync += [
            places.eq(places + filled - sent),
            unoffered.eq(unoffered + filled - offered),
            unsent.eq(unsent + offered - sent),
            level.eq(level + take - send),
            unanswered.eq(unanswered + offered - answered_one),
        ]

        # Filling.
        write_row, read_row = Signal(range(ring)), Signal(range(ring))
        beat = Signal(range(params.segment_beats))
        m.d.comb += [
            beats.ready.eq((places != HELD) & (level != ring)),
            take.eq(beats.valid & beats.ready),
            filled.eq(take & in_hand.beat.last),
            buffer.write.eq(take),
            buffer.write_address.eq(write_row),
            buffer.write_data.eq(in_hand.beat.data),
        ]
        for i in range(HELD):
            with m.If(self.discard & (held[i].frame == self.discard_frame)):
                m.d.sync += discarded[i].eq(1)
        with m.If(take):
            place = held[filling]
            m.d.sync += [
                write_row.eq(write_row + 1),
                beat.eq(Mux(in_hand.beat.last, 0, beat + 1)),
                filling.eq(filling + in_hand.beat.last),
                place.address.eq(in_hand.address),
                place.frame.eq(in_hand.frame),
                place.crc.eq(in_hand.crc),
                place.last.eq(beat),
                place.count.eq(in_hand.beat.count),
            ]
            with m.If(beat == 0):
                m.d.sync += discarded[filling].eq(self.discard & (self.discard_frame == in_hand.frame))

        # AW.
        m.d.comb += [
            offered.eq((unoffered != 0) & (unanswered != bursts) & (~memory.awvalid | memory.awready)),
            memory.awsize.eq(exact_log2(beat_bytes)),
            memory.awburst.eq(Burst.INCR),
        ]
        next_id = Signal(range(bursts))
        with m.If(offered):
            m.d.sync += [
                memory.awvalid.eq(1),
                memory.awid.eq(next_id),
                memory.awaddr.eq(held[offering].address),
                memory.awlen.eq(held[offering].last),
                next_id.eq(Mux(next_id == bursts - 1, 0, next_id + 1)),
                offering.eq(offering + 1),
            ]
        with m.Elif(memory.awready):
            m.d.sync += memory.awvalid.eq(0)

        # W: what the ring was read for stays on its output until it is taken.
        place = held[sending]
        sent_beat = Signal.like(beat)
        last = Signal()
        strobes = Cat(i < place.count for i in range(beat_bytes)) | (~last).replicate(beat_bytes)
        m.d.comb += [
            send.eq((unsent != 0) & (~memory.wvalid | memory.wready)),
            last.eq(sent_beat == place.last),
            sent.eq(send & last),
            buffer.read.eq(send),
            buffer.read_address.eq(read_row),
            memory.wdata.eq(buffer.read_data),
        ]
        with m.If(send):
            m.d.sync += [
                memory.wvalid.eq(1),
                memory.wlast.eq(last),
                memory.wstrb.eq(Mux(discarded[sending], 0, strobes)),
                memory.wuser.eq(Mux(last, place.crc, 0)),
                read_row.eq(read_row + 1),
                sent_beat.eq(Mux(last, 0, sent_beat + 1)),
                sending.eq(sending + last),
            ]
        with m.Elif(memory.wready):
            m.d.sync += memory.wvalid.eq(0)

        # B: answers wait for those of the IDs before.
        answered = Array(Signal(name=f"answered_{i}") for i in range(bursts))
        good = Array(Signal(name=f"good_{i}") for i in range(bursts))
        oldest = Signal(range(bursts))
        m.d.comb += [
            memory.bready.eq(1),
            self.answers.valid.eq(answered[oldest]),
            self.answers.payload.eq(good[oldest]),
            answered_one.eq(self.answers.valid & self.answers.ready),
        ]
        with m.If(memory.bvalid):
            m.d.sync += [
                answered[memory.bid].eq(1),
                good[memory.bid].eq(~is_error(memory.bresp)),
            ]
        with m.If(answered_one):
            m.d.sync += [
                answered[oldest].eq(0),
                oldest.eq(Mux(oldest == bursts - 1, 0, oldest + 1)),
            ]
        return m
