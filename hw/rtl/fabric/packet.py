"""A packet as its flits."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, stream

from hw.params import Params


def cut(m: Module, params: Params, *, payload: Value, valid: Value, flits: stream.Interface) -> Signal:
    """Offer a packet flit by flit, while it is `valid`; return whether the last one leaves. Headers are the caller's.

    `payload` is as many bytes as the packet; it has to stand until the last flit has left.
    """
    flit, size, beat_bytes = flits.payload, len(payload) // 8, params.memory.beat_bytes
    parts = params.flits(size)
    words = Signal(data.ArrayLayout(len(flit.data), parts))
    part = Signal(range(parts))
    left = Signal()
    m.d.comb += [
        words.as_value().eq(payload),
        flits.valid.eq(valid),
        flit.data.eq(words[part]),
        flit.last.eq(part == parts - 1),
        flit.count.eq(Mux(flit.last, size - (parts - 1) * beat_bytes, beat_bytes)),
        left.eq(valid & flits.ready & flit.last),
    ]
    with m.If(valid & flits.ready):
        m.d.sync += part.eq(Mux(flit.last, 0, part + 1))
    return left
