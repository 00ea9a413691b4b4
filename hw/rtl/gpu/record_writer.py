"""Records on their way to host memory."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params
from hw.rtl.gpu.layouts import record_layout, write_beat_layout, write_layout


class RecordWriter(wiring.Component):
    """Makes a burst of each record.

    Parameters
    ----------
    params
        Width of a beat.
    record
        Layout of a record; its size is a power of two, in bytes, of at least 16.

    Interface
    ---------
    records : In, stream of `record_layout(params, record)`
    bursts, beats : Out, streams of `write_layout(params)` and `write_beat_layout(params)`
        To a client of `HostWriter`.

    Latency and throughput
    ----------------------
    One cycle; a beat a cycle, so a record a cycle if it is no larger.

    Ordering and stalls
    -------------------
    In order. Stalls with `bursts` and `beats`, which do not wait for each other.

    Reset and errors
    ----------------
    Reset forgets the record in hand; the writer has to be reset too.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params, record: data.StructLayout):
        self._params = params
        self._record = record
        super().__init__(
            {
                "records": In(stream.Signature(record_layout(params, record))),
                "bursts": Out(stream.Signature(write_layout(params))),
                "beats": Out(stream.Signature(write_beat_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, beat = self._record.size // 8, self._params.memory.beat_bytes
        parts = self._params.flits(size)
        held = Signal(record_layout(self._params, self._record))
        asked, told = Signal(init=1), Signal(init=1)
        part = Signal(range(parts))
        end, last = Signal(), Signal()
        burst, out = self.bursts.payload, self.beats.payload
        whole = exact_log2(beat)
        words = Signal(data.ArrayLayout(8 * beat, parts))
        m.d.comb += [
            self.bursts.valid.eq(~asked),
            burst.address.eq(Cat(Const(0, whole), held.address[whole:])),
            burst.beats.eq(Const(parts, bits_for(parts))),
            burst.token.eq(held.token),
            self.beats.valid.eq(~told),
            last.eq(self.beats.ready & (part == parts - 1)),
            end.eq((asked | self.bursts.ready) & (told | last)),
            self.records.ready.eq(end),
        ]
        if beat > size:
            lane = held.address[exact_log2(size) : whole]
            m.d.comb += [
                words.as_value().eq(held.record.as_value().replicate(beat // size)),
                out.strobe.eq(((1 << size) - 1) << (lane << exact_log2(size))),
            ]
        else:
            m.d.comb += [words.as_value().eq(held.record.as_value()), out.strobe.eq(~Const(0, beat))]
        m.d.comb += out.data.eq(words[part])
        with m.If(self.bursts.ready):
            m.d.sync += asked.eq(1)
        with m.If(self.beats.ready & ~told):
            m.d.sync += [part.eq(part + 1), told.eq(last)]
            with m.If(last):
                m.d.sync += part.eq(0)
        with m.If(end & self.records.valid):
            m.d.sync += [held.eq(self.records.payload), asked.eq(0), told.eq(0)]
        return m
