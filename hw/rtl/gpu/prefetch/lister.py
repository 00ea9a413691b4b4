"""Entries of lists of blocks, out of host memory."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.rtl.gpu.layouts import read_beat_layout, read_layout
from hw.rtl.gpu.prefetch.layouts import BLOCK, list_layout, listed_layout


class Lister(wiring.Component):
    """Reads an entry at a time.

    Parameters
    ----------
    params
        Width of a beat.

    Interface
    ---------
    lists : In, stream of `list_layout(params)`
        Which entry, at a multiple of its size.
    listed : Out, stream of `listed_layout(params)`, always ready
        The entry.
    bursts, beats : as of a client of `HostReader`

    Latency and throughput
    ----------------------
    One cycle, that of memory, and one for each beat.

    Ordering and stalls
    -------------------
    In order, one at a time.

    Reset and errors
    ----------------
    Reset forgets the entry in hand; the reader has to be reset too.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "lists": In(stream.Signature(list_layout(params))),
                "listed": Out(stream.Signature(listed_layout(params), always_ready=True)),
                "bursts": Out(stream.Signature(read_layout())),
                "beats": In(stream.Signature(read_beat_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, width = BLOCK.size // 8, self._params.memory.beat_bytes
        parts, whole = self._params.flits(size), exact_log2(max(width, size))
        words = Signal(data.ArrayLayout(min(BLOCK.size, 8 * width), parts))
        part, held = Signal(range(parts)), Signal(list_layout(self._params))
        beat, listed, error = self.beats.payload, self.listed.payload, Signal()
        new = beat.data
        if width > size:
            new = beat.data.word_select(held.address[exact_log2(size) : whole], BLOCK.size)
        m.d.comb += [
            self.bursts.payload.address.eq(held.address[whole:] << whole),
            self.bursts.payload.beats.eq(parts),
            listed.block.eq(words.as_value()),
            listed.job.eq(held.job),
            listed.error.eq(error),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.lists.ready.eq(1)
                m.d.sync += [held.eq(self.lists.payload), part.eq(0), error.eq(0)]
                with m.If(self.lists.valid):
                    m.next = "ASK"

            with m.State("ASK"):
                m.d.comb += self.bursts.valid.eq(1)
                with m.If(self.bursts.ready):
                    m.next = "COLLECT"

            with m.State("COLLECT"), m.If(self.beats.valid):
                m.d.sync += [words[part].eq(new), part.eq(part + 1), error.eq(error | beat.error)]
                with m.If(beat.last):
                    m.next = "TELL"

            with m.State("TELL"):
                m.d.comb += self.listed.valid.eq(1)
                m.next = "IDLE"
        return m
