"""Traffic that looks for trouble finds none, and reaches everything there is to reach."""

from collections import Counter

import pytest
from specbench import REACHABLE, SMALL, UNREACHABLE, fuzz

from hw.params import TINY
from hw.params import commands as c
from hw.params.commands import Completion
from hw.params.orderlog import Taken
from hw.params.protocol import Opcode, Status
from pymodel.stimulus.scheduler import Policy, replay
from pymodel.stimulus.traffic import Requester, Traffic

OPERATIONS = 24_000
DONE = {Status.OK, Status.GRANTED}


@pytest.fixture(scope="module")
def campaign() -> Counter:
    """Coverage of three seeds together."""
    return sum((fuzz(SMALL, seed, OPERATIONS)[1].coverage for seed in (0, 1, 2)), Counter())


def test_every_command_ends_in_every_way_that_it_can(campaign: Counter) -> None:
    reached = {(covered.opcode, covered.status) for covered in campaign}
    wanted = {(opcode, status) for opcode, statuses in REACHABLE.items() for status in statuses}
    assert wanted - reached == set(), "not reached by traffic"
    assert reached - wanted == set(), "not in the table of what is reachable"


def test_what_is_not_reachable_is_said_why() -> None:
    everywhere = {Status.STALE, Status.DENIED, Status.INVALID, Status.UNAVAILABLE}
    missing = {(opcode, status) for opcode in Opcode for status in everywhere - REACHABLE[opcode]}
    assert missing == set(UNREACHABLE)


def test_all_kinds_of_requesters_ask_for_all_that_is_owned(campaign: Counter) -> None:
    asked = {(covered.opcode, covered.requester) for covered in campaign}
    owned = (
        Opcode.LOOKUP,
        Opcode.ALLOC,
        Opcode.WRITE,
        Opcode.SEAL,
        Opcode.ABORT,
        Opcode.READ,
        Opcode.DROP,
        Opcode.CLOSE_SESSION,
        Opcode.MIGRATE,
        Opcode.ANSWER_FENCE,
    )
    assert {(opcode, requester) for opcode in owned for requester in Requester} - asked == set()


def test_no_other_partition_gets_anything_done(campaign: Counter) -> None:
    mine = {Opcode.ALLOC, Opcode.WRITE, Opcode.SEAL, Opcode.ABORT, Opcode.CLOSE_SESSION, Opcode.MIGRATE}
    foreign = [covered for covered in campaign if covered.requester is Requester.OTHER_PARTITION]
    assert {covered.opcode for covered in foreign} >= mine
    assert not [covered for covered in foreign if covered.opcode in mine and covered.status in DONE]


def test_traffic_finds_no_violation(seed: int) -> None:
    _, traffic, _ = fuzz(SMALL, seed, OPERATIONS)
    assert sum(traffic.coverage.values()) > OPERATIONS / 4


@pytest.mark.parametrize("policy", Policy)
def test_the_smallest_slice_with_worn_out_tables_stays_sound(seed: int, policy: Policy) -> None:
    fuzz(TINY, seed, 6000, policy, audit_every=1)


def test_the_order_log_alone_gives_the_same_outputs(seed: int) -> None:
    scheduler, _, heard = fuzz(SMALL, seed, 4000)
    assert scheduler.log is not None
    assert replay(SMALL, scheduler.log) == heard


def test_a_seed_says_all(seed: int) -> None:
    first, second = (fuzz(SMALL, seed, 3000)[0].log for _ in range(2))
    assert first == second


def test_every_command_taken_completes_once_and_what_waits_may_wait(seed: int) -> None:
    scheduler, _, heard = fuzz(SMALL, seed, 6000)
    assert scheduler.log is not None
    taken = {(op.ring, op.tag): op.command for op in scheduler.log if isinstance(op, Taken)}
    completed = Counter((o.ring, o.tag) for o in heard if isinstance(o, Completion))
    assert max(completed.values()) == 1
    left = taken.keys() - completed.keys()
    assert left == scheduler.outstanding
    assert all(isinstance(taken[name], c.Read | c.Migrate) for name in left)


def test_traffic_knows_only_what_it_is_told() -> None:
    """Two slices that say the same get the same traffic, whatever else they are."""
    first, second = Traffic(SMALL, 5), Traffic(SMALL, 5)
    assert [first.next() for _ in range(200)] == [second.next() for _ in range(200)]


@pytest.mark.nightly
def test_a_million_operations_find_no_violation(seed: int) -> None:
    fuzz(SMALL, seed, 1_000_000, audit_every=64)
