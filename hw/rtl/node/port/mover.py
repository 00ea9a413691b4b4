"""Write data as it leaves a port: to the data path, or nowhere."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.layouts import beat_layout
from hw.rtl.node.data.layouts import write_segment_layout
from hw.rtl.node.port.layouts import move_layout
from hw.rtl.queue import Queue

AHEAD = 4
"""Segments whose fate is known before their data has moved."""


class Mover(wiring.Component):
    """Takes the segments out of a port's buffer, one after the other, as the core has decided of each.

    Parameters
    ----------
    params
        Beat and segment.

    Interface
    ---------
    moves : In, stream of `move_layout(params)`
        What becomes of the next segment in the buffer. Once `ready`, it stays so until a move is taken.
    buffered : In, stream of `beat_layout(beat_bytes)`
        The buffer.
    segments : Out, stream of `write_segment_layout(params)`
        Segments that are kept.
    beats : Out, stream of `beat_layout(beat_bytes)`
        Their data, in order.
    moving : Out(1)
        There is a segment to move.

    Latency and throughput
    ----------------------
    Two cycles; a beat a cycle, across segments too.

    Ordering and stalls
    -------------------
    In order. Stalls with `segments` and `beats`.

    Reset and errors
    ----------------
    Reset forgets what was to be moved; the buffer has to be reset too.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        beats = stream.Signature(beat_layout(params.memory.beat_bytes))
        super().__init__(
            {
                "moves": In(stream.Signature(move_layout(params))),
                "buffered": In(beats),
                "segments": Out(stream.Signature(write_segment_layout(params))),
                "beats": Out(beats),
                "moving": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decided = decided = Queue(move_layout(self._params), depth=AHEAD)
        m.submodules.fates = fates = Queue(1, depth=AHEAD)
        wiring.connect(m, wiring.flipped(self.moves), decided.i)
        move, segment = decided.o.payload, self.segments.payload
        m.d.comb += [
            self.segments.valid.eq(decided.o.valid & move.keep & fates.i.ready),
            fates.i.valid.eq(decided.o.valid & (~move.keep | self.segments.ready)),
            fates.i.payload.eq(move.keep),
            decided.o.ready.eq(fates.i.ready & (~move.keep | self.segments.ready)),
            self.moving.eq(self.moves.valid | decided.o.valid | fates.o.valid),
            *(segment[name].eq(move[name]) for name, _ in write_segment_layout(self._params)),
        ]
        keeps = fates.o.valid & fates.o.payload
        m.d.comb += [
            self.beats.valid.eq(keeps & self.buffered.valid),
            self.beats.payload.eq(self.buffered.payload),
            self.buffered.ready.eq(fates.o.valid & (~fates.o.payload | self.beats.ready)),
            fates.o.ready.eq(self.buffered.valid & self.buffered.ready & self.buffered.payload.last),
        ]
        return m
