"""Free inputs of stand-ins: what a component leaves open is an input of the proof."""

from typing import Any

from amaranth import Signal
from amaranth.hdl import ShapeLike

_open: list[tuple[str, Signal]] = []


def anything(shape: ShapeLike, name: str) -> Any:
    """Return a signal that is driven by nobody here, and that the bench makes an input of the proof."""
    signal = Signal(shape, name=name)
    _open.append((name, signal))
    return signal


def opened() -> dict[str, Any]:
    """Return by name what has been left open since the last call."""
    found: dict[str, Any] = {}
    for name, signal in _open:
        unique = name
        while unique in found:
            unique += "_"
        found[unique] = signal
    _open.clear()
    return found
