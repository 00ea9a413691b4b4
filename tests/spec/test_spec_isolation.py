"""Strict isolation: what a partition is told is the same whatever the others do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from specbench import SMALL, fuzz, seed_bug

from hw.params import toeplitz
from hw.params.params import CamParams, Params, PoolParams
from pymodel.spec import InvariantViolation, admin, isolation, sessions
from pymodel.spec.check.independence import independent
from pymodel.spec.replacement import Replacement
from pymodel.spec.slots import Slots
from pymodel.stimulus.tenants import Tenants


def small(isolation: str) -> Params:
    """Four partitions that meet at every table when it is shared."""
    return replace(
        SMALL,
        cam=CamParams(banks=2, ways=2, sets=8),
        pools=tuple(PoolParams(frame_bytes=4096, frames=frames) for frames in (4, 3, 5, 4)),
        tables=replace(SMALL.tables, isolation=isolation, sessions=8, parked_reads=4, fences=4, stamp_bits=8),
    )


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
    "a public partition is hidden while its readers hold blocks": (
        admin.set_partition,
        "command.public or not partition.public or partition.used == 0",
        "True",
    ),
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
