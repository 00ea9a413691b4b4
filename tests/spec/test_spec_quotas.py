"""Quotas and guarantees: whose frame goes."""

from specbench import SMALL, A, B, Bench, evicted, fuzz, tiny

from hw.params import commands as c
from hw.params.protocol import REGISTERS, FrameState, SessionId, Status


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


def test_who_is_furthest_above_its_guarantee_takes_its_own_below_its_quota_too() -> None:
    bench, a, b = configured(quota_a=4, quota_b=4)
    for key in range(3):
        bench.store(A, a, key)
    bench.store(B, b, 9)
    bench.store(A, a, 3)
    assert used(bench) == (3, 1)
    assert evicted(bench) == [0]


def test_a_partition_without_a_quota_is_at_its_quota() -> None:
    bench, a, _ = configured(quota_a=0, quota_b=4)
    assert bench.do(A, c.Alloc(0, 1, 1, a)).status is Status.QUOTA
