"""A device on rings whose bus can be looked into."""

from typing import Any

from driverbench import PARAMS, Rig

from sw.driver import Client, Device
from sw.driver.transport import MmioTransport
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.mmio import RingFailed

DATA = bytes(range(250)) * 4


class Ringed(Rig):
    """A device whose bus can be looked into."""

    def __init__(self, bus: LoopbackBus | None = None, **options: Any) -> None:
        self.bus = LoopbackBus(PARAMS) if bus is None else bus
        super().__init__(Device(MmioTransport(PARAMS, self.bus, **options)))

    def memory(self, client: Client) -> list[int]:
        """Addresses of the queue pair of a client's ring: descriptors, completions, keys of the first slot, results."""
        pair = self.device.transport._lanes[client.ring].pair  # type: ignore[attr-defined]
        return [pair.memory.address, pair.memory.address + pair._completions, pair.keys(0)[0], pair.results(0)[0]]

    def mapped(self) -> list[int]:
        """How many mappings each port has."""
        return [requester.memory.mapped for requester in self.bus.requesters]

    def failures(self) -> list[RingFailed]:
        """What listeners have heard of failed rings."""
        return [message for message in self.heard if isinstance(message, RingFailed)]
