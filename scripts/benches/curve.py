"""Hit-rate curves: from a trace file to exact figures at every capacity."""

import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from hw.params import KvnodeError
from pymodel.trace import Trace, Workload, generate, load_trace, lru_curve, optimum_curve, write_requests
from scripts.benches import Figure, Result

CAPACITIES = (1_024, 4_096, 8_192, 16_384, 32_768)
RUNS = 5

T = TypeVar("T")


def run(trace: str | None) -> Result:
    """Times file to LRU curve, warm: kernels compiled, file in the page cache; the best of a few runs.

    The default input is an invented trace as large as the public one. The reference is a plain LRU cache (OrderedDict)
    that walks the loaded trace once for each of five capacities; both must agree on the prefix hits.
    """
    if trace is not None:
        return Result(figures=_measure(trace), input=trace, seed=None)
    workload = Workload()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "trace.jsonl"))
        write_requests(path, generate(workload))
        return Result(figures=_measure(path), input=f"invented, {workload.requests:,} requests", seed=workload.seed)


def _measure(path: str) -> list[Figure]:
    first, _ = _timed(lambda: lru_curve(load_trace(path)))
    whole, curve = _best(lambda: lru_curve(load_trace(path)))
    loaded = load_trace(path)
    kernel, _ = _best(lambda: lru_curve(loaded))
    optimum_curve(loaded)
    optimum, _ = _best(lambda: optimum_curve(loaded))
    plain, hits = _timed(lambda: [_plain_lru(loaded, frames) for frames in CAPACITIES])
    if hits != [int(curve.prefix_hits[min(frames, curve.deepest)]) for frames in CAPACITIES]:
        raise KvnodeError(f"{path}: the curve disagrees with a plain LRU cache, expected equal prefix hits")
    return [
        Figure.at_most("file to LRU curve", whole, "s", target=0.3, limit=0.05),
        Figure(name="the same, first run", value=first, unit="s"),
        Figure(name="LRU curve, trace loaded", value=kernel, unit="s"),
        Figure(name="optimum curve, trace loaded", value=optimum, unit="s"),
        Figure(name="file to LRU rate", value=curve.references / whole, unit="references/s"),
        Figure(name=f"plain LRU at {len(CAPACITIES)} capacities / curve", value=plain / kernel, unit="x"),
    ]


def _plain_lru(trace: Trace, capacity: int) -> int:
    """Prefix hits of a cache simulated directly."""
    held: OrderedDict[int, None] = OrderedDict()
    ids, bounds = trace.ids.tolist(), trace.offsets.tolist()
    hits = 0
    for begin, end in pairwise(bounds):
        leading = True
        for block in ids[begin:end]:
            if block in held:
                held.move_to_end(block)
                hits += leading
            else:
                leading = False
                held[block] = None
                if len(held) > capacity:
                    held.popitem(last=False)
    return hits


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def _best(work: Callable[[], T]) -> tuple[float, T]:
    return min((_timed(work) for _ in range(RUNS)), key=lambda timed: timed[0])
