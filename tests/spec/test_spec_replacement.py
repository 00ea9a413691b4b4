"""CLOCK, its queue of victims, quotas and guarantees."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specbench import A_TOO, SEGMENT, SMALL, A, B, Bench, fuzz, refuse, seal, tiny, watch

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.protocol import REGISTERS, FrameState, SessionId, Status


def evicted(bench: Bench) -> list[int]:
    """Keys that have been evicted, in order, as port 0 was told."""
    return [m.key for m in bench.heard if isinstance(m, c.Event) and not m.stored and m.port == 0]


def full(bench: Bench) -> SessionId:
    """A session that has stored keys 0 to 3 in the four frames of the pool."""
    session = bench.open()
    for key in range(4):
        bench.store(A, session, key)
    return session


def test_victims_are_taken_in_the_order_of_the_hand() -> None:
    bench = Bench()
    session = full(bench)
    for key in range(4, 12):
        bench.store(A, session, key)
    assert evicted(bench) == list(range(8))


def test_a_pinned_hit_and_an_exists_give_a_second_chance() -> None:
    bench = Bench()
    session = full(bench)
    bench.must(A_TOO, c.Unpin(bench.pin(A_TOO, 0)))
    assert bench.do(A, c.Alloc(0, 1, 1, session)).status is Status.EXISTS
    for key in range(4, 8):
        bench.store(A, session, key)
    assert evicted(bench) == [2, 3, 0, 1]


def test_a_hit_without_a_pin_gives_none() -> None:
    bench = Bench()
    session = full(bench)
    assert bench.look(A, 0) is Status.HIT
    bench.store(A, session, 4)
    assert evicted(bench) == [0]


def test_a_victim_is_looked_at_again_when_it_is_taken() -> None:
    bench = Bench()
    session = full(bench)
    bench.store(A, session, 4)
    queued = [frame.tag.key for frame in bench.core.partitions[0].victims]
    assert queued == [1]
    pin = bench.pin(A, 1)
    bench.store(A, session, 5)
    assert evicted(bench) == [0, 2]
    bench.must(A, c.Unpin(pin))
    for key in (6, 7, 8):
        bench.store(A, session, key)
    assert evicted(bench)[2:4] == [3, 4], "1 has lost its place in the queue"


def test_what_is_written_pinned_read_or_draining_is_no_victim() -> None:
    bench = Bench()
    session = bench.open()
    read = bench.store(A, session, 0)
    bench.store(A, session, 1)
    bench.pin(A, 1)
    bench.store(A, session, 2)
    bench.pin(A, 2)
    bench.must(A, c.Drop(0, 2))
    bench.alloc(A, session, 3)
    tag = bench.ask(A, c.Read(read, 0, 1))
    assert bench.do(A, c.Alloc(0, 4, 1, session)).status is Status.QUOTA
    bench.execute(log.ReadDone(A, tag))
    assert bench.alloc(A, session, 4).frame == read.frame


def test_a_dead_block_waits_for_the_sweep_which_makes_its_frame_free() -> None:
    bench = Bench()
    session = full(bench)
    bench.store(A, session, 4)
    bench.must(A, c.Unpin(bench.pin(A, 1)))
    bench.must(REGISTERS, c.Retire(0))
    taken = bench.must(A, c.Alloc(1, 9, 1, session)).handle
    assert taken is not None and taken.frame == 2, "as any other"
    bench.settle()
    bench.must(A, c.Alloc(1, 10, 1, session))
    assert evicted(bench) == [0], "FREE comes first; and of what its scope took along nobody is told again"


def test_an_alloc_that_finds_everything_referenced_goes_round_twice_rather_than_fail() -> None:
    bench = Bench()
    session = full(bench)
    for key in range(4):
        assert bench.do(A, c.Alloc(0, key, 1, session)).status is Status.EXISTS
    bench.store(A, session, 4)
    assert evicted(bench) == [0]
    assert bench.core.counters["replacement_stall_steps"] > 0


@given(st.lists(st.integers(0, 9), max_size=60))
@settings(max_examples=40, deadline=None)
def test_with_a_queue_of_one_it_is_the_textbook_clock(uses: list[int]) -> None:
    bench = Bench(tiny(victims=1), audited=False)
    session = bench.open()
    frames: list[int | None] = [None] * 4
    referenced = [False] * 4
    hand, expected = 0, []
    for key in uses:
        status = bench.do(A, c.Alloc(0, key, SEGMENT, session)).status
        if key in frames:
            assert status is Status.EXISTS
            referenced[frames.index(key)] = True
            continue
        if None in frames:
            at = frames.index(None)
        else:
            while referenced[hand]:
                referenced[hand] = False
                hand = (hand + 1) % 4
            at, hand = hand, (hand + 1) % 4
            expected.append(frames[at])
        frames[at], referenced[at] = key, False
        handle = bench.core.handle(bench.core.frames[at])
        bench.must(A, c.Write(handle, 0, b"x"))
        bench.must(A, seal(handle, b"x"))
    assert evicted(bench) == expected


@pytest.mark.parametrize("victims", [1, 3])
def test_no_alloc_is_refused_while_the_partition_that_has_to_give_can(
    monkeypatch: pytest.MonkeyPatch, seed: int, victims: int
) -> None:
    refusals = watch(monkeypatch)
    refuse(seed, victims)
    assert set(refusals) == {"quota", "space"}


# Quotas and guarantees


def configured(
    quota_a: int, quota_b: int, guarantee_a: int = 0, guarantee_b: int = 0
) -> tuple[Bench, SessionId, SessionId]:
    """Partition 0 (ring A) and 1 (ring B), a session each."""
    bench = Bench()
    bench.must(REGISTERS, c.SetPartition(0, quota=quota_a))
    bench.must(REGISTERS, c.SetPartition(1, quota=quota_b, guarantee=guarantee_b))
    return bench, bench.open(A), bench.open(B)


def used(bench: Bench) -> tuple[int, int]:
    """Frames of both partitions."""
    return bench.core.partitions[0].used, bench.core.partitions[1].used


def test_at_its_quota_a_partition_takes_its_own_victims_though_frames_are_free() -> None:
    bench, a, _ = configured(quota_a=2, quota_b=4)
    for key in range(5):
        bench.store(A, a, key)
    assert used(bench) == (2, 0)
    assert evicted(bench) == [0, 1, 2]


def test_guaranteed_frames_are_not_lent() -> None:
    bench, a, b = configured(quota_a=4, quota_b=4, guarantee_b=3)
    for key in range(4):
        bench.store(A, a, key)
    assert used(bench) == (1, 0)
    for key in range(10, 13):
        bench.store(B, b, key)
    assert used(bench) == (1, 3)


def test_borrowed_frames_go_back_to_whoever_is_guaranteed_them() -> None:
    bench, a, b = configured(quota_a=4, quota_b=4)
    for key in range(4):
        bench.store(A, a, key)
    bench.must(REGISTERS, c.SetPartition(1, quota=4, guarantee=2))
    for key in range(10, 14):
        bench.store(B, b, key)
        assert bench.core.partitions[1].used >= min(2, key - 9)


def test_what_is_worn_out_is_not_lent() -> None:
    bench = Bench(tiny(generation_bits=2))
    a, b = bench.open(A), bench.open(B)
    for key in range(6):
        bench.must(A, c.Abort(bench.alloc(A, a, key)))
        bench.settle()
    bench.must(REGISTERS, c.SetPartition(1, quota=4, guarantee=2))
    while bench.core.pools[0].quarantined < 2:
        bench.must(A, c.Abort(bench.alloc(A, a, 9)))
        bench.settle()
    assert bench.do(A, c.Alloc(0, 9, 1, a)).status is Status.NO_SPACE, "two are left, and guaranteed"
    bench.alloc(B, b, 1)
    bench.alloc(B, b, 2)


def test_the_partition_furthest_above_its_guarantee_gives_and_the_lowest_of_equals() -> None:
    bench, a, b = configured(quota_a=4, quota_b=4)
    for key in range(2):
        bench.store(A, a, key)
        bench.store(B, b, key)
    bench.store(B, b, 9)
    assert used(bench) == (1, 3), "both were two above: the lower gave"
    bench.store(A, a, 8)
    assert used(bench) == (2, 2), "now the other one"


def test_who_pins_all_that_is_his_holds_up_nobody() -> None:
    bench, a, b = configured(quota_a=4, quota_b=4)
    bench.must(REGISTERS, c.SetPartition(0, quota=4, guarantee=1))
    for key in range(2):
        bench.store(A, a, key)
        bench.store(B, b, key)
        bench.pin(B, key)
    bench.store(A, a, 9)
    assert used(bench) == (2, 2), "B is furthest above, but holds everything: A takes its own"
    assert bench.look(A, 0) is Status.MISS


def test_draining_frames_count_against_the_quota() -> None:
    bench, a, _ = configured(quota_a=1, quota_b=4)
    bench.store(A, a, 1)
    pin = bench.pin(A, 1)
    bench.must(A, c.Drop(0, 1))
    assert bench.do(A, c.Alloc(0, 2, 1, a)).status is Status.QUOTA
    bench.must(A, c.Unpin(pin))
    bench.settle()
    bench.alloc(A, a, 2)


def test_frames_are_conserved_whatever_happens(seed: int) -> None:
    scheduler, _, _ = fuzz(SMALL, seed, 5000)
    core = scheduler.slice.core
    for pool in core.pools:
        owned = sum(p.used for p in core.partitions if p.pool is pool)
        quarantined = sum(frame.state is FrameState.QUARANTINED for frame in pool.frames)
        assert len(pool.free) + owned + quarantined == len(pool.frames)


def test_the_oldest_free_frame_is_taken() -> None:
    bench = Bench()
    session = bench.open()
    handles = [bench.alloc(A, session, key) for key in range(4)]
    order = [2, 0, 3, 1]
    for key in order:
        bench.must(A, c.Abort(handles[key]))
        bench.settle()
    assert [bench.alloc(A, session, key + 10).frame for key in range(4)] == order
