"""Buffers of the segments that one port writes to one channel."""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, crc32c
from hw.rtl.layouts import frame_bits
from hw.rtl.node.data.layouts import lane_beat_layout, write_answer_layout, write_beat_layout, write_burst_layout
from hw.rtl.shared import shared
from hw.rtl.two_port_sram import TwoPortSram


@shared
class WriteBank(wiring.Component):
    """A ring of segment buffers, emptied in order, and the answers of memory, put in that order.

    A segment is offered as a burst when all its beats are here. Its buffer is free when the last has been sent, its ID
    when its answer has been taken.

    Parameters
    ----------
    params
        Section `memory`; `write_buffers` is the number of buffers, `write_bursts` that of IDs.

    Interface
    ---------
    beats : In, stream of `lane_beat_layout(params)`
        The segments, one after the other; all but `beat` is the same in all beats of one.
    discard, discard_frame : In
        For one cycle: the data of this frame's segments no longer matters.
    bursts : Out, stream of `write_burst_layout(params)`
        The segments that are here, in order.
    waiting : Out
        How many they are.
    send : In(1)
        The next beat of the bursts that have been taken is read.
    ends : Out(1)
        It is the last of its burst.
    beat : Out, `write_beat_layout(params)`
        What was read last.
    answered : In, stream of `write_answer_layout(params)`, always ready
        What memory has answered.
    answers : Out, stream of 1 bit
        Whether a segment has been stored, in the order of `beats`.

    Latency and throughput
    ----------------------
    A beat a cycle, in and out. A burst is offered in the cycle after its last beat came; its first beat can be read one
    later, and is there one after that. An answer follows one cycle behind memory's.

    Ordering and stalls
    -------------------
    Segments in order; memory may answer them in any. At most `params.write_bursts` have an answer that is not taken.

    Reset and errors
    ----------------
    Reset forgets all. Discarded segments are sent with all strobes off, from the next beat on; their answers come as
    usual. `send` without a burst that has been taken is the user's error.

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
                "bursts": Out(stream.Signature(write_burst_layout(params))),
                "waiting": Out(range(params.write_buffers + 1)),
                "send": In(1),
                "ends": Out(1),
                "beat": Out(write_beat_layout(params)),
                "answered": In(stream.Signature(write_answer_layout(params), always_ready=True)),
                "answers": Out(stream.Signature(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, beats = self._params, self.beats
        buffers, longest, beat_bytes = params.write_buffers, params.segment_beats, params.memory.beat_bytes
        m.submodules.rows = rows = TwoPortSram(rows=buffers * longest, width=8 * beat_bytes)
        in_hand = beats.payload

        # A buffer each, taken in turn by filling, offering and sending.
        account = data.StructLayout(
            {
                "address": len(in_hand.address),
                "frame": len(in_hand.frame),
                "crc": crc32c.WIDTH,
                "last": range(longest),
                "count": len(in_hand.beat.count),
            }
        )
        held = Array(Signal(account, name=f"held_{i}") for i in range(buffers))
        discarded = Array(Signal(name=f"discarded_{i}") for i in range(buffers))
        filling, offering, sending = (Signal(range(buffers), name=name) for name in ("filling", "offering", "sending"))
        taken, unoffered = Signal(range(buffers + 1)), self.waiting
        take, filled, offered, sent = (Signal(name=name) for name in ("take", "filled", "offered", "sent"))
        m.d.sync += [taken.eq(taken + filled - sent), unoffered.eq(unoffered + filled - offered)]
        for place, moves in (filling, filled), (offering, offered), (sending, sent):
            with m.If(moves):
                m.d.sync += place.eq(_following(place, buffers))

        # Filling.
        beat_in = Signal(range(longest))
        m.d.comb += [
            beats.ready.eq(taken != buffers),
            take.eq(beats.valid & beats.ready),
            filled.eq(take & in_hand.beat.last),
            rows.write.eq(take),
            rows.write_address.eq(Cat(beat_in, filling)),
            rows.write_data.eq(in_hand.beat.data),
        ]
        for i in range(buffers):
            with m.If(self.discard & (held[i].frame == self.discard_frame)):
                m.d.sync += discarded[i].eq(1)
        with m.If(take):
            filled_account = held[filling]
            m.d.sync += [
                beat_in.eq(Mux(in_hand.beat.last, 0, beat_in + 1)),
                filled_account.address.eq(in_hand.address),
                filled_account.frame.eq(in_hand.frame),
                filled_account.crc.eq(in_hand.crc),
                filled_account.last.eq(beat_in),
                filled_account.count.eq(in_hand.beat.count),
            ]
            with m.If(beat_in == 0):
                m.d.sync += discarded[filling].eq(self.discard & (self.discard_frame == in_hand.frame))

        # Sending.
        beat_out = Signal(range(longest))
        sent_account = held[sending]
        strobes = Cat(i < sent_account.count for i in range(beat_bytes)) | (~self.ends).replicate(beat_bytes)
        m.d.comb += [
            self.ends.eq(beat_out == sent_account.last),
            sent.eq(self.send & self.ends),
            rows.read.eq(self.send),
            rows.read_address.eq(Cat(beat_out, sending)),
            self.beat.data.eq(rows.read_data),
        ]
        with m.If(self.send):
            m.d.sync += [
                beat_out.eq(Mux(self.ends, 0, beat_out + 1)),
                self.beat.last.eq(self.ends),
                self.beat.strobes.eq(Mux(discarded[sending], 0, strobes)),
                self.beat.crc.eq(Mux(self.ends, sent_account.crc, 0)),
            ]
        # IDs are given in turn, and free when the answer has been taken; memory may answer them in any order.
        bursts = params.write_bursts
        answered = Array(Signal(name=f"answered_{i}") for i in range(bursts))
        good = Array(Signal(name=f"good_{i}") for i in range(bursts))
        given, oldest = (Signal(range(bursts), name=name) for name in ("given", "oldest"))
        unanswered, told = Signal(range(bursts + 1)), Signal()
        offer, answer = self.bursts.payload, self.answered.payload
        m.d.comb += [
            self.bursts.valid.eq((unoffered != 0) & (unanswered != bursts)),
            offered.eq(self.bursts.valid & self.bursts.ready),
            offer.slot.eq(given),
            offer.address.eq(held[offering].address),
            offer.last.eq(held[offering].last),
            self.answers.valid.eq(answered[oldest]),
            self.answers.payload.eq(good[oldest]),
            told.eq(self.answers.valid & self.answers.ready),
        ]
        m.d.sync += unanswered.eq(unanswered + offered - told)
        with m.If(offered):
            m.d.sync += given.eq(_following(given, bursts))
        with m.If(self.answered.valid):
            m.d.sync += [answered[answer.slot].eq(1), good[answer.slot].eq(answer.ok)]
        with m.If(told):
            m.d.sync += [answered[oldest].eq(0), oldest.eq(_following(oldest, bursts))]
        return m


def _following(place: Signal, count: int) -> Value:
    """The place behind this one, in a circle of so many."""
    return Mux(place == count - 1, 0, place + 1)
