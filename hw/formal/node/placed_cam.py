"""A CAM without hashes and pipelines, by what `cam.tag` proves of the real one."""

from amaranth import Cat, Module, Signal
from amaranth.hdl import Assert, Assume
from amaranth.lib import data

from hw.formal.node.free import anything
from hw.formal.node.stand_ins import LATENCY, AnyCam
from hw.params import Params
from hw.rtl.layouts import CamOp, cam_request_layout, place_layout


class PlacedCam(AnyCam):
    """`hw.rtl.node.cam.Cam` in which a tag may lie in any place: finds what is stored, and offers any place that is not
    taken, or none.

    It claims what `cam.tag` requires of the initiator: a tag goes where a LOOKUP has sent it, so in no second place,
    and not over another; and the content stands while a LOOKUP is under way.

    Attributes
    ----------
    places
        What is stored, by place.
    tag
        That of the LOOKUP whose answer is there.
    """

    def __init__(self, params: Params):
        super().__init__(params)
        request = cam_request_layout(params)
        self._place = place_layout(params)
        place = data.StructLayout({"valid": 1, "tag": request["tag"].shape, "frame": request["frame"].shape})
        self.places = Signal(data.ArrayLayout(place, 1 << self._place.size))
        self.tag = Signal(request["tag"].shape)
        self._where = anything(self._place.size, "place")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response, places = self.requests.payload, self.responses.payload, self.places
        asked = Signal(LATENCY)
        looks_up = self.requests.valid & (request.op == CamOp.LOOKUP)
        updates = self.requests.valid & (request.op == CamOp.UPDATE)
        m.d.sync += asked.eq(Cat(looks_up, asked))
        tag = request.tag
        for stage in range(LATENCY - 1):
            later = Signal.like(tag, name=f"tag_{stage}")
            m.d.sync += later.eq(tag)
            tag = later
        m.d.sync += self.tag.eq(tag)

        here = places[self._where]
        hit = Cat(place.valid & (place.tag == self.tag) for place in places).any()
        m.d.comb += [
            self.requests.ready.eq(1),
            self.responses.valid.eq(asked[-1]),
            self.contents.payload.eq(self._content),
            response.hit.eq(asked[-1] & hit),
            response.full.eq(~hit & self._answer.full),
            response.place.eq(self._where),
            response.frame.eq(here.frame),
        ]
        with m.If(asked[-1]):
            m.d.comb += Assume(~hit | (here.valid & (here.tag == self.tag)))
            m.d.comb += Assume(hit | response.full | ~here.valid)
        for number, place in enumerate(places):
            with m.If(updates):
                with m.If(request.place.as_value() == number):
                    m.d.sync += [
                        place.valid.eq(request.valid),
                        place.tag.eq(request.tag),
                        place.frame.eq(request.frame),
                    ]
                    m.d.comb += Assert(~request.valid | ~place.valid | (place.tag == request.tag), "over another tag")
                with m.Else():
                    m.d.comb += Assert(~request.valid | ~place.valid | (place.tag != request.tag), "a second place")
        m.d.comb += Assert(~(updates & asked.any()), "an UPDATE under a LOOKUP")
        return m
