"""The published figures, on the public trace itself where there is a copy (docs/traces.md says where to get it)."""

import os

import pytest

from pymodel.trace import Trace, load_trace, lru_curve, optimum_curve, summarize

PATH = os.environ.get("KVNODE_PUBLIC_TRACE")

pytestmark = pytest.mark.skipif(PATH is None, reason="KVNODE_PUBLIC_TRACE does not name a copy of the public trace")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_trace(PATH or "")


def test_what_it_holds(trace: Trace) -> None:
    values = {line.name: line.value for line in summarize(trace)}
    assert values["requests"] == 12_031
    assert values["block references"] == 288_500
    assert values["distinct blocks"] == 182_790
    assert values["blocks in every request"] == 1
    assert values["most uses of any other block"] == 43


@pytest.mark.parametrize(
    ("frames", "lru", "optimum"),
    [(4_096, 0.0876, 0.3243), (16_384, 0.2656, 0.3664), (32_768, 0.3349, 0.3664), (10**9, 0.3664, 0.3664)],
)
def test_prefix_hit_rates(trace: Trace, frames: int, lru: float, optimum: float) -> None:
    assert round(lru_curve(trace).prefix_hit_rate(frames), 4) == lru
    assert round(optimum_curve(trace).prefix_hit_rate(frames), 4) == optimum
