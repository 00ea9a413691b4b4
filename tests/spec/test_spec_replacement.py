"""CLOCK, and its queue of victims."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specbench import A_TOO, SEGMENT, A, Bench, evicted, refuse, seal, tiny, watch

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.params import Params
from hw.params.protocol import REGISTERS, SessionId, Status
from hw.params.sections import CamParams, PoolParams


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


def wide(*pools: int, **tables: int) -> Params:
    """Pools of so many frames, in a CAM that holds them all."""
    made = tuple(PoolParams(frame_bytes=4096, frames=frames) for frames in pools)
    return replace(tiny(**tables), pools=made, cam=CamParams(banks=1, ways=32, sets=1))


def test_each_alloc_that_evicts_moves_the_hand_its_steps_though_the_queue_has_victims() -> None:
    bench = Bench(wide(16, victims=16, scan_frames=2, scan_steps=2))
    session = bench.open()
    for key in range(16):
        bench.store(A, session, key)
    partition = bench.core.partitions[0]
    assert partition.hand == 0, "FREE frames leave it alone"
    places = []
    for key in range(16, 20):
        bench.store(A, session, key)
        places.append((partition.hand, len(partition.victims)))
    assert places == [(4, 3), (8, 6), (12, 9), (0, 12)]


def test_the_hand_stops_at_the_boundaries_of_words_wherever_it_started() -> None:
    bench = Bench(wide(8, victims=2, scan_frames=4, scan_steps=1))
    session = bench.open()
    for key in range(8):
        bench.store(A, session, key)
    bench.store(A, session, 8)
    assert bench.core.partitions[0].hand == 2, "the queue was full"
    for key in range(2, 8):
        assert bench.do(A, c.Alloc(0, key, 1, session)).status is Status.EXISTS
    bench.store(A, session, 9)
    assert bench.core.partitions[0].hand == 4
    assert [frame.referenced for frame in bench.core.frames] == [False] * 4 + [True] * 4
    assert evicted(bench) == [0, 1]


def test_a_block_in_a_frame_that_was_queued_for_another_has_no_place_in_the_queue() -> None:
    bench = Bench()
    session = full(bench)
    bench.store(A, session, 4)
    assert [frame.tag.key for frame in bench.core.partitions[0].victims] == [1]
    bench.must(A, c.Drop(0, 1))
    bench.settle()
    assert bench.store(A, session, 9).frame == 1
    bench.store(A, session, 10)
    bench.store(A, session, 11)
    assert evicted(bench) == [0, 1, 2, 3], "1 was dropped"


def test_a_block_in_a_frame_that_was_queued_for_another_is_queued_when_the_hand_comes() -> None:
    bench = Bench()
    session = full(bench)
    bench.store(A, session, 4)
    bench.must(A, c.Drop(0, 1))
    bench.settle()
    for key in range(9, 14):
        bench.store(A, session, key)
    assert evicted(bench) == [0, 1, 2, 3, 4, 9], "1 was dropped, 9 is in its frame"


def test_a_new_block_does_not_inherit_a_reference() -> None:
    bench = Bench()
    session = full(bench)
    assert bench.do(A, c.Alloc(0, 0, 1, session)).status is Status.EXISTS
    bench.must(A, c.Drop(0, 0))
    bench.settle()
    assert bench.store(A, session, 9).frame == 0
    bench.store(A, session, 10)
    assert evicted(bench) == [0, 9], "0 was dropped"


def test_in_another_pool_the_hand_starts_anew_with_an_empty_queue() -> None:
    bench = Bench(wide(4, 4, victims=2))
    session = full(bench)
    bench.store(A, session, 4)
    partition = bench.core.partitions[0]
    assert (partition.hand, len(partition.victims)) == (2, 1)
    bench.must(REGISTERS, c.DropPartition(0))
    bench.settle()
    bench.must(REGISTERS, c.SetPartition(0, pool=1, quota=4))
    for key in range(10, 15):
        bench.store(A, session, key)
    assert evicted(bench) == [0, 10], "the first frame of the new pool"
    assert (partition.hand, len(partition.victims)) == (2, 1), "the old entry took no room"


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


def test_the_oldest_free_frame_is_taken() -> None:
    bench = Bench()
    session = bench.open()
    handles = [bench.alloc(A, session, key) for key in range(4)]
    order = [2, 0, 3, 1]
    for key in order:
        bench.must(A, c.Abort(handles[key]))
        bench.settle()
    assert [bench.alloc(A, session, key + 10).frame for key in range(4)] == order
