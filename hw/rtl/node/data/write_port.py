"""The writes of one port: spread over the channels, and what memory says of them put in order."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.striping import Striping
from hw.rtl.layouts import beat_layout, frame_bits
from hw.rtl.node.data.layouts import landed_layout, lane_beat_layout, write_segment_layout
from hw.rtl.node.data.striping import address_of, channel_of, first_number
from hw.rtl.queue import Queue
from hw.rtl.shared import shared


@shared
class WritePort(wiring.Component):
    """Sends each segment to the channel that it belongs on, and reports per frame how many have landed.

    Parameters
    ----------
    params
        Section `memory`, and what `hw.params.striping` needs.

    Interface
    ---------
    segments : In, stream of `write_segment_layout(params)`
        Which segment comes next. Its CRC is known before its data is taken: whoever feeds this has it all.
    beats : In, stream of `beat_layout(beat_bytes)`
        The data, in the order of `segments`.
    lane_beats : Out, stream of `lane_beat_layout(params)`, one a channel
        The segments, each for its channel.
    lane_answers : In, stream of 1 bit, one a channel
        Whether they have been stored, in order for each channel.
    landed : Out, stream of `landed_layout(params)`
        What memory has answered; while it is not taken, its `count` and `ok` may change.

    Latency and throughput
    ----------------------
    A beat is given to its lane in the cycle in which it is taken, two cycles behind its segment at the earliest;
    `landed` comes in the cycle in which a lane gives the answer. A beat, a segment and an answer a cycle.

    Ordering and stalls
    -------------------
    Segments in order. One whose lane has no buffer for it stops those behind it.

    `landed` is in the order of `segments`: an answer waits for those of all segments before, of this port alone. The
    lanes keep the answers of each port by themselves, so the one that is waited for is always the first of its lane:
    ports cannot wait for each other in a circle. While an entry is not taken, answers for the same frame behind it are
    joined with it, up to and including one that is not `ok`. Nothing is dropped, whatever `landed` does: without it,
    the IDs run out and the inputs stop.

    Reset and errors
    ----------------
    Reset forgets all; lanes have to be reset too. An error ends an entry of `landed` without `ok`, its last segment
    being the one that failed.

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
                "lane_beats": Out(stream.Signature(lane_beat_layout(params))).array(channels),
                "lane_answers": In(stream.Signature(1)).array(channels),
                "landed": Out(stream.Signature(landed_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        stripes = Striping(params)
        to_lane = {name: field.shape for name, field in lane_beat_layout(params) if name != "beat"}
        m.submodules.places = places = Queue(data.StructLayout(to_lane | {"channel": stripes.channel_bits}), depth=2)
        self._place(m, stripes, places)

        # The beats of a segment go to its lane.
        place = places.o.payload
        ready, filled = Signal(), Signal()
        m.d.comb += [
            self.beats.ready.eq(places.o.valid & ready),
            filled.eq(self.beats.valid & self.beats.ready & self.beats.payload.last),
            places.o.ready.eq(filled),
        ]
        for i, lane in enumerate(self.lane_beats):
            m.d.comb += [
                lane.payload.beat.eq(self.beats.payload),
                *(lane.payload[name].eq(place[name]) for name in to_lane),
            ]
            with m.If(place.channel == i):
                m.d.comb += [lane.valid.eq(places.o.valid & self.beats.valid), ready.eq(lane.ready)]

        # Segments without an answer; there is room for all that the lanes can have.
        entry = data.StructLayout({"frame": frame_bits(params), "channel": stripes.channel_bits})
        unanswered = params.memory.channels * (params.write_buffers + params.write_bursts)
        m.submodules.order = order = Queue(entry, depth=unanswered)
        m.d.comb += [
            order.i.valid.eq(filled),
            order.i.payload.frame.eq(place.frame),
            order.i.payload.channel.eq(place.channel),
        ]
        oldest = order.o.payload
        answered, good, take = Signal(), Signal(), Signal()
        m.d.comb += order.o.ready.eq(take)
        for i, lane in enumerate(self.lane_answers):
            with m.If(order.o.valid & (oldest.channel == i)):
                m.d.comb += [answered.eq(lane.valid), good.eq(lane.payload), lane.ready.eq(take)]
        self._report(m, answered, oldest.frame, good, take)
        return m

    def _place(self, m: Module, stripes: Striping, places: Queue) -> None:
        """Work out where a segment goes: number of its frame's first segment, its own number, its place."""
        first_valid, number_valid = Signal(), Signal()
        first, number = Signal(stripes.number_bits), Signal(stripes.number_bits)
        first_segment = Signal(write_segment_layout(self._params))
        frame, crc = Signal.like(first_segment.frame), Signal.like(first_segment.crc)
        move = Signal()
        m.d.comb += [move.eq(~number_valid | places.i.ready), self.segments.ready.eq(~first_valid | move)]
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
            places.i.valid.eq(number_valid),
            places.i.payload.address.eq(address_of(stripes, number)),
            places.i.payload.channel.eq(channel),
            places.i.payload.frame.eq(frame),
            places.i.payload.crc.eq(crc),
        ]

    def _report(self, m: Module, answered: Signal, frame: Signal, good: Signal, take: Signal) -> None:
        """Put answers into `landed`, and join those that come while it stands."""
        landed = self.landed
        joined, fresh = Signal(landed_layout(self._params)), Signal(landed_layout(self._params))
        joining, alike = Signal(), Signal()
        m.d.comb += [
            fresh.frame.eq(frame),
            fresh.count.eq(1),
            fresh.ok.eq(good),
            alike.eq((joined.frame == frame) & joined.ok),
            landed.valid.eq(joining | answered),
            landed.payload.eq(Mux(joining, joined, fresh)),
        ]
        with m.If(landed.ready | ~joining):
            m.d.comb += take.eq(answered)
            m.d.sync += [joining.eq(answered & (joining | ~landed.ready)), joined.eq(fresh)]
        with m.Elif(answered & alike):
            m.d.comb += take.eq(1)
            m.d.sync += [joined.count.eq(joined.count + 1), joined.ok.eq(good)]
