"""A client's day: look up, put, get, pin, sessions, drop."""

from dataclasses import replace

import pytest
from driverbench import FRAME, FRAMES, SEGMENT, Rig, store

from hw.params import commands as c
from hw.params.commands import Command, Completion, LookupMode
from hw.params.protocol import FrameState, Handle, ModelState, SessionId, Status
from sw.driver import Client, CommandFailed, Put
from sw.driver.client import as_bytes, crc32c

DATA = b"kv" * 300


def test_a_block_that_was_put_is_found_and_read_by_every_ring_of_its_partition(rig: Rig) -> None:
    with rig.one.session() as session:
        put = rig.one.put(session, 0, 1, DATA)
    assert put.stored and put.status is Status.GRANTED
    for client in (rig.one, rig.far):
        found = client.lookup(0, [1])
        assert (found.status, found.count, found.handles) == (Status.HIT, 1, [put.handle])
        assert bytes(client.get(found.handles[0], length=600)) == DATA  # type: ignore[arg-type]


def test_a_second_put_of_a_key_exists_and_is_success(rig: Rig) -> None:
    handle = store(rig.one, 1, DATA)
    with rig.far.session() as session:
        assert rig.far.put(session, 0, 1, DATA) == Put(Status.EXISTS, handle)
        assert Put(Status.EXISTS, handle).stored


def test_a_put_of_a_key_being_written_is_pending_with_the_block_to_wait_for(rig: Rig) -> None:
    session, other = rig.one.open(), rig.far.open()
    writing = rig.one.run(c.Alloc(0, 1, 600, session)).handle
    put = rig.far.put(other, 0, 1, DATA)
    assert put == Put(Status.PENDING, writing) and not put.stored


def test_a_put_is_bounded_by_the_frame(rig: Rig) -> None:
    with rig.one.session() as session:
        assert rig.one.put(session, 0, 1, bytes(FRAME)).stored
        assert rig.one.put(session, 0, 2, bytes(FRAME + 1)) == Put(Status.RANGE, None)
    assert rig.counters()["frames_sealed"] == 1


@pytest.mark.one_slice
def test_over_its_quota_a_partition_evicts_its_own_and_says_quota_when_it_cannot(rig: Rig) -> None:
    rig.device.set_partition(0, quota=2, read_mask=0b100)
    for key in (1, 2, 3):
        store(rig.one, key)
    assert rig.counters()["evictions"] == 1
    with rig.one.session() as session, rig.far.pinned(0, [2, 3]) as held:
        assert held.count == 2
        assert rig.one.put(session, 0, 4, DATA) == Put(Status.QUOTA, None)
        assert rig.counters()["status_quota"] == 1
        assert rig.device.completed[c.Alloc.opcode, Status.QUOTA] == 1
    assert rig.two.lookup(0, [4]).status is Status.MISS
    store(rig.two, 1)


@pytest.mark.one_slice
def test_a_pool_full_of_what_is_held_has_no_space(rig: Rig) -> None:
    rig.device.set_partition(1, quota=FRAMES, guarantee=0)
    session, other = rig.one.open(), rig.two.open()
    for key in range(FRAMES):
        assert rig.one.run(c.Alloc(0, key, 1, session)).status is Status.GRANTED
    assert rig.two.put(other, 0, 1, DATA) == Put(Status.NO_SPACE, None)
    rig.one.run(c.CloseSession(session))
    assert rig.two.put(other, 0, 1, DATA).stored


@pytest.mark.parametrize("state", [ModelState.READ_ONLY, ModelState.RETIRED])
def test_a_model_on_its_way_out_takes_no_new_blocks(rig: Rig, state: ModelState) -> None:
    store(rig.one, 1)
    rig.device.set_model(0, state)
    with rig.one.session() as session:
        assert rig.one.put(session, 0, 2, DATA) == Put(Status.RETIRED, None)
        assert rig.one.put(session, 1, 2, DATA).stored
    readable = Status.HIT if state is ModelState.READ_ONLY else Status.MISS
    assert rig.one.lookup(0, [1]).status is readable


def test_a_run_stops_where_a_bitmap_goes_on(rig: Rig) -> None:
    for key in (1, 2, 4):
        store(rig.one, key)
    run = rig.one.lookup(0, [1, 2, 3, 4])
    assert (run.status, run.count, run.statuses) == (Status.MISS, 2, [Status.HIT, Status.HIT, Status.MISS])
    every = rig.one.lookup(0, [1, 2, 3, 4], mode=LookupMode.BITMAP)
    assert (every.status, every.count) == (Status.OK, 3)
    assert [status is Status.HIT for status in every.statuses] == [True, True, False, True]


def test_keys_are_compared_whole_and_with_their_model(rig: Rig) -> None:
    key = 1 << 127 | 1
    store(rig.one, key)
    assert rig.one.lookup(0, [key]).status is Status.HIT
    for model, other in ((0, 1), (0, 1 << 127), (0, key ^ 1 << 64), (1, key)):
        assert rig.one.lookup(model, [other]).status is Status.MISS


class Misplaced(Client):
    """Its WRITEs go beyond what was accepted, and are refused."""

    def run(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Completion:
        if isinstance(command, c.Write):
            command = replace(command, segment=command.segment + 1)
        return super().run(command, into, root=root)


def test_a_put_whose_write_is_refused_leaves_nothing(rig: Rig) -> None:
    misplaced = Misplaced(rig.device, rig.one.ring)
    with misplaced.session() as session:
        assert misplaced.put(session, 0, 1, DATA) == Put(Status.RANGE, None)
        assert rig.far.lookup(0, [1]).status is Status.MISS
        assert rig.one.put(session, 0, 1, DATA).stored, "the key is free again"


def test_a_write_that_stops_says_what_it_has_appended(rig: Rig) -> None:
    data, session = DATA[:SEGMENT] * 2, rig.one.open()
    handle = rig.one.run(c.Alloc(0, 1, len(data), session)).handle
    assert handle is not None
    stopped = rig.one.run(c.Write(handle, 0, data + b"too long"))
    assert (stopped.status, stopped.count) == (Status.RANGE, 2)
    stopped = rig.one.run(c.Write(handle, 1, data))
    assert (stopped.status, stopped.count) == (Status.WRITE_ONCE, 0)
    assert rig.one.run(c.Seal(handle, len(data), crc32c(as_bytes(data)))).status is Status.OK


class Mistaken(Client):
    """Its SEALs name another length than was written, and are refused."""

    def run(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Completion:
        if isinstance(command, c.Seal):
            command = replace(command, length=command.length - 1)
        return super().run(command, into, root=root)


def test_a_put_whose_seal_is_refused_leaves_nothing(rig: Rig) -> None:
    mistaken = Mistaken(rig.device, rig.one.ring)
    with mistaken.session() as session:
        assert mistaken.put(session, 0, 1, DATA) == Put(Status.INCOMPLETE, None)
        assert rig.far.lookup(0, [1]).status is Status.MISS
        assert rig.one.put(session, 0, 1, DATA).stored, "the key is free again"


# Pins.


def test_what_is_pinned_is_not_evicted_and_a_with_block_returns_it(rig: Rig) -> None:
    rig.device.set_partition(0, quota=2, read_mask=0b100)
    handle = store(rig.one, 1, DATA)
    with rig.one.pinned(0, [1]) as found:
        assert found.pins[0] is not None and rig.counters()["pins_used"] == 1
        for key in range(2, 8):
            store(rig.far, key)
        assert bytes(rig.one.get(handle, length=600)) == DATA
    assert rig.counters()["pins_used"] == 0
    for key in range(10, 14):
        store(rig.far, key)
    with pytest.raises(CommandFailed) as caught:
        rig.one.get(handle, length=600)
    assert caught.value.status is Status.STALE


def test_pins_are_returned_whatever_ends_the_with_block(rig: Rig) -> None:
    store(rig.one, 1)
    with pytest.raises(KeyError), rig.one.pinned(0, [1, 1, 1]):
        assert rig.counters()["pins_used"] == 3
        raise KeyError
    assert rig.counters()["pins_used"] == 0


def test_a_full_pin_table_cuts_a_lookup(rig: Rig) -> None:
    store(rig.one, 1)
    with rig.one.pinned(0, [1] * 6) as found:
        assert (found.status, found.count, len(found.pins)) == (Status.NO_SPACE, 4, 4)
        assert rig.far.lookup(0, [1], pin=True).status is Status.HIT, "each ring has a table of its own"
    assert rig.counters()["pins_used"] == 1
    rig.device.reset(rig.far.ring)


def test_a_pin_is_returned_once(rig: Rig) -> None:
    store(rig.one, 1)
    (pin,) = rig.one.lookup(0, [1], pin=True).pins
    assert pin is not None
    assert rig.one.unpin(pin) is Status.OK
    assert rig.one.unpin(pin) is Status.STALE
    (again,) = rig.one.lookup(0, [1], pin=True).pins
    assert again is not None and again != pin
    assert rig.one.unpin(pin) is Status.STALE
    assert rig.one.unpin(again) is Status.OK


def test_the_pin_of_another_ring_is_never_spent(rig: Rig) -> None:
    store(rig.one, 1)
    (pin,) = rig.one.lookup(0, [1], pin=True).pins
    assert pin is not None
    for thief in (rig.far, rig.two, rig.public):
        assert thief.unpin(pin) is Status.STALE
    assert rig.counters()["pins_used"] == 1
    (namesake,) = rig.far.lookup(0, [1], pin=True).pins
    assert namesake == pin, "a name means something on its own ring only"
    assert rig.far.unpin(namesake) is Status.OK
    assert rig.counters()["pins_used"] == 1
    assert rig.one.unpin(pin) is Status.OK


# Sessions.


@pytest.mark.one_slice
def test_a_session_ends_with_its_with_block_and_takes_along_what_is_not_sealed(rig: Rig) -> None:
    with rig.one.session() as session:
        sealed = rig.one.put(session, 0, 1, DATA).handle
        assert sealed is not None
        writing = rig.one.run(c.Alloc(0, 2, 600, session)).handle
        assert writing is not None
        assert rig.counters()["sessions_used"] == 1
    assert rig.counters()["sessions_used"] == 0
    assert rig.one.run(c.Write(writing, 0, DATA)).status is Status.STALE
    assert rig.one.put(session, 0, 3, DATA) == Put(Status.STALE, None)
    assert bytes(rig.one.get(sealed, length=600)) == DATA


def test_a_session_is_closed_whatever_ends_the_with_block(rig: Rig) -> None:
    with pytest.raises(KeyError), rig.one.session():
        raise KeyError
    assert rig.counters()["sessions_used"] == 0


def test_sessions_are_bounded(rig: Rig) -> None:
    opened = [rig.one.open() for _ in range(4)]
    with pytest.raises(CommandFailed, match="open a session on RingId") as caught:
        rig.far.open()
    assert caught.value.status is Status.NO_SPACE
    assert len(set(opened)) == 4


def test_a_session_is_of_one_ring(rig: Rig) -> None:
    with rig.one.session() as session:
        for other in (rig.far, rig.two):
            assert other.put(session, 0, 1, DATA) == Put(Status.DENIED, None)
            assert other.run(c.CloseSession(session)).status is Status.DENIED
        assert rig.one.put(session, 0, 1, DATA).stored


# Drop.


@pytest.mark.one_slice
def test_a_dropped_block_is_gone_once(rig: Rig) -> None:
    handle = store(rig.one, 1)
    assert rig.far.drop(0, 1) is Status.OK
    assert rig.one.drop(0, 1) is Status.MISS
    assert rig.one.lookup(0, [1]).status is Status.MISS
    with pytest.raises(CommandFailed) as caught:
        rig.one.get(handle, length=600)
    assert caught.value.status is Status.STALE
    assert rig.counters()["frames_free"] == FRAMES


# Waiting for a block.


def writing(client: Client, key: int, data: bytes, session: SessionId | None = None) -> Handle:
    """A block with all its bytes, but no seal."""
    handle = client.run(c.Alloc(0, key, len(data), session or client.open())).handle
    assert handle is not None
    assert client.run(c.Write(handle, 0, data)).status is Status.OK
    return handle


@pytest.mark.parks
def test_a_parked_read_gets_the_block_when_it_is_sealed_and_not_before(rig: Rig) -> None:
    handle = writing(rig.one, 1, DATA)
    out = bytearray(len(DATA))
    ticket = rig.far.read(handle, out, park=True)
    assert rig.far.lookup(0, [1]).status is Status.PENDING
    assert ticket.completion is None and out == bytes(len(DATA))
    assert rig.one.run(c.Seal(handle, len(DATA), crc32c(as_bytes(DATA)))).status is Status.OK
    assert rig.device.wait(ticket).status is Status.OK
    assert out == DATA


@pytest.mark.parks
@pytest.mark.parametrize("end", ["abort", "crc", "drop", "close", "loss", "retire", "drop partition"])
def test_a_parked_read_is_stale_when_the_block_dies(rig: Rig, end: str) -> None:
    session = rig.one.open()
    handle = writing(rig.one, 1, DATA, session)
    out = bytearray(b"\xaa" * len(DATA))
    ticket = rig.far.read(handle, out, park=True)
    rig.far.lookup(0, [1])
    if end == "abort":
        rig.one.run(c.Abort(handle))
    elif end == "crc":
        assert rig.one.run(c.Seal(handle, len(DATA), 0)).status is Status.CRC
    elif end == "drop":
        rig.far.drop(0, 1)
    elif end == "close":
        rig.one.run(c.CloseSession(session))
    elif end == "loss":
        rig.device.reset(rig.one.ring)
    elif end == "retire":
        rig.device.set_model(0, ModelState.RETIRED)
    else:
        rig.device.drop_partition(0)
    assert rig.device.wait(ticket).status is Status.STALE
    assert out == b"\xaa" * len(DATA)


@pytest.mark.parks
def test_nobody_waits_for_ever(rig: Rig) -> None:
    session = rig.one.open()
    handle = rig.one.run(c.Alloc(0, 1, 600, session)).handle
    assert handle is not None
    with pytest.raises(CommandFailed) as caught:
        rig.far.get(handle, length=600, park=True)
    assert caught.value.status is Status.PENDING
    with pytest.raises(CommandFailed) as caught:
        rig.far.get(handle, length=600)
    assert caught.value.status is Status.PENDING


@pytest.mark.parks
def test_parked_reads_beyond_the_table_are_pending(rig: Rig) -> None:
    session = rig.one.open()
    handle = rig.one.run(c.Alloc(0, 1, 600, session)).handle
    assert handle is not None
    tickets = [rig.far.read(handle, bytearray(600), park=True) for _ in range(3)]
    assert rig.device.wait(tickets[2]).status is Status.PENDING
    assert [ticket.completion for ticket in tickets[:2]] == [None, None]
    rig.one.run(c.Abort(handle))
    assert [rig.device.wait(ticket).status for ticket in tickets[:2]] == [Status.STALE] * 2


# Many commands at once.


def test_tickets_may_be_waited_for_in_any_order(rig: Rig) -> None:
    for key in range(4):
        store(rig.one, key, bytes([key]) * 600)
    handles = [handle for handle in rig.one.lookup(0, range(4)).handles if handle is not None]
    outs = [bytearray(600) for _ in handles]
    reads = [rig.far.read(handle, out) for handle, out in zip(handles, outs, strict=True)]
    looks = [rig.one.submit(c.Lookup(0, [key])) for key in range(8)]
    assert [rig.device.wait(look).count for look in reversed(looks)] == [0] * 4 + [1] * 4
    assert [rig.device.wait(read).status for read in reads[::-1]] == [Status.OK] * 4
    assert outs == [bytes([key]) * 600 for key in range(4)]


@pytest.mark.one_slice
def test_frames_are_told_by_state(rig: Rig) -> None:
    store(rig.one, 1)
    rig.two.run(c.Alloc(0, 1, 1, rig.two.open()))
    counters = rig.counters()
    states = {state: counters[f"frames_{state.name.lower()}"] for state in FrameState}
    assert states == {
        FrameState.FREE: FRAMES - 2,
        FrameState.WRITING: 1,
        FrameState.SEALED: 1,
        FrameState.DRAINING: 0,
        FrameState.QUARANTINED: 0,
    }
