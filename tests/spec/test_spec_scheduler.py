"""The scheduler: order within a ring, items of batches, eagerness, and an end."""

import pytest
from specbench import A_FAR, EPOCH, SMALL, A, B, block_bytes, fuzz, seal, tiny

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Command, Completion, Message
from hw.params.orderlog import Hand, Step, Taken
from hw.params.protocol import REGISTERS, Handle, LookupMode, ModelState, RingId, SessionId, Status
from pymodel.spec import Slice
from pymodel.stimulus.scheduler import Policy, Scheduler, replay


class Host:
    """Two rings of partition 0 and one of partition 1 on a scheduler."""

    def __init__(self, seed: int = 0, policy: Policy = Policy.EAGER) -> None:
        self.scheduler = Scheduler(Slice(tiny()), seed, policy, record=True)
        self.tag = 0
        self.answers: dict[int, Completion] = {}
        for command in (c.SetEpoch(EPOCH), c.SetPartition(0, quota=4), c.SetPartition(1, quota=4)):
            self.submit(REGISTERS, command)
        self.submit(REGISTERS, c.SetModel(0, ModelState.LIVE))
        for ring, partition in ((A, 0), (A_FAR, 0), (B, 1)):
            self.submit(REGISTERS, c.Bind(ring, partition))
        self.drain()
        self.session = self.ask(A, c.OpenSession()).session or SessionId(0, 0)

    @property
    def log(self) -> list[log.Operation]:
        """The order log so far."""
        assert self.scheduler.log is not None
        return self.scheduler.log

    def hear(self, outputs: list[Completion | Message]) -> None:
        self.answers.update((output.tag, output) for output in outputs if isinstance(output, Completion))

    def submit(self, ring: RingId, command: Command) -> int:
        self.tag += 1
        self.scheduler.submit(ring, self.tag, command)
        return self.tag

    def drain(self) -> None:
        self.hear(self.scheduler.drain())

    def ask(self, ring: RingId, command: Command) -> Completion:
        tag = self.submit(ring, command)
        self.drain()
        return self.answers[tag]

    def alloc(self, key: int) -> Handle:
        handle = self.ask(A, c.Alloc(0, key, 4096, self.session)).handle
        assert handle is not None
        return handle


@pytest.mark.parametrize("policy", Policy)
def test_commands_of_a_ring_are_taken_in_order_and_whole(policy: Policy) -> None:
    host = Host(3, policy)
    start = len(host.log)
    tags = [host.submit(ring, c.Lookup(0, [1, 2, 3], LookupMode.BITMAP)) for ring in (A, A, A_FAR, A_FAR, B)]
    host.drain()
    taken = [op for op in host.log[start:] if isinstance(op, Taken)]
    for ring in (A, A_FAR, B):
        items = [(op.tag, op.item) for op in taken if op.ring == ring]
        assert items == sorted(items)
    assert [(op.tag, op.item) for op in taken] != sorted((op.tag, op.item) for op in taken), "rings are interleaved"
    assert {host.answers[tag].status for tag in tags} == {Status.OK}


def test_the_rest_of_a_batch_that_has_ended_is_not_taken() -> None:
    host = Host()
    start = len(host.log)
    assert host.ask(A, c.Lookup(0, [1, 2, 3])).statuses == [Status.MISS]
    assert len(host.log) == start + 1
    assert host.ask(A, c.OpenSession()).status is Status.OK


@pytest.mark.parametrize("command", [c.Lookup(0, []), c.Write(Handle(0, 0, 0, 0, 0), 0, b"")])
def test_an_empty_batch_is_taken_and_refused(command: Command) -> None:
    assert Host().ask(A, command).status is Status.INVALID


def test_eager_puts_internal_operations_before_commands() -> None:
    host = Host()
    handle = host.alloc(1)
    start = len(host.log)
    data = block_bytes(3)
    for command in (c.Write(handle, 0, data), seal(handle, data), c.Read(handle, 0, 3)):
        host.submit(A, command)
    host.drain()
    kinds = [type(op) for op in host.log[start:]]
    assert kinds == [Taken, log.Landed] * 3 + [Taken, log.Sealed, Taken, log.ReadDone]


def test_the_sweep_takes_the_dead_out_and_only_them() -> None:
    host = Host()
    handle, other = host.alloc(1), host.alloc(2)
    for each in (handle, other):
        host.ask(A, c.Write(each, 0, b"x"))
    host.ask(A, seal(handle, b"x"))
    host.ask(A, c.CloseSession(host.session))
    assert [op for op in host.log if isinstance(op, Step)] == [Step(Hand.FRAMES, other.frame)]
    host.ask(REGISTERS, c.DropPartition(0))
    assert host.log[-2:] == [Step(Hand.FRAMES, handle.frame), log.Drained(handle.frame)]


def test_a_loss_from_outside_is_cleaned_up() -> None:
    host = Host()
    handle = host.alloc(1)
    read = host.submit(A_FAR, c.Read(handle, 0, 1, park=True))
    host.drain()
    host.hear(host.scheduler.inject(log.Lost(A)))
    host.drain()
    assert host.answers[read].status is Status.STALE
    assert host.ask(REGISTERS, c.Bind(A, 1)).status is Status.OK


def test_what_a_lost_ring_had_queued_can_be_ended_before_the_ring_changes_hands() -> None:
    host = Host()
    tags = [host.submit(A, command) for command in (c.Lookup(0, [1, 2], LookupMode.BITMAP), c.OpenSession())]
    other = host.submit(A_FAR, c.OpenSession())
    host.hear(host.scheduler.step())
    host.hear(host.scheduler.inject(log.Lost(A)))
    host.hear(host.scheduler.flush(A))
    assert [host.answers[tag].status for tag in tags] == [Status.UNAVAILABLE] * 2
    host.drain()
    assert host.answers[other].status is Status.OK


def test_what_waits_is_outstanding_and_the_scheduler_idle() -> None:
    host = Host()
    handle = host.alloc(1)
    read = host.submit(A_FAR, c.Read(handle, 0, 1, park=True))
    move = host.submit(A_FAR, c.Migrate(host.session))
    host.drain()
    assert host.scheduler.idle
    assert host.scheduler.step() == []
    assert host.scheduler.outstanding == {(A_FAR, read), (A_FAR, move)}


def test_a_tag_in_use_is_refused_until_its_completion() -> None:
    host = Host()
    host.scheduler.submit(A, 999, c.OpenSession())
    with pytest.raises(ValueError, match="tag 999"):
        host.scheduler.submit(A, 999, c.OpenSession())
    host.scheduler.submit(A_FAR, 999, c.OpenSession())
    host.drain()
    host.scheduler.submit(A, 999, c.OpenSession())


def test_a_restart_in_the_middle_of_a_batch_ends_it() -> None:
    host = Host()
    lookup = host.submit(A, c.Lookup(0, [1, 2, 3], LookupMode.BITMAP))
    after = host.submit(A, c.OpenSession())
    host.hear(host.scheduler.step())
    host.hear(host.scheduler.inject(log.Restarted()))
    host.drain()
    assert host.answers[lookup].status is Status.UNAVAILABLE
    assert host.answers[after].status is Status.UNAVAILABLE
    assert host.scheduler.outstanding == set()


@pytest.mark.parametrize("policy", Policy)
def test_the_log_replayed_gives_the_same_outputs(seed: int, policy: Policy) -> None:
    scheduler, _, heard = fuzz(SMALL, seed, 3000, policy)
    assert scheduler.log is not None
    assert replay(SMALL, scheduler.log) == heard


def test_random_seeds_give_other_interleavings_and_the_same_seed_the_same() -> None:
    logs = [fuzz(SMALL, seed, 500)[0].log for seed in (1, 1, 2)]
    assert logs[0] == logs[1] != logs[2]
