"""Round robin."""

from amaranth import Const, Module, Signal, Value


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
