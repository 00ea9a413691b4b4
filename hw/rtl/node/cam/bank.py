"""One bank of the block CAM: its SRAM, and the comparison of all ways of a set."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.rtl.layouts import place_layout
from hw.rtl.node.cam.entry import EntryFormat
from hw.rtl.shared import shared
from hw.rtl.sram import Sram


def found_layout(params: Params) -> data.StructLayout:
    """Return the layout of what a bank finds in a set.

    - `hits`: the way that holds the tag; at most one.
    - `frames`: the stored frame of each way, a codeword.
    - `free`: number of free ways; `way`: the lowest of them.
    """
    ways = params.cam.ways
    return data.StructLayout(
        {
            "hits": ways,
            "frames": data.ArrayLayout(EntryFormat(params).frame.bits, ways),
            "free": bits_for(ways),
            "way": place_layout(params)["way"].shape,
        }
    )


@shared
class CamBank(wiring.Component):
    """One bank of the block CAM.

    Parameters
    ----------
    params
        Geometry and widths.

    Interface
    ---------
    enable, write, set, entry : In
        An access to a set: a write of `entry` into the ways marked in `write`, or, with none marked, a read.
    tag : In, codeword of a tag
        What a read looks for, one cycle after it.
    row : Out, an entry a way
        What was read, one cycle after the read.
    found : Out, `found_layout(params)`
        What it means, two cycles after the read; from registers.

    Latency and throughput
    ----------------------
    One access a cycle.

    Ordering and stalls
    -------------------
    In order; never stalls.

    Reset and errors
    ----------------
    Nothing is reset. One flipped bit in each field of an entry has no effect; an entry with two in a field is neither
    free nor a hit.

    Invariants and counters
    -----------------------
    Part of invariants 2, 4 and 6. No counters.
    """

    def __init__(self, params: Params):
        self._params = params
        self._format = EntryFormat(params)
        ways = params.cam.ways
        super().__init__(
            {
                "enable": In(1),
                "write": In(ways),
                "set": In(place_layout(params)["set"].shape),
                "entry": In(self._format.layout),
                "tag": In(self._format.tag.bits),
                "row": Out(data.ArrayLayout(self._format.layout, ways)),
                "found": Out(found_layout(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ways = range(self._params.cam.ways)
        m.submodules.sram = sram = Sram(rows=self._params.cam_sets, lanes=len(ways), lane_bits=self._format.layout.size)
        m.d.comb += [
            sram.enable.eq(self.enable),
            sram.write.eq(self.write),
            sram.address.eq(self.set),
            sram.write_data.eq(Cat(self.entry for _ in ways)),
            self.row.eq(sram.read_data),
        ]

        found = Signal(found_layout(self._params), reset_less=True)
        free = Signal(len(ways))
        m.d.comb += free.eq(Cat(self._format.is_free(m, self.row[way]) for way in ways))
        m.d.sync += [
            found.hits.eq(Cat(self._format.is_hit(m, self.row[way], self.tag) for way in ways)),
            found.frames.eq(Cat(self.row[way].frame for way in ways)),
            found.free.eq(_count(free)),
            found.way.eq(_lowest(free)),
        ]
        m.d.comb += self.found.eq(found)
        return m


def _count(bits: Value) -> Value:
    """Return how many of `bits` are set, as a balanced tree."""
    if len(bits) == 1:
        return bits
    half = len(bits) // 2
    return _count(bits[:half]) + _count(bits[half:])


def _lowest(bits: Value) -> Value:
    """Return the number of the lowest bit set, as a balanced tree."""
    number: Value = Const(0, 0)
    if len(bits) > 1:
        half = 1 << (len(bits) - 1).bit_length() - 1
        low = bits[:half]
        number = Cat(Mux(low.any(), _lowest(low), _lowest(bits[half:])), ~low.any())
    return number
