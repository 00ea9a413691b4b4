"""The data path: its benches over geometries, its netlist, its figures, and the mutants that the benches must find."""

from collections.abc import Callable

import pytest

from hw.params import Params
from hw.params.params import MemoryParams, PoolParams, TableParams
from hw.rtl.node.data import DataPath
from hw.tb.core.settings import settings_of

BENCH, AXIRAM, RATE = "hw.tb.data.bench", "hw.tb.data.bench_axiram", "hw.tb.data.bench_rate"


def slice_of(channels: int, ports: int, **memory: int) -> Params:
    """A slice with two pools, of frames of 8 and of 20 segments."""
    return Params(
        memory=MemoryParams(**{"segment_bytes": 512, "beat_bytes": 16, "channels": channels} | memory),
        pools=(PoolParams(frame_bytes=4096, frames=7), PoolParams(frame_bytes=10240, frames=5)),
        tables=TableParams(ports=ports, rings_per_port=1),
    )


GEOMETRIES = {"two": slice_of(2, 2, latency_cycles=20)}


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_bench(run_bench: Callable[..., None], geometry: str) -> None:
    params = GEOMETRIES[geometry]
    run_bench(DataPath(params), "data", BENCH, **settings_of(params))


def test_bench_with_a_memory_of_others(run_bench: Callable[..., None]) -> None:
    params = GEOMETRIES["two"]
    run_bench(DataPath(params), "data", AXIRAM, **settings_of(params))


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_rates(run_bench: Callable[..., None], channels: int) -> None:
    params = slice_of(channels, channels, latency_cycles=100)
    run_bench(DataPath(params), "data", RATE, **settings_of(params))
