"""`kvnode trace` and `kvnode bench` as a user calls them."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hw.params import InputError, load_params
from pymodel.trace import Request, Workload, generate, write_requests
from scripts.bench import bench
from scripts.benches import Figure
from scripts.cli import run
from scripts.trace import trace

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


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


def test_info_shows_large_numbers_exactly_and_a_dash_for_none(tmp_path: Path) -> None:
    write_requests(tmp_path / "t", [Request(0, 0, 2**31 - 1, []), Request(2**63 - 1, 0, 0, [])])
    output = kvnode_trace("info", tmp_path / "t").output
    assert "9,223,372,036,854,775.807 " in output and "2,147,483,647 " in output
    assert "│ -" not in output
    write_requests(tmp_path / "t", [Request(5, 0, 0, [])])
    assert [
        line.split()[3] for line in kvnode_trace("info", tmp_path / "t").output.splitlines() if "arrivals" in line
    ] == ["-"]


def test_a_name_is_no_markup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    path.rename("[red]:key:[.jsonl")
    for arguments in (["info"], ["curve", "--capacities", "64"]):
        result = kvnode_trace(*arguments, "[red]:key:[.jsonl")
        assert result.exit_code == 0 and "[red]:key:[.jsonl" in result.output


@pytest.mark.parametrize("limit", ["0", "-1", str(2**63)])
def test_a_limit_out_of_range_is_one_line(path: Path, capsys: pytest.CaptureFixture[str], limit: str) -> None:
    assert run(["trace", "info", str(path), "--limit", limit]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and f"{limit} is not in the range" in err


def test_without_a_command_comes_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace"]) == 0
    assert "\nCommands:\n" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["loop", "n" * 300, "folder", "", "gone/t"])
@pytest.mark.parametrize("command", ["generate", "curve"])
def test_a_bad_output_is_one_line_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, bad: str
) -> None:
    monkeypatch.chdir(path.parent)
    Path("loop").symlink_to("loop")
    Path("folder").mkdir()
    Path("gone").symlink_to(path if command == "curve" else "nowhere")
    if (command, bad) == ("curve", "folder"):
        bad = path.name
    before = sorted(os.listdir())
    arguments = ["generate", "-o", bad] if command == "generate" else ["curve", path.name, "--out", bad]
    assert run(["trace", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "expected" in err
    assert sorted(os.listdir()) == before and os.readlink("loop") == "loop"


@pytest.mark.parametrize("arguments", ["generate -o new", "generate -o new.gz", "curve trace.jsonl --out ."])
def test_a_full_disk_is_one_line_and_leaves_nothing(path: Path, arguments: str) -> None:
    script = (
        "import resource, sys; from scripts.cli import run; import matplotlib.font_manager\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); sys.exit(run(['trace', *sys.argv[1:]]))"
    )
    command = [sys.executable, "-c", script, *arguments.split()]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent, env=ENVIRONMENT)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "File too large" in result.stderr
    assert os.listdir(path.parent) == [path.name]


def test_a_termination_leaves_no_temporary_file(tmp_path: Path) -> None:
    script = (
        "import os, signal; from scripts import cli, trace\n"
        "made = trace.generate\n"
        "trace.generate = lambda w: (os.kill(os.getpid(), signal.SIGTERM) if i else r for i, r in enumerate(made(w)))\n"
        "cli.main()"
    )
    command = [sys.executable, "-c", script, "trace", "generate", "-o", "t"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=ENVIRONMENT)
    assert (result.returncode, result.stdout, result.stderr) == (128 + 15, "", "kvnode: terminated\n")
    assert os.listdir(tmp_path) == []


def test_curves_go_beside_other_files(path: Path) -> None:
    assert kvnode_trace("curve", path, "--out", path.parent).exit_code == 0
    assert sorted(os.listdir(path.parent)) == ["curve.csv", "curve.json", "curve.png", "curve.svg", path.name]


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
