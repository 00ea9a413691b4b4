"""Where the index puts a tag, and what it may read across partitions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specbench import A, Bench, tiny

from hw.params import DEFAULT, TINY
from hw.params import commands as c
from hw.params.protocol import REGISTERS, RingId, Status
from hw.params.sections import CamParams, PoolParams
from hw.params.toeplitz import diagonals, pack_tag, set_index, tag_bits
from pymodel.spec.cam import BlockCam, Place, Tag

BANKED = replace(TINY, cam=CamParams(banks=3, ways=2, sets=2))


def test_a_tag_goes_to_the_emptiest_set_then_the_lowest_bank_then_the_lowest_way() -> None:
    cam = BlockCam(BANKED)
    matrices = diagonals(BANKED)
    rows: dict[tuple[int, int], list[int | None]] = {}
    for key in range(9):
        tag = Tag(0, 0, key * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128))
        word = pack_tag(BANKED, *tag)
        candidates = [(bank, set_index(matrix, word, 2)) for bank, matrix in enumerate(matrices)]
        ways = {name: rows.setdefault(name, [None, None]) for name in candidates}
        bank, index = max(candidates, key=lambda name: (ways[name].count(None), -name[0]))
        place = cam.place(tag)
        if ways[bank, index].count(None) == 0:
            assert place is None
            continue
        assert place == Place(bank, index, ways[bank, index].index(None))
        rows[bank, index][place.way] = key
        cam.insert(tag, place, key)
        assert cam.find(tag) == key


def test_a_removed_tag_leaves_its_way_to_the_next() -> None:
    cam = BlockCam(tiny())
    tags = [Tag(0, 0, key) for key in range(4)]
    for frame, tag in enumerate(tags):
        cam.insert(tag, Place(0, 0, frame), frame)
    assert cam.remove(tags[1]) == Place(0, 0, 1)
    assert cam.find(tags[1]) is None
    assert cam.place(Tag(1, 0, 1)) == Place(0, 0, 1)
    assert len(cam) == 3


def test_one_set_is_a_true_cam_that_takes_any_keys() -> None:
    params = replace(tiny(), cam=CamParams(banks=1, ways=5, sets=1))
    bench = Bench(params)
    session = bench.open()
    for key in range(40):
        bench.store(A, session, key)
    assert bench.core.counters["cam_refusals"] == 0


def test_a_tag_that_fits_nowhere_is_no_space_and_counted() -> None:
    params = replace(TINY, pools=(PoolParams(frame_bytes=4096, frames=5),), cam=CamParams(banks=1, ways=1, sets=8))
    bench = Bench(params)
    session = bench.open()
    matrix = diagonals(params)[0]
    first, second = (
        next(key for key in range(at, 1000) if set_index(matrix, pack_tag(params, 0, 0, key), 8) == 3)
        for at in (0, 500)
    )
    bench.store(A, session, first)
    assert bench.do(A, c.Alloc(0, second, 1, session)).status is Status.NO_SPACE
    assert bench.core.counters["cam_refusals"] == 1
    bench.must(A, c.Drop(0, first))
    bench.alloc(A, session, second)


def test_keys_models_and_partitions_are_compared_whole() -> None:
    cam = BlockCam(tiny())
    tag = Tag(0, 0, 1 << 127)
    cam.insert(tag, Place(0, 0, 0), 0)
    for other in (Tag(0, 0, 0), Tag(0, 1, 1 << 127), Tag(1, 0, 1 << 127), Tag(0, 0, 1 << 127 | 1)):
        assert cam.find(other) is None


def test_the_hash_of_a_seed_is_fixed() -> None:
    """The driver, the models and the RTL must place alike: these vectors never change."""
    matrices = diagonals(DEFAULT)
    assert tag_bits(DEFAULT) == 138
    assert [matrix & 0xFFFFFFFF for matrix in matrices] == [0xFB32555E, 0x90150280, 0x357E3DA8, 0x14CF8BFE, 0x6F4C57A8]
    word = pack_tag(DEFAULT, 5, 9, 0x0123456789ABCDEF0123456789ABCDEF)
    assert [set_index(matrix, word, DEFAULT.cam_sets) for matrix in matrices] == [104, 423, 253, 423, 153]


@given(st.integers(0, (1 << 128) - 1), st.integers(0, (1 << 128) - 1))
def test_the_hash_is_linear(left: int, right: int) -> None:
    for matrix in diagonals(DEFAULT):
        both = set_index(matrix, left, 512) ^ set_index(matrix, right, 512)
        assert set_index(matrix, left ^ right, 512) == both


def test_seeds_give_different_placements() -> None:
    placements = {tuple(diagonals(replace(DEFAULT, cam=CamParams(seed=seed)))) for seed in range(8)}
    assert len(placements) == 8


# Public partitions


@pytest.fixture
def shared() -> tuple[Bench, list[RingId]]:
    """Four partitions with a ring each; 0 may read 1, 2 and 3, of which 1 and 2 are public."""
    bench = Bench(replace(tiny(ports=4, partitions=4, sessions=4)))
    rings = [RingId(partition, 1) for partition in range(4)]
    for partition, ring in enumerate(rings):
        mask = 0b1110 if partition == 0 else 0
        bench.must(REGISTERS, c.SetPartition(partition, quota=4, public=partition in (1, 2), read_mask=mask))
        bench.must(REGISTERS, c.Bind(ring, partition))
    return bench, rings


def test_public_partitions_are_looked_through_by_id_after_the_own(shared: tuple[Bench, list[RingId]]) -> None:
    bench, rings = shared
    stored = {partition: bench.store(rings[partition], bench.open(rings[partition]), 7) for partition in (3, 2, 1)}
    assert bench.do(rings[0], c.Lookup(0, [7])).handles == [stored[1]]
    bench.must(rings[1], c.Drop(0, 7))
    assert bench.do(rings[0], c.Lookup(0, [7])).handles == [stored[2]]
    own = bench.alloc(rings[0], bench.open(rings[0]), 7)
    result = bench.do(rings[0], c.Lookup(0, [7]))
    assert (result.status, result.handles) == (Status.HIT, [stored[2]]), "a public HIT comes before the own PENDING"
    bench.must(rings[2], c.Drop(0, 7))
    result = bench.do(rings[0], c.Lookup(0, [7]))
    assert (result.status, result.handles) == (Status.PENDING, [own])


def test_nobody_reads_without_the_mask_or_what_is_not_public(shared: tuple[Bench, list[RingId]]) -> None:
    bench, rings = shared
    handles = [bench.store(ring, bench.open(ring), 7 + partition) for partition, ring in enumerate(rings)]
    assert [bench.look(rings[0], 7 + p) for p in range(4)] == [Status.HIT, Status.HIT, Status.HIT, Status.MISS]
    assert [bench.look(rings[1], 7 + p) for p in range(4)] == [Status.MISS, Status.HIT, Status.MISS, Status.MISS]
    reads = [bench.do(rings[0], c.Read(handle, 0, 1)).status for handle in handles]
    assert reads == [Status.OK, Status.OK, Status.OK, Status.DENIED]


def test_what_is_being_written_in_a_public_partition_is_not_told(shared: tuple[Bench, list[RingId]]) -> None:
    bench, rings = shared
    handle = bench.alloc(rings[1], bench.open(rings[1]), 7)
    assert bench.look(rings[0], 7) is Status.MISS
    assert bench.do(rings[0], c.Read(handle, 0, 1)).status is Status.DENIED


def test_a_partition_that_is_no_longer_public_is_closed_to_handles_and_pins(shared: tuple[Bench, list[RingId]]) -> None:
    bench, rings = shared
    handle = bench.store(rings[1], bench.open(rings[1]), 7)
    pin = bench.pin(rings[0], 7)
    bench.must(REGISTERS, c.SetPartition(1, quota=4))
    assert bench.do(rings[0], c.Read(handle, 0, 1)).status is Status.DENIED
    assert bench.look(rings[0], 7) is Status.MISS
    bench.must(rings[0], c.Unpin(pin))


def test_alloc_claims_in_the_own_partition_whatever_is_public(shared: tuple[Bench, list[RingId]]) -> None:
    bench, rings = shared
    bench.store(rings[1], bench.open(rings[1]), 7)
    assert bench.do(rings[0], c.Alloc(0, 7, 1, bench.open(rings[0]))).status is Status.GRANTED
