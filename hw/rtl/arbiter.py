"""Round robin."""

from collections.abc import Sequence

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import stream


def next_in_turn(m: Module, asking: Value, last: Value) -> Value:
    """Return the index of the first bit set in `asking` after `last`, in a circle; `last` if there is none other."""
    count = len(asking)
    if count == 1:
        return Const(0, 1)
    chosen = Signal(range(count))
    m.d.comb += chosen.eq(last)
    with m.Switch(last):
        for i in range(count):
            with m.Case(i):
                for j in reversed(range(i + 1, i + count)):
                    with m.If(asking[j % count]):
                        m.d.comb += chosen.eq(j % count)
    return chosen


def merge(m: Module, sources: Sequence[stream.Interface], target: stream.Interface) -> None:
    """Give what comes from some streams to one, by a register, an item of each in turn."""
    asking = Cat(source.valid for source in sources)
    last = Signal(range(max(2, len(sources))))
    chosen = next_in_turn(m, asking, last)
    with m.If(~target.valid | target.ready):
        m.d.sync += [target.valid.eq(asking.any()), last.eq(chosen)]
        for i, source in enumerate(sources):
            with m.If(chosen == i):
                m.d.comb += source.ready.eq(1)
                m.d.sync += target.payload.eq(source.payload)
