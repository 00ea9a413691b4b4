"""A memory whose rows a claim can see."""

from collections.abc import Sequence
from typing import Any

from amaranth import Module, Signal
from amaranth.hdl import ShapeLike
from amaranth.lib import data, wiring


class OpenMemory(wiring.Component):
    """`amaranth.lib.memory.Memory` of registers, which are anything at power-up, with asynchronous read ports.

    Attributes
    ----------
    rows
        What is stored.
    """

    def __init__(self, *, shape: ShapeLike, depth: int, init: Sequence[Any]):
        self._depth = depth
        self._shape = shape
        self.rows = Signal(data.ArrayLayout(shape, depth), reset_less=True)
        self._reads: list[Any] = []
        self._writes: list[Any] = []
        super().__init__({})

    def read_port(self, *, domain: str) -> Any:
        """A port that reads within the cycle."""
        port = _Port(self._shape, self._depth)
        self._reads.append(port)
        return port

    def write_port(self) -> Any:
        """A port that writes a whole row."""
        port = _Port(self._shape, self._depth)
        self._writes.append(port)
        return port

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for port in self._reads:
            m.d.comb += port.data.eq(self.rows[port.addr])
        for port in self._writes:
            with m.If(port.en):
                m.d.sync += self.rows[port.addr].eq(port.data)
        return m


class _Port:
    def __init__(self, shape: ShapeLike, depth: int):
        self.addr = Signal(range(depth))
        self.en = Signal()
        self.data = Signal(shape)
