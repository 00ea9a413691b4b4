"""Failures that users of today's pools have reported, each staged on the core: see docs/failures.md."""

from collections.abc import Generator

import google_crc32c

from hw.params import commands as c
from hw.params.protocol import REGISTERS, Handle, PinId, SessionId, Status
from hw.tb.core.world import Script, Story, Turn
from pymodel.stimulus.traffic import Fault, Happen
from tests.hw.corebench import OTHER, RING, afresh, bound, kept, play, small

SIZE = 512
SEGMENTS = 3
DATA = bytes(range(256)) * (2 * SEGMENTS)

Act = Generator[Turn, c.Completion, None]


def begin() -> Generator[Turn, c.Completion, SessionId]:
    """Service for both rings, and a session of RING."""
    yield from afresh()
    session = (yield RING, c.OpenSession()).session
    assert session is not None
    return session


def claimed(key: int, session: SessionId) -> Generator[Turn, c.Completion, Handle]:
    """A block is begun, whoever had its key before."""
    granted = yield RING, c.Alloc(0, key, len(DATA), session)
    assert granted.status is Status.GRANTED
    assert granted.handle is not None
    return granted.handle


def seal(handle: Handle, *, crc: int = 0) -> c.Seal:
    """Its SEAL; with bits of the CRC flipped."""
    return c.Seal(handle, len(DATA), google_crc32c.value(DATA) ^ crc)


def gone(key: int, handle: Handle) -> Act:
    """Nobody can read the block, or end it."""
    for ring in (RING, OTHER):
        assert (yield ring, c.Lookup(0, [key])).statuses == [Status.MISS]
        assert (yield ring, c.Read(handle, 0, 1)).status is Status.STALE
    assert (yield RING, seal(handle)).status is Status.STALE


def given_up_at_any_segment() -> Story:
    """ABORT behind each segment, and in front of all: nothing is left to read, and the key is free."""
    session = yield from begin()
    yield RING, c.Drop(0, 8)
    for accepted in range(SEGMENTS + 1):
        handle = yield from claimed(8, session)
        if accepted:
            yield RING, c.Write(handle, 0, DATA[: accepted * SIZE])
        assert (yield RING, c.Abort(handle)).status is Status.OK
        yield from gone(8, handle)


def ended_by_who_was_before() -> Story:
    """The SEAL of an earlier block does nothing to the block that has its frame now, whoever it is of."""
    session = yield from begin()
    yield REGISTERS, c.SetPartition(0, quota=1)
    yield RING, c.Drop(0, 7)
    yield RING, c.Drop(0, 8)
    old = yield from claimed(8, session)
    yield RING, c.Write(old, 0, DATA)
    assert (yield RING, c.Abort(old)).status is Status.OK
    while (again := (yield RING, c.Alloc(0, 8, len(DATA), session))).status is Status.QUOTA:
        pass
    new = again.handle
    assert new is not None
    yield RING, c.Write(new, 0, DATA)
    assert (yield RING, seal(old)).status is Status.STALE
    assert (yield OTHER, c.Lookup(0, [8])).statuses == [Status.PENDING]
    assert (yield RING, seal(new)).status is Status.OK
    assert (yield OTHER, c.Lookup(0, [8])).statuses == [Status.HIT]


def found_while_it_is_written() -> Story:
    """PENDING until the done bit; then every ring has it, at once, from the other port too."""
    session = yield from begin()
    yield RING, c.Drop(0, 8)
    handle = yield from claimed(8, session)
    for segment in range(SEGMENTS):
        for ring in (RING, OTHER):
            assert (yield ring, c.Lookup(0, [8], pin=True)).statuses == [Status.PENDING]
        assert (yield OTHER, c.Read(handle, 0, 1)).status is Status.PENDING
        yield RING, c.Write(handle, segment, DATA[segment * SIZE : (segment + 1) * SIZE])
    assert (yield RING, seal(handle)).status is Status.OK
    assert (yield OTHER, c.Read(handle, 0, SEGMENTS)).data == DATA
    assert (yield OTHER, c.Lookup(0, [8])).statuses == [Status.HIT]


def unpinned_twice() -> Story:
    """A pin goes back once, and to its ring; a stranger's UNPIN spends nothing."""
    yield from begin()
    pin = (yield RING, c.Lookup(0, [7], pin=True)).pins[0]
    assert pin is not None
    assert (yield OTHER, c.Unpin(pin)).status is Status.STALE
    assert (yield RING, c.Unpin(PinId(pin.slot, pin.generation + 1))).status is Status.STALE
    assert (yield RING, c.Unpin(pin)).status is Status.OK
    for ring in (RING, OTHER):
        assert (yield ring, c.Unpin(pin)).status is Status.STALE


def lost_while_it_writes() -> Story:
    """The writer is lost: its key is free for the next, and its pins are back."""
    session = yield from begin()
    yield RING, c.Drop(0, 8)
    handle = yield from claimed(8, session)
    yield RING, c.Write(handle, 0, DATA[:SIZE])
    for _ in range(small().tables.pins_per_ring):
        yield RING, c.Lookup(0, [7], pin=True)
    yield Happen(Fault.RING_LOST, RING)
    own = (yield OTHER, c.OpenSession()).session
    assert own is not None
    assert (yield OTHER, c.Lookup(0, [8])).statuses == [Status.MISS]
    assert (yield OTHER, c.Alloc(0, 8, SIZE, own)).status is Status.GRANTED
    assert (yield RING, seal(handle)).status is Status.UNAVAILABLE
    yield from bound(RING)
    for _ in range(small().tables.pins_per_ring):
        assert (yield RING, c.Lookup(0, [7], pin=True)).statuses == [Status.HIT]


def failed_on_the_way() -> Story:
    """A write that memory refuses, a wrong CRC, damaged bytes: a status, and the block is gone."""
    session = yield from begin()
    yield RING, c.Drop(0, 8)
    handle = yield from claimed(8, session)
    yield Happen(Fault.WRITE_FAILED)
    yield RING, c.Write(handle, 0, DATA)
    assert (yield RING, seal(handle)).status is Status.MEM_ERROR
    yield from gone(8, handle)
    handle = yield from claimed(8, session)
    yield RING, c.Write(handle, 0, DATA)
    assert (yield RING, seal(handle, crc=1)).status is Status.CRC
    yield from gone(8, handle)
    handle = yield from claimed(8, session)
    yield RING, c.Write(handle, 0, DATA[:SIZE])
    assert (yield RING, seal(handle)).status is Status.INCOMPLETE
    assert (yield RING, c.Abort(handle)).status is Status.OK
    handle = yield from kept(RING, 8)
    yield Happen(Fault.READ_DAMAGED)
    assert (yield OTHER, c.Read(handle, 0, 1)).status is Status.POISON
    yield from gone(8, handle)


def over_its_quota() -> Story:
    """An ALLOC that is one too many is told so."""
    session = yield from begin()
    yield REGISTERS, c.SetPartition(0, quota=2)
    for key in (7, 8):
        yield RING, c.Drop(0, key)
    for key in (8, 9):
        yield from claimed(key, session)
    assert (yield RING, c.Alloc(0, 10, SIZE, session)).status is Status.QUOTA


def all_of_them() -> Story:
    """One after the other, each from the beginning: a core takes long to make."""
    yield from given_up_at_any_segment()
    yield from ended_by_who_was_before()
    yield from found_while_it_is_written()
    yield from unpinned_twice()
    yield from lost_while_it_writes()
    yield from failed_on_the_way()
    yield from over_its_quota()


def test_what_was_reported_does_not_happen() -> None:
    script = Script(all_of_them())
    play(small(), script=script)
    assert script.over
