"""Commands under way, and the memory that the device reaches for them."""

from dataclasses import dataclass, field

import numpy as np

from hw.params.commands import Command, Lookup, Read, Write
from hw.params.errors import InputError
from hw.params.params import Params
from hw.params.records import DESCRIPTOR, PAGE_SHIFTS, SCATTERED
from hw.params.tasks import Put
from sw.driver.transport.bus import Bus
from sw.driver.transport.descriptors import fields_of, packed_keys

LONGEST = (1 << DESCRIPTOR.fields["length"]) - 1


@dataclass(slots=True, eq=False)
class Flight:
    """A command between its submission and its completion.

    - ``fields``: of its descriptor. ``keys``: of a LOOKUP.
    - ``own``: what a READ goes to that has no buffer of its caller's.
    - ``mapped``: addresses that end with it.
    - ``deadline``: when it counts as unanswered; set when it is sent.
    """

    tag: int
    command: Command
    fields: dict[str, int]
    keys: bytes = b""
    own: memoryview | None = None
    mapped: list[int] = field(default_factory=list)
    deadline: float = 0


class Flights:
    """Makes flights of commands, with their data mapped where it is: whole, or page by page of ``page_bytes``.

    InputError for a size that no page has.
    """

    def __init__(self, bus: Bus, params: Params, page_bytes: int | None) -> None:
        least, most = params.memory.segment_bytes, 1 << PAGE_SHIFTS[-1]
        good = page_bytes is None or (least <= page_bytes <= most and page_bytes & (page_bytes - 1) == 0)
        if not good:
            raise InputError(f"page_bytes = {page_bytes}, expected a power of two from {least} to {most}")
        self._bus = bus
        self._params = params
        self._page_bytes = page_bytes
        self._largest = max(pool.frame_bytes for pool in params.pools)

    def take(self, port: int, tag: int, command: Command, into: memoryview | None, slice_: int) -> Flight | None:
        """The command with its memory mapped; None for one that no descriptor can say, or that has nothing in it."""
        try:
            flight = Flight(tag, command, fields_of(command) | {"slice": slice_})
            if isinstance(command, Lookup):
                if not 1 <= len(command.keys) <= self._params.tables.lookup_keys:
                    return None
                flight.keys = packed_keys(command.keys)
            DESCRIPTOR.pack(**flight.fields)
        except InputError:
            return None
        if isinstance(command, Write | Put):
            if not command.data:
                return None
            self._map(port, flight, memoryview(command.data), writable=False)
        elif isinstance(command, Read):
            if not into:
                size = max(command.count, 1) * self._params.memory.segment_bytes
                into = flight.own = np.empty(min(size, self._largest), np.uint8).data
            flight.fields["length"] = min(len(into), LONGEST)
            self._map(port, flight, into, writable=True)
        return flight

    def release(self, port: int, flight: Flight) -> None:
        """The command has ended: nothing is read or written for it any more."""
        for address in flight.mapped:
            self._bus.unmap(port, address)

    def _map(self, port: int, flight: Flight, view: memoryview, *, writable: bool) -> None:
        size = self._page_bytes
        scattered = size is not None and len(view) > size
        pages = [view[at : at + size] for at in range(0, len(view), size)] if size and scattered else [view]
        try:
            for page in pages:
                flight.mapped.append(self._bus.map(port, page, writable=writable))
            if scattered:
                table = np.array(flight.mapped, "<u8").view(np.uint8).data
                flight.mapped.append(self._bus.map(port, table, writable=False))
        except Exception:  # whatever it is goes on to the caller; what is mapped must not stay so
            self.release(port, flight)
            raise
        flight.fields["data"] = flight.mapped[-1]
        if size and scattered:
            flight.fields["flags"] = flight.fields.get("flags", 0) | SCATTERED
            flight.fields["page_shift"] = size.bit_length() - 1
