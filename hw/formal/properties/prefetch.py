"""The table of READs under way of the prefetch engine: none is lost or doubled."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.property import Pdr, Property
from hw.params.params import Params
from hw.params.sections import MemoryParams, RequesterParams
from hw.rtl.gpu.prefetch.fills import Fills

FILLS, WINDOW = 4, 5
"""Four READs of one or two segments, of which there are two each, and a window of five segments."""

FREE, WAITING, RUNNING, OVER = range(4)


class FillsOnce(wiring.Component):
    """Knows of every fill what it is and who was granted it; the unit says the same.

    READs may be taken back until they are granted, and begin when their surroundings like. One that has begun ends at
    any time, and what is over is released at any time by whoever was granted it: a job, with a queue of four.

    Interface
    ---------
    ask, which, two, starts_ready, ends, ending, status, release, releasing : In
        Of the unit; `which` and `two` choose the READ.
    """

    def __init__(self) -> None:
        self.unit = Fills(
            Params(
                memory=MemoryParams(beat_bytes=16, segment_bytes=512),
                requester=RequesterParams(
                    commands=8, prefetches=1, fills=FILLS, fill_segments=2, window_segments=WINDOW
                ),
            )
        )
        bits = dict.fromkeys(("ask", "which", "two", "starts_ready", "ends", "status", "release"), In(1))
        super().__init__({**bits, "ending": In(range(FILLS)), "releasing": In(range(FILLS))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        count = Signal(2)
        m.d.comb += [
            count.eq(1 + self.two),
            unit.ask.eq(self.ask),
            unit.read.segment.eq(self.which),
            unit.read.count.eq(count),
            unit.starts.ready.eq(self.starts_ready),
            unit.ended.valid.eq(self.ends),
            unit.ended.payload.job.eq(self.ending),
            unit.ended.payload.outcome.status.eq(self.status),
            unit.release.eq(self.release),
            unit.releasing.eq(self.releasing),
        ]
        row = data.StructLayout({"state": 2, "which": 1, "two": 1, "uses": 3, "status": 1})
        rows = [Signal(row, name=f"fill_{i}") for i in range(FILLS)]
        begins = unit.starts.valid & self.starts_ready
        same, live = [], []
        for i, each in enumerate(rows):
            granted = unit.granted & (unit.fill == i)
            left = self.release & (self.releasing == i)
            lives = (each.state == WAITING) | (each.state == RUNNING)
            live.append(lives)
            same.append(lives & (each.which == self.which) & (each.two == self.two))
            m.d.sync += each.uses.eq(each.uses + granted - left)
            with m.If(granted & (each.state == FREE)):
                m.d.sync += [each.state.eq(WAITING), each.which.eq(self.which), each.two.eq(self.two)]
            with m.If(begins & (unit.starts.payload.job == i)):
                m.d.sync += each.state.eq(RUNNING)
            with m.If(self.ends & (self.ending == i)):
                m.d.sync += [each.state.eq(OVER), each.status.eq(self.status)]
            with m.If(left & (each.uses == 1)):
                m.d.sync += each.state.eq(FREE)
            m.d.comb += [
                Assume(~(self.ends & (self.ending == i)) | (each.state == RUNNING)),
                Assume(~left | (each.state == OVER)),
                Assert(unit.over[i] == (each.state == OVER), "over, and has not ended, or the reverse"),
                Assert((each.state == FREE) == (each.uses == 0), "free while granted, or the reverse"),
                Assert(~granted | (each.state == FREE) | same[i], "granted as another READ, or as one that is over"),
                Assert(~left | (unit.fate.status == each.status), "another fate"),
            ]
            with m.If(unit.starts.valid & (unit.starts.payload.job == i)):
                m.d.comb += [
                    Assert(each.state == WAITING, "begins twice, or for nobody"),
                    Assert(unit.starts.payload.descriptor.segment == each.which, "begins as another"),
                    Assert(unit.starts.payload.descriptor.count == 1 + each.two, "begins as another"),
                ]
        waiting = Cat(each.state == WAITING for each in rows).any()
        total = Signal(range(8 * FILLS))
        flying = sum((Mux(lives, 1 + each.two, 0) for lives, each in zip(live, rows, strict=True)), Const(0))
        free = Cat(each.state == FREE for each in rows).any() & (~unit.starts.valid | self.starts_ready)
        fits = flying + count <= WINDOW
        m.d.comb += [
            total.eq(sum((each.uses for each in rows), Const(0))),
            Assume(~self.ask | (total < FILLS)),
            Assert(unit.starts.valid == waiting, "a READ is lost, or begins for nobody"),
            Assert(flying <= WINDOW, "more segments than the window has"),
            Assert(unit.granted == (self.ask & (Cat(same).any() | (free & fits))), "refused with room, or the reverse"),
            Cover(Cat(each.uses == 3 for each in rows).any()),
            Cover(~Cat(each.state == FREE for each in rows).any() & (rows[0].state == OVER)),
        ]
        return m


PROPERTIES = (
    Property(
        name="prefetch.fills",
        shows="invariant 10: a fill begins once, ends once, and is free when all who were granted it have released it",
        design=FillsOnce,
        method=Pdr(),
        cover=16,
    ),
)
"""The properties, one module a group; each lists its own in `PROPERTIES`."""
