"""OPEN_SESSION, CLOSE_SESSION, MIGRATE, ANSWER_FENCE: sessions, and the fence that moves one between rings.

A migration bumps nothing. The old ring goes on until its controller answers FENCE with its WRITE count; the writes in
that count may still arrive. When all of them have been answered by memory, ``Fenced`` binds the session to the new
ring, and the old one is told STALE.
"""

from hw.params import commands as c
from hw.params.commands import Completion, Fence
from hw.params.orderlog import Taken
from hw.params.protocol import SessionId, Status
from pymodel.spec.core import Core, found, require
from pymodel.spec.state import Fencing, Ring, Session


def standing(core: Core, ring: Ring, name: SessionId, *, writing: bool = False) -> Status:
    """What ``ring`` may do in a session: OK; STALE (gone, or moved away); PENDING (moving here); DENIED."""
    session = core.sessions.get(name)
    if session is None:
        return Status.STALE
    fence = session.fence
    moving_here = fence is not None and fence.target is ring
    known = ring in (session.ring, session.former) or moving_here
    if not known or ring.partition is not session.ring.partition:
        return Status.DENIED
    if session.ring.lost:
        return Status.STALE
    if ring is session.ring:
        if fence is None or fence.writes is None or (writing and session.written < fence.writes):
            return Status.OK
        return Status.STALE
    return Status.PENDING if moving_here else Status.STALE


def own_session(core: Core, ring: Ring, name: SessionId) -> Session:
    """The session, if ``ring`` may act in it now."""
    verdict = standing(core, ring, name)
    require(verdict is Status.OK, verdict)
    return found(core.sessions.get(name), Status.STALE)


def open_session(core: Core, ring: Ring, op: Taken, command: c.OpenSession, result: Completion) -> bool:
    """Bind a new session to this ring."""
    taken = core.sessions.take(Session(ring), core.share(ring.partition))
    result.session = SessionId(*found(taken, Status.NO_SPACE))
    ring.sessions += 1
    return True


def close_session(core: Core, ring: Ring, op: Taken, command: c.CloseSession, result: Completion) -> bool:
    """Kill a session and what it has not sealed."""
    own_session(core, ring, command.session)
    core.end_session(command.session.slot)
    return True


def migrate(core: Core, ring: Ring, op: Taken, command: c.Migrate, result: Completion) -> bool:
    """Ask for a session of the own partition; the old ring is sent FENCE."""
    session = found(core.sessions.get(command.session), Status.STALE)
    require(session.ring.partition is ring.partition, Status.DENIED)
    require(not session.ring.lost, Status.STALE)
    require(session.fence is None, Status.PENDING)
    if session.ring is ring:
        return True
    moving = sum(slot % core.params.shares == core.share(ring.partition) for slot in core.fenced)
    require(moving < core.params.tables.fences // core.params.shares, Status.NO_SPACE)
    session.fence = Fencing(ring, op.tag)
    core.fenced[command.session.slot] = session
    core.outputs.append(Fence(session.ring.id.port, session.ring.id, command.session, core.index))
    return False


def answer_fence(core: Core, ring: Ring, op: Taken, command: c.AnswerFence, result: Completion) -> bool:
    """The old ring has stopped; its count cannot be below what was accepted."""
    verdict = standing(core, ring, command.session)
    require(verdict in (Status.OK, Status.PENDING), verdict)
    session = found(core.sessions.get(command.session), Status.STALE)
    fence = found(session.fence, Status.STALE)
    require(command.writes >= session.written, Status.RANGE)
    require(verdict is Status.OK, verdict)
    fence.writes = command.writes
    return True
