"""Commands, completions and messages: what crosses a port of the memory node, as plain records.

Descriptors and flits in RTL carry these fields. Lengths are bytes, segments are indices, keys are 128-bit
integers. LOOKUP and WRITE are batched: n single operations in order, each taken by the slice on its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum
from typing import ClassVar

from hw.params.protocol import Handle, LookupMode, ModelState, Opcode, PinId, RingId, SessionId, Status


@dataclass(frozen=True, slots=True)
class Command:
    """Root of all commands."""

    opcode: ClassVar[Opcode]


@dataclass(frozen=True, slots=True)
class Lookup(Command):
    """Look ``keys`` of one model up, in order; ``pin`` holds each HIT for this ring."""

    opcode: ClassVar[Opcode] = Opcode.LOOKUP
    model: int
    keys: Sequence[int]
    mode: LookupMode = LookupMode.RUN
    pin: bool = False


@dataclass(frozen=True, slots=True)
class Alloc(Command):
    """Claim a frame for a block of at most ``length`` bytes."""

    opcode: ClassVar[Opcode] = Opcode.ALLOC
    model: int
    key: int
    length: int
    session: SessionId


@dataclass(frozen=True, slots=True)
class Write(Command):
    """Append ``data`` from segment ``segment`` on; only the block's last segment may be short."""

    opcode: ClassVar[Opcode] = Opcode.WRITE
    handle: Handle
    segment: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Seal(Command):
    """Set the done bit once all ``length`` bytes have landed; ``crc`` is the CRC32C of them all."""

    opcode: ClassVar[Opcode] = Opcode.SEAL
    handle: Handle
    length: int
    crc: int


@dataclass(frozen=True, slots=True)
class Abort(Command):
    """Give a block up before it is sealed."""

    opcode: ClassVar[Opcode] = Opcode.ABORT
    handle: Handle


@dataclass(frozen=True, slots=True)
class Read(Command):
    """Stream ``count`` segments; ``park`` waits in the node for a block that is not sealed yet."""

    opcode: ClassVar[Opcode] = Opcode.READ
    handle: Handle
    segment: int
    count: int
    park: bool = False


@dataclass(frozen=True, slots=True)
class Unpin(Command):
    """Return a pin."""

    opcode: ClassVar[Opcode] = Opcode.UNPIN
    pin: PinId


@dataclass(frozen=True, slots=True)
class Drop(Command):
    """Make a block of the own partition unreachable."""

    opcode: ClassVar[Opcode] = Opcode.DROP
    model: int
    key: int


@dataclass(frozen=True, slots=True)
class OpenSession(Command):
    """Open a session on this ring."""

    opcode: ClassVar[Opcode] = Opcode.OPEN_SESSION


@dataclass(frozen=True, slots=True)
class CloseSession(Command):
    """Close a session; its unsealed blocks die."""

    opcode: ClassVar[Opcode] = Opcode.CLOSE_SESSION
    session: SessionId


@dataclass(frozen=True, slots=True)
class Migrate(Command):
    """Move a session of the own partition to this ring; completes when the fence has closed."""

    opcode: ClassVar[Opcode] = Opcode.MIGRATE
    session: SessionId


@dataclass(frozen=True, slots=True)
class AnswerFence(Command):
    """The old ring's answer to FENCE: how many segments of the session it has had accepted or under way."""

    opcode: ClassVar[Opcode] = Opcode.ANSWER_FENCE
    session: SessionId
    writes: int


class Binding(Enum):
    """What a ring can be bound to besides a partition."""

    NONE = "none"
    ADMINISTRATIVE = "administrative"


@dataclass(frozen=True, slots=True)
class Bind(Command):
    """Bind ``ring`` to a partition, make it administrative, or unbind it. A ring in use is lost first."""

    opcode: ClassVar[Opcode] = Opcode.BIND
    ring: RingId
    to: int | Binding


@dataclass(frozen=True, slots=True)
class SetPartition(Command):
    """Configure a partition: its pool, quota and guarantee in frames, who may read it, what it may read."""

    opcode: ClassVar[Opcode] = Opcode.SET_PARTITION
    partition: int
    pool: int = 0
    quota: int = 0
    guarantee: int = 0
    public: bool = False
    read_mask: int = 0


@dataclass(frozen=True, slots=True)
class DropPartition(Command):
    """Make all blocks of a partition unreachable, in one step."""

    opcode: ClassVar[Opcode] = Opcode.DROP_PARTITION
    partition: int


@dataclass(frozen=True, slots=True)
class SetModel(Command):
    """Make a model LIVE or READ_ONLY."""

    opcode: ClassVar[Opcode] = Opcode.SET_MODEL
    model: int
    state: ModelState


@dataclass(frozen=True, slots=True)
class Retire(Command):
    """Retire a model: all its blocks are unreachable, in one step."""

    opcode: ClassVar[Opcode] = Opcode.RETIRE
    model: int


@dataclass(frozen=True, slots=True)
class SetEpoch(Command):
    """Start service after a restart with a fresh 64-bit epoch."""

    opcode: ClassVar[Opcode] = Opcode.SET_EPOCH
    epoch: int


@dataclass(slots=True)
class Completion:
    """The one answer to a command, matched by ``tag``.

    ``count`` is the number of HITs of a LOOKUP, of segments that a WRITE has appended, however it ended, or that a READ
    has brought; ``length`` the bytes of ``data``, which a READ fills and a transport may have put elsewhere. A LOOKUP
    gives ``statuses``, ``handles`` and ``pins`` for each key it answered (None where there is none); its ``status`` is
    the reason it stopped: HIT when every key of a run hit, OK at the end of a bitmap, NO_SPACE when the pin table was
    full.
    """

    ring: RingId
    tag: int
    status: Status = Status.OK
    count: int = 0
    handle: Handle | None = None
    session: SessionId | None = None
    statuses: list[Status] = field(default_factory=list)
    handles: list[Handle | None] = field(default_factory=list)
    pins: list[PinId | None] = field(default_factory=list)
    length: int = 0
    data: bytes = b""

    def __repr__(self) -> str:
        """The fields that are not empty, but for data."""
        shown = [f"{self.status.name} for tag {self.tag} of {self.ring}"]
        values = ((f.name, getattr(self, f.name)) for f in fields(self)[3:-1])
        shown += [f"{name}={value}" for name, value in values if value]
        return f"<{', '.join(shown)}>"


@dataclass(frozen=True, slots=True)
class Message:
    """Root of what a node tells a port unasked."""

    port: int

    @property
    def slice(self) -> int:
        """The slice that tells it."""
        return 0


@dataclass(frozen=True, slots=True)
class Fence(Message):
    """To the old ring of a migrating session: drain it, then answer with its WRITE count."""

    ring: RingId
    session: SessionId
    slice: int = 0


@dataclass(frozen=True, slots=True)
class Invalidate(Message):
    """A partition or a model (the other is None) has died with all that was under it, in one slice."""

    partition: int | None = None
    model: int | None = None
    slice: int = 0


class Fate(IntEnum):
    """What has become of a block."""

    STORED = 0
    EVICTED = 1
    DROPPED = 2
    DAMAGED = 3

    @property
    def meaning(self) -> str:
        """One sentence for documents."""
        return _FATES[self]


_FATES = {
    Fate.STORED: "sealed: it can be read",
    Fate.EVICTED: "its frame has gone to another block",
    Fate.DROPPED: "given up by DROP",
    Fate.DAMAGED: "memory returned bytes that fail their check",
}


@dataclass(frozen=True, slots=True)
class Event(Message):
    """A block was stored, or a stored one has gone alone: for routers and colder tiers."""

    fate: Fate
    partition: int
    model: int
    key: int
    handle: Handle

    @property
    def stored(self) -> bool:
        """Whether the block can be read from now on; otherwise it has gone."""
        return self.fate is Fate.STORED

    @property
    def slice(self) -> int:
        """That of the block."""
        return self.handle.slice
