"""`kvnode trace` and `kvnode bench` as a user calls them."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hw.params import InputError, load_params
from pymodel.trace import Request, Workload, generate, write_requests
from scripts.bench import bench
from scripts.benches import Figure
from scripts.trace import trace


def kvnode_trace(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(trace, [str(argument) for argument in arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_requests(tmp_path / "trace.jsonl", generate(Workload(requests=200, turn_gap_s=5)))
    return tmp_path / "trace.jsonl"


def test_info_prints_the_statistics(path: Path) -> None:
    result = kvnode_trace("info", path, "--limit", 150)
    assert result.exit_code == 0
    rows = {
        cells[1].strip(): cells[2].strip() for line in result.output.splitlines() if len(cells := line.split("│")) > 3
    }
    assert rows["requests"] == "150"
    assert rows["blocks in every request"] == "1"


def test_info_describes_a_single_instant(tmp_path: Path) -> None:
    write_requests(tmp_path / "t", [Request(5, 0, 0, [])])
    assert kvnode_trace("info", tmp_path / "t").exit_code == 0


def test_generate_writes_what_was_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl.gz"
    result = kvnode_trace("generate", "-o", out, "--requests", 30, "--seed", 4, "--set", "turn_gap_s=5")
    assert result.output == f"{out}: 30 requests, seed 4\n"
    write_requests(tmp_path / "same.gz", generate(Workload(requests=30, seed=4, turn_gap_s=5)))
    assert out.read_bytes() == (tmp_path / "same.gz").read_bytes()


def test_curve_writes_every_capacity_and_the_listed_rates(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    result = kvnode_trace("curve", path, "--out", out, "--capacities", "64,1024")
    assert result.exit_code == 0
    assert sorted(file.name for file in out.iterdir()) == ["curve.csv", "curve.json", "curve.png", "curve.svg"]
    report = json.loads((out / "curve.json").read_text())
    rows = list(csv.DictReader((out / "curve.csv").open()))
    assert [int(row["frames"]) for row in rows] == list(range(len(rows)))
    assert [rate["frames"] for rate in report["rates"]] == [64, 1024]
    for rate in report["rates"]:
        row = rows[rate["frames"]]
        for kind in ("lru_prefix", "optimum_prefix"):
            assert rate[f"{kind}_hit_rate"] * report["references"] == pytest.approx(int(row[f"{kind}_hits"]))
    assert int(rows[-1]["lru_prefix_hits"]) / report["references"] == report["unlimited_prefix_hit_rate"]


@pytest.mark.parametrize("text", ["", "0", "-1", "12,x", "1,,2"])
def test_bad_capacities_are_named(path: Path, text: str) -> None:
    result = kvnode_trace("curve", path, "--capacities", text)
    assert isinstance(result.exception, InputError)
    assert "expected frames from 1 up" in str(result.exception)


def test_a_curve_that_cannot_be_written_is_named(path: Path) -> None:
    result = kvnode_trace("curve", path, "--out", path)
    assert isinstance(result.exception, InputError)


def test_bench_curve_reports_figures_beside_targets(path: Path) -> None:
    result = CliRunner().invoke(bench, ["curve", "--json", "--trace", str(path)])
    report = json.loads(result.output)
    assert report["name"] == "curve" and report["seed"] is None and report["input"] == str(path)
    assert report["params_hash"] == load_params().hash
    assert {"name", "value", "unit", "target", "limit", "ok"} == report["figures"][0].keys()
    assert all(figure["value"] > 0 for figure in report["figures"])
    assert "target" in CliRunner().invoke(bench, ["curve", "--trace", str(path)]).output


def test_a_figure_beyond_its_target_is_not_ok() -> None:
    assert Figure.at_most("a", 1.0, "s", target=1.0).ok and not Figure.at_most("a", 1.1, "s", target=1.0).ok
    assert Figure.at_least("a", 1.0, "s", target=1.0).ok and not Figure.at_least("a", 0.9, "s", target=1.0).ok


def test_a_missed_target_ends_with_status_1(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = [Figure.at_most("a", 2.0, "s", target=1.0)]
    monkeypatch.setattr("scripts.benches.curve._measure", lambda _: missed)
    assert CliRunner().invoke(bench, ["curve", "--trace", str(path)]).exit_code == 1
