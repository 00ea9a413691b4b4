"""`kvnode bench cam`: its model of placement is the specification's, its harness counts, its area is compared."""

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hw.params import TINY, load_params
from hw.params.toeplitz import tag_bits
from hw.rtl.node.cam.entry import EntryFormat
from hw.tb.cam.throughput import measure
from pymodel.spec.cam import BlockCam, Place, Tag
from scripts import cli
from scripts.benches import Figure, Result, Sheet
from scripts.benches.cam.area import REGISTERS, SLICED, area, figures, plot, ramb18, sheet
from scripts.benches.cam.refusals import NOWHERE, LoadedCam, refused
from scripts.report import draw

TIGHT = replace(TINY, cam=replace(TINY.cam, banks=1, ways=1, sets=8))
"""Two slots a frame, and one place for each tag."""


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
    done: list[int] = []
    assert refused(TIGHT, seeds=2, replacements=1000, progress=done.append) > 0
    assert sum(done) == 2000


def test_harness_counts_cycles() -> None:
    counted = measure(TINY, lookups=10_000, stored=2, seed=0)
    assert counted.cycles == counted.lookups == 10_000
    assert (*counted.hit, *counted.miss) == (4, 4, 4, 4)
    assert math.isclose(counted.insert_slots, 2)
    assert math.isclose(counted.remove_slots, 1)
    assert counted.refused == 0


def test_harness_counts_refusals() -> None:
    assert measure(TIGHT, lookups=100, stored=1, seed=0, replacements=2_000).refused > 0


@pytest.mark.parametrize(
    ("rows", "width", "blocks"), [(2, 173, 5), (512, 36, 1), (513, 36, 2), (2_048, 173, 20), (16_384, 1, 1)]
)
def test_block_rams_of_an_array(rows: int, width: int, blocks: int) -> None:
    assert ramb18(rows=rows, width=width) == blocks


@pytest.mark.nightly
def test_area_is_counted_and_set_beside_exact_cams(tmp_path: Path) -> None:
    small = area(TIGHT, build=tmp_path)
    assert small.entry_bits == TIGHT.frames * tag_bits(TIGHT)
    assert small.memory_bits == small.ecp5.memory_bits == small.xcup.memory_bits
    assert small.memory_bits == TIGHT.cam_slots * EntryFormat(TIGHT).layout.size
    values = {figure.name: figure.value for figure in figures([small])}
    share = small.entry_bits / (64 * 96)
    assert math.isclose(values[f"register CAM / block CAM at {TIGHT.frames} frames"], 7_700 * share / small.ecp5.luts)
    table = sheet([small])
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert ("LUT4", f"{small.ecp5.luts:,}", "7,700", "") in table.rows
    assert ("RAMB18", f"{small.ramb18}", "", "399") in table.rows
    drawing = draw(lambda axes: plot(axes, [small]), label="area")
    assert ElementTree.fromstring(drawing).tag.endswith("svg")


def test_exact_cams_cost_what_was_measured_at_the_size_measured() -> None:
    assert math.isclose(REGISTERS.luts_for(64 * 96), 7_700)
    assert math.isclose(SLICED.luts_for(2 * 1_024 * 64), 66_000)
    assert math.isclose(SLICED.block_rams_for(1_024 * 64), 399)


def test_bench_writes_figures_table_and_plot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = Figure.at_most("area", 3.0, "LUT4", target=4)
    table = Sheet(name="area", title="Area", columns=("CAM", "LUT4"), rows=[("ours", "3")], note="Synthesised.")
    result = Result(figures=[figure], input="nothing", seed=0, sheets=[table], plots={"area.svg": "<svg/>"})
    monkeypatch.setattr("scripts.benches.cam.run", lambda trace: result)
    assert cli.run(["bench", "cam", "--json", "--out", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"name", "figures", "input", "params_hash", "git_rev", "seed"}
    assert set(printed["figures"][0]) == {"name", "value", "unit", "target", "limit", "ok"}
    assert json.loads((tmp_path / "cam.json").read_text()) == printed
    assert (tmp_path / "area.svg").read_text() == "<svg/>"
    assert (tmp_path / "area.md").read_text().splitlines()[2:5] == ["| CAM | LUT4 |", "| --- | ---: |", "| ours | 3 |"]
    assert cli.run(["bench", "cam"]) == 0
    assert "Area" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "seed=1"], "expected K=N with K one of lookups, seeds, replacements, sampled, largest and"),
        (["--set", "seeds=many"], "expected K=N"),
        (["--trace", "x.jsonl"], "benchmark cam takes no trace"),
    ],
)
def test_bad_settings_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert cli.run(["bench", "cam", *arguments]) == 2
    assert message in capsys.readouterr().err
