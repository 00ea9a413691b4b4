"""`hw.params.striping` in logic: which channel and which address a segment has."""

from functools import reduce
from operator import add

from amaranth import Cat, Const, Module, Signal, Value

from hw.params.striping import Striping


def first_number(m: Module, stripes: Striping, frame: Value) -> Value:
    """Return the number of a frame's first segment: a constant multiple of the frame, and a constant, by its pool."""
    bits = stripes.number_bits
    number = Signal(bits)
    for first, size, base in zip(stripes.firsts, stripes.sizes, stripes.bases, strict=True):
        terms: list[Value] = [frame << bit for bit in range(size.bit_length()) if size >> bit & 1]
        offset = (base - first * size) % (1 << bits)
        if offset:
            terms.append(Const(offset, bits))
        with m.If(frame >= first) if first else m.If(1):
            m.d.comb += number.eq(reduce(add, terms))
    return number


def channel_of(stripes: Striping, number: Value) -> Value:
    """Return the channel of a numbered segment; no bits for a single channel."""
    return Cat((number & mask).xor() for mask in stripes.masks)


def address_of(stripes: Striping, number: Value) -> Value:
    """Return the byte address of a numbered segment on its channel."""
    return Cat(Const(0, stripes.segment_bits), number[stripes.channel_bits :])
