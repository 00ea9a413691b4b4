"""The rules of a stream: claimed of a source under proof, required of a source in its surroundings."""

from collections.abc import Callable
from typing import Any

from amaranth import Module, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import wiring
from amaranth.lib.wiring import In


class StreamRules(wiring.Component):
    """Watches a stream: an offer stands unchanged until it is taken, and there is none in the cycle after a reset.

    Parameters
    ----------
    shape
        Shape of the payload.
    assume
        Requires the rules of the source instead of claiming them.

    Interface
    ---------
    valid, ready, payload : In
        The stream.

    Covers
    ------
    When claiming: an offer that waited is taken, and the next is there at once.
    """

    def __init__(self, shape: Any, *, assume: bool = False):
        self._rule: Callable[..., Any] = Assume if assume else Assert
        self._assume = assume
        super().__init__({"valid": In(1), "ready": In(1), "payload": In(shape)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fresh = Signal(init=1)
        waits = Signal()
        offer = Signal.like(self.payload)
        m.d.sync += [fresh.eq(0), waits.eq(self.valid & ~self.ready), offer.eq(self.payload)]
        m.d.comb += self._rule(~fresh | ~self.valid, "an offer out of reset")
        with m.If(waits):
            m.d.comb += self._rule(self.valid, "an offer is withdrawn")
            m.d.comb += self._rule(Value.cast(self.payload) == Value.cast(offer), "an offer changes")
        if not self._assume:
            taken_late = Signal()
            m.d.sync += taken_late.eq(waits & self.valid & self.ready)
            m.d.comb += Cover(taken_late & self.valid)
        return m


def watch(m: Module, name: str, port: Any, *, assume: bool = False) -> None:
    """Put `StreamRules` on `port`, any `lib.stream` interface, as submodule `name` of `m`."""
    rules = StreamRules(port.payload.shape(), assume=assume)
    m.submodules[name] = rules
    m.d.comb += [rules.valid.eq(port.valid), rules.ready.eq(port.ready), rules.payload.eq(port.payload)]
