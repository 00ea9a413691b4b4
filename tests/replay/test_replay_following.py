"""The specification repeats a recorded run, decision by decision, and notices whatever differs."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from hw.params import orderlog as log
from hw.params.commands import Command, Completion, Event, OpenSession
from hw.params.params import Params
from hw.params.protocol import REGISTERS, RingId, Status
from pymodel.trace import Curve, lru_curve, optimum_curve
from scripts.replay.checks import failed_checks
from scripts.replay.following import compared, follow
from scripts.replay.run import Replay
from scripts.replay.stats import statistics
from scripts.replay.workload import Workload
from sw.driver import Device, Diverged
from sw.driver.transport import FollowingTransport, Recording
from sw.driver.transport.recording import Poll, Returned, Took
from tests.replay.clocked import Ticking, clocked
from tests.replay.helpers import made_trace, params_of

EVERYTHING = (
    *("replay.partitions=2", "replay.models=2", "replay.ports=2", "pools.0.frames=32", "replay.block_bytes=1500"),
    *("memory.segment_bytes=512", "replay.retire_model_at=0.5", "replay.lose_port_at=0.6", "tables.lookup_keys=4"),
)
"""Blocks of three segments, evictions, losses."""

Stats = dict[str, Any]


class Run:
    """A recorded replay of the specification in a random order."""

    def __init__(self, params: Params, seed: int = 0, lie: Callable[[Completion], None] = lambda _: None) -> None:
        self.params = params
        self.workload = Workload(made_trace(40), params)
        self.transport = clocked(Ticking(params, seed, lie))
        self.replay = Replay(self.workload, params, self.transport)
        self.replay.run()
        blocks = self.workload.blocks(sorted(self.replay.history.numbers))
        self.curves: tuple[Curve, Curve] = lru_curve(blocks), optimum_curve(blocks)
        self.stats = self.judge(self.replay)

    @property
    def recording(self) -> Recording:
        return self.transport.recorder.recording

    def judge(self, replay: Replay) -> Stats:
        return statistics(replay, {}, failed_checks(replay), *self.curves)

    def followed(self) -> Stats:
        return compared(self.stats, follow(self.replay, self.recording, self.judge), len(self.recording))


@pytest.mark.parametrize("known", [True, False])
def test_the_specification_repeats_every_decision(known: bool) -> None:
    seed = 0 if known else random.randrange(1 << 32)
    print(f"seed {seed}")
    run = Run(params_of(*EVERYTHING), seed)
    assert run.stats["failed_checks"] == [] and run.stats["evictions"] > 50 and run.stats["block_hits"] > 0
    assert run.stats["failed_requests"] > 0 and run.stats["retired_requests"] > 0
    section = run.followed()
    assert section["difference"] is None
    assert section["identical"] and all(section["fields"].values()) and section["operations"] > 1000
    kinds = {type(operation) for operation in run.recording.operations[0]}
    assert kinds >= {Took, log.Landed, log.Sealed, log.ReadDone, log.Drained, log.Lost, log.Step, log.Restarted}


def test_the_schedule_alone_decides_otherwise() -> None:
    """What the recording carries matters: another order gives another run."""
    one, other = (Run(params_of(*EVERYTHING), seed).stats for seed in (1, 2))
    assert one["statuses"] != other["statuses"]


def returned(run: Run, wanted: Callable[[Returned], bool]) -> tuple[Poll, int, Returned]:
    """The first completion of its kind, and where it is."""
    return next(
        (step, at, arrival)
        for step in run.recording.steps
        if isinstance(step, Poll)
        for at, arrival in enumerate(step.arrivals or ())
        if isinstance(arrival, Returned) and wanted(arrival)
    )


def flip_status(run: Run) -> None:
    _, _, it = returned(run, lambda it: it.completion.status is Status.GRANTED)
    it.completion.status = Status.NO_SPACE


def swap_victim(run: Run) -> None:
    """The block came to another frame."""
    _, _, it = returned(run, lambda it: it.completion.status is Status.GRANTED)
    assert it.completion.handle is not None
    it.completion.handle = it.completion.handle._replace(frame=it.completion.handle.frame ^ 1)


def swap_hit(run: Run) -> None:
    _, _, it = returned(run, lambda it: it.completion.count > 1 and len(it.completion.handles) > 1)
    it.completion.handles.reverse()


def wrong_pin(run: Run) -> None:
    _, _, it = returned(run, lambda it: any(it.completion.pins))
    it.completion.pins[0] = None


def wrong_byte(run: Run) -> None:
    step, at, it = returned(run, lambda it: it.digest is not None)
    assert it.digest is not None
    step.arrivals[at] = Returned(it.completion, bytes([it.digest[0] ^ 1]) + it.digest[1:], it.logged)


def other_event(run: Run) -> None:
    """Another block was told to be evicted."""
    for step in run.recording.steps:
        for at, it in enumerate(step.arrivals or () if isinstance(step, Poll) else ()):
            if isinstance(it, Event) and not it.stored:
                step.arrivals[at] = Event(it.port, it.fate, it.partition, it.model, it.key ^ 1, it.handle)
                return


def silence(run: Run) -> None:
    """The last message never came."""
    for step in reversed(run.recording.steps):
        if isinstance(step, Poll) and any(isinstance(it, Event) for it in step.arrivals or ()):
            step.arrivals.remove(next(it for it in reversed(step.arrivals) if isinstance(it, Event)))
            return


def seal_early(run: Run) -> None:
    """A block was sealed before its last write was answered."""
    operations = run.recording.operations[0]
    at = next(i for i, operation in enumerate(operations) if isinstance(operation, log.Sealed))
    sealed = operations[at]
    assert isinstance(sealed, log.Sealed)
    writes = (i for i in range(at) if isinstance(operations[i], log.Landed) and operations[i].frame == sealed.frame)
    before = max(writes)
    operations[before], operations[at] = operations[at], operations[before]


def unknown_command(run: Run) -> None:
    operations = run.recording.operations[0]
    at = next(i for i, operation in enumerate(operations) if isinstance(operation, Took) and operation.ring.port == 1)
    took = operations[at]
    assert isinstance(took, Took)
    operations[at] = Took(took.ring, 9999, took.item)


MUTANTS: dict[Callable[[Run], None], str] = {
    flip_status: "ALLOC, tag .*: status is <Status.NO_SPACE: 12>, expected <Status.GRANTED: 4>",
    swap_victim: r"ALLOC, tag .*: handle is Handle\(.*expected Handle\(",
    swap_hit: r"LOOKUP, tag .*: handles is",
    wrong_pin: r"LOOKUP, tag .*: pins is \[None",
    wrong_byte: "Read.*: data differs",
    other_event: "EVICTED.* arrived, expected Event",
    silence: "was to be told Event|arrived, expected Event",
    seal_early: r"entry [\d,]+ of the order log, Sealed.*: not legal here, frame \d+ has writes unanswered",
    unknown_command: r"entry [\d,]+ of the order log, Took.*tag=9999.*: no such command was submitted",
}


@pytest.fixture(scope="module")
def small() -> Params:
    return params_of("pools.0.frames=8", "replay.block_bytes=1500", "memory.segment_bytes=512", "replay.ports=2")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_what_differs_is_named(mutant: Callable[[Run], None], small: Params) -> None:
    run = Run(small)
    mutant(run)
    section = run.followed()
    assert not section["identical"] and section["fields"] is None
    assert re.search(MUTANTS[mutant], section["difference"]), section["difference"]


def test_a_counter_that_differs_is_named(small: Params) -> None:
    run = Run(small)
    run.stats["evictions"] += 1
    section = run.followed()
    assert not section["identical"] and [name for name, same in section["fields"].items() if not same] == ["evictions"]
    assert re.fullmatch(r"evictions is \d+, expected \d+", section["difference"])


def test_a_command_that_the_log_does_not_know_ends_as_recorded(small: Params) -> None:
    """A requester refuses by itself, a port what has expired: the specification has no part in it."""
    transport = clocked(Refusing(small))
    device = Device(transport)
    device.start(7)
    device.set_partition(0, quota=4)
    device.bind(RingId(0, 0), 0)
    refused = device.wait(device.submit(RingId(0, 0), OpenSession())).status
    counted = transport.counters()["status_unavailable"]
    assert refused is Status.UNAVAILABLE and device.wait(device.submit(RingId(0, 0), OpenSession())).status is Status.OK

    following = FollowingTransport(small, transport.recorder.recording)
    device = Device(following)
    device.start(7)
    device.set_partition(0, quota=4)
    device.bind(RingId(0, 0), 0)
    assert device.wait(device.submit(RingId(0, 0), OpenSession())).status is refused
    assert following.counters()["status_unavailable"] == counted + 1
    assert device.wait(device.submit(RingId(0, 0), OpenSession())).status is Status.OK
    following.finish()


class Refusing(Ticking):
    """The first command of a ring expires at its port."""

    refused = False

    def submit(
        self, ring: RingId, tag: int, command: Command, into: memoryview | None = None, *, slice_: int = 0
    ) -> None:
        if self.refused or ring == REGISTERS:
            super().submit(ring, tag, command, into, slice_=slice_)
        else:
            self.refused = True
            self._arrived.append(Completion(ring, tag, Status.UNAVAILABLE))


@pytest.mark.parametrize("misuse", ["counted", "polled", "left"])
def test_another_use_than_the_recorded_one_is_refused(misuse: str, small: Params) -> None:
    transport = clocked(Ticking(small))
    Device(transport).start(7)
    transport.poll()
    following = FollowingTransport(small, transport.recorder.recording)
    Device(following).start(7)
    if misuse == "counted":
        with pytest.raises(Diverged, match="step 0 of the recording: expected a Count, found a Poll"):
            following.counters()
    elif misuse == "polled":
        assert following.poll() == []
        with pytest.raises(Diverged, match="step 1 of the recording: expected a Poll, found nothing more"):
            following.poll()
    else:
        with pytest.raises(Diverged, match="the recording has 1 steps more"):
            following.finish()
