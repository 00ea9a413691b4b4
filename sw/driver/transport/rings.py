"""Rings in host memory, as docs/requester.md describes them: entries and doorbells, no commands."""

from collections.abc import Iterator

import numpy as np

from hw.params.errors import InputError
from hw.params.params import Params
from hw.params.protocol import KEY_BYTES, RingId
from hw.params.records import ALIGNMENT, COMPLETION, DESCRIPTOR, EVENT, PHASE
from sw.driver.transport.bus import Bus
from sw.driver.transport.unit import Unit

MOST_ENTRIES = 1 << 15


def check_entries(entries: int) -> int:
    """A size that a ring can have; InputError for another."""
    if not isinstance(entries, int) or entries & (entries - 1) or not 2 <= entries <= MOST_ENTRIES:
        raise InputError(f"entries = {entries!r}, expected a power of two from 2 to {MOST_ENTRIES}")
    return entries


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Shared:
    """Zeroed memory that the requester of a port reaches, until it is closed."""

    def __init__(self, bus: Bus, port: int, size: int) -> None:
        self.view = np.zeros(size, np.uint8).data
        self.address = bus.map(port, self.view, writable=True)
        self._bus = bus
        self._port = port

    def close(self) -> None:
        """End it."""
        self._bus.unmap(self._port, self.address)


class QueuePair:
    """Submission and completion ring of one ring, with room for keys and results of a LOOKUP at each of its slots.

    A slot is taken by a command from its descriptor to its completion, and is the tag of both: it is not used again
    before the device has answered, whatever the driver's own tags are.
    """

    def __init__(self, bus: Bus, unit: Unit, ring: RingId, entries: int, params: Params) -> None:
        self.ring = ring
        self.entries = entries
        self.name = f"RING{ring.ring}_"
        self._unit = unit
        keys = params.tables.lookup_keys
        self._completions = _aligned(entries * DESCRIPTOR.size)
        self._areas = self._completions + _aligned(entries * COMPLETION.size)
        self._results = _aligned(keys * KEY_BYTES)
        self._area = self._results + _aligned(keys * COMPLETION.size)
        self.memory = Shared(bus, ring.port, self._areas + entries * self._area)
        self._forget()

    def _forget(self) -> None:
        self._free = list(range(self.entries - 1, -1, -1))
        self._places: dict[int, int] = {}
        self._tail = self._fetched = self._head = 0

    # Service.

    @property
    def active(self) -> bool:
        """Whether the device still uses its memory."""
        return bool(self._unit.get(self.name + "STATUS.active"))

    @property
    def losing(self) -> bool:
        """Whether the node has not been told of a loss yet."""
        return bool(self._unit.get(self.name + "STATUS.losing"))

    @property
    def failed(self) -> bool:
        """Whether the device has given the ring up."""
        return bool(self._unit.get(self.name + "STATUS.failed"))

    def enable(self) -> None:
        """Set the ring up, empty; it must be inactive."""
        self._forget()
        self.memory.view[:] = bytes(len(self.memory.view))
        base = self.memory.address
        for name, at in (("SUBMISSION", base), ("COMPLETION", base + self._completions)):
            self._unit.write(f"{self.name}{name}_LOW", at & 0xFFFFFFFF)
            self._unit.write(f"{self.name}{name}_HIGH", at >> 32)
        self._unit.write(self.name + "SIZE", self.entries.bit_length() - 1)
        self._unit.put(self._unit.word({self.name + "CONTROL.enable": 1}))

    def disable(self) -> None:
        """Take it out of service: what it held is released, nothing is written to memory any more."""
        self._unit.write(self.name + "CONTROL", 0)

    def lose(self) -> None:
        """Tell the node that the ring is lost; it goes on."""
        self._unit.put(self._unit.word({self.name + "CONTROL.enable": 1, self.name + "CONTROL.lose": 1}))

    # Submission.

    @property
    def room(self) -> bool:
        """Whether another descriptor has a place."""
        return bool(self._free) and self._tail - self._fetched < self.entries - 1

    def take(self) -> int:
        """A free slot."""
        return self._free.pop()

    def keys(self, slot: int) -> tuple[int, memoryview]:
        """Where the keys of a slot's LOOKUP are."""
        return self._part(slot, 0, self._results)

    def results(self, slot: int) -> tuple[int, memoryview]:
        """Where its results are."""
        return self._part(slot, self._results, self._area)

    def _part(self, slot: int, start: int, end: int) -> tuple[int, memoryview]:
        at = self._areas + slot * self._area
        return self.memory.address + at + start, self.memory.view[at + start : at + end]

    def push(self, slot: int, descriptor: bytes) -> None:
        """Write a descriptor, and ring the doorbell."""
        at = self._tail % self.entries * DESCRIPTOR.size
        self.memory.view[at : at + DESCRIPTOR.size] = descriptor
        self._places[slot] = self._tail
        self._tail += 1
        self._unit.write(self.name + "TAIL", self._tail % self.entries)

    # Completion.

    def pull(self) -> Iterator[dict[str, int]]:
        """The completions that have come; the slots of those before are free when the next is asked for."""
        before = self._head
        flags = self._completions + COMPLETION.offsets["flags"]
        while True:
            index = self._head % self.entries
            phase = PHASE * (self._head // self.entries % 2 == 0)
            if self.memory.view[flags + index * COMPLETION.size] & PHASE != phase:
                break
            at = self._completions + index * COMPLETION.size
            fields = COMPLETION.unpack(self.memory.view[at : at + COMPLETION.size])
            self._head += 1
            yield fields
            self._fetched = max(self._fetched, self._places.pop(fields["tag"]) + 1)
            self._free.append(fields["tag"])
        if self._head != before:
            self._unit.write(self.name + "HEAD", self._head % self.entries)


class EventRing:
    """The event ring of a port."""

    def __init__(self, bus: Bus, unit: Unit, port: int, entries: int) -> None:
        self.port = port
        self._entries = entries
        self._unit = unit
        self.memory = Shared(bus, port, entries * EVENT.size)
        self._head = 0

    @property
    def active(self) -> bool:
        """Whether the device still uses its memory."""
        return bool(self._unit.get("EVENT_STATUS.active"))

    losing = False
    """No node has to be told."""

    @property
    def failed(self) -> bool:
        """Whether the device has given it up."""
        return bool(self._unit.get("EVENT_STATUS.failed"))

    def enable(self) -> None:
        """Set it up, empty; it must be inactive."""
        self._head = 0
        self.memory.view[:] = bytes(len(self.memory.view))
        self._unit.write("EVENT_BASE_LOW", self.memory.address & 0xFFFFFFFF)
        self._unit.write("EVENT_BASE_HIGH", self.memory.address >> 32)
        self._unit.write("EVENT_SIZE", self._entries.bit_length() - 1)
        self._unit.write("EVENT_CONTROL", 1)

    def disable(self) -> None:
        """Nothing is written to it any more; messages are dropped."""
        self._unit.write("EVENT_CONTROL", 0)

    def pull(self) -> Iterator[dict[str, int]]:
        """The entries that have come."""
        before = self._head
        while True:
            at = self._head % self._entries * EVENT.size
            phase = self._head // self._entries % 2 == 0
            if bool(self.memory.view[at + EVENT.offsets["phase"]] & PHASE) != phase:
                break
            self._head += 1
            yield EVENT.unpack(self.memory.view[at : at + EVENT.size])
        if self._head != before:
            self._unit.write("EVENT_HEAD", self._head % self._entries)
