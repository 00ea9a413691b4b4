"""The bus of a device in this process."""

from hw.params.commands import Command, Completion
from hw.params.params import Params
from hw.params.protocol import RingId
from hw.rdl import register_map, requester_map
from sw.driver.transport.bus import Bus
from sw.driver.transport.loopback.requester import Requester
from sw.driver.transport.specification import SpecificationTransport

REST = 100
"""Cycles of a ``wait``; a register access takes one."""


class LoopbackBus(Bus):
    """Requesters with the specification behind them: they work while the driver waits, and only then.

    For tests, ``deaf`` makes the device stop: registers are there, but nothing moves.
    """

    def __init__(self, params: Params, seed: int = 0) -> None:
        self.deaf = False
        self._node = SpecificationTransport(params, seed)
        self.requesters = [Requester(params, port, self._give, self._node.lose) for port in range(params.tables.ports)]
        self._slices = params.node.slices
        self._maps = [*[register_map()] * self._slices, *(requester_map(params) for _ in self.requesters)]
        self._cycle = 0

    def _give(self, ring: RingId, tag: int, command: Command, slice_: int) -> None:
        self._node.submit(ring, tag, command, slice_=slice_ % self._slices)

    def read(self, unit: int, offset: int) -> int:
        self._cycle += 1
        if unit < self._slices:
            return self._node.read_register(offset, unit)
        return self.requesters[unit - self._slices].registers.read(offset)

    def write(self, unit: int, offset: int, value: int) -> None:
        self._cycle += 1
        if unit < self._slices:
            self._node.write_register(offset, value, unit)
        else:
            self.requesters[unit - self._slices].write(offset, value)

    def map(self, port: int, view: memoryview, *, writable: bool) -> int:
        return self.requesters[port].memory.map(view, writable)

    def unmap(self, port: int, address: int) -> None:
        self.requesters[port].memory.unmap(address)

    @property
    def mapped(self) -> int:
        """How many mappings there are, of all ports."""
        return sum(requester.memory.mapped for requester in self.requesters)

    def wait(self) -> bool:
        self._cycle += REST
        if not self.deaf:
            self._work()
        return any(self._interrupts(unit) for unit in range(len(self._maps)))

    def _work(self) -> None:
        for requester in self.requesters:
            requester.fetch()
        for arrival in self._node.step() or ():
            if isinstance(arrival, Completion):
                self.requesters[arrival.ring.port].answer(arrival)
            else:
                self.requesters[arrival.port].tell(arrival)

    def _interrupts(self, unit: int) -> bool:
        status, enable = (self._maps[unit][f"INTERRUPT_{name}"].offset for name in ("STATUS", "ENABLE"))
        return bool(self.read(unit, status) & self.read(unit, enable))

    @property
    def cycle(self) -> int:
        return self._cycle

    def close(self) -> None:
        """Nothing is held."""
