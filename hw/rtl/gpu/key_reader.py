"""Keys of a LOOKUP, out of host memory."""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params
from hw.params.protocol import KEY_BYTES
from hw.rtl.gpu.layouts import ADDRESS_BITS, read_beat_layout, read_layout
from hw.rtl.queue import Queue

BURST = 8
"""Beats of a burst: at most a `BOUNDARY` if it begins at a multiple of itself."""

AHEAD = 4
"""Bursts whose beats there is room for."""


class KeyReader(wiring.Component):
    """Reads rows of keys, a burst after the other.

    Parameters
    ----------
    params
        Width of a beat; keys of a LOOKUP.

    Interface
    ---------
    rows : In, stream of `address` and `beats`, at least 1
        What to read.
    keys : Out, stream of `read_beat_layout(params)`
        Its beats, as `last` the last of all.
    bursts, beats : as of a client of `HostReader`

    Latency and throughput
    ----------------------
    Two cycles and the latency of memory; a beat a cycle as long as that is no longer than `AHEAD` bursts.

    Ordering and stalls
    -------------------
    One row at a time: the next when all of the last one has come. `keys` that are not taken stop the bursts.

    Reset and errors
    ----------------
    Reset forgets the row in hand; the reader has to be reset too. What memory refuses is marked.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        self._most = params.flits(params.tables.lookup_keys * KEY_BYTES)
        row = data.StructLayout({"address": ADDRESS_BITS, "beats": bits_for(self._most)})
        super().__init__(
            {
                "rows": In(stream.Signature(row)),
                "keys": Out(stream.Signature(read_beat_layout(params))),
                "bursts": Out(stream.Signature(read_layout())),
                "beats": In(stream.Signature(read_beat_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        room_for = AHEAD * BURST
        beat = data.StructLayout({"data": 8 * self._params.memory.beat_bytes, "error": 1})
        m.submodules.queue = queue = Queue(beat, depth=room_for)
        shift = exact_log2(self._params.memory.beat_bytes)
        address = Signal(ADDRESS_BITS)
        to_ask, to_come = Signal(bits_for(self._most)), Signal(bits_for(self._most))
        room = Signal(range(room_for + 1), init=room_for)
        size, asked, taken = Signal(range(BURST + 1)), Signal(), Signal()
        whole = Signal(range(BURST + 1))
        m.d.comb += [
            whole.eq(BURST - address[shift : shift + exact_log2(BURST)]),
            size.eq(Mux(to_ask < whole, to_ask, whole)),
            self.rows.ready.eq(to_come == 0),
            self.bursts.valid.eq((to_ask != 0) & (room >= BURST)),
            self.bursts.payload.address.eq(address),
            self.bursts.payload.beats.eq(size),
            asked.eq(self.bursts.valid & self.bursts.ready),
            queue.i.valid.eq(self.beats.valid),
            queue.i.payload.data.eq(self.beats.payload.data),
            queue.i.payload.error.eq(self.beats.payload.error),
            self.keys.valid.eq(queue.o.valid),
            self.keys.payload.data.eq(queue.o.payload.data),
            self.keys.payload.error.eq(queue.o.payload.error),
            self.keys.payload.last.eq(to_come == 1),
            queue.o.ready.eq(self.keys.ready),
            taken.eq(self.keys.valid & self.keys.ready),
        ]
        m.d.sync += [
            room.eq(room + taken - Mux(asked, size, Const(0, len(size)))),
            to_come.eq(to_come - taken),
        ]
        with m.If(asked):
            m.d.sync += [address.eq(address + (size << shift)), to_ask.eq(to_ask - size)]
        with m.If(self.rows.valid & self.rows.ready):
            row = self.rows.payload
            m.d.sync += [address.eq(row.address), to_ask.eq(row.beats), to_come.eq(row.beats)]
        return m
