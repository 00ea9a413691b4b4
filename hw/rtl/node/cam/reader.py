"""One entry of the block CAM, out of the sets that all its banks have read."""

from amaranth import Array, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.layouts import cam_content_layout, place_layout
from hw.rtl.node.cam.entry import EntryFormat
from hw.rtl.secded import decode, lost, near, syndrome


class CamReader(wiring.Component):
    """Takes the entry at a place out of what was read, and decodes its tag.

    Parameters
    ----------
    params
        Geometry and widths.

    Interface
    ---------
    rows : In, an entry a way of each bank
        What was read.
    bank, way : In
        Which entry.
    entry : Out, as `EntryFormat` has it
        That entry, as it is stored; in the same cycle.
    content : Out, `cam_content_layout(params)`
        What it means, two cycles later; from registers.

    Latency and throughput
    ----------------------
    Two cycles; one entry a cycle.

    Ordering and stalls
    -------------------
    In order; never stalls.

    Reset and errors
    ----------------
    Nothing is reset. A flipped bit in the tag is mended; of an entry with two in valid bit or tag, nothing is found.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        self._format = EntryFormat(params)
        row = data.ArrayLayout(self._format.layout, params.cam.ways)
        place = place_layout(params)
        super().__init__(
            {
                "rows": In(data.ArrayLayout(row, params.cam.banks)),
                "bank": In(place["bank"].shape),
                "way": In(place["way"].shape),
                "entry": Out(self._format.layout),
                "content": Out(cam_content_layout(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks, ways = range(self._params.cam.banks), range(self._params.cam.ways)
        row = Array(Array(self.rows[bank][way].as_value() for way in ways)[self.way] for bank in banks)
        m.d.comb += self.entry.eq(row[self.bank])

        valid, tag = self._format.valid, self._format.tag
        stored, word = Signal(valid.bits, reset_less=True), Signal(tag.bits, reset_less=True)
        content = Signal(cam_content_layout(self._params), reset_less=True)
        tag_syndrome = Signal(tag.check_bits)
        m.d.comb += [tag_syndrome.eq(syndrome(tag, word)), self.content.eq(content)]
        taken = near(m, valid, stored, Const(valid.encode(1), valid.bits))
        m.d.sync += [
            stored.eq(self.entry.valid),
            word.eq(self.entry.tag),
            content.found.eq(taken & ~lost(m, tag, word)),
            content.tag.eq(decode(m, tag, word, tag_syndrome).word[: tag.data_bits]),
        ]
        return m
