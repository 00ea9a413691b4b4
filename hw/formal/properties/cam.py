"""The block CAM: one tag among all others, and any traffic that keeps the initiator's rules."""

from itertools import accumulate
from unittest.mock import patch

from amaranth import Cat, Module, Signal, Value
from amaranth.hdl import Assert, Assume, Cover, Fragment
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.property import Pdr, Property
from hw.formal.symbolic import constant
from hw.params import load_params, toeplitz
from hw.rtl.layouts import CamOp, cam_request_layout, place_layout
from hw.rtl.node.cam import Cam

LATENCY = 4
"""Cycles from a request to its response."""

OVERRIDES = ("preset=TINY", "tables.ecc=false", "tables.partitions=1", "tables.models=1")
"""Two banks of two sets of two ways, for four frames; without ECC, whose codes are beyond the solver."""

KEY_BITS = 2
"""Tags of two bits: the CAM treats all bits of a tag alike, and no parameter shortens a key, so the proof does."""


class CamTag(wiring.Component):
    """What the CAM answers about one tag: it is there, with its frame, from the UPDATE that stores it to that which
    removes it, and never else; and is read in its place, and in no other.

    The tag is any one, so this holds for all. Its initiator stores it only where a LOOKUP may have sent it, in a set
    that the tag belongs to, and in no second place; other tags come and go anywhere, also in its place.

    Interface
    ---------
    tag, diagonals : In
        Chosen after each reset, and then constant.
    request_valid, request, clear : In
        The traffic.
    """

    def __init__(self) -> None:
        with patch.object(toeplitz, "KEY_BITS", KEY_BITS):
            self.params = load_params(None, OVERRIDES)
            self.unit = Cam(self.params)
            request = cam_request_layout(self.params)
        members = self.unit.signature.members
        super().__init__(
            {
                "tag": In(request["tag"].shape),
                "diagonals": In(members["diagonals"].shape),
                "request_valid": In(1),
                "request": In(request),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with patch.object(toeplitz, "KEY_BITS", KEY_BITS):
            m.submodules.unit = Fragment.get(self.unit, platform)
            place = place_layout(self.params)
        request, response = self.request, self.unit.responses.payload
        tag, diagonals = constant(m, self.tag, "tag"), constant(m, self.diagonals, "diagonals")
        m.d.comb += [
            self.unit.diagonals.eq(diagonals),
            self.unit.clear.eq(self.clear),
            self.unit.requests.valid.eq(self.request_valid),
            self.unit.requests.payload.eq(request),
        ]
        home = Signal(data.ArrayLayout(place["set"].shape, self.params.cam.banks))
        m.d.comb += [home[i].eq((diagonals[i] & tag).xor()) for i in range(self.params.cam.banks)]

        # Where the tag is, and with which frame, after all requests taken.
        taken = self.request_valid & self.unit.requests.ready
        stored, where, frame = Signal(), Signal(place), Signal.like(request.frame)
        same, here = request.tag == tag, request.place.as_value() == where.as_value()
        with m.If(taken & (request.op == CamOp.UPDATE)):
            with m.If(same & request.valid):
                m.d.comb += Assume(request.place.set == home[request.place.bank])
                m.d.comb += Assume(~stored | here)
                m.d.sync += [stored.eq(1), where.eq(request.place), frame.eq(request.frame)]
            with m.Elif(here):
                m.d.sync += stored.eq(0)
        with m.If(self.clear):
            m.d.sync += stored.eq(0)

        # What a LOOKUP or READ taken now is to find, when its response comes.
        asks, reads = request.op == CamOp.LOOKUP, request.op == CamOp.READ
        due = Cat(taken & asks, taken & reads, same, here, stored, where, frame)
        for _ in range(LATENCY):
            later = Signal.like(due)
            m.d.sync += later.eq(due)
            due = later
        widths = [1, 1, 1, 1, 1, len(where.as_value()), len(frame)]
        asked, read, about_it, of_its_place, hit, place_of_it, frame_of_it = _split(due, widths)
        answered = self.unit.responses.valid
        offered = answered & ~response.hit & ~response.full
        at_home = response.place.set == home[response.place.bank]
        m.d.comb += Assert(answered == asked, "a LOOKUP without a response, or the reverse")
        with m.If(answered & about_it):
            m.d.comb += [
                Assert(response.hit == hit, "found, but not stored, or the reverse"),
                Assert(~hit | (response.place.as_value() == place_of_it), "not in its place"),
                Assert(~hit | (response.frame == frame_of_it), "with another frame"),
                Assert(~offered | at_home, "a place that is none of the tag's"),
            ]
        with m.If(offered & ~about_it & hit):
            m.d.comb += Assert(response.place.as_value() != place_of_it, "its place is given to another tag")
        content = self.unit.contents.payload
        m.d.comb += Assert(self.unit.contents.valid == read, "a READ without content, or the reverse")
        with m.If(read):
            m.d.comb += Assert((content.found & (content.tag == tag)) == (hit & of_its_place), "read elsewhere, or not")
        m.d.comb += [
            Cover(read & of_its_place & hit),
            Cover(answered & about_it & hit),
            Cover(offered & about_it & ~stored & (frame != 0)),
        ]
        return m


def _split(bits: Value, widths: list[int]) -> list[Value]:
    """Cut `bits` into fields of these widths, the first one lowest."""
    ends = list(accumulate(widths))
    return [bits[end - width : end] for end, width in zip(ends, widths, strict=True)]


PROPERTIES = (
    Property(
        name="cam.tag",
        shows="invariants 2, 4, 6: a stored tag is found, once, with its frame; a removed or never stored one is not",
        design=CamTag,
        method=Pdr(),
        cover=24,
    ),
)
