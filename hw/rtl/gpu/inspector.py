"""The check of the data of READs."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params, crc32c
from hw.rtl.gpu.layouts import acknowledgement_layout, context_bits, inspected_layout
from hw.rtl.transform import Crc32c


class Inspector(wiring.Component):
    """Compares the CRC32C of each segment with its trailer, beside the `Placer`.

    Parameters
    ----------
    params
        Width of a flit; commands in flight.

    Interface
    ---------
    valid, flit : In, `inspected_layout(params)`
        The `Placer` takes this flit, in this cycle; it takes segments whole.
    known : In(1)
        It is of a READ that is under way. Decides with the last flit of a segment.
    checking : Out, stream of the number of a context, always ready
        A segment of this READ will be checked, in the cycle of its last flit.
    checked : Out, stream of `acknowledgement_layout(params)`, always ready
        It was; `error`: it is not what was stored.

    Latency and throughput
    ----------------------
    log2(`beat_bytes`) + 2 cycles behind the last flit of a segment, or less than memory takes to acknowledge it; a flit
    a cycle.

    Ordering and stalls
    -------------------
    In order. Never stalls.

    Reset and errors
    ----------------
    Reset forgets what is under way. Data whose trailer says that it is not what was stored is in error, whatever its
    CRC is.

    Invariants
    ----------
    Part of 2: no data that differs from what was stored is taken for good.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        number = context_bits(params)
        super().__init__(
            {
                "valid": In(1),
                "flit": In(inspected_layout(params)),
                "known": In(1),
                "checking": Out(stream.Signature(number, always_ready=True)),
                "checked": Out(stream.Signature(acknowledgement_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_bytes, flit = self._params.memory.beat_bytes, self.flit
        trailer = data.StructLayout({"valid": 1, "context": context_bits(self._params), "ok": 1, "crc": crc32c.WIDTH})
        m.submodules.crc = crc = Crc32c(beat_bytes=beat_bytes)
        now = Signal(trailer)
        m.d.comb += [
            crc.beats.valid.eq(self.valid),
            *(crc.beats.payload[name].eq(flit[name]) for name in ("data", "count", "last")),
            crc.crcs.ready.eq(1),
            now.valid.eq(self.valid & flit.last & self.known),
            now.context.eq(flit.context),
            now.ok.eq(flit.ok),
            now.crc.eq(flit.crc),
            self.checking.valid.eq(now.valid),
            self.checking.payload.eq(now.context),
        ]
        # The trailer goes beside the CRC, whose pipeline never stops.
        for i in range(exact_log2(beat_bytes) + 2):
            behind = Signal(trailer, name=f"behind_{i}")
            m.d.sync += behind.eq(now)
            now = behind
        m.d.comb += [
            self.checked.valid.eq(now.valid),
            self.checked.payload.token.eq(now.context),
            self.checked.payload.error.eq(~now.ok | (now.crc != crc.crcs.payload)),
        ]
        return m
