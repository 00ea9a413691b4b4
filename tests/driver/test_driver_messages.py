"""What ports are told, and a session that moves from one client to another."""

from collections.abc import Callable

import pytest
from driverbench import SEGMENT, Rig, store

from hw.params import commands as c
from hw.params.commands import Event, Fate, Fence, Invalidate, Message
from hw.params.protocol import Handle, ModelState, SessionId, Status
from sw.driver.client import as_bytes, crc32c

FIRST, SECOND = b"first" * 102 + b"__", b"second" * 50


def event(port: int, handle: Handle, fate: Fate, *, key: int = 1, partition: int = 0) -> Event:
    """What a port hears of a block of model 0."""
    return Event(port, fate, partition, 0, key, handle)


def test_a_stored_block_is_told_to_every_port_that_may_read_it(rig: Rig) -> None:
    handle = store(rig.one, 1)
    assert rig.heard == [event(port, handle, Fate.STORED) for port in (0, 1)]
    rig.heard.clear()
    handle = store(rig.two, 1)
    assert rig.heard == [event(0, handle, Fate.STORED, partition=1)], "its rings are on port 0 only"
    rig.heard.clear()
    handle = store(rig.public, 1)
    assert rig.heard == [event(port, handle, Fate.STORED, partition=2) for port in (0, 1)]


@pytest.mark.one_slice
def test_a_block_that_goes_is_told_whether_it_was_evicted_or_dropped(rig: Rig) -> None:
    rig.device.set_partition(0, quota=1, read_mask=0b100)
    first = store(rig.one, 1)
    rig.heard.clear()
    second = store(rig.one, 2)
    gone = [event(port, first, Fate.EVICTED) for port in (0, 1)]
    assert rig.heard == [*gone, *(event(port, second, Fate.STORED, key=2) for port in (0, 1))]
    rig.heard.clear()
    rig.far.drop(0, 2)
    assert rig.heard == [event(port, second, Fate.DROPPED, key=2) for port in (0, 1)]
    rig.heard.clear()
    rig.far.drop(0, 2)
    assert rig.heard == []


def test_a_block_that_never_was_sealed_is_not_told(rig: Rig) -> None:
    session = rig.one.open()
    for end in (c.Abort, lambda handle: c.Seal(handle, 1, 0)):
        handle = rig.one.run(c.Alloc(0, 1, 1, session)).handle
        assert handle is not None
        rig.one.run(c.Write(handle, 0, b"x"))
        rig.one.run(end(handle))
    rig.one.run(c.Alloc(0, 1, 1, session))
    rig.one.drop(0, 1)
    rig.one.run(c.CloseSession(session))
    assert rig.heard == []


@pytest.mark.one_slice
@pytest.mark.parametrize(
    ("kill", "told"),
    [
        (lambda rig: rig.device.drop_partition(0), [Invalidate(port, partition=0) for port in (0, 1)]),
        (lambda rig: rig.device.drop_partition(1), [Invalidate(0, partition=1)]),
        (lambda rig: rig.device.set_model(0, ModelState.RETIRED), [Invalidate(port, model=0) for port in (0, 1)]),
    ],
    ids=["partition", "other partition", "model"],
)
def test_the_death_of_a_scope_is_told_once_and_its_blocks_are_not(
    rig: Rig, kill: Callable[[Rig], None], told: list[Message]
) -> None:
    for key in (1, 2):
        store(rig.one, key)
        store(rig.two, key)
    rig.heard.clear()
    kill(rig)
    rig.settle()
    assert rig.heard == told


def test_every_listener_hears_everything(rig: Rig) -> None:
    too: list[Message] = []
    rig.device.listen(too.append)
    store(rig.one, 1)
    assert too == rig.heard != []


# Migration.


class Controller:
    """The old ring's side of a migration: counts its WRITEs, and answers FENCE with the count."""

    def __init__(self, rig: Rig, answers: bool = True) -> None:
        self._client = rig.one
        self._answers = answers
        self.session = rig.one.open()
        self.writes = 0
        self.answered: Status | None = None
        rig.device.listen(self.hear)

    def write(self, handle: Handle, segment: int, data: bytes) -> Status:
        """One segment."""
        result = self._client.run(c.Write(handle, segment, data))
        self.writes += result.count
        return result.status

    def hear(self, message: Message) -> None:
        """Answer a fence for the own session."""
        if isinstance(message, Fence) and (message.ring, message.session) == (self._client.ring, self.session):
            assert message.port == self._client.ring.port
            if self._answers:
                self.answered = self._client.run(c.AnswerFence(self.session, self.writes)).status


def half_written(rig: Rig, controller: Controller) -> Handle:
    """A block of two segments, of which the first is there; and a sealed one under key 1."""
    assert rig.one.put(controller.session, 0, 1, b"sealed before").stored
    controller.writes += 1
    handle = rig.one.run(c.Alloc(0, 2, len(FIRST + SECOND), controller.session)).handle
    assert handle is not None
    assert controller.write(handle, 0, FIRST) is Status.OK
    return handle


@pytest.mark.one_slice
@pytest.mark.migrates
def test_a_session_moves_with_all_that_it_has_written(rig: Rig) -> None:
    controller = Controller(rig)
    handle, session = half_written(rig, controller), controller.session
    assert rig.device.wait(rig.far.submit(c.Migrate(session))).status is Status.OK
    assert controller.answered is Status.OK

    assert rig.one.run(c.Write(handle, 1, SECOND)).status is Status.STALE, "the old ring is out"
    assert rig.one.put(session, 0, 3, b"x").status is Status.STALE
    assert bytes(rig.far.get(handle, length=len(FIRST))) == FIRST, "read after write, across the migration"
    assert rig.far.run(c.Write(handle, 1, SECOND)).status is Status.OK
    assert rig.far.run(c.Seal(handle, len(FIRST + SECOND), crc32c(as_bytes(FIRST + SECOND)))).status is Status.OK
    for client in (rig.one, rig.far):
        assert bytes(client.get(handle, length=len(FIRST + SECOND))) == FIRST + SECOND
    assert rig.far.put(session, 0, 3, b"and more").stored
    assert rig.far.run(c.CloseSession(session)).status is Status.OK
    assert rig.counters()["sessions_used"] == 0


@pytest.mark.one_slice
@pytest.mark.migrates
def test_a_fence_is_answered_with_what_a_write_had_appended_before_it_stopped(rig: Rig) -> None:
    controller = Controller(rig)
    handle = rig.one.run(c.Alloc(0, 1, 2 * SEGMENT, controller.session)).handle
    assert handle is not None
    assert controller.write(handle, 0, bytes(3 * SEGMENT)) is Status.RANGE
    assert rig.device.wait(rig.far.submit(c.Migrate(controller.session))).status is Status.OK
    assert (controller.answered, controller.writes) == (Status.OK, 2)
    assert bytes(rig.far.get(handle, length=2 * SEGMENT)) == bytes(2 * SEGMENT)


@pytest.mark.one_slice
@pytest.mark.parks
@pytest.mark.migrates
def test_until_the_fence_is_answered_the_old_ring_goes_on_and_the_new_one_waits(rig: Rig) -> None:
    controller = Controller(rig, answers=False)
    handle, session = half_written(rig, controller), controller.session
    moving = rig.far.submit(c.Migrate(session))
    assert rig.far.put(session, 0, 9, b"x").status is Status.PENDING
    assert rig.far.run(c.Write(handle, 1, SECOND)).status is Status.PENDING
    assert rig.far.run(c.Write(handle, 2, SECOND)).status is Status.RANGE
    assert rig.far.run(c.AnswerFence(session, 0)).status is Status.RANGE
    assert rig.far.run(c.AnswerFence(session, 99)).status is Status.PENDING
    early = bytearray(len(FIRST))
    reading = rig.far.read(handle, early, park=True)
    assert rig.one.run(c.AnswerFence(session, 0)).status is Status.RANGE
    assert controller.write(handle, 1, SECOND) is Status.OK
    assert moving.completion is None and reading.completion is None
    assert rig.one.run(c.AnswerFence(session, controller.writes)).status is Status.OK
    assert rig.device.wait(moving).status is Status.OK
    assert rig.device.wait(reading).status is Status.OK
    assert early == FIRST


@pytest.mark.migrates
@pytest.mark.parametrize("failure", ["nobody answers", "old port lost", "session closed"])
def test_a_migration_that_fails_leaves_never_half_a_block(rig: Rig, failure: str) -> None:
    controller = Controller(rig, answers=False)
    handle, session = half_written(rig, controller), controller.session
    moving = rig.far.submit(c.Migrate(session))
    rig.far.lookup(0, [1])
    if failure == "old port lost":
        rig.device.lose_port(0)
    elif failure == "session closed":
        assert rig.one.run(c.CloseSession(session)).status is Status.OK
    assert rig.device.wait(moving).status is Status.STALE
    assert rig.far.lookup(0, [1, 2]).statuses == [Status.HIT, Status.MISS]
    assert rig.far.run(c.Write(handle, 1, SECOND)).status is Status.STALE
    assert rig.far.put(session, 0, 3, b"x").status is Status.STALE
    store(rig.far, 2)


@pytest.mark.migrates
def test_the_loss_of_the_new_ring_leaves_the_session_where_it_was(rig: Rig) -> None:
    controller = Controller(rig, answers=False)
    handle = half_written(rig, controller)
    moving = rig.far.submit(c.Migrate(controller.session))
    rig.far.lookup(0, [1])
    rig.device.lose_port(1)
    assert rig.device.wait(moving).status is Status.UNAVAILABLE
    assert controller.write(handle, 1, SECOND) is Status.OK
    assert rig.one.run(c.Seal(handle, len(FIRST + SECOND), crc32c(as_bytes(FIRST + SECOND)))).status is Status.OK


@pytest.mark.migrates
def test_a_session_does_not_move_to_another_partition(rig: Rig) -> None:
    session = rig.one.open()
    for thief in (rig.two, rig.public):
        assert thief.run(c.Migrate(session)).status is Status.DENIED
    assert rig.heard == []
    assert rig.far.run(c.Migrate(SessionId(3, 0))).status is Status.STALE


@pytest.mark.one_slice
@pytest.mark.migrates
def test_pins_stay_behind(rig: Rig) -> None:
    controller = Controller(rig)
    half_written(rig, controller)
    (pin,) = rig.one.lookup(0, [1], pin=True).pins
    assert pin is not None
    assert rig.far.run(c.Migrate(controller.session)).status is Status.OK
    assert rig.far.unpin(pin) is Status.STALE
    assert rig.one.unpin(pin) is Status.OK
