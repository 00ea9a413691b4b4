"""What has come to its last generation: a frame or slot is used so often, then it is out of service until restart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hw.params.params import Params
from hw.params.protocol import Handle, PinId, RingId, SessionId
from hw.params.sections import TableParams
from sw.driver.lives import parts_of, slice_of


class Wear:
    """Frames, session slots and pin slots seen in their last generation, of every slice."""

    def __init__(self, tables: TableParams) -> None:
        self._tables = tables
        self._last_of_frame = (1 << tables.generation_bits) - 1
        self._last_of_slot = (1 << tables.slot_generation_bits) - 1
        self.slices: set[int] = set()
        """Those that have given out a frame."""
        self._frames: set[tuple[int, int]] = set()
        self._sessions: set[tuple[int, int]] = set()
        self._pins: defaultdict[tuple[RingId, int], set[int]] = defaultdict(set)

    def frame(self, handle: Handle) -> None:
        """A frame was given out."""
        self.slices.add(handle.slice)
        if handle.generation == self._last_of_frame:
            self._frames.add((handle.slice, handle.frame))

    def session(self, session: SessionId) -> None:
        """A session was opened."""
        for slice_, part in parts_of(session).items():
            if part.generation == self._last_of_slot:
                self._sessions.add((slice_, part.slot))

    def pin(self, ring: RingId, pin: PinId) -> None:
        """A pin was given out; a ring that was bound again may begin anew."""
        worn, slots = pin.generation == self._last_of_slot, self._pins[ring, slice_of(pin)]
        (slots.add if worn else slots.discard)(pin.slot)

    def no_pins(self, ring: RingId) -> bool:
        """Whether no slot of the ring at some slice will ever take a pin again, but for those held now."""
        return any(its == ring and len(slots) == self._tables.pins_per_ring for (its, _), slots in self._pins.items())

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
            free = params.node.slices * unused.frames
            found.append(
                f"pools.{number} is used by no partition: blocks of {params.replay.block_bytes:,} bytes go to"
                f" {' and '.join(f'pools.{pool}' for pool in pools)}, {free:,} frames stay free"
            )
    for slice_ in range(params.node.slices):
        if params.node.slices > 1 and slice_ not in wear.slices:
            found.append(
                f"slice {slice_} was given no block: by node.home={params.node.home} all belong elsewhere;"
                " node.home=key spreads them one by one"
            )
    return found
