"""The answer of the block CAM, from what its banks have found."""

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.layouts import cam_response_layout, place_layout
from hw.rtl.node.cam.bank import found_layout
from hw.rtl.node.cam.entry import EntryFormat
from hw.rtl.secded import decode, syndrome


class CamSelection(wiring.Component):
    """Frame and place of the hit, or else the place of an insert: emptiest set, then lowest bank, then lowest way.

    Parameters
    ----------
    params
        Geometry and widths.

    Interface
    ---------
    found : In, `found_layout(params)` of each bank
        What the banks have found.
    sets : In, a set number of each bank
        Where they have found it.
    response : Out, `cam_response_layout(params)`
        The answer, one cycle later; from registers.

    Latency and throughput
    ----------------------
    One cycle; one answer a cycle.

    Ordering and stalls
    -------------------
    In order; never stalls.

    Reset and errors
    ----------------
    Nothing is reset. A flipped bit in the frame of a hit is mended.

    Invariants and counters
    -----------------------
    Part of invariants 2, 4 and 6. No counters.
    """

    def __init__(self, params: Params):
        self._params = params
        banks = params.cam.banks
        super().__init__(
            {
                "found": In(data.ArrayLayout(found_layout(params), banks)),
                "sets": In(data.ArrayLayout(place_layout(params)["set"].shape, banks)),
                "response": Out(cam_response_layout(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        found = [self.found[bank] for bank in range(self._params.cam.banks)]
        ways = range(self._params.cam.ways)
        code = EntryFormat(self._params).frame

        # At most one way is hit, so that a disjunction selects.
        bank_hits = Signal(len(found))
        frame = Signal(code.bits)
        m.d.comb += [
            bank_hits.eq(Cat(bank.hits.any() for bank in found)),
            frame.eq(reduce(or_, (_gate(bank.hits[way], bank.frames[way]) for bank in found for way in ways))),
        ]
        frame_syndrome = Signal(code.check_bits)
        m.d.comb += frame_syndrome.eq(syndrome(code, frame))

        # A bank is chosen for an insert if it beats all others; every pair is compared at once.
        chosen = Signal(len(found))
        for i, one in enumerate(found):
            beats = (
                one.free > other.free if j < i else one.free >= other.free for j, other in enumerate(found) if j != i
            )
            m.d.comb += chosen[i].eq(Cat(beats).all())

        hit = Signal()
        bank = Signal(len(found))
        m.d.comb += [hit.eq(bank_hits.any()), bank.eq(Mux(hit, bank_hits, chosen))]

        response = Signal(self.response.shape(), reset_less=True)
        way_hits = Cat(Cat(bank.hits[way] for bank in found).any() for way in ways)
        free_way = reduce(or_, (_gate(chosen[i], one.way) for i, one in enumerate(found)))
        m.d.sync += [
            response.hit.eq(hit),
            response.full.eq(~hit & ~Cat(bank.free for bank in found).any()),
            response.frame.eq(decode(m, code, frame, frame_syndrome).word[: code.data_bits]),
            response.place.bank.eq(_number(bank)),
            response.place.set.eq(reduce(or_, (_gate(bank[i], self.sets[i]) for i in range(len(found))))),
            response.place.way.eq(Mux(hit, _number(way_hits), free_way)),
        ]
        m.d.comb += self.response.eq(response)
        return m


def _gate(enable: Value, value: Value) -> Value:
    return value & enable.replicate(len(value))


def _number(one_hot: Value) -> Value:
    """Return the number of the bit set: each bit of it is a disjunction."""
    width = (len(one_hot) - 1).bit_length()
    return Cat(Cat(one_hot[i] for i in range(len(one_hot)) if i >> bit & 1).any() for bit in range(width))
