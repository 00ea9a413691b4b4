"""What stand-ins are made of: the ports of the real part, and what they leave open as inputs of the proof."""

import gc
import warnings
from collections.abc import Callable
from typing import Any

from amaranth import Signal
from amaranth.hdl import ShapeLike, UnusedElaboratable
from amaranth.lib import wiring

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


def ports(part: Callable[..., wiring.Component], *arguments: Any, **named: Any) -> wiring.Signature:
    """Return the interface of a part that is made for nothing else, and is gone before Amaranth wonders at that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        signature = part(*arguments, **named).signature
        gc.collect()
    return signature
