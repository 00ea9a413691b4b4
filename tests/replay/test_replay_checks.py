"""A check that cannot fail is a defect: each is shown a device that lies."""

from collections.abc import Callable

import pytest

from hw.params.commands import Alloc, Command, Completion, Event, Lookup, Read, Unpin
from hw.params.params import Params
from hw.params.protocol import RingId, Status
from scripts.replay.checks import failed_checks
from scripts.replay.run import Replay
from scripts.replay.tally import Tally
from sw.driver import Client, SpecificationTransport
from sw.driver.transport import Arrival
from tests.replay.helpers import params_of, prompts, replay_of


class Lying(SpecificationTransport):
    """The specification, behind a transport that changes what arrives by ``lie``."""

    def __init__(self, params: Params, lie: Callable[["Lying", Command, Completion], None]) -> None:
        super().__init__(params)
        self._lie = lie
        self._commands: dict[tuple[RingId, int], Command] = {}
        self.buffers: dict[tuple[RingId, int], memoryview] = {}

    def submit(
        self, ring: RingId, tag: int, command: Command, into: memoryview | None = None, *, slice_: int = 0
    ) -> None:
        self._commands[ring, tag] = command
        if into is not None:
            self.buffers[ring, tag] = into
        super().submit(ring, tag, command, into, slice_=slice_)

    def poll(self) -> list[Arrival]:
        arrived = super().poll()
        for arrival in arrived:
            if isinstance(arrival, Completion):
                self._lie(self, self._commands.pop((arrival.ring, arrival.tag)), arrival)
        return arrived


def damage_read(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Read):
        transport.buffers[completion.ring, completion.tag][5] ^= 1


def withhold_read(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Read):
        view = transport.buffers[completion.ring, completion.tag]
        view[:] = bytes(len(view))


def swap_handles(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Lookup) and completion.count > 1:
        completion.handles[0] = completion.handles[1]


def hide_handle(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Alloc) and completion.status is Status.EXISTS:
        completion.handle = None


TRACE = prompts([1, 2, 3], [1, 2, 3], [1, 9, 3])


def lied_to(lie: Callable[[Lying, Command, Completion], None]) -> Replay:
    params = params_of("replay.in_flight=1")
    return replay_of(TRACE, params, Lying(params, lie))


@pytest.mark.parametrize(
    ("lie", "wrong", "where"),
    [
        (damage_read, 4, "request 1: partition 0, model 0, key"),
        (withhold_read, 4 * 64, "wrong bytes, the first at 0"),
        (swap_handles, 64 + 64, "the handle names another block"),
        (hide_handle, 64, "the handle names no block"),
    ],
)
def test_wrong_content_is_counted_and_named(
    lie: Callable[[Lying, Command, Completion], None], wrong: int, where: str
) -> None:
    replay = lied_to(lie)
    assert replay.ledger.wrong_bytes == pytest.approx(wrong, abs=1 if lie is withhold_read else 0)
    first = failed_checks(replay)[0]
    assert "wrong bytes; the first in request" in first and where in first and "\n" not in first


def test_an_honest_transport_passes() -> None:
    replay = lied_to(lambda *_: None)
    assert replay.ledger.wrong_bytes == 0
    assert failed_checks(replay) == []


def test_an_unexpected_status_fails_the_run() -> None:
    def poison(transport: Lying, command: Command, completion: Completion) -> None:
        if isinstance(command, Read):
            completion.status = Status.POISON

    failed = failed_checks(lied_to(poison))
    assert "request 1: READ POISON" in failed
    assert any("POISON: the driver saw" in line for line in failed)


@pytest.mark.parametrize(
    ("counter", "words"),
    [
        ("evictions", "evictions: 0 by the EVENTs, 1 by the device"),
        ("status_hit", "HIT: the driver saw 0 completions, the device counted 1"),
        ("frames_free", "513 frames in all states, expected 512"),
        ("frames_writing", "1 frames are left WRITING"),
        ("frames_draining", "1 frames are left DRAINING"),
        ("pins_used", "1 entries are left in the table of pins"),
        ("sessions_used", "1 entries are left in the table of sessions"),
    ],
)
def test_counters_that_disagree_are_named(counter: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = lied_to(lambda *_: None)
    counters = replay.device.transport.counters()
    changed = counters | {counter: counters[counter] + 1}
    monkeypatch.setattr(replay.device.transport, "counters", lambda slice_: changed)
    assert words in failed_checks(replay)


def test_a_miscount_of_outputs_is_noticed() -> None:
    params = params_of("replay.in_flight=1")
    replay = replay_of(prompts([1, 2], output=600), params)
    assert failed_checks(replay) == []
    replay.tallies[0].decode_blocks -= 1
    assert failed_checks(replay) == ["blocks of outputs sealed: 2 by the EVENTs, 1 by the requests"]


def test_lost_events_are_noticed() -> None:
    class Deaf(SpecificationTransport):
        def poll(self) -> list[Arrival]:
            arrived = [arrival for arrival in super().poll() if not (isinstance(arrival, Event) and not arrival.stored)]
            return arrived or (super().poll() if not self._schedulers[0].idle else [])

    params = params_of("replay.in_flight=1", "pools.0.frames=4")
    failed = failed_checks(replay_of(prompts(range(8)), params, Deaf(params)))
    assert failed == ["evictions: 0 by the EVENTs, 4 by the device"]


def test_a_block_that_was_dropped_is_no_eviction() -> None:
    replay = lied_to(lambda *_: None)
    key = next(iter(replay.workload)).keys[0]
    assert Client(replay.device, RingId(0, 0)).drop(0, key) is Status.OK
    while replay.device.progress():
        pass
    assert Tally.total(replay.tallies).evictions == len(replay.ledger.ages) == 0
    assert failed_checks(replay) == []


def test_a_leaked_pin_is_noticed() -> None:
    class Forgetful(SpecificationTransport):
        """Answers an UNPIN, but does not do it."""

        def submit(
            self, ring: RingId, tag: int, command: Command, into: memoryview | None = None, *, slice_: int = 0
        ) -> None:
            if isinstance(command, Unpin):
                self._arrived.append(Completion(ring, tag))
            else:
                super().submit(ring, tag, command, into, slice_=slice_)

    params = params_of("replay.in_flight=1")
    failed = failed_checks(replay_of(TRACE, params, Forgetful(params)))
    assert "5 entries are left in the table of pins" in failed
