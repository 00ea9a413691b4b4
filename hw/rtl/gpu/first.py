"""The first of many."""

from amaranth import Cat, Module, Signal, Value
from amaranth.utils import bits_for


def lowest(m: Module, bits: Value, *, name: str) -> Signal:
    """Return the index of the lowest bit that is set; 0 if none is."""
    count = len(bits)
    alone, index = Signal(count, name=f"{name}_alone"), Signal(bits_for(count - 1), name=name)
    m.d.comb += [
        alone.eq(bits & (~bits + 1)),
        index.eq(Cat(Cat(alone[i] for i in range(count) if i >> bit & 1).any() for bit in range(len(index)))),
    ]
    return index
