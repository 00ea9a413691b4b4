"""`kvnode replay` as a user calls it."""

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hw.params import InputError
from hw.params.statistics import STATISTICS
from pymodel.trace import Request, write_requests
from scripts.cli import run
from scripts.replay import backends
from scripts.replay.ledger import Ledger
from scripts.replay.run import Replay
from scripts.replay.tally import History
from tests.replay.helpers import SMALL, kvnode_replay, leaves, write_trace

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = (
    *("--set", "replay.partitions=2", "--set", "replay.models=2", "--set", "replay.ports=2"),
    *("--set", "replay.retire_model_at=0.5", "--set", "replay.lose_port_at=0.5"),
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.jsonl.gz")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_writes_statistics_plots_and_report(trace: Path, tmp_path: Path) -> None:
    result = kvnode_replay(trace, *EVERYTHING, "--set", "replay.quota=0.1", "--out", "new/out")
    assert result.exit_code == 0, result.output
    names = ("stats.json", "report.html", "hits.svg", "curve.svg", "occupancy.svg", "evictions.svg", "partitions.svg")
    out = tmp_path / "new" / "out"
    assert {file.name for file in out.iterdir()} == set(names)
    assert f"report: {Path('new', 'out', 'report.html')}" in result.output
    assert [entry.name for entry in out.parent.iterdir()] == ["out"]
    stats = json.loads((out / "stats.json").read_text())
    assert stats["complete"] and stats["requests"] == 60 and stats["wrong_bytes"] == 0
    assert stats["evictions"] > 0 and stats["failed_checks"] == []
    assert stats["cycles"] is stats["stall_cycles"] is stats["read_latency_cycles"]["p99"] is None
    assert sum(partition["evictions"] for partition in stats["partitions"]) == stats["evictions"]


def test_every_statistic_is_in_the_table_and_the_other_way_round(trace: Path, tmp_path: Path) -> None:
    assert kvnode_replay(trace, "--out", "out").exit_code == 0
    names = frozenset(statistic.name for statistic in STATISTICS)
    assert len(names) == len(STATISTICS)
    assert leaves(json.loads(Path("out", "stats.json").read_text()), names) == names


def test_the_default_folder_names_trace_and_parameters(trace: Path) -> None:
    result = kvnode_replay(trace, "--limit", 3)
    (folder,) = Path("build", "replay").iterdir()
    stats = json.loads((folder / "stats.json").read_text())
    assert folder.name == f"trace-{stats['params_hash']}" and str(folder) in result.output
    assert stats["requests"] == stats["trace_requests"] == 3


def test_a_folder_of_an_earlier_run_is_replaced(trace: Path) -> None:
    assert kvnode_replay(trace, *EVERYTHING, "--out", "out").exit_code == 0
    assert kvnode_replay(trace, "--limit", 5, "--out", "out").exit_code == 0
    assert json.loads(Path("out", "stats.json").read_text())["requests"] == 5
    assert not Path("out", "partitions.svg").exists()


def test_the_command_in_the_statistics_gives_the_same_run(trace: Path) -> None:
    Path("small.toml").write_text("[replay]\nin_flight = 4\n")
    assert kvnode_replay(trace, "--config", "small.toml", "--limit", 20, *EVERYTHING, "--out", "a").exit_code == 0
    first = json.loads(Path("a", "stats.json").read_text())
    words = shlex.split(first["command"])
    assert words[:2] == ["kvnode", "replay"]
    assert run([*words[1:], "--out", "b"]) == 0
    again = json.loads(Path("b", "stats.json").read_text())
    assert {k: v for k, v in again.items() if k != "wall_seconds"} == {
        k: v for k, v in first.items() if k != "wall_seconds"
    }


def test_wrong_bytes_end_with_status_1_and_one_line(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = Ledger.check
    damage = lambda ledger, request, store, data: honest(ledger, request, store, bytearray([data[0] ^ 1]) + data[1:])  # noqa: E731
    monkeypatch.setattr(Ledger, "check", damage)
    small = [word for override in SMALL for word in ("--set", override)]
    assert run(["replay", str(trace), "--out", "out", *small]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "wrong bytes; the first in request" in line and f"run again: kvnode replay {trace}" in line
    stats = json.loads(Path("out", "stats.json").read_text())
    assert stats["wrong_bytes"] > 0 and stats["failed_checks"]
    assert "Check failed" in Path("out", "report.html").read_text()


def test_ctrl_c_leaves_what_was_done(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = History.add

    def interrupt(history: History, *numbers: int) -> None:
        add(history, *numbers)
        if len(history.references) == 20:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(History, "add", interrupt)
    result = kvnode_replay(trace, "--out", "out")
    assert result.exit_code == 130
    stats = json.loads(Path("out", "stats.json").read_text())
    assert not stats["complete"] and 20 <= stats["requests"] < 60 and stats["failed_checks"] == []
    assert f"interrupted after {stats['requests']} of 60 requests" in result.output
    assert stats["block_lookups"] == sum(partition["block_lookups"] for partition in stats["partitions"])
    assert "Interrupted after" in Path("out", "report.html").read_text()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_curves_are_of_the_requests_done(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kvnode_replay(trace, "--limit", 20, "--set", "replay.in_flight=1", "--out", "short").exit_code == 0
    add = History.add

    def interrupt(history: History, *numbers: int) -> None:
        add(history, *numbers)
        if len(history.references) == 20:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(History, "add", interrupt)
    assert kvnode_replay(trace, "--set", "replay.in_flight=1", "--out", "cut").exit_code == 130
    short, cut = (json.loads(Path(name, "stats.json").read_text()) for name in ("short", "cut"))
    for name in ("requests", "block_lookups", "lru_prefix_hit_rate", "optimum_prefix_hit_rate", "prefix_hit_rate"):
        assert cut[name] == short[name]


def test_a_long_request_does_not_delay_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_requests(tmp_path / "long.jsonl", [Request(0, 512, 512 * 100_000, [1])])
    granted = Ledger.granted

    def interrupt(ledger: Ledger, *block: int, output: bool = False) -> bytes:
        if ledger.sealed_outputs == 3:
            signal.raise_signal(signal.SIGTERM)
        return granted(ledger, *block, output=output)

    monkeypatch.setattr(Ledger, "granted", interrupt)
    assert kvnode_replay("long.jsonl", "--out", "out").exit_code == 130
    stats = json.loads(Path("out", "stats.json").read_text())
    assert stats["requests"] == 0 and stats["decode_blocks"] == 4 and stats["failed_checks"] == []


def test_a_full_disk_loses_no_results(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write = Path.write_text

    def full(path: Path, *arguments: Any, **options: Any) -> int:
        if path.name == "report.html" and path.parent.name.startswith(".out."):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    (tmp_path / "spare").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spare"))
    assert run(["replay", str(trace), "--limit", "5", "--out", "out"]) == 2
    printed = capsys.readouterr()
    (kept,) = (tmp_path / "spare").iterdir()
    assert printed.err == (
        f"kvnode: out: No space left on device, the results could not be written there; they are in {kept}\n"
    )
    assert "hit_rate" in printed.out and "report:" not in printed.out
    assert json.loads((kept / "stats.json").read_text())["requests"] == 5
    assert {entry.name for entry in tmp_path.iterdir()} == {trace.name, "spare"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
@pytest.mark.parametrize(("to", "status"), [("/dev/full", 2), ("pipe", 0)])
def test_output_that_nobody_takes(to: str, status: int, trace: Path) -> None:
    if to == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(to, os.O_WRONLY)
    code = "from scripts.cli import main; main()"
    small = [word for override in SMALL for word in ("--set", override)]
    words = [sys.executable, "-c", code, "replay", str(trace), "--limit", "2", "--out", "out", *small]
    done = subprocess.run(
        words,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    os.close(writer)
    assert done.returncode == status
    said = "kvnode: standard output: No space left on device; the results are in out\n"
    assert done.stderr == (said if status else "")
    assert Path("out", "stats.json").exists()


def test_what_wears_out_is_said(trace: Path) -> None:
    tiny = ("--set", "tables.slot_generation_bits=2", "--set", "tables.sessions=2", "--set", "replay.in_flight=2")
    result = kvnode_replay(trace, *tiny, "--out", "out")
    assert result.exit_code == 0, result.output
    stats = json.loads(Path("out", "stats.json").read_text())
    assert stats["worn_sessions"] == 2 and stats["failed_requests"] == 60 - 2 * 4
    hint = "worn out: 2 slots of sessions, each used 4 times; set tables.slot_generation_bits above 2"
    assert hint in result.output and hint in Path("out", "report.html").read_text()
    assert "failed_requests" in result.output and "retired_requests" not in result.output


def test_worn_frames_and_worn_pins_end_no_run(trace: Path) -> None:
    small = ("--set", "tables.generation_bits=2", "--set", "tables.pins_per_ring=1", "--set", "replay.quota=0.1")
    result = kvnode_replay(trace, *small, "--set", "tables.slot_generation_bits=3", "--out", "out")
    assert result.exit_code == 0, result.output
    stats = json.loads(Path("out", "stats.json").read_text())
    assert stats["requests"] == 60 and stats["worn_frames"] > 0 and stats["worn_pins"] == 1
    assert "worn out:" in result.output and "frames, each used 3 times" in result.output


def test_a_pool_that_nobody_uses_is_said(trace: Path) -> None:
    more = ("--set", "pools.1.frame_bytes=8192", "--set", "pools.1.frames=4")
    result = kvnode_replay(trace, "--limit", 2, *more, "--out", "out")
    assert "pools.1 is used by no partition" in result.output
    assert "pools.1" not in kvnode_replay(trace, "--limit", 2, "--out", "out").output


def test_a_run_that_breaks_leaves_nothing(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(Replay, "run", broken)
    assert isinstance(kvnode_replay(trace, "--out", "new/out").exception, RuntimeError)
    assert list((tmp_path / "new").iterdir()) == []


BAD_LINES = {
    "": "no request",
    "{": "not JSON",
    '{"timestamp": 0}': "expected the fields",
    '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1, 2]}': "expected at most 1",
    '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]}': "expected `int`",
    '{"timestamp": 0, "input_length": -1, "output_length": 1, "hash_ids": []}': "expected `int` >= 0",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_trace_is_one_line_and_status_2(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.jsonl").write_text(line + "\n")
    assert run(["replay", "bad.jsonl", "--out", "out"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("kvnode: bad.jsonl:1: ") or not line
    assert BAD_LINES[line] in error
    assert {entry.name for entry in tmp_path.iterdir()} == {"bad.jsonl"}


BAD_ARGUMENTS = [
    (["--set", "replay.sed=1"], "did you mean 'replay.seed'?"),
    (["--set", "replay.seed"], "expected NAME=VALUE"),
    (["--set", "replay.in_flight=0"], "expected an integer from 1"),
    (["--set", "replay.ports=8"], "replay.ports = 8 exceeds tables.ports = 4"),
    (["--set", "replay.partitions=8"], "replay.partitions = 8 exceeds tables.rings_per_port = 4"),
    (["--set", "tables.sessions=7"], "replay.in_flight = 8 exceeds tables.sessions = 7"),
    (["--set", "replay.guarantee=1", "--set", "replay.quota=0.5"], "replay.guarantee = 1.0 of an equal share"),
    (["--set", "replay.lose_port_at=0.5"], "replay.ports of 2 or more"),
    (["--set", "replay.retire_model_at=0.5"], "replay.models of 2 or more"),
    (["--limit", "0"], "limit is 0, expected "),
    (["--limit", "-3"], "limit is -3, expected "),
    (["--limit", "99999999999999999999"], "limit is 99999999999999999999, expected "),
    (["--backend", "fpga"], "--backend fpga: no such backend, expected one of: spec"),
    (["--config", "gone.toml"], "gone.toml: cannot be read"),
    (["--out", "trace.jsonl.gz"], "trace.jsonl.gz: is a file, expected a folder"),
    (["--out", "trace.jsonl.gz/out"], "trace.jsonl.gz is no folder, expected a folder that can be written"),
    (["--out", "trace.jsonl.gz/new/out"], "trace.jsonl.gz is no folder"),
    (["--out", "n" * 300], "File name too long"),
    (["--out", "."], "has other files"),
    (["--outt", "x"], "did you mean '--out'?"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_ARGUMENTS)
def test_a_bad_argument_is_one_line_and_status_2(
    arguments: list[str], words: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", trace.name, *arguments]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert words in error
    assert {entry.name for entry in tmp_path.iterdir()} == {trace.name}


def test_a_missing_trace_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "gone.jsonl"]) == 2
    assert capsys.readouterr().err == "kvnode: gone.jsonl: No such file or directory, expected a readable trace file\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named_before_the_run(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("locked").mkdir(mode=0o500)
    monkeypatch.setattr(Replay, "run", lambda *_: pytest.fail("the run has begun"))
    result = kvnode_replay(trace, "--out", "locked/out")
    assert isinstance(result.exception, InputError) and "Permission denied" in str(result.exception)


def test_a_backend_is_one_entry_of_a_table(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.BACKENDS, "other", backends.BACKENDS["spec"])
    assert kvnode_replay(trace, "--limit", 2, "--backend", "other", "--out", "out").exit_code == 0
    assert json.loads(Path("out", "stats.json").read_text())["backend"] == "other"
