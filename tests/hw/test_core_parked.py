"""READs that park in the core: what wakes each of them, and the mutants that forget one."""

from collections.abc import Callable
from typing import Any

import google_crc32c
import pytest

from hw.params import commands as c
from hw.params.protocol import Handle, RingId, SessionId, Status
from hw.rtl.node.core import blocks, core, internal, parked, sessions, tables
from hw.tb.core.world import Story, World
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from pymodel.spec import IllegalOperation, InvariantViolation
from pymodel.stimulus.traffic import Fault, Happen
from tests.everyday import everyday
from tests.hw.corebench import OTHER, RING, Telling, afresh, bound, play, small

FOREVER = 1 << 20
"""Cycles of a timer that never runs out here: whatever is forgotten is never answered."""

DATA = bytes(range(256)) * 2


def written(key: int, session: SessionId) -> Any:
    """A block with a segment that memory has most probably answered, and READs of it that wait; returns its handle."""
    yield RING, c.Drop(0, key)
    handle = (yield RING, c.Alloc(0, key, 512, session)).handle
    assert handle is not None
    yield RING, c.Write(handle, 0, DATA)
    yield OTHER, c.Read(handle, 0, 1, park=True)
    for _ in range(8):
        yield OTHER, c.Lookup(0, [key])
    return handle


def sealed(handle: Handle) -> c.Seal:
    """Its SEAL."""
    return c.Seal(handle, len(DATA), google_crc32c.value(DATA))


def opened() -> Any:
    """A session of RING."""
    session = (yield RING, c.OpenSession()).session
    assert session is not None
    return session


def seals() -> Story:
    """A seal wakes what waits; a full table takes no more."""
    yield from afresh()
    session = yield from opened()
    handle = yield from written(8, session)
    for _ in range(small().tables.parked_reads):
        yield OTHER, c.Read(handle, 0, 1, park=True)
    yield OTHER, c.Lookup(0, [8])
    yield RING, sealed(handle)


def aborts() -> Story:
    """ABORT wakes what waits."""
    yield from afresh()
    session = yield from opened()
    handle = yield from written(8, session)
    yield RING, c.Abort(handle)


def loses(ring: RingId) -> Story:
    """So does the loss of the writer, or of the reader; then the ring can be bound again."""
    yield from afresh()
    session = yield from opened()
    yield from written(8, session)
    yield Happen(Fault.RING_LOST, ring)
    yield from bound(ring)


def moved() -> Story:
    """A session that moves to the ring of a READ wakes it."""
    yield from afresh()
    session = yield from opened()
    yield from written(8, session)
    yield OTHER, c.Migrate(session)
    yield RING, c.AnswerFence(session, 1)
    yield OTHER, c.OpenSession()


def lands() -> Story:
    """A segment that memory has answered wakes the READ of its session, before there is a seal."""
    yield from afresh()
    session = yield from opened()
    yield RING, c.Drop(0, 8)
    handle = (yield RING, c.Alloc(0, 8, 512, session)).handle
    assert handle is not None
    yield RING, c.Write(handle, 0, DATA)
    yield RING, c.Read(handle, 0, 1, park=True)


def stopped(held: set[int]) -> Story:
    """The ring of a READ is lost when its block is sealed, but its port has no place for it yet."""
    yield from afresh()
    session = yield from opened()
    handle = yield from written(8, session)
    held.add(OTHER.port)
    yield RING, sealed(handle)
    yield Happen(Fault.RING_LOST, OTHER)
    yield RING, c.Lookup(0, [8])
    yield RING, c.Lookup(0, [8])
    held.clear()


class Parting(Telling):
    """A story that waits neither for READs nor for MIGRATE."""

    skips = (c.Read, c.Migrate)


WAKING: dict[str, Callable[[], Story]] = {
    "seal": seals,
    "abort": aborts,
    "loss of the writer": lambda: loses(RING),
    "loss of the reader": lambda: loses(OTHER),
    "migration": moved,
    "landed": lands,
}


def play_waking(name: str) -> World:
    """A story of what wakes; no timer helps it."""
    return play(small(park_cycles=FOREVER, fence_cycles=FOREVER), script=Parting(WAKING[name]()))


def play_stopped() -> World:
    """The port of OTHER has no place while the story wants it so."""
    held: set[int] = set()
    return play(small(park_cycles=FOREVER), script=Parting(stopped(held)), held_up=held)


def outwaited() -> Story:
    """Nobody seals the block."""
    yield from afresh()
    session = yield from opened()
    yield from written(8, session)


def play_outwaited() -> World:
    """A READ whose time is up."""
    return play(small(park_cycles=16), script=Parting(outwaited()))


def all_of_them() -> Story:
    """One after the other, each from the beginning: a core takes long to make."""
    for story in WAKING.values():
        yield from story()


def play_all() -> World:
    """All that wakes, in one core."""
    return play(small(park_cycles=FOREVER, fence_cycles=FOREVER), script=Parting(all_of_them()))


def test_whatever_becomes_of_a_block_wakes_the_reads_that_wait_for_it() -> None:
    statuses = play_all().statuses
    assert statuses["READ", Status.PENDING] >= len(WAKING), "they have waited"


def test_a_read_whose_ring_is_lost_is_not_started() -> None:
    assert play_stopped().statuses["READ", Status.UNAVAILABLE] == 1


def test_a_timer_starts_no_read() -> None:
    statuses = play_outwaited().statuses
    assert statuses["READ", Status.OK] == 0
    assert statuses["READ", Status.PENDING] == 2, "parked, and then given up"


MUTANTS: dict[str, tuple[Callable[[], Any], Any, Callable[..., Any], str, str]] = {
    "seal does not wake": (
        lambda: play_waking("seal"),
        internal,
        internal._sealed,
        "m.d.comb += t.parking.wake.eq(1)",
        "",
    ),
    "death does not wake": (
        lambda: play_waking("abort"),
        blocks,
        blocks.drop,
        ", t.parking.wake.eq(1)]",
        "]",
    ),
    "loss does not wake": (
        lambda: play_waking("loss of the reader"),
        core,
        tables.Tables,
        "self.m.d.comb += self.parking.wake_all.eq(~0 if share is None else 1 << share)",
        "",
    ),
    "landed segments do not wake": (
        lambda: play_waking("landed"),
        internal,
        internal._landed,
        "m.d.comb += t.parking.wake.eq(1)",
        "",
    ),
    "migration does not wake": (
        lambda: play_waking("migration"),
        sessions,
        sessions._fenced,
        "t.wake_all(t.share_of(target.port))",
        "pass",
    ),
    "entry stays in the table": (
        play_all,
        parked,
        parked._step,
        "m.d.comb += t.parking.release.eq(1)",
        "",
    ),
    "lost ring reads": (play_stopped, parked, parked._step, "m.If(t.ring.lost | refused)", "m.If(refused)"),
    "timer starts a READ": (
        play_outwaited,
        parked,
        parked.cases,
        "e.answer(Status.PENDING)",
        "start(t, e)",
    ),
}
"""Name to the play that finds it, where it is looked up, what it is, what is right and what is wrong."""

EVERYDAY = ("lost ring reads", "timer starts a READ")


@pytest.mark.parametrize("name", everyday(MUTANTS, *EVERYDAY))
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    finds, where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        finds()
