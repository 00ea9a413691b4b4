"""Every parameter takes what it declares and nothing else, and contradictions are told."""

import math
from collections.abc import Iterator
from dataclasses import Field, fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.params import DEFAULT, PRESETS, TINY, ParameterError, Params
from hw.params.load import names
from hw.params.rota import RotaParams
from hw.params.section import Section, expected
from hw.params.sections import CamParams, PoolParams, ReplayParams, TableParams


def declared() -> Iterator[tuple[str, type[Section], Field[Any]]]:
    """Every parameter: its name in messages, its section, its field."""
    for dotted, section in names():
        leaf = dotted.rsplit(".", 1)[1]
        yield f"{section.section}.{leaf}", section, next(f for f in fields(section) if f.name == leaf)


ALL = {name: (section, f) for name, section, f in declared()}
NUMBERS = [name for name, (_, f) in ALL.items() if f.type in (int, float)]
POWERS = [name for name, (_, f) in ALL.items() if f.metadata["power_of_two"]]
CHOICES = [name for name, (_, f) in ALL.items() if f.metadata["choices"]]
WRONG_TYPES: list[Any] = ["1", "", None, [1], {}, (), 1j, math.nan, math.inf, -math.inf]


def refused(name: str, value: Any) -> None:
    """One line that says which parameter, which value, and what was expected."""
    section, f = ALL[name]
    with pytest.raises(ParameterError) as caught:
        section(**{f.name: value})
    assert str(caught.value) == f"parameter {name} = {value!r}: expected {expected(f)}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ALL)
def test_a_value_of_another_type_is_refused(name: str) -> None:
    wrong = [*WRONG_TYPES, *([0, 1, 1.0] if ALL[name][1].type is bool else [True, False])]
    for value in [*wrong, *([2.0] if ALL[name][1].type is int else [])]:
        refused(name, value)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_value_just_outside_the_range_is_refused_and_its_ends_are_taken(name: str) -> None:
    section, f = ALL[name]
    low, high = f.metadata["low"], f.metadata["high"]
    for end in (low, high):
        assert getattr(section(**{f.name: end}), f.name) == end
    step = 1 if f.type is int else 1e-9
    for value in (low - step, high + step, -1 - high, 10 * high + 1):
        refused(name, value)


@pytest.mark.parametrize("name", POWERS)
def test_only_powers_of_two_are_taken_where_they_are_asked_for(name: str) -> None:
    section, f = ALL[name]
    low, high = f.metadata["low"], f.metadata["high"]
    for value in {low, low + 1, 3 * low, high // 2 + 1, high - 1, high // 2, high}:
        if value.bit_count() == 1:
            section(**{f.name: value})
        else:
            refused(name, value)


@pytest.mark.parametrize("name", CHOICES)
def test_only_what_may_be_chosen_is_taken(name: str) -> None:
    section, f = ALL[name]
    for choice in f.metadata["choices"]:
        assert getattr(section(**{f.name: choice}), f.name) == choice
        refused(name, choice.upper())


def test_every_parameter_says_what_it_means_and_what_it_takes() -> None:
    for name, (section, f) in ALL.items():
        assert f.metadata["doc"], name
        assert (f.metadata["low"] is None) == (f.type in (bool, str)), name
        assert bool(f.metadata["choices"]) == (f.type is str), name
        section(**{f.name: f.default})


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no pool": ({"pools": ()}, "0 pools, expected 1 to 16"),
    "many pools": ({"pools": (PoolParams(frames=1),) * 17}, "17 pools, expected 1 to 16"),
    "more frames than a handle can name": (
        {"pools": (PoolParams(frames=1 << 19), PoolParams(frames=(1 << 19) + 1))},
        "pools have 1,048,577 frames in all, at most 1,048,576",
    ),
    "sets": ({"cam": CamParams(sets=3000)}, "cam.sets = 3000, expected a power of two, or 0 to derive"),
    "a slot more than frames": (
        {"cam": CamParams(banks=1, ways=16, sets=1024)},
        "cam.banks x sets x ways = 16,384 slots for 16,384 frames, expected more slots than frames",
    ),
    "whole segments": (
        {"pools": (PoolParams(), PoolParams(frame_bytes=5000))},
        "pools.1.frame_bytes = 5000 is no multiple of memory.segment_bytes = 4096",
    ),
    "replayed blocks": (
        {"replay": ReplayParams(block_bytes=(4 << 20) + 1)},
        "replay.block_bytes = 4194305 exceeds the largest frame, 4194304 bytes",
    ),
    "replayed partitions": (
        {"replay": ReplayParams(partitions=17)},
        "replay.partitions = 17 exceeds tables.partitions = 16",
    ),
    "a ring for each replayed partition": (
        {"replay": ReplayParams(partitions=5)},
        "replay.partitions = 5 exceeds tables.rings_per_port = 4",
    ),
    "guarantee and quota": (
        {"replay": ReplayParams(guarantee=0.5, quota=0.125, partitions=2)},
        "replay.guarantee = 0.5 of an equal share is 0.25 of the pool, replay.quota only 0.125",
    ),
    "a pool for each isolated partition": (
        {"tables": TableParams(isolation="strict")},
        "tables.isolation = 'strict' with tables.partitions = 16 and 1 pools, expected a pool for each partition",
    ),
    "isolated partitions": (
        {"tables": TableParams(isolation="strict", partitions=3), "pools": (PoolParams(),) * 3},
        "tables.isolation = 'strict' with tables.partitions = 3, expected a power of two, and at most the sets of a"
        " bank, 2048",
    ),
    "slots for each isolated partition": (
        {
            "tables": TableParams(isolation="strict", partitions=2),
            "pools": (PoolParams(frames=8), PoolParams(frames=7)),
            "cam": CamParams(banks=1, ways=4, sets=4),
        },
        "cam.banks x sets x ways = 16 slots, 8 for each of 2 isolated partitions, for pools.0.frames = 8,"
        " expected more slots than frames",
    ),
    "shares of a table": (
        {"tables": TableParams(isolation="strict", partitions=2, fences=5), "pools": (PoolParams(),) * 2},
        "tables.isolation = 'strict' with tables.fences = 5 for 2 partitions, expected a multiple",
    ),
    "ports of isolated partitions": (
        {"tables": TableParams(isolation="strict", partitions=2, ports=3), "pools": (PoolParams(),) * 2},
        "tables.isolation = 'strict' with tables.ports = 3 for 2 partitions, expected a multiple",
    ),
    "a port for each replayed partition": (
        {
            "tables": TableParams(isolation="strict", partitions=2),
            "pools": (PoolParams(),) * 2,
            "replay": ReplayParams(partitions=2),
        },
        "replay.ports = 1 for replay.partitions = 2 that are isolated, expected a port for each",
    ),
    "a turn that is too short": (
        {
            "tables": TableParams(isolation="strict", partitions=2),
            "pools": (PoolParams(),) * 2,
            "rota": RotaParams(turn=2000),
        },
        "tables.isolation = 'strict' with rota.turn = 2000, expected 2,874 or more, of which memory has 1,280 to come"
        " to rest, or 0 to derive",
    ),
    "replayed models": ({"replay": ReplayParams(models=65)}, "replay.models = 65 exceeds tables.models = 64"),
    "replayed ports": ({"replay": ReplayParams(ports=5)}, "replay.ports = 5 exceeds tables.ports = 4"),
    "the last model": (
        {"replay": ReplayParams(retire_model_at=0.5)},
        "replay.retire_model_at needs a model that stays: replay.models of 2 or more",
    ),
    "the last port": (
        {"replay": ReplayParams(lose_port_at=0.5)},
        "replay.lose_port_at needs a port that stays: replay.ports of 2 or more",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_names_both_sides_in_one_line(name: str) -> None:
    sections, message = CONTRADICTIONS[name]
    with pytest.raises(ParameterError) as caught:
        Params(**sections)
    assert str(caught.value) == f"parameters contradict each other: {message}"


def test_what_just_does_not_contradict_is_taken() -> None:
    Params(pools=(PoolParams(frames=1 << 20),))
    Params(pools=(PoolParams(frames=1),) * 16)
    Params(cam=CamParams(banks=1, ways=17, sets=1024))
    Params(
        tables=TableParams(rings_per_port=16),
        replay=ReplayParams(block_bytes=4 << 20, partitions=16, models=64, ports=4, retire_model_at=1),
    )
    Params(replay=ReplayParams(partitions=4, guarantee=1.0, quota=0.25))


@settings(deadline=None)
@given(banks=st.integers(1, 16), ways=st.integers(1, 64), frames=st.integers(1, 1 << 20))
def test_derived_sets_are_the_fewest_with_the_slots_that_replacement_needs(banks: int, ways: int, frames: int) -> None:
    params = Params(cam=CamParams(banks=banks, ways=ways), pools=(PoolParams(frames=frames),))
    assert params.cam_sets.bit_count() == 1
    assert params.cam_slots == banks * ways * params.cam_sets
    assert params.cam_slots >= 1.25 * frames
    assert params.cam_sets == 1 or params.cam_slots / 2 < 1.25 * frames


def test_frames_and_rings_are_counted_over_all_pools_and_ports() -> None:
    params = replace(TINY, pools=(PoolParams(frames=1), PoolParams(frames=2)))
    assert params.frames == 3
    assert params.rings == 4


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_fits_itself(preset: str) -> None:
    params = PRESETS[preset]
    assert params.cam_slots >= params.frames
    assert params.pools[0].frame_bytes % params.memory.segment_bytes == 0


# The hash that names a set of parameters.


def test_equal_parameters_have_equal_hashes() -> None:
    assert Params().hash == DEFAULT.hash
    assert replace(TINY).hash == TINY.hash
    assert len(TINY.hash) == 12 and int(TINY.hash, 16) >= 0
    as_integers = ReplayParams(quota=1, guarantee=0, lose_port_at=-0.0)
    assert as_integers == ReplayParams()
    assert Params(replay=as_integers).hash == DEFAULT.hash


FEW = st.builds(
    Params,
    cam=st.builds(CamParams, seed=st.integers(0, 1)),
    pools=st.lists(st.builds(PoolParams, frames=st.integers(1, 2)), min_size=1, max_size=2).map(tuple),
    tables=st.builds(TableParams, ecc=st.booleans()),
    replay=st.builds(ReplayParams, quota=st.sampled_from([0.5, 1, 1.0]), guarantee=st.sampled_from([0.0, -0.0, 0])),
)
"""Few enough sets of parameters for two of them to be equal now and then."""


@settings(deadline=None)
@given(FEW, FEW)
def test_hashes_are_equal_where_the_parameters_are_and_nowhere_else(left: Params, right: Params) -> None:
    assert (left == right) == (left.hash == right.hash)
