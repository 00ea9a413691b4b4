"""The state of a slice, and the rules all commands share: what is alive, what a handle names, how a block dies."""

from collections.abc import Iterable
from typing import TypeVar

from hw.params.commands import Command, Completion, Event, Fate, Message
from hw.params.params import Params
from hw.params.protocol import REGISTERS, SLOT_GENERATION_BITS, FrameState, Handle, RingId, SessionId, Status
from hw.params.registers import COUNTERS
from pymodel.spec.cam import BlockCam, Tag
from pymodel.spec.replacement import Replacement
from pymodel.spec.scope import Scope
from pymodel.spec.slots import Slots
from pymodel.spec.state import (
    NO_SESSION,
    NO_TAG,
    NOBODY,
    Frame,
    Model,
    Partition,
    Reading,
    Ring,
    Session,
    make_pools,
    make_rings,
)

T = TypeVar("T")


class Refused(Exception):
    """A command, or one item of it, ends with ``status``."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.name)
        self.status = status


def found(value: T | None, status: Status) -> T:
    """The value, or else refuse the command with ``status``."""
    if value is None:
        raise Refused(status)
    return value


def require(good: bool, status: Status) -> None:
    """Refuse the command with ``status`` unless ``good``."""
    if not good:
        raise Refused(status)


class Core:
    """All that a slice remembers. ``outputs`` collects what the operation under way tells the ports.

    ``unfinished`` has the batched commands of which items are still to come, and the number of the next.
    """

    def __init__(self, params: Params, node: int = 0, index: int = 0) -> None:
        self.params = params
        self.node = node
        self.index = index
        self.restart()

    def restart(self) -> None:
        """Forget everything; no command is taken until an epoch is set."""
        tables = self.params.tables
        self.epoch = 0
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.outputs: list[Completion | Message] = []
        self.cam = BlockCam(self.params)
        self.pools = make_pools(self.params)
        self.frames = [frame for pool in self.pools for frame in pool.frames]
        self.partitions = [Partition(i, Scope(1 << tables.stamp_bits)) for i in range(tables.partitions)]
        self.models = [Model(i, Scope(1 << tables.stamp_bits)) for i in range(tables.models)]
        self.rings = make_rings(self.params)
        self.rings[REGISTERS] = Ring(REGISTERS, Slots(0, 1), administrative=True)
        shares = self.params.shares
        self.sessions: Slots[Session] = Slots(tables.sessions, tables.slot_generation_bits, shares)
        self.parked: Slots[Reading] = Slots(tables.parked_reads, SLOT_GENERATION_BITS, shares)
        self.reads: dict[tuple[RingId, int], Reading] = {}
        self.fenced: dict[int, Session] = {}
        self.waiting: dict[int, Frame] = {}
        self.outstanding: dict[tuple[RingId, int], Completion] = {}
        self.unfinished: dict[tuple[RingId, int], tuple[Command, int]] = {}
        self.replacement = Replacement(self.params, self.partitions, self.counters)

    # What is alive, and what a name means.

    def alive(self, frame: Frame) -> bool:
        """Whether every scope that a WRITING or SEALED frame is under still lives."""
        if not frame.partition.scope.alive(frame.partition_stamp):
            return False
        if not self.models[frame.tag.model].scope.alive(frame.model_stamp):
            return False
        if frame.state is FrameState.WRITING:
            session = self.sessions.get(frame.session)
            return session is not None and not session.ring.lost
        return True

    def entry(self, tag: Tag) -> Frame | None:
        """The frame that the index holds for ``tag``, dead or alive."""
        index = self.cam.find(tag)
        return None if index is None else self.frames[index]

    def find(self, partition: Partition, model: int, key: int) -> Frame | None:
        """The live WRITING or SEALED frame of a key."""
        frame = self.entry(Tag(partition.id, model, key))
        return frame if frame is not None and self.alive(frame) else None

    def handle(self, frame: Frame) -> Handle:
        """The handle of the block that is in ``frame`` now."""
        return Handle(self.node, self.index, frame.index, frame.generation, self.epoch)

    def block(self, handle: Handle) -> Frame:
        """The WRITING or SEALED frame that a handle names, its scopes not yet looked at; else STALE."""
        frame = self.frames[handle.frame]
        named = handle.epoch == self.epoch and handle.generation == frame.generation
        require(named and frame.state in (FrameState.WRITING, FrameState.SEALED), Status.STALE)
        return frame

    def share(self, partition: Partition) -> int:
        """Which share of sessions, parked READs and fences a partition has: its own, or the only one."""
        return partition.id % self.params.shares

    def readable(self, reader: Partition, owner: Partition) -> bool:
        """Whether a ring of ``reader`` may read sealed blocks of ``owner``."""
        return owner is reader or (owner.public and bool(reader.read_mask >> owner.id & 1))

    # Life and death of a block.

    def claim(self, frame: Frame, partition: Partition, tag: Tag, session: SessionId, bound: int) -> None:
        """A FREE or just evicted frame becomes WRITING, in a new generation."""
        frame.generation += 1
        frame.state = FrameState.WRITING
        frame.partition = partition
        frame.tag = tag
        frame.partition_stamp = partition.scope.enter()
        frame.model_stamp = self.models[tag.model].scope.enter()
        frame.session = session
        frame.bound = bound
        frame.length = frame.accepted = frame.answered = frame.landed = frame.crc = 0
        frame.segments = []
        frame.referenced = frame.queued = False
        partition.used += 1

    def drain(self, frame: Frame, fate: Fate = Fate.DROPPED) -> None:
        """WRITING or SEALED to DRAINING: unreachable; a SEAL that waits ends STALE.

        The ports are told of a sealed block that goes alone; of one that a scope took along they know already.
        """
        if frame.state is FrameState.SEALED and self.alive(frame):
            self.tell_partition(frame, fate)
        self._unlink(frame)
        if frame.state is FrameState.WRITING:
            session = self.sessions.get(frame.session)
            if session is not None:
                session.settled += frame.accepted - frame.answered
        frame.state = FrameState.DRAINING
        if frame.sealing:
            self.finish(*frame.sealing, Status.STALE)
            frame.sealing = None
        self.note(frame)

    def evict(self, frame: Frame) -> None:
        """A SEALED frame that nothing holds is taken from its partition, to be claimed at once."""
        if self.alive(frame):
            self.counters["evictions"] += 1
            self.tell_partition(frame, Fate.EVICTED)
        self._unlink(frame)
        frame.partition.used -= 1

    def free(self, frame: Frame) -> None:
        """DRAINING to FREE; with its generations used up, a frame leaves service instead."""
        frame.partition.used -= 1
        frame.partition, frame.tag, frame.session = NOBODY, NO_TAG, NO_SESSION
        frame.segments = []
        if frame.generation < (1 << self.params.tables.generation_bits) - 1:
            frame.state = FrameState.FREE
            frame.pool.free.append(frame)
        else:
            frame.state = FrameState.QUARANTINED
            frame.pool.quarantined += 1
        self.note(frame)

    def _unlink(self, frame: Frame) -> None:
        """Out of the index, and out of the scopes."""
        self.cam.remove(frame.tag)
        frame.partition.scope.leave(frame.partition_stamp)
        self.models[frame.tag.model].scope.leave(frame.model_stamp)

    def end_session(self, slot: int) -> None:
        """A session dies: its WRITING blocks with it, a migration of it ends STALE."""
        session = self.sessions.at(slot)
        assert session is not None, "only a session in the table ends"
        self.sessions.release(slot)
        session.ring.sessions -= 1
        if session.fence is not None:
            self.fenced.pop(slot)
            self.finish(session.fence.target.id, session.fence.tag, Status.STALE)

    # What the ports are told, and what internal operations wait for.

    def finish(self, ring: RingId, tag: int, status: Status) -> None:
        """Complete an outstanding command; on a lost ring it ends UNAVAILABLE, whatever it was, unless malformed."""
        result = self.outstanding.pop((ring, tag))
        lost = self.rings[ring].lost and status is not Status.INVALID
        result.status = Status.UNAVAILABLE if lost else status
        self.counters[f"status_{result.status.name.lower()}"] += 1
        self.outputs.append(result)

    def tell_partition(self, frame: Frame, fate: Fate) -> None:
        """EVENT to every port with a ring that may read the block's partition."""
        event = (fate, *frame.tag, self.handle(frame))
        self.outputs.extend(Event(port, *event) for port in self.ports(frame.partition))

    def ports(self, owner: Partition | None = None) -> Iterable[int]:
        """Ports with a live ring that may read blocks of ``owner`` (None: with any bound one), in order."""
        bound = (ring for ring in self.rings.values() if ring.partition is not NOBODY and not ring.lost)
        return sorted({ring.id.port for ring in bound if owner is None or self.readable(ring.partition, owner)})

    def note(self, frame: Frame) -> None:
        """Keep ``waiting``: the frames with writes unanswered, a SEAL to decide, or a drain to end."""
        if frame.answered < frame.accepted or frame.sealing or frame.state is FrameState.DRAINING:
            self.waiting[frame.index] = frame
        else:
            self.waiting.pop(frame.index, None)
