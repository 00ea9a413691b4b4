"""Write data as it arrives: put into shape, measured, and its CRC computed."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.layouts import beat_layout
from hw.rtl.node.port.layouts import arrival_layout
from hw.rtl.queue import Queue
from hw.rtl.transform import Crc32c


class Arrivals(wiring.Component):
    """Watches the data that enters a port's buffer.

    Parameters
    ----------
    params
        Beat and segment.
    buffer
        Flits of the buffer: no more segments than that are ever in it.

    Interface
    ---------
    valid, beat : In
        A beat arrives; it is always taken.
    shaped : Out, `beat_layout(beat_bytes)`
        The beat as it goes into the buffer, in the same cycle: no segment is longer than `segment_beats`, and only its
        last beat is short.
    segments : Out, stream of `arrival_layout(params)`
        Each segment, once it is here.

    Latency and throughput
    ----------------------
    A beat a cycle; a segment is told log2(beat_bytes) + 3 cycles after its last beat.

    Ordering and stalls
    -------------------
    In order. Never stalls, as long as `segments` are taken no later than they leave the buffer.

    Reset and errors
    ----------------
    Reset forgets the segment under way. A beat without `last` at the end of a whole segment ends it, a number of bytes
    that is 0 or too large, or short before the end, is taken as a whole beat: sender and SEAL then differ in the CRC.

    Invariants and counters
    -----------------------
    Part of 2. None.
    """

    def __init__(self, params: Params, *, buffer: int):
        self._params = params
        self._buffer = buffer
        beat = beat_layout(params.memory.beat_bytes)
        super().__init__(
            {
                "valid": In(1),
                "beat": In(beat),
                "shaped": Out(beat),
                "segments": Out(stream.Signature(arrival_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, size = self._params, self._params.memory.beat_bytes
        beat, shaped = self.beat, self.shaped
        number = Signal(range(params.segment_beats))
        short = (beat.count != 0) & (beat.count < size)
        m.d.comb += [
            shaped.data.eq(beat.data),
            shaped.last.eq(beat.last | (number == params.segment_beats - 1)),
            shaped.count.eq(Mux(shaped.last & short, beat.count, size)),
        ]
        with m.If(self.valid):
            m.d.sync += number.eq(Mux(shaped.last, 0, number + 1))

        m.submodules.crc = crc = Crc32c(beat_bytes=size)
        m.submodules.crcs = crcs = Queue(crc.crcs.payload.shape(), depth=self._buffer)
        m.submodules.lengths = lengths = Queue(self.segments.payload.length.shape(), depth=self._buffer)
        wiring.connect(m, crc.crcs, crcs.i)
        m.d.comb += [
            crc.beats.valid.eq(self.valid),
            crc.beats.payload.eq(shaped),
            lengths.i.valid.eq(self.valid & shaped.last),
            lengths.i.payload.eq(number * size + shaped.count),
            self.segments.valid.eq(crcs.o.valid & lengths.o.valid),
            self.segments.payload.length.eq(lengths.o.payload),
            self.segments.payload.crc.eq(crcs.o.payload),
            crcs.o.ready.eq(self.segments.valid & self.segments.ready),
            lengths.o.ready.eq(self.segments.valid & self.segments.ready),
        ]
        return m
