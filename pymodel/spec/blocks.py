"""LOOKUP, ALLOC, WRITE, SEAL, ABORT, READ, UNPIN, DROP: what a ring of a partition does with blocks.

Each function takes the state, the stamping ring, the log entry and the completion to fill; it returns whether the
command is complete, and refuses with a status by ``require`` or ``Refused``. Guards stand in the order of precedence.
"""

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Completion, LookupMode
from hw.params.orderlog import Taken
from hw.params.protocol import FrameState, Handle, ModelState, PinId, Status
from pymodel.spec.cam import Tag
from pymodel.spec.core import Core, Refused, found, require
from pymodel.spec.sessions import standing
from pymodel.spec.state import Frame, Partition, Reading, Ring


def look(core: Core, reader: Partition, model: int, key: int) -> tuple[Status, Frame | None]:
    """One key: own HIT, else a HIT in the public partitions by id, else own PENDING, else MISS.

    NOBODY has stored nothing and may read nothing, so each key of a ring without a partition is a MISS.
    """
    own = core.find(reader, model, key)
    if own is not None and own.state is FrameState.SEALED:
        return Status.HIT, own
    for owner in core.partitions:
        if owner is not reader and core.readable(reader, owner):
            shared = core.find(owner, model, key)
            if shared is not None and shared.state is FrameState.SEALED:
                return Status.HIT, shared
    return (Status.MISS, None) if own is None else (Status.PENDING, own)


def lookup(core: Core, ring: Ring, op: Taken, command: c.Lookup, result: Completion) -> bool:
    """Key ``op.item`` of a LOOKUP. A full pin table ends the command before that key."""
    status, frame = look(core, ring.partition, command.model, command.keys[op.item])
    pin = None
    if frame is not None and status is Status.HIT and command.pin:
        pin = PinId(*found(ring.pins.take(frame), Status.NO_SPACE))
        frame.pins += 1
        frame.referenced = True
    result.statuses.append(status)
    result.handles.append(None if frame is None else core.handle(frame))
    result.pins.append(pin)
    result.count += status is Status.HIT
    last = op.item == len(command.keys) - 1
    if command.mode is LookupMode.RUN:
        result.status = status
        return last or status is not Status.HIT
    return last


def alloc(core: Core, ring: Ring, op: Taken, command: c.Alloc, result: Completion) -> bool:
    """A LOOKUP in the own partition with a claim: MISS becomes WRITING, in a FREE or evicted frame."""
    partition = ring.partition
    verdict = standing(core, ring, command.session)
    require(verdict in (Status.OK, Status.PENDING), verdict)
    require(core.models[command.model].state is ModelState.LIVE, Status.RETIRED)
    require(command.length <= partition.pool.frame_bytes, Status.RANGE)
    require(verdict is Status.OK, verdict)

    tag = Tag(partition.id, command.model, command.key)
    old = core.entry(tag)
    if old is not None and core.alive(old):
        result.handle = core.handle(old)
        if old.state is FrameState.WRITING:
            raise Refused(Status.PENDING)
        old.referenced = True
        raise Refused(Status.EXISTS)

    place = core.cam.place(tag) if old is None else core.cam.where(tag)
    if place is None:
        core.counters["cam_refusals"] += 1
        raise Refused(Status.NO_SPACE)
    at_quota = partition.used >= partition.quota
    frame = core.replacement.choose(partition)
    if frame is None:
        raise Refused(Status.QUOTA if at_quota else Status.NO_SPACE)
    if frame.state is FrameState.FREE:
        partition.pool.free.popleft()
    else:
        core.evict(frame)
    if old is not None and old is not frame:
        core.drain(old)
    core.claim(frame, partition, tag, command.session, command.length)
    core.cam.insert(tag, place, frame.index)
    result.handle = core.handle(frame)
    result.status = Status.GRANTED
    return True


def writable(core: Core, ring: Ring, handle: Handle, *, writing: bool = False) -> tuple[Frame, Status]:
    """The block that a handle names, if this ring's session owns it, or if it is a sealed one of its partition.

    With it OK, or PENDING while its session is on the way to this ring.
    """
    frame = core.block(handle)
    require(frame.partition is ring.partition, Status.DENIED)
    verdict = Status.OK
    if frame.state is FrameState.WRITING:
        verdict = standing(core, ring, frame.session, writing=writing)
        require(verdict is not Status.DENIED, Status.DENIED)
    require(core.alive(frame), Status.STALE)
    require(verdict in (Status.OK, Status.PENDING), verdict)
    return frame, verdict


def write(core: Core, ring: Ring, op: Taken, command: c.Write, result: Completion) -> bool:
    """Segment ``op.item`` of a WRITE is appended at ``accepted``. A short segment is the last of its block."""
    size = core.params.memory.segment_bytes
    data = bytes(command.data[op.item * size : (op.item + 1) * size])
    segment = command.segment + op.item
    frame, verdict = writable(core, ring, command.handle, writing=True)
    ended = frame.length < frame.accepted * size
    require(segment < frame.accepted or (segment == frame.accepted and not ended), Status.RANGE)
    require(segment * size + len(data) <= frame.bound, Status.RANGE)
    require(verdict is Status.OK, verdict)
    require(segment == frame.accepted, Status.WRITE_ONCE)
    frame.segments.append(data)
    frame.accepted += 1
    frame.length += len(data)
    frame.crc = google_crc32c.extend(frame.crc, data)
    found(core.sessions.get(frame.session), Status.STALE).written += 1
    core.note(frame)
    result.count += 1
    return (op.item + 1) * size >= len(command.data)


def seal(core: Core, ring: Ring, op: Taken, command: c.Seal, result: Completion) -> bool:
    """Declare the length; the done bit follows when all of it has landed (``Sealed``)."""
    frame, verdict = writable(core, ring, command.handle)
    require(verdict is Status.OK, verdict)
    require(frame.state is FrameState.WRITING and frame.sealing is None, Status.WRITE_ONCE)
    require(command.length == frame.length, Status.INCOMPLETE)
    if command.crc != frame.crc:
        core.drain(frame)
        raise Refused(Status.CRC)
    frame.sealing = (ring.id, op.tag)
    frame.bound = frame.length
    core.note(frame)
    return False


def abort(core: Core, ring: Ring, op: Taken, command: c.Abort, result: Completion) -> bool:
    """WRITING to DRAINING; a SEAL that waits is given up with it."""
    frame, verdict = writable(core, ring, command.handle)
    require(verdict is Status.OK, verdict)
    require(frame.state is FrameState.WRITING, Status.WRITE_ONCE)
    core.drain(frame)
    return True


def reading(core: Core, ring: Ring, command: c.Read) -> Status:
    """OK when a READ may start now, PENDING when it has to wait for its block, else why it is refused."""
    frame = core.block(command.handle)
    sealed = frame.state is FrameState.SEALED
    own = frame.partition is ring.partition
    require(own or (sealed and core.readable(ring.partition, frame.partition)), Status.DENIED)
    require(core.alive(frame), Status.STALE)
    end = command.segment + command.count
    most = frame.accepted if sealed else core.params.segments(frame.bound)
    require(end <= most, Status.RANGE)
    if sealed:
        return Status.OK
    session = core.sessions.get(frame.session)
    mine = session is not None and session.ring is ring
    return Status.OK if mine and end <= frame.landed else Status.PENDING


def start_read(core: Core, ring: Ring, tag: int, command: c.Read) -> None:
    """The READ holds its frame until ``ReadDone``."""
    frame = core.block(command.handle)
    frame.reads += 1
    core.reads[ring.id, tag] = Reading(ring, tag, frame, command)


def read(core: Core, ring: Ring, op: Taken, command: c.Read, result: Completion) -> bool:
    """Start, park, or answer PENDING."""
    verdict = reading(core, ring, command)
    if verdict is Status.OK:
        start_read(core, ring, op.tag, command)
        return False
    frame = core.block(command.handle)
    waiting = Reading(ring, op.tag, frame, command)
    parked = command.park and core.parked.take(waiting, core.share(ring.partition)) is not None
    require(parked, Status.PENDING)
    return False


def unpin(core: Core, ring: Ring, op: Taken, command: c.Unpin, result: Completion) -> bool:
    """Return a pin of this ring's own table."""
    frame = found(ring.pins.get(command.pin), Status.STALE)
    frame.pins -= 1
    ring.pins.release(command.pin.slot)
    return True


def drop(core: Core, ring: Ring, op: Taken, command: c.Drop, result: Completion) -> bool:
    """A live block of the own partition, WRITING too, is unreachable at once."""
    frame = found(core.find(ring.partition, command.model, command.key), Status.MISS)
    core.drain(frame)
    return True
