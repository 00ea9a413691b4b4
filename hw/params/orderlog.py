"""The order log: everything a slice decides, in the sequence in which it decided it.

``Taken`` is a command (or one item of a batched one) as the slice takes it; all others are internal operations,
whose moment hardware chooses. Given the log, the specification gives every status, victim and byte; it rejects an
internal operation that is not legal where it stands. Nothing in it depends on cycles.
"""

from dataclasses import dataclass
from enum import IntEnum

from hw.params.commands import Command
from hw.params.protocol import RingId


@dataclass(frozen=True, slots=True)
class Operation:
    """Root of the entries of an order log."""


@dataclass(frozen=True, slots=True)
class Taken(Operation):
    """A command is taken; of a LOOKUP or WRITE, its key or segment number ``item``."""

    ring: RingId
    tag: int
    command: Command
    item: int = 0


@dataclass(frozen=True, slots=True)
class Landed(Operation):
    """Memory has answered the next ``segments`` writes of a frame, the last of them with an error unless ``ok``."""

    frame: int
    segments: int
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Sealed(Operation):
    """A waiting SEAL, whose segments have all been answered, is decided."""

    frame: int


@dataclass(frozen=True, slots=True)
class ReadDone(Operation):
    """The last beat of a READ has left; ``ok`` unless its bytes failed their check."""

    ring: RingId
    tag: int
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Drained(Operation):
    """A DRAINING frame, without pins and with every memory access answered, becomes FREE."""

    frame: int


class Timer(IntEnum):
    """What can run out. No timer ever makes a block readable."""

    PARKED_READ = 0
    FENCE = 1


@dataclass(frozen=True, slots=True)
class Expired(Operation):
    """The timer of a parked read or of a session's fence, by slot, has run out."""

    timer: Timer
    slot: int


@dataclass(frozen=True, slots=True)
class Fenced(Operation):
    """The writes that the old ring counted have landed: a migrating session changes rings."""

    slot: int


@dataclass(frozen=True, slots=True)
class Lost(Operation):
    """A ring is gone (its own reset, or its port's link)."""

    ring: RingId


class Hand(IntEnum):
    """The background hands, by what they walk over."""

    FRAMES = 0
    SESSIONS = 1
    PINS = 2
    PARKED = 3


@dataclass(frozen=True, slots=True)
class Step(Operation):
    """A hand reclaims entry ``slot`` (for PINS: of ``ring``), or answers the parked read in it."""

    hand: Hand
    slot: int
    ring: RingId | None = None


@dataclass(frozen=True, slots=True)
class Restarted(Operation):
    """Reset: all state is gone, what was outstanding ends UNAVAILABLE, no command is taken before SET_EPOCH."""
