"""Strict isolation: what a partition is told is the same whatever the others do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from specbench import SEGMENT, SMALL, Bench, fuzz, seed_bug

from hw.params import commands as c
from hw.params import toeplitz
from hw.params.params import Params
from hw.params.protocol import REGISTERS, ModelState, RingId, Status
from hw.params.sections import CamParams, PoolParams
from pymodel.spec import InvariantViolation, admin, isolation, sessions
from pymodel.spec.check.independence import independent
from pymodel.spec.replacement import Replacement
from pymodel.spec.slots import Slots
from pymodel.stimulus.tenants import PUBLIC, Tenants


def small(isolation: str) -> Params:
    """Four partitions that meet at every table when it is shared."""
    return replace(
        SMALL,
        cam=CamParams(banks=2, ways=2, sets=8),
        pools=tuple(PoolParams(frame_bytes=4096, frames=frames) for frames in (4, 3, 5, 4)),
        tables=replace(SMALL.tables, isolation=isolation, ports=4, sessions=8, parked_reads=4, fences=4, stamp_bits=8),
    )


READER, FAR, OWNER = RingId(0, 0), RingId(0, 1), RingId(1, 0)
"""Two rings of partition 0, and one of partition 1, which is public and has three frames."""


@pytest.fixture
def bench() -> Bench:
    bench = Bench(small("strict"), configured=False)
    bench.must(REGISTERS, c.SetEpoch(1))
    bench.must(REGISTERS, c.SetPartition(0, quota=4, read_mask=1 << PUBLIC))
    bench.must(REGISTERS, c.SetPartition(PUBLIC, pool=PUBLIC, quota=2, public=True))
    bench.must(REGISTERS, c.SetModel(0, ModelState.LIVE))
    for ring, partition in ((READER, 0), (FAR, 0), (OWNER, PUBLIC)):
        bench.must(REGISTERS, c.Bind(ring, partition))
    return bench


def test_a_partition_has_the_pool_of_its_number(bench: Bench) -> None:
    assert bench.do(REGISTERS, c.SetPartition(2, pool=3)).status is Status.RANGE
    assert bench.do(REGISTERS, c.SetPartition(2, pool=2)).status is Status.OK


def test_a_partition_has_rings_on_ports_of_its_own(bench: Bench) -> None:
    assert bench.do(REGISTERS, c.Bind(FAR, PUBLIC)).status is Status.RANGE
    session = bench.open(FAR)
    assert bench.store(FAR, session, 1), "it is not lost, either"


def test_what_is_in_public_is_read_and_stays(bench: Bench) -> None:
    session = bench.open(OWNER)
    first = bench.store(OWNER, session, 1)
    bench.store(OWNER, session, 2)
    assert bench.look(READER, 1) is Status.HIT
    assert bench.read(READER, first).status is Status.OK
    assert bench.do(OWNER, c.Alloc(0, 3, SEGMENT, session)).status is Status.QUOTA
    bench.must(REGISTERS, c.SetPartition(PUBLIC, pool=PUBLIC, quota=3, public=True))
    bench.store(OWNER, session, 3)
    bench.must(REGISTERS, c.SetPartition(PUBLIC, pool=PUBLIC, quota=3, public=True))
    assert bench.do(OWNER, c.Alloc(0, 4, SEGMENT, session)).status is Status.QUOTA
    for key in (1, 9):
        assert bench.do(OWNER, c.Drop(0, key)).status is Status.DENIED
    assert [bench.look(OWNER, key) for key in (1, 2, 3)] == [Status.HIT] * 3


def test_a_partition_stays_public_while_it_has_frames(bench: Bench) -> None:
    bench.store(OWNER, bench.open(OWNER), 1)
    pin = bench.pin(READER, 1)
    hide = c.SetPartition(PUBLIC, pool=PUBLIC, quota=2)
    assert bench.do(REGISTERS, hide).status is Status.PENDING
    bench.must(REGISTERS, c.DropPartition(PUBLIC))
    bench.settle()
    assert bench.do(REGISTERS, hide).status is Status.PENDING, "a reader holds a frame"
    bench.must(READER, c.Unpin(pin))
    bench.settle()
    assert bench.do(REGISTERS, hide).status is Status.OK


def test_names_of_others_are_denied_whether_there_is_anything_or_not(bench: Bench) -> None:
    theirs = bench.open(READER)
    handle = bench.alloc(READER, theirs, 1)
    assert theirs.slot % 4 == 0
    free = theirs._replace(slot=theirs.slot + 4)
    for name in (theirs, free):
        for command in (c.Alloc(0, 1, 1, name), c.CloseSession(name), c.Migrate(name), c.AnswerFence(name, 0)):
            assert bench.do(OWNER, command).status is Status.DENIED
    for block in (handle, handle._replace(frame=handle.frame + 1)):
        for command in (c.Write(block, 0, b"x"), c.Seal(block, 1, 0), c.Abort(block), c.Read(block, 0, 1)):
            assert bench.do(OWNER, command).status is Status.DENIED


def test_sessions_and_fences_are_shared_out(bench: Bench) -> None:
    for ring in (READER, OWNER):
        sessions = [bench.open(ring) for _ in range(2)]
        assert [name.slot % 4 for name in sessions] == [bench.core.rings[ring].partition.id] * 2
        assert bench.do(ring, c.OpenSession()).status is Status.NO_SPACE
        if ring is READER:
            bench.ask(FAR, c.Migrate(sessions[0]))
            assert bench.do(FAR, c.Migrate(sessions[1])).status is Status.NO_SPACE


def others_matter(params: Params, seed: int, operations: int = 4000) -> list[int]:
    """Run traffic; returns, for each partition, how many operations of others changed nothing for it."""
    log = fuzz(params, seed, operations, traffic=Tenants(params, seed))[0].log
    assert log is not None
    return [independent(params, log, observer) for observer in range(params.tables.partitions)]


def test_nobody_learns_of_another(seed: int) -> None:
    assert sum(others_matter(small("strict"), seed)) > 1000


@pytest.mark.parametrize("seed", range(2))
def test_in_a_shared_slice_they_do(seed: int) -> None:
    with pytest.raises(InvariantViolation, match="invariant 12"):
        others_matter(small("shared"), seed)


LEAKS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "a pool is anybody's": (admin.set_partition, "command.pool == command.partition", "True"),
    "slots are anybody's": (
        Slots.__init__,
        "[deque(range(share, size, shares)) for share in range(shares)]",
        "[deque(range(size))] * shares",
    ),
    "fences are anybody's": (
        sessions.migrate,
        "slot % core.params.shares == core.share(ring.partition) for",
        "True for",
    ),
    "sets of the CAM are anybody's": (
        toeplitz.home_set,
        "share * sets + set_index(diagonal, tag, sets)",
        "set_index(diagonal, tag, params.cam_sets)",
    ),
    "sessions of others can be asked for": (
        isolation.foreign,
        "command.session.slot % core.params.shares != partition.id",
        "False",
    ),
    "handles of others can be asked for": (isolation.foreign, "owner is not partition and not read", "False"),
    "a public partition evicts": (Replacement.choose, "self._strict and partition.public", "False"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_every_leak_is_found(monkeypatch: pytest.MonkeyPatch, leak: str) -> None:
    seed_bug(monkeypatch, *LEAKS[leak])
    with pytest.raises(InvariantViolation, match="invariant 12"):
        for seed in range(8):
            others_matter(small("strict"), seed)


def test_hiding_what_a_reader_holds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner sees by its victim that the oldest block is pinned: traffic seldom comes to that."""
    seed_bug(monkeypatch, admin.set_partition, "command.public or not partition.public or partition.used == 0", "True")
    bench, order = Bench(small("strict"), configured=False), []
    execute = bench.execute
    monkeypatch.setattr(bench, "execute", lambda op: (order.append(op), execute(op))[1])
    bench.must(REGISTERS, c.SetEpoch(1))
    bench.must(REGISTERS, c.SetPartition(0, quota=4, read_mask=1 << PUBLIC))
    bench.must(REGISTERS, c.SetPartition(PUBLIC, pool=PUBLIC, quota=3, public=True))
    bench.must(REGISTERS, c.SetModel(0, ModelState.LIVE))
    for ring, partition in ((READER, 0), (OWNER, PUBLIC)):
        bench.must(REGISTERS, c.Bind(ring, partition))
    session = bench.open(OWNER)
    for key in range(3):
        bench.store(OWNER, session, key)
    bench.pin(READER, 0)
    bench.must(REGISTERS, c.SetPartition(PUBLIC, pool=PUBLIC, quota=3))
    bench.alloc(OWNER, session, 3)
    with pytest.raises(InvariantViolation, match="invariant 12"):
        independent(small("strict"), order, PUBLIC)
