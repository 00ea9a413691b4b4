"""Write data of several ports, a segment at a time, for one data path."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.rtl.arbiter import next_in_turn
from hw.rtl.layouts import beat_layout
from hw.rtl.node.data.layouts import write_segment_layout
from hw.rtl.queue import Queue

AHEAD = 4
"""Segments whose turn is fixed before their data has moved."""


class Gather(wiring.Component):
    """Joins the segments of all ports; a segment's beats stay together.

    Parameters
    ----------
    params
        Ports, and the widths of everything.

    Interface
    ---------
    ports_segments, ports_beats : In, streams, one a port
        As of `Mover`: a segment that is offered has all its beats at hand.
    segments, beats : Out, streams
        As `DataPath` takes them.

    Latency and throughput
    ----------------------
    One cycle; a beat a cycle, across segments and ports too.

    Ordering and stalls
    -------------------
    Ports take turns, a segment each; whose turn it is may change as long as `segments` is not taken. Stalls with
    `segments` and `beats`, which never stall for long: the data path takes what memory takes. A port that offers a
    segment without having its beats would stop all others.

    Reset and errors
    ----------------
    Reset forgets whose turn it is; ports and data path have to be reset too.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._ports = params.tables.ports
        segments = stream.Signature(write_segment_layout(params))
        beats = stream.Signature(beat_layout(params.memory.beat_bytes))
        super().__init__(
            {
                "ports_segments": In(segments).array(self._ports),
                "ports_beats": In(beats).array(self._ports),
                "segments": Out(segments),
                "beats": Out(beats),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.turns = turns = Queue(bits_for(self._ports - 1), depth=AHEAD)
        asking, last = Signal(self._ports), Signal(range(self._ports))
        m.d.comb += [asking[i].eq(segments.valid) for i, segments in enumerate(self.ports_segments)]
        chosen = next_in_turn(m, asking, last)
        passes = self.segments.ready & turns.i.ready
        m.d.comb += [
            self.segments.valid.eq(asking.any() & turns.i.ready),
            turns.i.valid.eq(asking.any() & self.segments.ready),
            turns.i.payload.eq(chosen),
            turns.o.ready.eq(self.beats.valid & self.beats.ready & self.beats.payload.last),
        ]
        with m.If(asking.any() & passes):
            m.d.sync += last.eq(chosen)
        for i, (segments, beats) in enumerate(zip(self.ports_segments, self.ports_beats, strict=True)):
            with m.If(chosen == i):
                m.d.comb += [self.segments.payload.eq(segments.payload), segments.ready.eq(asking[i] & passes)]
            with m.If(turns.o.valid & (turns.o.payload == i)):
                m.d.comb += [
                    self.beats.valid.eq(beats.valid),
                    self.beats.payload.eq(beats.payload),
                    beats.ready.eq(self.beats.ready),
                ]
        return m
