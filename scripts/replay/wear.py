"""What has come to its last generation: a frame or slot is used so often, then it is out of service until restart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hw.params.params import Params, TableParams
from hw.params.protocol import Handle, PinId, RingId, SessionId


class Wear:
    """Frames, session slots and pin slots seen in their last generation."""

    def __init__(self, tables: TableParams) -> None:
        self._tables = tables
        self._last_of_frame = (1 << tables.generation_bits) - 1
        self._last_of_slot = (1 << tables.slot_generation_bits) - 1
        self._frames: set[int] = set()
        self._sessions: set[int] = set()
        self._pins: defaultdict[RingId, set[int]] = defaultdict(set)

    def frame(self, handle: Handle) -> None:
        """A frame was given out."""
        if handle.generation == self._last_of_frame:
            self._frames.add(handle.frame)

    def session(self, session: SessionId) -> None:
        """A session was opened."""
        if session.generation == self._last_of_slot:
            self._sessions.add(session.slot)

    def pin(self, ring: RingId, pin: PinId) -> None:
        """A pin was given out; a ring that was bound again may begin anew."""
        worn = pin.generation == self._last_of_slot
        (self._pins[ring].add if worn else self._pins[ring].discard)(pin.slot)

    def no_pins(self, ring: RingId) -> bool:
        """Whether no slot of the ring will ever take a pin again, but for those held now."""
        return len(self._pins[ring]) == self._tables.pins_per_ring

    @property
    def frames(self) -> int:
        """Frames that cannot be used again."""
        return len(self._frames)

    @property
    def sessions(self) -> int:
        """Session slots that cannot be used again."""
        return len(self._sessions)

    @property
    def pins(self) -> int:
        """Pin slots that cannot be used again, of all rings."""
        return sum(map(len, self._pins.values()))


def hints(wear: Wear, params: Params, pools: Sequence[int]) -> list[str]:
    """What is worn out and what to do about it, and what was configured for nothing; a line each."""
    found = []
    for worn, what, first, name in (
        (wear.frames, "frames", 1, "generation_bits"),
        (wear.sessions, "slots of sessions", 0, "slot_generation_bits"),
        (wear.pins, "slots of pins", 0, "slot_generation_bits"),
    ):
        if worn:
            bits = getattr(params.tables, name)
            found.append(
                f"worn out: {worn:,} {what}, each used {(1 << bits) - first:,} times; set tables.{name} above {bits} to"
                " use them longer"
            )
    for number, unused in enumerate(params.pools):
        if number not in pools:
            found.append(
                f"pools.{number} is used by no partition: blocks of {params.replay.block_bytes:,} bytes go to"
                f" {' and '.join(f'pools.{pool}' for pool in pools)}, {unused.frames:,} frames stay free"
            )
    return found
