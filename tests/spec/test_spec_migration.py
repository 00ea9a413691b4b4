"""A session moves between rings: every interleaving of a small scenario, and the corners of the fence."""

from collections import Counter

import pytest
from specbench import A_FAR, A_TOO, SEGMENT, A, Bench, block_bytes, moving, seal
from stories import DATA, MIGRATE, READ, Story, stories

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.orderlog import Operation, Timer
from hw.params.protocol import REGISTERS, Status


def statuses(story: Story) -> tuple[Status, ...]:
    """How MIGRATE and READ of the new ring ended."""
    return tuple(story.bench.answered(A_FAR, tag).status for tag in (MIGRATE, READ))


def test_after_the_fence_the_new_ring_reads_all_that_the_old_one_wrote() -> None:
    ends = Counter()
    for story in stories():
        ends[statuses(story)] += 1
        assert story.bench.answered(A_FAR, READ).data == DATA
        assert story.bench.core.sessions.at(0).ring.id == A_FAR
        late = story.bench.do(A, c.Write(story.handle, 2, b"x"))
        assert late.status is Status.STALE
        story.bench.must(A_FAR, seal(story.handle, DATA))
        assert story.bench.read(A_TOO, story.handle, 2).data == DATA
    assert ends.keys() == {(Status.OK, Status.OK)}
    assert ends.total() > 100


@pytest.mark.parametrize("fault", [log.Expired(Timer.FENCE, 0), log.Lost(A)], ids=["timer", "loss"])
def test_a_fence_that_fails_leaves_never_half_a_block(fault: Operation) -> None:
    ends = Counter()
    for story in stories(fault):
        bench = story.bench
        end = statuses(story)
        ends[end] += 1
        moved = end[0] is Status.OK
        assert end in ((Status.OK, Status.OK), (Status.OK, Status.STALE), (Status.STALE, Status.STALE))
        assert (bench.do(A_FAR, c.Write(story.handle, 2, b"x")).status is Status.RANGE) == moved
        assert bench.look(A_FAR, 1) is (Status.PENDING if moved else Status.MISS)
        if end[1] is Status.OK:
            assert bench.answered(A_FAR, READ).data == DATA
        bench.settle()
        assert bench.core.frames[0].state.name == ("WRITING" if moved else "FREE")
    assert {Status.OK, Status.STALE} == {end[0] for end in ends}


def test_loss_of_the_new_ring_before_the_answer_leaves_the_session_where_it_was() -> None:
    ends = Counter()
    for story in stories(log.Lost(A_FAR)):
        ends[statuses(story)] += 1
        assert story.bench.answered(A_FAR, READ).status in (Status.OK, Status.UNAVAILABLE)
    assert Status.UNAVAILABLE in {end[0] for end in ends}


# Corners


def test_a_session_given_up_for_a_ring_that_is_lost_then_ends() -> None:
    bench = Bench()
    session, handle = moving(bench)
    bench.must(A, c.AnswerFence(session, 2))
    bench.lose(A_FAR)
    bench.settle()
    assert bench.do(A, c.Write(handle, 1, block_bytes(1))).status is Status.STALE
    assert bench.do(A, c.CloseSession(session)).status is Status.STALE


def test_the_old_ring_goes_on_until_it_answers() -> None:
    bench = Bench()
    session, handle = moving(bench)
    other = bench.alloc(A, session, 2)
    bench.must(A, c.Write(handle, 1, block_bytes(1)))
    bench.must(A, c.Abort(other))
    bench.must(A, seal(handle, block_bytes(1) * 2))
    bench.must(A, c.AnswerFence(session, 2))
    assert bench.do(A, c.Alloc(0, 3, 1, session)).status is Status.STALE


def test_writes_that_were_counted_may_still_arrive_and_no_more() -> None:
    bench = Bench()
    session = bench.open(A)
    handle = bench.alloc(A, session, 1, 4 * SEGMENT)
    tag = bench.ask(A_FAR, c.Migrate(session))
    bench.must(A, c.AnswerFence(session, 2))
    bench.settle()
    assert bench.answer(A_FAR, tag) is None, "two writes are still to come"
    result = bench.do(A, c.Write(handle, 0, block_bytes(3)))
    assert (result.status, result.count) == (Status.STALE, 2)
    bench.settle()
    assert bench.answered(A_FAR, tag).status is Status.OK


def test_each_ring_counts_its_own_writes() -> None:
    bench = Bench()
    session, handle = moving(bench)
    bench.must(A, c.AnswerFence(session, 1))
    bench.settle()
    bench.must(A_FAR, c.Write(handle, 1, block_bytes(1)))
    tag = bench.ask(A, c.Migrate(session))
    assert bench.do(A_FAR, c.AnswerFence(session, 0)).status is Status.RANGE
    bench.must(A_FAR, c.AnswerFence(session, 1))
    bench.settle()
    assert bench.answered(A, tag).status is Status.OK
    bench.must(A, seal(handle, block_bytes(1) * 2))


def test_back_and_forth_the_bytes_stay_readable() -> None:
    bench = Bench()
    session, handle = moving(bench)
    here, there = A, A_FAR
    for turn in range(6):
        bench.must(here, c.AnswerFence(session, 1 if turn == 0 else 0))
        bench.settle()
        here, there = there, here
        assert bench.must(here, c.Read(handle, 0, 1)).data == block_bytes(1)
        assert bench.do(there, c.Abort(handle)).status is Status.STALE
        bench.ask(there, c.Migrate(session))


def test_a_dropped_block_does_not_hold_the_fence_up() -> None:
    bench = Bench()
    session = bench.open(A)
    handle = bench.alloc(A, session, 1)
    bench.ask(A, c.Write(handle, 0, block_bytes(1)))
    tag = bench.ask(A_FAR, c.Migrate(session))
    bench.must(A, c.AnswerFence(session, 1))
    bench.must(A_TOO, c.Drop(0, 1))
    bench.execute(log.Fenced(0))
    assert bench.answered(A_FAR, tag).status is Status.OK


def test_a_seal_of_the_old_ring_ends_where_it_was_asked() -> None:
    bench = Bench()
    session, handle = moving(bench)
    bench.execute(log.Landed(0, 1))
    tag = bench.ask(A, seal(handle, block_bytes(1)))
    bench.must(A, c.AnswerFence(session, 1))
    bench.execute(log.Fenced(0))
    bench.settle()
    assert bench.answered(A, tag).status is Status.OK


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "memory error"])
def test_a_seal_is_decided_although_the_ring_that_asked_is_lost_since(stored: bool) -> None:
    bench = Bench()
    session = bench.open(A)
    handle = bench.alloc(A, session, 1)
    bench.ask(A, c.Write(handle, 0, block_bytes(1)))
    tag = bench.ask(A, seal(handle, block_bytes(1)))
    bench.ask(A_FAR, c.Migrate(session))
    bench.must(A, c.AnswerFence(session, 1))
    bench.execute(log.Landed(0, 1, ok=stored))
    bench.execute(log.Fenced(0))
    bench.lose(A)
    bench.settle()
    assert bench.answered(A, tag).status is Status.UNAVAILABLE
    assert bench.look(A_FAR, 1) is (Status.HIT if stored else Status.MISS)


def test_pins_stay_with_their_ring() -> None:
    bench = Bench()
    session = bench.open(A)
    bench.store(A, session, 1)
    pin = bench.pin(A, 1)
    bench.ask(A_FAR, c.Migrate(session))
    bench.must(A, c.AnswerFence(session, 1))
    bench.settle()
    assert bench.do(A_FAR, c.Unpin(pin)).status is Status.STALE
    bench.must(A, c.Unpin(pin))


def test_closing_a_session_on_its_way_ends_the_migration() -> None:
    bench = Bench()
    session = bench.open(A)
    tag = bench.ask(A_FAR, c.Migrate(session))
    bench.must(A, c.CloseSession(session))
    assert bench.answered(A_FAR, tag).status is Status.STALE


def test_the_fence_goes_to_the_ring_that_holds_the_session() -> None:
    bench = Bench()
    session = bench.open(A)
    bench.ask(A_FAR, c.Migrate(session))
    assert [message for message in bench.heard if isinstance(message, c.Fence)] == [c.Fence(0, A, session)]


def test_a_partition_may_die_while_its_session_moves() -> None:
    bench = Bench()
    session, handle = moving(bench)
    bench.must(REGISTERS, c.DropPartition(0))
    bench.must(A, c.AnswerFence(session, 1))
    bench.settle()
    assert bench.do(A_FAR, c.Read(handle, 0, 1)).status is Status.STALE
    bench.alloc(A_FAR, session, 1)
