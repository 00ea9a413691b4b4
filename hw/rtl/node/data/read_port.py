"""The READs of one port: split over the channels, put together again, checked."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, crc32c
from hw.params.striping import Striping
from hw.rtl.layouts import beat_layout
from hw.rtl.node.data.layouts import (
    bank_beat_layout,
    lane_read_layout,
    read_beat_layout,
    read_done_layout,
    read_plan_layout,
)
from hw.rtl.node.data.striping import address_of, channel_of
from hw.rtl.queue import Queue
from hw.rtl.shared import shared
from hw.rtl.transform import Crc32c

ELASTIC = 16
"""Beats that can wait for the CRC of their segment: more than the 11 cycles that it takes with 128-byte beats."""


@shared
class ReadPort(wiring.Component):
    """Streams the segments of READs, one READ after the other.

    Beats pass a queue on their way out while the CRC32C unit looks at them; only the last of a segment waits for its
    CRC. Once the queue has filled to that latency, nothing waits.

    Parameters
    ----------
    params
        Section `memory`, and what `hw.params.striping` needs.

    Interface
    ---------
    reads : In, stream of `read_plan_layout(params)`
        The READs.
    lane_reads : Out, stream of `lane_read_layout(params)`, one a channel
        The segments, each asked of its channel.
    lane_beats : In, stream of `bank_beat_layout(params)`, one a channel
        The beats of what was asked, in order for each channel.
    beats : Out, stream of `read_beat_layout(params)`
        The beats of the READs.
    done : Out, stream of `read_done_layout(params)`
        The end of each READ, after its last beat was taken.

    Latency and throughput
    ----------------------
    One cycle from a READ to the request of its first segment, none from a lane's beat to `beats`; the last beat of a
    segment comes log2(beat_bytes) + 4 cycles behind that of the lane at the earliest. A beat a cycle, and a segment a
    cycle.

    Ordering and stalls
    -------------------
    READs in order, segments of a READ in order, beats of a segment together. A segment that its channel does not take
    yet holds up the next one for that channel, and none for another. A stalled `beats` stops this port alone:
    its buffers fill, and its requests stop. An end not taken stops the next READ before its last beat.

    Reset and errors
    ----------------
    Reset forgets all READs. A segment that memory marked as bad, or whose CRC is not the one stored with it, is
    streamed with `ok` 0, the rest of its READ as usual; its READ ends without `ok`.

    Invariants
    ----------
    Part of 2: bytes that are not those stored are never `ok`.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        channels = params.memory.channels
        super().__init__(
            {
                "reads": In(stream.Signature(read_plan_layout(params))),
                "lane_reads": Out(stream.Signature(lane_read_layout(params))).array(channels),
                "lane_beats": In(stream.Signature(bank_beat_layout(params))).array(channels),
                "beats": Out(stream.Signature(read_beat_layout(params))),
                "done": Out(stream.Signature(read_done_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        stripes = Striping(params)
        beat = read_beat_layout(params)
        common = {"frame": read_done_layout(params)["frame"].shape} | {
            name: beat[name].shape for name in ("count", "segment", "end", "stamp", "tag")
        }
        m.submodules.order = order = Queue(
            data.StructLayout(common | {"channel": stripes.channel_bits}),
            depth=params.memory.channels * (params.read_segments + 1),
        )
        m.submodules.elastic = elastic = Queue(
            data.StructLayout(common | {"data": beat["data"].shape, "last": 1}), depth=ELASTIC, passing=True
        )
        m.submodules.verdicts = verdicts = Queue(data.StructLayout({"ok": 1, "crc": crc32c.WIDTH}), depth=ELASTIC)
        self._ask(m, stripes, order)
        self._collect(m, order, elastic, verdicts)
        self._stream(m, elastic, verdicts)
        return m

    def _ask(self, m: Module, stripes: Striping, order: Queue) -> None:
        """Split READs into segments, note their order, and ask each of its channel, which has one place to wait."""
        params = self._params
        m.submodules.waiting = waiting = Queue(
            read_plan_layout(params), depth=params.memory.waiting_reads, passing=True
        )
        wiring.connect(m, wiring.flipped(self.reads), waiting.i)

        plan, entry = waiting.o.payload, order.i.payload
        begun = Signal()
        number, segment, left = Signal.like(plan.number), Signal.like(plan.segment), Signal.like(plan.count)
        number_now, segment_now, left_now = (Signal.like(signal) for signal in (number, segment, left))
        free, step, end = Signal(), Signal(), Signal()
        channel, request = Signal(stripes.channel_bits), Signal(lane_read_layout(params))
        m.d.comb += [
            number_now.eq(Mux(begun, number, plan.number)),
            segment_now.eq(Mux(begun, segment, plan.segment)),
            left_now.eq(Mux(begun, left, plan.count)),
            end.eq(left_now == 1),
            step.eq(waiting.o.valid & order.i.ready & free),
            waiting.o.ready.eq(step & end),
            order.i.valid.eq(step),
            entry.frame.eq(plan.frame),
            entry.count.eq(Mux(end, plan.bytes, params.memory.beat_bytes)),
            entry.segment.eq(segment_now),
            entry.end.eq(end),
            entry.stamp.eq(plan.stamp),
            entry.tag.eq(plan.tag),
            entry.channel.eq(channel),
            channel.eq(channel_of(stripes, number_now)),
            request.address.eq(address_of(stripes, number_now)),
            request.last.eq(Mux(end, plan.last, params.segment_beats - 1)),
        ]
        with m.If(step):
            m.d.sync += [
                begun.eq(~end),
                number.eq(number_now + 1),
                segment.eq(segment_now + 1),
                left.eq(left_now - 1),
            ]
        for i, lane in enumerate(self.lane_reads):
            with m.If(lane.ready):
                m.d.sync += lane.valid.eq(0)
            with m.If(channel == i):
                m.d.comb += free.eq(~lane.valid | lane.ready)
                with m.If(step):
                    m.d.sync += [lane.valid.eq(1), lane.payload.eq(request)]

    def _collect(self, m: Module, order: Queue, elastic: Queue, verdicts: Queue) -> None:
        """Take the beats of the segment whose turn it is, and check its CRC.

        `verdicts` and `expected` have at most an entry for each last beat in `elastic`, so they have room.
        """
        crc_unit = Crc32c(beat_bytes=self._params.memory.beat_bytes)
        m.submodules.crc = crc_unit
        m.submodules.expected = expected = Queue(data.StructLayout({"crc": crc32c.WIDTH, "error": 1}), depth=ELASTIC)
        entry, beat = order.o.payload, Signal(bank_beat_layout(self._params))
        valid, move = Signal(), Signal()
        for i, lane in enumerate(self.lane_beats):
            with m.If(order.o.valid & (entry.channel == i)):
                m.d.comb += [beat.eq(lane.payload), valid.eq(lane.valid), lane.ready.eq(elastic.i.ready)]

        count = Mux(beat.last, entry.count, self._params.memory.beat_bytes)
        same = ("frame", "segment", "end", "stamp", "tag")
        checked_valid, checked = Signal(), Signal(beat_layout(self._params.memory.beat_bytes))
        m.d.sync += [
            checked_valid.eq(move),
            checked.data.eq(beat.data),
            checked.last.eq(beat.last),
            checked.count.eq(count),
        ]
        m.d.comb += [
            move.eq(valid & elastic.i.ready),
            order.o.ready.eq(move & beat.last),
            elastic.i.valid.eq(valid),
            *(elastic.i.payload[name].eq(entry[name]) for name in same),
            elastic.i.payload.data.eq(beat.data),
            elastic.i.payload.last.eq(beat.last),
            elastic.i.payload.count.eq(count),
            crc_unit.beats.valid.eq(checked_valid),
            crc_unit.beats.payload.eq(checked),
            crc_unit.crcs.ready.eq(1),
            expected.i.valid.eq(move & beat.last),
            expected.i.payload.crc.eq(beat.crc),
            expected.i.payload.error.eq(beat.error),
            expected.o.ready.eq(crc_unit.crcs.valid),
            verdicts.i.valid.eq(crc_unit.crcs.valid),
            verdicts.i.payload.ok.eq((crc_unit.crcs.payload == expected.o.payload.crc) & ~expected.o.payload.error),
            verdicts.i.payload.crc.eq(crc_unit.crcs.payload),
        ]

    def _stream(self, m: Module, elastic: Queue, verdicts: Queue) -> None:
        """Put the trailer into the last beat of each segment, and tell the end of each READ."""
        beats, done = self.beats, self.done
        beat, trailer = elastic.o.payload, Signal(verdicts.o.p.shape())
        same = ("data", "count", "last", "segment", "end", "stamp", "tag")
        m.d.comb += [
            trailer.eq(Mux(beat.last, verdicts.o.payload, 0)),
            beats.valid.eq(elastic.o.valid & (~beat.last | (verdicts.o.valid & ~(beat.end & done.valid)))),
            *(beats.payload[name].eq(beat[name]) for name in same),
            beats.payload.ok.eq(trailer.ok),
            beats.payload.crc.eq(trailer.crc),
            elastic.o.ready.eq(beats.valid & beats.ready),
            verdicts.o.ready.eq(elastic.o.ready & beat.last),
        ]
        good = Signal(init=1)
        with m.If(done.ready):
            m.d.sync += done.valid.eq(0)
        with m.If(verdicts.o.ready):
            m.d.sync += good.eq(beat.end | (good & trailer.ok))
            with m.If(beat.end):
                m.d.sync += [
                    done.valid.eq(1),
                    done.payload.frame.eq(beat.frame),
                    done.payload.stamp.eq(beat.stamp),
                    done.payload.tag.eq(beat.tag),
                    done.payload.ok.eq(good & trailer.ok),
                ]
