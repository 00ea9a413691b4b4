"""The core of a slice: its bench, and the mutants that the bench must find."""

from collections.abc import Callable

import pytest

from hw.params.params import CamParams, MemoryParams, Params, PoolParams, TableParams
from hw.rtl.node.core import Core
from hw.tb.core.settings import settings_of

BENCH = "hw.tb.core.bench"


def small(**tables: int) -> Params:
    """A slice small enough that every table is full now and then."""
    sizes = {
        "ports": 2,
        "rings_per_port": 2,
        "partitions": 2,
        "models": 2,
        "sessions": 3,
        "pins_per_ring": 3,
        "parked_reads": 2,
        "lookup_keys": 4,
        "victims": 3,
        "scan_frames": 4,
        "generation_bits": 6,
        "slot_generation_bits": 6,
        "stamp_bits": 2,
    }
    return Params(
        memory=MemoryParams(segment_bytes=512, beat_bytes=16),
        cam=CamParams(banks=2, ways=2, sets=4),
        pools=(PoolParams(frame_bytes=4096, frames=7), PoolParams(frame_bytes=8192, frames=5)),
        tables=TableParams(**sizes | tables),
    )


@pytest.mark.parametrize("params", [small()], ids=["small"])
def test_core(run_bench: Callable[..., None], params: Params) -> None:
    run_bench(Core(params), "core", BENCH, **settings_of(params), commands=1000)
