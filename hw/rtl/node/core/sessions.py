"""OPEN_SESSION, CLOSE_SESSION, MIGRATE, ANSWER_FENCE, FENCED, and how a session ends: `pymodel.spec.sessions`."""

from amaranth import Module, Value

from hw.params.protocol import Status
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.guards import first
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import Kind
from hw.rtl.node.slots import SlotOp


def cases(m: Module, t: Tables, e: Emission) -> None:
    """The cases of JUDGE."""
    with m.Case(Kind.OPEN_SESSION):
        _open(m, t, e)
    with m.Case(Kind.CLOSE_SESSION):
        _close(m, t, e)
    with m.Case(Kind.MIGRATE):
        _migrate(m, t, e)
    with m.Case(Kind.ANSWER_FENCE):
        _answer_fence(m, t, e)
    with m.Case(Kind.FENCED):
        _fenced(m, t, e)
    with m.Case(Kind.EXPIRED_FENCE):
        _end(m, t, e)
        e.log()
    with m.Case(Kind.STEP_SESSIONS):
        _step(m, t, e)


def _open(m: Module, t: Tables, e: Emission) -> None:
    """A new session, bound to this ring."""
    sessions = t.sessions
    with m.If(sessions.free):
        m.d.comb += [sessions.op.eq(SlotOp.TAKE), sessions.new_entry.eq(0), sessions.new_entry.ring.eq(t.op.stamp)]
        t.count(t.ring_number, "sessions", 1)
        e.answer(Status.OK)
        e.slot(t.free_session, sessions.free_generation)
    with m.Else():
        e.answer(Status.NO_SPACE)


def _close(m: Module, t: Tables, e: Emission) -> None:
    """The session dies, and what it has not sealed."""
    standing = t.standing(t.op.slot.generation)
    e.answer(standing)
    with m.If(standing == Status.OK):
        _end(m, t, e)


def _migrate(m: Module, t: Tables, e: Emission) -> None:
    """The ring of a session is told to let it go, and the command waits; or the session is here already."""
    op, owner, fences = t.op, t.owner, t.fences
    refused, refusal = first(
        (~t.is_session(op.slot.generation), Status.STALE),
        (~t.is_neighbour, Status.DENIED),
        (t.is_ownerless, Status.STALE),
        (owner.moving, Status.PENDING),
        (t.owned, Status.OK),
        (~fences.room, Status.NO_SPACE),
    )
    with m.If(refused):
        e.answer(refusal)
    with m.Else():
        t.change_session(moving=1, fence=fences.free)
        m.d.comb += [
            fences.begin.eq(1),
            fences.new_slot.eq(op.slot.slot),
            fences.target.eq(op.stamp),
            fences.tag.eq(op.tag),
        ]
        e.notices.fence()
        e.wait()


def _answer_fence(m: Module, t: Tables, e: Emission) -> None:
    """The old ring has stopped; its count cannot be below what was accepted."""
    op, owner, fences = t.op, t.owner, t.fences
    standing = t.standing(op.slot.generation)
    refused, refusal = first(
        ((standing != Status.OK) & (standing != Status.PENDING), standing),
        (~owner.moving, Status.STALE),
        (op.length < owner.written, Status.RANGE),
        (standing == Status.PENDING, Status.PENDING),
    )
    with m.If(refused):
        e.answer(refusal)
    with m.Else():
        m.d.comb += [
            fences.answer.eq(1),
            fences.writes.eq(op.length),
            fences.land.eq(owner.settled >= op.length),
        ]
        e.answer(Status.OK)


def _fenced(m: Module, t: Tables, e: Emission) -> None:
    """The session changes rings; nothing, if its ring has been lost since: then it ends."""
    owner, target = t.owner, t.fence.target
    m.next = "IDLE"
    with m.If(~t.is_ownerless):
        t.change_session(ring=target, former=owner.ring, moved=1, written=0, settled=0, moving=0)
        t.count(t.ring_index(owner.ring), "sessions", -1)
        t.count(t.ring_index(target), "sessions", 1)
        t.wake_all(t.share_of(target.port))
        _answer_migrate(m, t, e, Status.OK)
        e.log()


def _step(m: Module, t: Tables, e: Emission) -> None:
    """A session that lost its ring ends; one that lost the ring it was moving to stays, unless it was given up."""
    forsaken = t.owner.moving & t.is_lost(t.fence.target)
    m.next = "IDLE"
    with m.If(t.sessions.used & (t.is_ownerless | (forsaken & t.fence.answered))):
        _end(m, t, e)
        e.log()
    with m.Elif(t.sessions.used & forsaken):
        t.change_session(moving=0)
        _answer_migrate(m, t, e, Status.UNAVAILABLE)
        e.log()


def _end(m: Module, t: Tables, e: Emission) -> None:
    """The session that was read dies, and what it has not sealed; a migration of it ends STALE."""
    t.release_slot(t.sessions)
    t.count(t.ring_index(t.owner.ring), "sessions", -1)
    t.sweep(t.share_of(t.owner.ring.port))
    with m.If(t.owner.moving):
        _answer_migrate(m, t, e, Status.STALE)


def _answer_migrate(m: Module, t: Tables, e: Emission, status: Status | Value) -> None:
    """The migration of the session that was read is over."""
    m.d.comb += t.fences.end.eq(1)
    e.answer_other(Kind.MIGRATE, t.fence.target, t.fence.tag, status)
