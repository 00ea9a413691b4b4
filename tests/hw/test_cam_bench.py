"""`kvnode bench cam`: its model of placement is the specification's, its harness counts, its settings are checked."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hw.params import TINY, load_params
from hw.tb.cam.throughput import measure
from pymodel.spec.cam import BlockCam, Place, Tag
from scripts import cli
from scripts.benches.cam.refusals import NOWHERE, LoadedCam, refused


@pytest.mark.parametrize(
    "overrides",
    [[], ["cam.banks=3", "cam.ways=3", "cam.sets=4", "pools.0.frames=35"], ["cam.banks=1", "cam.ways=5", "cam.sets=1"]],
)
def test_placement_is_the_specifications(overrides: list[str]) -> None:
    params = load_params(None, ["preset=TINY", *overrides])
    cam, judge, rng = LoadedCam(params), BlockCam(params), np.random.default_rng(0)
    frames, words = rng.integers(0, params.frames, 600), cam.tags(rng, 600)
    count = cam.replace(frames, words)

    stored: dict[int, Tag] = {}
    refusals = 0
    for frame, row in zip(frames.tolist(), words.tolist(), strict=True):
        if frame in stored:
            judge.remove(stored.pop(frame))
        word = sum(part << 64 * i for i, part in enumerate(row))
        tag = Tag(word >> 129, word >> 128 & 1, word & (1 << 128) - 1)
        place = judge.place(tag)
        refusals += place is None
        if place:
            judge.insert(tag, place, frame)
            stored[frame] = tag
    assert count == refusals
    for frame, number in enumerate(cam.places.tolist()):
        rest, way = divmod(number, params.cam.ways)
        assert (None if number == NOWHERE else Place(*divmod(rest, params.cam_sets), way)) == (
            judge.where(stored[frame]) if frame in stored else None
        )


def test_a_small_geometry_refuses_and_is_counted_once_a_seed() -> None:
    params = replace(TINY, cam=replace(TINY.cam, banks=1, ways=1, sets=8))
    done: list[int] = []
    assert refused(params, seeds=2, replacements=1000, progress=done.append) > 0
    assert sum(done) == 2000


def test_harness_counts_cycles() -> None:
    counted = measure(TINY, lookups=10_000, stored=2, seed=0)
    assert counted.cycles == counted.lookups == 10_000
    assert (*counted.hit, *counted.miss) == (4, 4, 4, 4)
    assert math.isclose(counted.insert_slots, 2)
    assert math.isclose(counted.remove_slots, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "seed=1"], "expected K=N with K one of lookups, seeds, replacements and a number N"),
        (["--set", "seeds=many"], "expected K=N"),
        (["--trace", "x.jsonl"], "benchmark cam takes no trace"),
    ],
)
def test_bad_settings_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert cli.run(["bench", "cam", *arguments]) == 2
    assert message in capsys.readouterr().err
