"""The command line: one line and a status for every error, and no import that is not needed."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hw.params import KvnodeError
from pymodel.spec.check.violation import InvariantViolation
from pymodel.spec.internal import IllegalOperation
from scripts import cli
from sw.driver import DeviceError


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run, expect status 2 and one line, and return it."""
    assert cli.run(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("kvnode: ")
    return err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == "kvnode 0.1.0\n"


def test_help_names_every_command_without_importing_any(capsys: pytest.CaptureFixture[str]) -> None:
    script = "import sys; from scripts.cli import run; run([]); sys.exit('amaranth' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for name in cli.COMMANDS:
        assert f"\n  {name} " in result.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: kvnode {name}")


def test_unknown_names_get_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no command 'emti', did you mean 'emit'?" in fails(capsys, "emti")
    assert "no option '--conf', did you mean '--config'?" in fails(capsys, "emit", "--conf", "x")
    assert "no option '--versoin', did you mean '--version'?" in fails(capsys, "--versoin")


def test_bad_input_says_what_was_expected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "Missing option" in fails(capsys, "emit")
    assert "'crc32d' is not" in fails(capsys, "emit", "crc32d", "-o", str(tmp_path))
    assert "expected a power of two" in fails(capsys, "emit", "-o", str(tmp_path), "--set", "memory.beat_bytes=17")


def test_emit_writes_verilog_and_map(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.run(["emit", "crc32c", "--set", "memory.beat_bytes=16", "-o", str(tmp_path / "out")]) == 0
    verilog, signal_map = (Path(line) for line in capsys.readouterr().out.split())
    assert "module crc32c(" in verilog.read_text()
    assert json.loads(signal_map.read_text())["ports"]["beats__payload"]["width"] == 134


@pytest.mark.parametrize(
    ("raised", "status", "line"),
    [
        (click.exceptions.Exit(1), 1, ""),
        (KvnodeError("2 is not 3"), 1, "kvnode: 2 is not 3"),
        (InvariantViolation(3, "two\nlines"), 1, "kvnode: invariant 3: two lines"),
        (IllegalOperation("there is no frame 9"), 1, "kvnode: there is no frame 9"),
        (DeviceError("it does not answer"), 1, "kvnode: it does not answer"),
        (KeyboardInterrupt(), 130, "kvnode: interrupted"),
        (ModuleNotFoundError(name="amaranth"), 2, "kvnode: `kvnode emit` needs the Python package 'amaranth'"),
    ],
)
def test_status_of_other_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: BaseException, status: int, line: str
) -> None:
    def end(name: str) -> None:
        raise raised

    monkeypatch.setattr("importlib.import_module", end)
    assert cli.run(["emit", "-o", "x"]) == status
    assert capsys.readouterr().err.strip().startswith(line)


def test_the_traceback_of_an_error_is_shown_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def end(name: str) -> None:
        raise KvnodeError("2 is not 3")

    monkeypatch.setattr("importlib.import_module", end)
    monkeypatch.setenv("KVNODE_TRACEBACK", "1")
    assert cli.run(["emit", "-o", "x"]) == 1
    first, *_, last = capsys.readouterr().err.splitlines()
    assert (first, last) == ("Traceback (most recent call last):", "kvnode: 2 is not 3")
