"""What a slice remembers: frames, partitions, models, rings and sessions, as plain records."""

from collections import deque
from dataclasses import dataclass, field

from hw.params.commands import Read
from hw.params.params import Params
from hw.params.protocol import FrameState, ModelState, RingId, SessionId
from pymodel.spec.cam import Tag
from pymodel.spec.scope import Scope
from pymodel.spec.slots import Slots


@dataclass(slots=True, eq=False)
class Pool:
    """Frames of one size, and the FREE ones of them, oldest first. ``quarantined`` counts those out of service."""

    frame_bytes: int
    frames: list["Frame"]
    free: deque["Frame"]
    quarantined: int = 0


NO_POOL = Pool(0, [], deque())
"""The pool of a partition that was never configured."""


@dataclass(slots=True, eq=False)
class Partition:
    """A tenant. ``used`` counts its frames in any state, ``hand`` is where its replacement hand stands in the pool,
    ``victims`` its queue of frames that may be evicted."""

    id: int
    scope: Scope
    pool: Pool = NO_POOL
    quota: int = 0
    guarantee: int = 0
    public: bool = False
    read_mask: int = 0
    used: int = 0
    hand: int = 0
    victims: deque["Frame"] = field(default_factory=deque)


NOBODY = Partition(-1, Scope(1))
NO_TAG = Tag(-1, -1, -1)
NO_SESSION = SessionId(-1, -1)


@dataclass(slots=True, eq=False)
class Frame:
    """One physical slot of a block. What is below ``state`` describes the block, and is void while FREE.

    ``accepted`` is the next append offset, ``landed`` the prefix that memory has stored, ``answered`` what it has
    answered, errors included; all in segments. ``length`` is the bytes accepted, ``bound`` the most there may be.
    """

    index: int
    pool: Pool
    generation: int = 0
    state: FrameState = FrameState.FREE
    partition: Partition = NOBODY
    tag: Tag = NO_TAG
    partition_stamp: int = 0
    model_stamp: int = 0
    session: SessionId = NO_SESSION
    bound: int = 0
    length: int = 0
    accepted: int = 0
    answered: int = 0
    landed: int = 0
    crc: int = 0
    sealing: tuple[RingId, int] | None = None
    referenced: bool = False
    queued: bool = False
    pins: int = 0
    reads: int = 0
    segments: list[bytes] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether a pin, or a READ that has not ended, keeps the frame from being reused."""
        return self.pins > 0 or self.reads > 0


@dataclass(slots=True, eq=False)
class Model:
    """A model and weights revision."""

    id: int
    scope: Scope
    state: ModelState = ModelState.RETIRED


@dataclass(slots=True, eq=False)
class Ring:
    """A queue pair on a port. Bound to one partition, or administrative, or to NOBODY; ``lost`` until bound again.

    ``sessions`` counts the sessions bound to it, dead or alive, until the sweep has taken them out.
    """

    id: RingId
    pins: Slots[Frame]
    partition: Partition = NOBODY
    administrative: bool = False
    lost: bool = False
    sessions: int = 0


@dataclass(slots=True, eq=False)
class Fencing:
    """A migration under way: who asked (its tag), and the WRITE count that the old ring has answered."""

    target: Ring
    tag: int
    writes: int | None = None


@dataclass(slots=True, eq=False)
class Session:
    """One request's sequence, bound to a ring; it dies with it.

    ``written`` counts the segments accepted in its name from the ring that it is bound to, ``settled`` those of them
    that memory has answered, or that were abandoned with their block.
    """

    ring: Ring
    former: Ring | None = None
    written: int = 0
    settled: int = 0
    fence: Fencing | None = None


@dataclass(slots=True, eq=False)
class Reading:
    """A READ under way, or parked."""

    ring: Ring
    tag: int
    frame: Frame
    command: Read


def make_rings(params: Params) -> dict[RingId, Ring]:
    """All rings of a slice, unbound."""
    tables = params.tables
    names = [RingId(port, ring) for port in range(tables.ports) for ring in range(tables.rings_per_port)]
    return {name: Ring(name, Slots(tables.pins_per_ring, tables.slot_generation_bits)) for name in names}


def make_pools(params: Params) -> list[Pool]:
    """All pools of a slice, every frame FREE; frames are numbered through the pools."""
    pools: list[Pool] = []
    first = 0
    for pool in params.pools:
        made = Pool(pool.frame_bytes, [], deque())
        made.frames.extend(Frame(index, made) for index in range(first, first + pool.frames))
        made.free.extend(made.frames)
        pools.append(made)
        first += pool.frames
    return pools
