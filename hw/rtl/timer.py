"""A clock for what may take long."""

from amaranth import Module, Mux, Signal


def tick(m: Module, period: int) -> Signal:
    """Return a signal that is high for one cycle in `period`."""
    passed, now = Signal(range(period)), Signal()
    m.d.comb += now.eq(passed == period - 1)
    m.d.sync += passed.eq(Mux(now, 0, passed + 1))
    return now
