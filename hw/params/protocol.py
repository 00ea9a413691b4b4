"""Statuses, opcodes, states and identifiers: the words that RTL, models, driver and documents share."""

from enum import IntEnum
from typing import NamedTuple, Self

from hw.params.errors import InputError


class Status(IntEnum):
    """How a command, or one item of a batched command, ended.

    Where several refusals apply, the first of ``PRECEDENCE`` is given.
    """

    OK = 0
    HIT = 1
    MISS = 2
    PENDING = 3
    GRANTED = 4
    EXISTS = 5
    INVALID = 6
    UNAVAILABLE = 7
    DENIED = 8
    STALE = 9
    RETIRED = 10
    RANGE = 11
    NO_SPACE = 12
    QUOTA = 13
    WRITE_ONCE = 14
    INCOMPLETE = 15
    CRC = 16
    MEM_ERROR = 17
    POISON = 18

    @property
    def meaning(self) -> str:
        """One sentence for documents and error messages."""
        return _MEANINGS[self]


_MEANINGS = {
    Status.OK: "done",
    Status.HIT: "the block is sealed and may be read",
    Status.MISS: "no such block, or none that this ring may know of",
    Status.PENDING: "being written, bound or drained; ask again, or park on it",
    Status.GRANTED: "a frame was given; write, then seal",
    Status.EXISTS: "the block is sealed already, with the same content; counts as success",
    Status.INVALID: "malformed: a field outside its type, or a resource that does not exist",
    Status.UNAVAILABLE: "link, ring, node or scope is out of service, or no epoch is set",
    Status.DENIED: "the ring has no right to do this",
    Status.STALE: "a handle, pin or session of another generation, epoch or scope",
    Status.RETIRED: "the model takes no new blocks",
    Status.RANGE: "beyond a length, a quota or a capacity that was declared",
    Status.NO_SPACE: "no frame, index slot or table entry is free",
    Status.QUOTA: "the partition is at its quota and has nothing to evict",
    Status.WRITE_ONCE: "already written: a segment below accepted, or a block sealed or sealing",
    Status.INCOMPLETE: "the length to seal is not the length accepted",
    Status.CRC: "the CRC32C to seal does not match the bytes accepted; the block is gone",
    Status.MEM_ERROR: "memory failed to store a segment; the block is gone",
    Status.POISON: "memory returned bytes that fail their check; the block is gone",
}

PRECEDENCE = (
    Status.INVALID,
    Status.UNAVAILABLE,
    Status.DENIED,
    Status.STALE,
    Status.RETIRED,
    Status.RANGE,
)


class Opcode(IntEnum):
    """What a command asks for. From BIND on, only an administrative ring or AXI4-Lite may ask."""

    LOOKUP = 1
    ALLOC = 2
    WRITE = 3
    SEAL = 4
    ABORT = 5
    READ = 6
    UNPIN = 7
    DROP = 8
    OPEN_SESSION = 9
    CLOSE_SESSION = 10
    MIGRATE = 11
    ANSWER_FENCE = 12
    BIND = 16
    SET_PARTITION = 17
    DROP_PARTITION = 18
    SET_MODEL = 19
    RETIRE = 20
    SET_EPOCH = 21

    @property
    def administrative(self) -> bool:
        """Whether rights to it come from an administrative ring or AXI4-Lite only."""
        return self >= Opcode.BIND


class EngineOpcode(IntEnum):
    """What a descriptor asks of an engine of the requester. A node knows none of them, and answers INVALID."""

    PREFETCH = 64
    CANCEL = 65
    PUT = 80
    FLUSH = 81


class LookupMode(IntEnum):
    """RUN stops at the first key that is not HIT; BITMAP answers every key."""

    RUN = 0
    BITMAP = 1


class FrameState(IntEnum):
    """Life of a frame: FREE, WRITING, SEALED, DRAINING, FREE; QUARANTINED leaves service until restart."""

    FREE = 0
    WRITING = 1
    SEALED = 2
    DRAINING = 3
    QUARANTINED = 4


class ModelState(IntEnum):
    """What a model and weights revision takes: everything, reads only (a rollout), nothing."""

    RETIRED = 0
    READ_ONLY = 1
    LIVE = 2


class MessageKind(IntEnum):
    """What a node tells a port unasked: answer a fence, a scope has died, a block was stored or has gone."""

    FENCE = 1
    INVALIDATE = 2
    EVENT = 3


class NoteKind(IntEnum):
    """What a requester tells a node unasked, in one MESSAGE flit: a ring of it is lost, or that it is there."""

    LOST = 0
    HEARTBEAT = 1


KEY_BITS = 128
KEY_BYTES = KEY_BITS // 8
EPOCH_BITS = 64
NODE_BITS = 6
SLICE_BITS = 6
PORT_BITS = 4
RING_BITS = 4
FRAME_BITS = 20
FRAME_GENERATION_BITS = 32
SLOT_BITS = 16
SLOT_GENERATION_BITS = 48
TAG_BITS = 16
STATUS_BITS = 5
ITEM_BITS = 16
"""Width of the number of a segment or of a batched command's item, and of how many there are."""


class RingId(NamedTuple):
    """The stamp (port, ring) that trusted logic puts on every command."""

    port: int
    ring: int


REGISTERS = RingId(port=-1, ring=0)
"""The stamp of commands that come through AXI4-Lite: always administrative."""

REGISTER_TAG = (1 << TAG_BITS) - 1
"""The tag of what the ADMIN registers and CONTROL ask for, one at a time, under REGISTERS."""


def tags(ring: RingId) -> range:
    """The tags that match completions to commands of a ring; each is free again when its command has ended."""
    return range(REGISTER_TAG if ring == REGISTERS else 1 << TAG_BITS)


def _pack(values: tuple[int, ...], widths: tuple[int, ...]) -> int:
    """The word of an identifier; InputError for a value that would run over into its neighbour."""
    word = 0
    for value, width in zip(values, widths, strict=True):
        if not 0 <= value < 1 << width:
            raise InputError(f"{values}: {value} does not fit its {width} bits")
        word = word << width | value
    return word


def _unpack(word: int, widths: tuple[int, ...]) -> list[int]:
    """The values of an identifier's word; InputError for a word of more bits."""
    if not 0 <= word < 1 << sum(widths):
        raise InputError(f"identifier {word:#x}: expected a word of {sum(widths)} bits")
    values = []
    for width in reversed(widths):
        values.append(word & ((1 << width) - 1))
        word >>= width
    return values[::-1]


HANDLE_WIDTHS = (NODE_BITS, SLICE_BITS, FRAME_BITS, FRAME_GENERATION_BITS, EPOCH_BITS)
"""Of the fields of a handle in its word, the highest first; the epoch is the lower half."""
SLOT_WIDTHS = (SLOT_BITS, SLOT_GENERATION_BITS)
"""The same of an entry of a bounded table."""


class Handle(NamedTuple):
    """One store of one block: a frame in its generation and epoch. 128 bits, node first, epoch last."""

    node: int
    slice: int
    frame: int
    generation: int
    epoch: int

    def pack(self) -> int:
        """The 128-bit word of descriptors and flits."""
        return _pack(self, HANDLE_WIDTHS)

    @classmethod
    def unpack(cls, word: int) -> Self:
        """Inverse of ``pack``."""
        return cls(*_unpack(word, HANDLE_WIDTHS))


class SlotId(NamedTuple):
    """An entry of a bounded table, in its generation. 64 bits: slot first, generation last."""

    slot: int
    generation: int

    def pack(self) -> int:
        """The 64-bit word of descriptors and flits."""
        return _pack(self, SLOT_WIDTHS)

    @classmethod
    def unpack(cls, word: int) -> Self:
        """Inverse of ``pack``."""
        return cls(*_unpack(word, SLOT_WIDTHS))


class PinId(SlotId):
    """An entry of a ring's pin table; means nothing on another ring."""


class SessionId(SlotId):
    """An entry of a slice's session table."""
