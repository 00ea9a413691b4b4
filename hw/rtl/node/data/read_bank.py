"""Buffers of the segments that one port reads from one channel."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params, crc32c
from hw.rtl.node.data.layouts import bank_beat_layout, read_id_layout
from hw.rtl.shared import shared
from hw.rtl.two_port_sram import TwoPortSram


@shared
class ReadBank(wiring.Component):
    """A ring of segment buffers: claimed in order, filled in any order, emptied in order.

    Beats leave as they come: a segment need not be complete.

    Parameters
    ----------
    params
        Section `memory`; `read_segments` is the number of buffers.

    Interface
    ---------
    free, slot : Out
        Whether there is a free buffer, and the one that is claimed next.
    claim : In(1)
        The next buffer is claimed: a read into it is under way.
    fills : In, stream of slot and `bank_beat_layout(params)`, always ready
        The beats as they come from memory, in order for each slot.
    beats : Out, stream of `bank_beat_layout(params)`
        The beats in the order of the claims.

    Latency and throughput
    ----------------------
    A beat a cycle, in and out; two cycles from one to the other.

    Ordering and stalls
    -------------------
    As above. A buffer is free again when its last beat has been read, which `beats` may still hold.

    Reset and errors
    ----------------
    Reset frees all. `error` in any beat of a segment is told in its last. `claim` without `free`, and beats for a slot
    that is not claimed, are the user's errors.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        slot = read_id_layout(params)["slot"].shape
        super().__init__(
            {
                "free": Out(1),
                "slot": Out(slot),
                "claim": In(1),
                "fills": In(
                    stream.Signature(
                        data.StructLayout({"slot": slot, "beat": bank_beat_layout(params)}), always_ready=True
                    )
                ),
                "beats": Out(stream.Signature(bank_beat_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots, longest = self._params.read_segments, self._params.segment_beats
        beats = self.beats
        m.submodules.rows = rows = TwoPortSram(rows=slots * longest, width=8 * self._params.memory.beat_bytes)
        trailer = data.StructLayout({"crc": crc32c.WIDTH, "error": 1})
        m.submodules.trailers = trailers = memory.Memory(shape=trailer, depth=slots, init=[])
        note, recall = trailers.write_port(), trailers.read_port()

        there = Array(Signal(range(longest + 1), name=f"there_{i}") for i in range(slots))
        complete = Array(Signal(name=f"complete_{i}") for i in range(slots))
        error = Array(Signal(name=f"error_{i}") for i in range(slots))
        place = Signal(range(longest + 1))  # in the buffer that is emptied
        beat_bits = exact_log2(longest)

        slot, beat = self.fills.payload.slot, self.fills.payload.beat
        any_error = error[slot] | beat.error
        m.d.comb += [
            rows.write.eq(self.fills.valid),
            rows.write_address.eq(slot << beat_bits | there[slot][:beat_bits]),
            rows.write_data.eq(beat.data),
            note.en.eq(self.fills.valid & beat.last),
            note.addr.eq(slot),
            note.data.crc.eq(beat.crc),
            note.data.error.eq(any_error),
        ]
        with m.If(self.fills.valid):
            m.d.sync += [
                there[slot].eq(there[slot] + 1),
                complete[slot].eq(beat.last),
                error[slot].eq(any_error),
            ]

        oldest = Signal.like(self.slot)
        read, last, release = Signal(), Signal(), Signal()
        next_place = Signal.like(place)
        read_last = Signal()
        m.d.comb += [
            read.eq((there[oldest] != place) & (~beats.valid | beats.ready)),
            next_place.eq(place + 1),
            last.eq(complete[oldest] & (there[oldest] == next_place)),
            release.eq(read & last),
            rows.read.eq(read),
            rows.read_address.eq(Cat(place[:beat_bits], oldest)),
            recall.en.eq(read),
            recall.addr.eq(oldest),
            beats.payload.data.eq(rows.read_data),
            beats.payload.last.eq(read_last),
            beats.payload.crc.eq(recall.data.crc),
            beats.payload.error.eq(recall.data.error),
        ]
        with m.If(read):
            m.d.sync += [beats.valid.eq(1), read_last.eq(last), place.eq(next_place)]
        with m.Elif(beats.ready):
            m.d.sync += beats.valid.eq(0)
        with m.If(release):
            m.d.sync += [
                place.eq(0),
                there[oldest].eq(0),
                complete[oldest].eq(0),
                error[oldest].eq(0),
                oldest.eq(Mux(oldest == slots - 1, 0, oldest + 1)),
            ]

        claimed = Signal(range(slots + 1))
        m.d.comb += self.free.eq(claimed != slots)
        m.d.sync += claimed.eq(claimed + self.claim - release)
        with m.If(self.claim):
            m.d.sync += self.slot.eq(Mux(self.slot == slots - 1, 0, self.slot + 1))
        return m
