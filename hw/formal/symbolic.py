"""Values that are arbitrary, but stay."""

from typing import Any

from amaranth import Module, Signal


def constant(m: Module, port: Any, name: str) -> Any:
    """Return a value that `port` chooses in the cycle after a reset, and that stays until the next."""
    chosen = Signal(name=f"{name}_chosen")
    kept = Signal.like(port, name=f"{name}_kept", reset_less=True)
    value = Signal.like(port, name=name)
    with m.If(chosen):
        m.d.comb += value.eq(kept)
    with m.Else():
        m.d.comb += value.eq(port)
        m.d.sync += [kept.eq(port), chosen.eq(1)]
    return value
