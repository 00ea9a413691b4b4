"""Internal operations: what happens in the slice by itself, and when each is legal.

Hardware chooses the moment; an operation that is not legal where it stands in the log raises IllegalOperation.
"""

from typing import TypeVar

from hw.params import orderlog as log
from hw.params.commands import Fate
from hw.params.errors import KvnodeError
from hw.params.orderlog import Hand, Timer
from hw.params.protocol import REGISTERS, FrameState, Status
from pymodel.spec.blocks import reading, start_read
from pymodel.spec.core import Core, Refused
from pymodel.spec.state import NOBODY, Fencing, Frame, Reading, Session

T = TypeVar("T")


class IllegalOperation(KvnodeError):
    """The order log has an entry that is not legal at its place."""


def present(value: T | None, why: str, *subjects: object) -> T:
    """The value that a log entry stands on, or else reject the entry."""
    if value is None:
        raise IllegalOperation(why.format(*subjects))
    return value


def legal(good: bool, why: str, *subjects: object) -> None:
    """Reject the log entry unless ``good``; the subjects are put into the braces of ``why`` only then."""
    if not good:
        raise IllegalOperation(why.format(*subjects))


def place(frames: list[Frame], index: int) -> Frame:
    """The frame that a log entry names."""
    legal(0 <= index < len(frames), "there is no frame {}", index)
    return frames[index]


def landed(core: Core, op: log.Landed) -> None:
    """Memory answers writes of a frame, in order of segments; an error stops the landed prefix."""
    frame = place(core.frames, op.frame)
    legal(1 <= op.segments <= frame.accepted - frame.answered, "frame {} has no such writes unanswered", op.frame)
    good = op.segments - (not op.ok)
    if frame.landed == frame.answered:
        frame.landed += good
    frame.answered += op.segments
    if frame.state is FrameState.WRITING:
        session = core.sessions.get(frame.session)
        if session is not None:
            session.settled += op.segments
    core.note(frame)


def sealed(core: Core, op: log.Sealed) -> None:
    """A waiting SEAL with all writes answered: the done bit, or MEM_ERROR, or STALE."""
    frame = place(core.frames, op.frame)
    waiting = present(frame.sealing, "frame {} waits for no seal", op.frame)
    legal(decidable(frame), "frame {} has writes unanswered", op.frame)
    if not core.alive(frame):
        core.drain(frame)
        return
    frame.sealing = None
    if frame.landed < frame.accepted:
        core.drain(frame)
        core.finish(*waiting, Status.MEM_ERROR)
        return
    frame.state = FrameState.SEALED
    core.note(frame)
    core.tell_partition(frame, Fate.STORED)
    core.finish(*waiting, Status.OK)


def decidable(frame: Frame) -> bool:
    """Whether ``sealed`` is legal."""
    return frame.sealing is not None and frame.answered == frame.accepted


def read_done(core: Core, op: log.ReadDone) -> None:
    """The bytes have left; a block that memory returned damaged dies."""
    started = present(core.reads.pop((op.ring, op.tag), None), "ring {} has no READ {} under way", op.ring, op.tag)
    frame, command = started.frame, started.command
    frame.reads -= 1
    if not op.ok:
        if frame.state in (FrameState.WRITING, FrameState.SEALED):
            core.drain(frame, Fate.DAMAGED)
        core.finish(op.ring, op.tag, Status.POISON)
        return
    if not core.rings[op.ring].lost:
        result = core.outstanding[op.ring, op.tag]
        result.count = command.count
        result.data = b"".join(frame.segments[command.segment : command.segment + command.count])
        result.length = len(result.data)
    core.finish(op.ring, op.tag, Status.OK)


def drained(core: Core, op: log.Drained) -> None:
    """DRAINING to FREE, once no pin is left and every memory access has been answered."""
    frame = place(core.frames, op.frame)
    legal(drainable(frame), "frame {} is not DRAINING, or is held, or has writes unanswered", op.frame)
    core.free(frame)


def drainable(frame: Frame) -> bool:
    """Whether ``drained`` is legal."""
    return frame.state is FrameState.DRAINING and not frame.held and frame.answered == frame.accepted


def expired(core: Core, op: log.Expired) -> None:
    """A parked read gives up PENDING; a session whose fence is not answered dies."""
    if op.timer is Timer.PARKED_READ:
        parked = present(core.parked.at(op.slot), "no READ is parked in slot {}", op.slot)
        core.parked.release(op.slot)
        core.finish(parked.ring.id, parked.tag, Status.PENDING)
    else:
        legal(op.slot in core.fenced, "session {} is not migrating", op.slot)
        core.end_session(op.slot)


def fenced(core: Core, op: log.Fenced) -> None:
    """A migrating session changes rings, once all writes that the old ring counted have been answered."""
    session = present(core.fenced.get(op.slot), "session {} is not migrating", op.slot)
    legal(passable(session), "session {} has writes to wait for", op.slot)
    fence = close_fence(core, op.slot, session)
    session.former, session.ring = session.ring, fence.target
    session.written = session.settled = 0
    session.former.sessions -= 1
    session.ring.sessions += 1
    core.finish(fence.target.id, fence.tag, Status.OK)


def passable(session: Session) -> bool:
    """Whether ``fenced`` is legal."""
    fence = session.fence
    if fence is None or fence.writes is None or fence.target.lost or session.ring.lost:
        return False
    return session.settled >= fence.writes


def lost(core: Core, op: log.Lost) -> None:
    """A ring is gone: its sessions are dead at once, the hands take out the rest."""
    ring = present(core.rings.get(op.ring), "there is no ring {}", op.ring)
    legal(op.ring != REGISTERS, "registers are not lost")
    legal(ring.partition is not NOBODY or ring.administrative, "ring {} is not bound", op.ring)
    ring.lost = True


def step(core: Core, op: log.Step) -> None:
    """A hand takes a dead entry out, or answers a parked READ that has something to be told."""
    _STEPS[op.hand](core, op)


def step_frames(core: Core, op: log.Step) -> None:
    """The sweep drains a dead block."""
    frame = place(core.frames, op.slot)
    legal(dead(core, frame), "frame {} is not dead", op.slot)
    core.drain(frame)


def step_sessions(core: Core, op: log.Step) -> None:
    """A session that lost its ring ends; one that lost the ring it was moving to stays, unless it had been given up."""
    session = present(core.sessions.at(op.slot), "session {} is free", op.slot)
    legal(forsaken(session), "session {} has lost no ring", op.slot)
    fence = session.fence
    if session.ring.lost or (fence is not None and fence.writes is not None):
        core.end_session(op.slot)
    else:
        fence = close_fence(core, op.slot, session)
        core.finish(fence.target.id, fence.tag, Status.UNAVAILABLE)


def step_pins(core: Core, op: log.Step) -> None:
    """A pin of a lost ring is returned."""
    name = present(op.ring, "a step over pins names its ring")
    ring = present(core.rings.get(name), "there is no ring {}", name)
    legal(ring.lost, "{} is not lost", op.ring)
    present(ring.pins.at(op.slot), "pin {} of {} is free", op.slot, op.ring).pins -= 1
    ring.pins.release(op.slot)


def step_parked(core: Core, op: log.Step) -> None:
    """A parked READ starts, or is refused."""
    parked = present(core.parked.at(op.slot), "no READ is parked in slot {}", op.slot)
    verdict = answer(core, parked)
    legal(verdict is not Status.PENDING, "the READ in slot {} still has to wait", op.slot)
    core.parked.release(op.slot)
    if verdict is Status.OK:
        start_read(core, parked.ring, parked.tag, parked.command)
    else:
        core.finish(parked.ring.id, parked.tag, verdict)


_STEPS = {
    Hand.FRAMES: step_frames,
    Hand.SESSIONS: step_sessions,
    Hand.PINS: step_pins,
    Hand.PARKED: step_parked,
}


def dead(core: Core, frame: Frame) -> bool:
    """Whether the sweep has to take a frame out."""
    return frame.state in (FrameState.WRITING, FrameState.SEALED) and not core.alive(frame)


def forsaken(session: Session) -> bool:
    """Whether a session has lost its ring, or the ring that it was moving to."""
    return session.ring.lost or (session.fence is not None and session.fence.target.lost)


def close_fence(core: Core, slot: int, session: Session) -> Fencing:
    """The fence of a migrating session, which has none from here on."""
    fence, session.fence = present(session.fence, "session {} is not migrating", slot), None
    del core.fenced[slot]
    return fence


def answer(core: Core, parked: Reading) -> Status:
    """What a parked READ would be told now; PENDING: nothing yet."""
    if parked.ring.lost:
        return Status.UNAVAILABLE
    try:
        return reading(core, parked.ring, parked.command)
    except Refused as refused:
        return refused.status
