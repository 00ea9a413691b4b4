"""The curves against caches simulated one capacity at a time, against exhaustive search, and against planted faults."""

from collections import OrderedDict
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymodel.trace import Curve, Request, Trace, kernels, lru_curve, optimum_curve

Prompts = list[list[int]]
Hits = tuple[int, int]  # block hits, prefix hits


def trace_of(prompts: Prompts) -> Trace:
    return Trace.of([Request(0, 0, 0, ids) for ids in prompts])


def leading(present: list[bool]) -> int:
    return [*present, False].index(False)


def simulate_lru(prompts: Prompts, frames: int) -> Hits:
    held: OrderedDict[int, None] = OrderedDict()
    blocks = prefix = 0
    for ids in prompts:
        present = [block in held for block in ids]
        blocks += sum(present)
        prefix += leading(present)
        for block in ids:
            held[block] = None
            held.move_to_end(block)
            if len(held) > frames:
                held.popitem(last=False)
    return blocks, prefix


def simulate_optimum(prompts: Prompts, frames: int) -> Hits:
    future = [block for ids in prompts for block in ids]
    held: set[int] = set()
    blocks = prefix = 0
    for ids in prompts:
        present = [block in held for block in ids]
        blocks += sum(present)
        prefix += leading(present)
        for block in ids:
            future.pop(0)
            if block not in held and len(held) == frames:
                held.remove(max(held, key=lambda kept: future.index(kept) if kept in future else len(future)))
            held.add(block)
    return blocks, prefix


def most_hits(references: tuple[int, ...], frames: int) -> int:
    """The most hits that any choice of victims gives."""

    @cache
    def best(time: int, held: frozenset[int]) -> int:
        if time == len(references):
            return 0
        block = references[time]
        if block in held:
            return 1 + best(time + 1, held)
        if len(held) < frames:
            return best(time + 1, held | {block})
        return max(best(time + 1, held - {victim} | {block}) for victim in held)

    return best(0, frozenset())


def hits(curve: Curve, frames: int) -> Hits:
    return round(curve.hit_rate(frames) * curve.references), round(curve.prefix_hit_rate(frames) * curve.references)


def agrees_with_lru(prompts: Prompts) -> bool:
    curve = lru_curve(trace_of(prompts))
    return all(hits(curve, frames) == simulate_lru(prompts, frames) for frames in range(1, 14))


def agrees_with_optimum(prompts: Prompts) -> bool:
    curve = optimum_curve(trace_of(prompts))
    return all(hits(curve, frames) == simulate_optimum(prompts, frames) for frames in range(1, 14))


unhurried = settings(deadline=None)  # the first example may compile
blocks = st.integers(0, 11)
prompts = st.lists(st.lists(blocks, max_size=7), min_size=1, max_size=14).filter(any)


@unhurried
@given(prompts)
def test_the_lru_curve_is_what_caches_do_at_every_capacity(prompts: Prompts) -> None:
    assert agrees_with_lru(prompts)


@unhurried
@given(prompts)
def test_the_optimum_curve_is_what_caches_do_at_every_capacity(prompts: Prompts) -> None:
    assert agrees_with_optimum(prompts)


@unhurried
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 4))
def test_no_choice_of_victims_hits_more_than_the_optimum(references: list[int], frames: int) -> None:
    curve = optimum_curve(trace_of([[block] for block in references]))
    assert hits(curve, frames)[0] == most_hits(tuple(references), frames)


@unhurried
@given(prompts)
def test_curves_rise_to_the_same_unlimited_rate(prompts: Prompts) -> None:
    lru, optimum = lru_curve(trace_of(prompts)), optimum_curve(trace_of(prompts))
    for curve in (lru, optimum):
        assert curve.block_hits[0] == curve.prefix_hits[0] == 0
        assert (np.diff(curve.block_hits) >= 0).all() and (np.diff(curve.prefix_hits) >= 0).all()
        assert (curve.prefix_hits <= curve.block_hits).all()
    assert hits(lru, 10**9) == hits(optimum, 10**9)
    assert optimum.deepest <= lru.deepest


@unhurried
@given(prompts, st.integers(1, 2**62 // 12))
def test_curves_do_not_depend_on_the_names_of_blocks(prompts: Prompts, factor: int) -> None:
    plain, renamed = (lru_curve(trace_of([[id * by for id in ids] for ids in prompts])) for by in (1, factor))
    assert plain.block_hits.tolist() == renamed.block_hits.tolist()
    assert plain.prefix_hits.tolist() == renamed.prefix_hits.tolist()


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_deep_stacks_agree_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prompts = [rng.zipf(1.2, rng.integers(1, 9)).clip(max=400).tolist() for _ in range(300)]
    lru, optimum = lru_curve(trace_of(prompts)), optimum_curve(trace_of(prompts))
    for frames in (1, 2, 30, 63, 64, 65, 66, 100, 129, 200, 399):
        assert hits(lru, frames) == simulate_lru(prompts, frames)
        assert hits(optimum, frames) == simulate_optimum(prompts, frames)


def test_a_trace_without_reuse_has_no_hits_at_any_capacity() -> None:
    for curve in (lru_curve(trace_of([[1, 2], [3]])), optimum_curve(trace_of([[1, 2], [3]]))):
        assert curve.deepest == 0
        assert hits(curve, 99) == (0, 0)


WITNESSES: list[Prompts] = [
    [[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 5, 4], [2, 3], [0, 1, 2, 3, 4, 5]],
    [[0, 1], [2, 3], [0, 1, 2], [3, 0], [4, 0, 1], [1, 2, 3]],
    [[0, 1, 2], [3, 0, 1, 2]],
]


@pytest.mark.parametrize(
    ("name", "agrees"), [("lru_distances", agrees_with_lru), ("optimum_distances", agrees_with_optimum)]
)
@pytest.mark.parametrize("by", [-1, 1])
def test_a_distance_off_by_one_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, agrees: Callable[[Prompts], bool], by: int
) -> None:
    kernel = getattr(kernels, name)

    def mutant(previous: kernels.Ints, offsets: kernels.Offsets) -> kernels.Ints:
        distances = kernel(previous, offsets)
        return np.where(distances < kernels.ABSENT, distances + by, distances)

    assert all(map(agrees, WITNESSES))
    monkeypatch.setattr(kernels, name, mutant)
    assert not all(map(agrees, WITNESSES))


def test_distances_taken_at_the_reference_instead_of_the_start_of_the_request_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = kernels.lru_distances
    monkeypatch.setattr(kernels, "lru_distances", lambda uses, _: kernel(uses, np.arange(len(uses) + 1)))
    assert not all(map(agrees_with_lru, WITNESSES))


def test_lru_in_place_of_the_optimum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "optimum_distances", kernels.lru_distances)
    assert not all(map(agrees_with_optimum, WITNESSES))


def test_prefix_hits_without_the_running_maximum_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    count = kernels.count_distances
    monkeypatch.setattr(kernels, "count_distances", lambda *given: (count(*given)[0],) * 2)
    assert not all(map(agrees_with_lru, WITNESSES))
