"""Invented traces: deterministic, well formed, and like the public trace."""

import hashlib
from itertools import islice, pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

from hw.params.errors import InputError
from pymodel.trace import (
    Trace,
    Workload,
    generate,
    load_trace,
    lru_curve,
    optimum_curve,
    summarize,
    workload_of,
    write_requests,
)

PUBLIC = {
    "duration": 3537,
    "arrivals": 3.4,
    "input, mean": 12_035,
    "input, median": 6_909,
    "output, mean": 342.6,
    "output, median": 350,
    "blocks of a request, mean": 23.98,
    "blocks of a request, median": 14,
    "blocks of a request, maximum": 247,
    "block references": 288_500,
    "distinct blocks": 182_790,
    "blocks used once": 138_646,
    "blocks in every request": 1,
    "requests that reuse nothing else": 0.613,
    "prefix hit rate, unlimited": 0.3664,
}
PUBLIC_LRU = {4_096: 0.0876, 16_384: 0.2656, 32_768: 0.3349}
PUBLIC_OPTIMUM = {4_096: 0.3243, 16_384: 0.3664}


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Trace.of(generate(Workload()))


def test_the_default_trace_resembles_the_public_one(trace: Trace) -> None:
    ours = {line.name: line.value for line in summarize(trace)}
    for name, value in PUBLIC.items():
        assert ours[name] == pytest.approx(value, rel=0.1), name
    assert 30 <= ours["most uses of any other block"] <= 60
    assert ours["output, maximum"] == 2_000


def test_the_default_trace_is_as_hard_to_cache_as_the_public_one(trace: Trace) -> None:
    lru, optimum = lru_curve(trace), optimum_curve(trace)
    for frames, rate in PUBLIC_LRU.items():
        assert lru.prefix_hit_rate(frames) == pytest.approx(rate, abs=0.012)
    for frames, rate in PUBLIC_OPTIMUM.items():
        assert optimum.prefix_hit_rate(frames) == pytest.approx(rate, abs=0.012)


@pytest.mark.parametrize("seed", range(3))
def test_short_gaps_make_a_short_trace_reuse_much_and_evict_much(seed: int) -> None:
    trace = Trace.of(generate(Workload(requests=1_200, seed=seed, turn_gap_s=20)))
    curve = lru_curve(trace)
    for frames in (2_048, 4_096):
        assert curve.prefix_hit_rate(frames) > 0.2
        assert len(trace.ids) - curve.block_hits[frames] - frames > 10_000  # evictions


def test_equal_seeds_give_equal_traces_and_others_do_not() -> None:
    first, again, other = (list(generate(Workload(requests=300, seed=seed))) for seed in (7, 7, 8))
    assert first == again != other


def test_a_short_trace_is_the_beginning_of_a_long_one() -> None:
    assert list(generate(Workload(requests=200))) == list(islice(generate(Workload(requests=10**9)), 200))


def test_a_seed_names_the_same_trace_for_good() -> None:
    """Results are compared across machines and versions by seed alone."""
    lines = b"".join(map(msgspec.json.encode, generate(Workload(requests=100))))
    assert hashlib.sha256(lines).hexdigest()[:16] == "d395d4f928c823d9"


@pytest.mark.parametrize(
    "workload",
    [
        Workload(requests=400),
        Workload(requests=400, block_tokens=16, max_input_tokens=9_000),
        Workload(requests=400, system_tokens=0, edited_history=1, turn_gap_s=0),
        Workload(requests=400, system_tokens=2_048, max_input_tokens=2_049, clock_ms=1),
    ],
)
def test_generated_traces_are_well_formed(tmp_path: Path, workload: Workload) -> None:
    write_requests(tmp_path / "t.gz", generate(workload))
    trace = load_trace(tmp_path / "t.gz", block_tokens=workload.block_tokens)
    sizes = np.diff(trace.offsets)
    assert len(trace) == 400
    assert (sizes == -(-trace.input_lengths // workload.block_tokens)).all()
    assert trace.input_lengths.max() <= workload.max_input_tokens
    assert trace.output_lengths.min() >= 1 and trace.output_lengths.max() <= workload.max_output_tokens
    assert not (trace.timestamps % workload.clock_ms).any()
    assert prefix_chained(np.split(trace.ids, trace.offsets[1:-1]))


def prefix_chained(prompts: list[np.ndarray]) -> bool:
    """Whether every id always follows the same id: then equal ids mean equal prefixes."""
    before: dict[int, int] = {}
    return all(before.setdefault(id_, last) == last for ids in prompts for last, id_ in pairwise([-1, *ids.tolist()]))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("turn_gap", "unknown|expected NAME=VALUE"),
        ("turn_gap=1", "did you mean 'turn_gap_s'"),
        ("turn_gap_s=soon", "workload.turn_gap_s = 'soon'"),
        ("turn_gap_s=nan", "workload.turn_gap_s = nan"),
        ("edited_history=1.5", "expected a number from 0 to 1"),
        ("requests=1.5", "expected an integer"),
        ("requests=0", "expected an integer from 1"),
        ("max_input_tokens=890", "expected less than workload.max_input_tokens, 890"),
    ],
)
def test_a_bad_override_is_named(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        workload_of([override])


def test_overrides_change_the_workload() -> None:
    assert workload_of(["turn_gap_s=20", "seed=3"]) == Workload(turn_gap_s=20, seed=3)
