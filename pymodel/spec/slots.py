"""Bounded tables whose entries are named by slot and generation: pins, sessions, parked reads."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from hw.params.protocol import SlotId

T = TypeVar("T")


class Slots(Generic[T]):
    """A table of ``size`` entries; the slot that has been free longest is taken next.

    With ``shares`` the slots are divided: slot i is of share i modulo ``shares``, and each share is a table of its own.

    A slot's generation counts its uses, so that an identifier of an earlier use finds nothing. A slot whose counter
    is at its limit leaves service until restart.
    """

    def __init__(self, size: int, generation_bits: int, shares: int = 1) -> None:
        self._entries: list[T | None] = [None] * size
        self._generations = [0] * size
        self._free = [deque(range(share, size, shares)) for share in range(shares)]
        self._used = 0
        self._limit = (1 << generation_bits) - 1

    def take(self, entry: T, share: int = 0) -> SlotId | None:
        """Put ``entry`` into a free slot of a share; None when there is none."""
        free = self._free[share]
        if not free:
            return None
        slot = free.popleft()
        self._entries[slot] = entry
        self._used += 1
        return SlotId(slot, self._generations[slot])

    def get(self, name: SlotId) -> T | None:
        """The entry of that slot in that generation, if it is still there."""
        if self._generations[name.slot] != name.generation:
            return None
        return self._entries[name.slot]

    def at(self, slot: int) -> T | None:
        """The entry that is in ``slot`` now; None also where there is no such slot."""
        return self._entries[slot] if 0 <= slot < len(self._entries) else None

    def name(self, slot: int) -> SlotId:
        """The identifier of the entry that is in ``slot`` now."""
        return SlotId(slot, self._generations[slot])

    def release(self, slot: int) -> None:
        """Take the entry out: its identifier is stale from here on."""
        self._entries[slot] = None
        self._used -= 1
        if self._generations[slot] < self._limit:
            self._generations[slot] += 1
            self._free[slot % len(self._free)].append(slot)

    def __len__(self) -> int:
        return self._used

    def items(self) -> Iterator[tuple[int, T]]:
        """(slot, entry) of every entry, by slot."""
        for slot, entry in enumerate(self._entries):
            if entry is not None:
                yield slot, entry
