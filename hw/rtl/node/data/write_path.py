"""Writes: accepted segments to the channels that they belong on, and what memory says of them to the core."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.striping import Striping
from hw.rtl.axi import axi4_write
from hw.rtl.layouts import beat_layout, frame_bits
from hw.rtl.node.data.layouts import landed_layout, lane_beat_layout, write_segment_layout, write_widths
from hw.rtl.node.data.striping import address_of, channel_of, first_number
from hw.rtl.node.data.write_lane import HELD, WriteLane
from hw.rtl.queue import Queue


class WritePath(wiring.Component):
    """Writes accepted segments, and reports per frame how many have landed.

    Parameters
    ----------
    params
        Section `memory`, and what `hw.params.striping` needs.

    Interface
    ---------
    segments : In, stream of `write_segment_layout(params)`
        Which segment comes next. Its CRC is known before its data is taken: whoever feeds this has it all.
    beats : In, stream of `beat_layout(beat_bytes)`
        The data, in the order of `segments`. The length of a segment follows from its beats.
    discards : In, stream of frame numbers, always ready
        The block in this frame has been abandoned: what has been taken of it is finished with strobes off from the
        next beat on. What is taken later is written as usual.
    landed : Out, stream of `landed_layout(params)`
        What memory has answered.
    memory : Out, `axi4_write`, one a channel
        As in `WriteLane`.

    Latency and throughput
    ----------------------
    A beat a cycle, over all channels. AWVALID comes two cycles after the last beat of a segment was taken, `landed`
    two cycles after BVALID.

    Ordering and stalls
    -------------------
    No burst begins before all its beats are there: the path never stalls a data channel within a burst. A channel that
    stalls holds up the others only when its two segments of buffer, or its IDs, are used up and the next segment is
    for it.

    `landed` is in the order of `segments`, over all frames: an answer waits for those of all segments before. While an
    entry is not taken, answers for the same frame behind it are joined into one, up to and including one that is not
    `ok`. Nothing is dropped, whatever `landed` does: without it, the IDs run out and the inputs stop.

    Reset and errors
    ----------------
    Reset forgets all; the channels have to be reset too. SLVERR or DECERR ends an entry of `landed` without `ok`, its
    last segment being the one that failed. A segment of more than `segment_beats` beats, of no bytes, or with a short
    beat before the last, is the initiator's error.

    Invariants
    ----------
    Part of 9 and 10: a segment has landed when memory has acknowledged it, and every segment does or is reported.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        channels = params.memory.channels
        super().__init__(
            {
                "segments": In(stream.Signature(write_segment_layout(params))),
                "beats": In(stream.Signature(beat_layout(params.memory.beat_bytes))),
                "discards": In(stream.Signature(frame_bits(params), always_ready=True)),
                "landed": Out(stream.Signature(landed_layout(params))),
                "memory": Out(axi4_write(**write_widths(params))).array(channels),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        stripes = Striping(params)
        lanes = []
        for i in range(params.memory.channels):
            m.submodules[f"lane_{i}"] = lane = WriteLane(params)
            wiring.connect(m, lane.memory, wiring.flipped(self.memory[i]))
            m.d.comb += [lane.discard.eq(self.discards.valid), lane.discard_frame.eq(self.discards.payload)]
            lanes.append(lane)

        # Where a segment goes: number of its frame's first segment, its own number, its place.
        to_lane = {name: field.shape for name, field in lane_beat_layout(params) if name != "beat"}
        places = data.StructLayout(to_lane | {"channel": stripes.channel_bits})
        m.submodules.places = place_queue = Queue(places, depth=2)
        first_valid, number_valid = Signal(), Signal()
        first, number = Signal(stripes.number_bits), Signal(stripes.number_bits)
        first_segment = Signal(write_segment_layout(params))
        frame, crc = Signal.like(first_segment.frame), Signal.like(first_segment.crc)
        move = Signal()
        m.d.comb += [move.eq(~number_valid | place_queue.i.ready), self.segments.ready.eq(~first_valid | move)]
        with m.If(move):
            m.d.sync += [
                number_valid.eq(first_valid),
                number.eq(first + first_segment.segment),
                frame.eq(first_segment.frame),
                crc.eq(first_segment.crc),
            ]
        with m.If(self.segments.ready):
            m.d.sync += [
                first_valid.eq(self.segments.valid),
                first.eq(first_number(m, stripes, self.segments.payload.frame)),
                first_segment.eq(self.segments.payload),
            ]
        channel = Signal(stripes.channel_bits)
        m.d.comb += [
            channel.eq(channel_of(stripes, number)),
            place_queue.i.valid.eq(number_valid),
            place_queue.i.payload.address.eq(address_of(stripes, number)),
            place_queue.i.payload.channel.eq(channel),
            place_queue.i.payload.frame.eq(frame),
            place_queue.i.payload.crc.eq(crc),
        ]

        # The beats of a segment go to its lane.
        place = place_queue.o.payload
        ready, filled = Signal(), Signal()
        m.d.comb += [
            self.beats.ready.eq(place_queue.o.valid & ready),
            filled.eq(self.beats.valid & self.beats.ready & self.beats.payload.last),
            place_queue.o.ready.eq(filled),
        ]
        for i, lane in enumerate(lanes):
            taken = lane.beats.payload
            m.d.comb += [
                taken.beat.eq(self.beats.payload),
                taken.address.eq(place.address),
                taken.frame.eq(place.frame),
                taken.crc.eq(place.crc),
            ]
            with m.If(place.channel == i):
                m.d.comb += [lane.beats.valid.eq(place_queue.o.valid & self.beats.valid), ready.eq(lane.beats.ready)]

        # Segments without an answer; there is room for all that the lanes can have.
        entry = data.StructLayout({"frame": frame_bits(params), "channel": stripes.channel_bits})
        m.submodules.order = order = Queue(entry, depth=len(lanes) * (HELD + params.write_bursts))
        m.d.comb += [
            order.i.valid.eq(filled),
            order.i.payload.frame.eq(place.frame),
            order.i.payload.channel.eq(place.channel),
        ]
        oldest = order.o.payload
        answered, good, take = Signal(), Signal(), Signal()
        m.d.comb += order.o.ready.eq(take)
        for i, lane in enumerate(lanes):
            with m.If(order.o.valid & (oldest.channel == i)):
                m.d.comb += [
                    answered.eq(lane.answers.valid),
                    good.eq(lane.answers.payload),
                    lane.answers.ready.eq(take),
                ]
        self._report(m, answered, oldest.frame, good, take)
        return m

    def _report(self, m: Module, answered: Signal, frame: Signal, good: Signal, take: Signal) -> None:
        """Put answers into `landed`, and join those that come while it stands."""
        landed = self.landed
        joined = Signal(landed_layout(self._params))
        joining = Signal()
        alike = Signal()
        m.d.comb += alike.eq((joined.frame == frame) & joined.ok)
        with m.If(~landed.valid | landed.ready):
            m.d.sync += [landed.valid.eq(joining | answered), joining.eq(joining & answered)]
            m.d.comb += take.eq(answered)
            with m.If(joining):
                m.d.sync += landed.payload.eq(joined)
                _start(m, joined, frame, good)
            with m.Else():
                _start(m, landed.payload, frame, good)
        with m.Elif(answered & ~joining):
            m.d.comb += take.eq(1)
            m.d.sync += joining.eq(1)
            _start(m, joined, frame, good)
        with m.Elif(answered & alike):
            m.d.comb += take.eq(1)
            m.d.sync += [joined.count.eq(joined.count + 1), joined.ok.eq(good)]


def _start(m: Module, entry: data.View, frame: Signal, good: Signal) -> None:
    """An entry of one segment."""
    m.d.sync += [entry.frame.eq(frame), entry.count.eq(1), entry.ok.eq(good)]
