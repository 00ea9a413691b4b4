"""The command line: one line and a status for every error, and no import that is not needed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from hw.params import KvnodeError
from hw.tb.verilator import run_whole
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


@pytest.mark.parametrize(("signal", "status", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_half_an_elaboration_ends_in_one_line(signal: str, status: int, word: str, tmp_path: Path) -> None:
    script = (
        "import os, signal; from scripts import cli; from hw.rtl.node.data.read_lane import ReadLane\n"
        f"ReadLane.elaborate = lambda *_: os.kill(os.getpid(), signal.{signal})\n"
        "cli.main()"
    )
    command = [sys.executable, "-c", script, "emit", "data", "--set", "preset=TINY", "-o", str(tmp_path / "out")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (status, "", f"kvnode: {word}\n")
    assert not list(tmp_path.iterdir())


def test_nothing_goes_on_that_an_interrupted_build_has_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f"sleep 1000 & echo $! > {started}; kill -INT {os.getpid()}; wait"
    with pytest.raises(KeyboardInterrupt):
        run_whole(["sh", "-c", script], os.environ)
    state = Path(f"/proc/{int(started.read_text())}/stat")
    while state.exists() and state.read_text().split()[2] != "Z":
        pass


@pytest.mark.parametrize(
    ("name", "setting", "expected"),
    [
        ("stream", "cycles=0", "--set cycles: expected 1 or more"),
        ("stream", "cycles=999", "--set cycles=999: expected 1000 or more"),
        ("node", "cycles=1", "--set cycles=1: expected 1000 or more"),
        ("latency", "reads=99", "--set reads=99: expected 100 or more"),
        ("latency", f"seed={'9' * 5000}", "--set seed: expected 0 or more, of 18 digits at most"),
    ],
)
def test_a_benchmark_has_something_to_measure(
    capsys: pytest.CaptureFixture[str], name: str, setting: str, expected: str
) -> None:
    assert expected in fails(capsys, "bench", name, "--set", setting)


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
        (OSError(28, "No space left on device", "x"), 2, "kvnode: x: No space left on device"),
        (BrokenPipeError(), cli.CUT_SHORT, ""),
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
    err = capsys.readouterr().err
    assert err.startswith(line) and err.count("\n") == bool(line)


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


def kvnode(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the installed script's entry point in a process of its own."""
    script = "import sys; from scripts.cli import main; sys.argv[0] = 'kvnode'; main()"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)


@pytest.mark.parametrize("bad", ["file", "file/inside", "loop", "n" * 300, "/proc/x", ""])
def test_emit_into_a_bad_folder_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("loop").symlink_to("loop")
    assert "expected a folder to write to" in fails(capsys, "emit", "crc32c", "-o", bad)
    assert sorted(os.listdir()) == ["file", "loop"]


def test_emit_onto_a_folder_of_the_name_writes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "crc32c.v").mkdir()
    assert "is a folder" in fails(capsys, "emit", "crc32c", "-o", str(tmp_path))
    assert os.listdir(tmp_path) == ["crc32c.v"]


def test_emit_on_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from hw.rtl import emit; from scripts.cli import run\n"
        "emit._verilog = lambda text: 'x' * 9999\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "sys.exit(run(['emit', 'crc32c', '-o', sys.argv[1]]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "File too large" in result.stderr
    assert os.listdir(tmp_path) == []


def test_a_full_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        result = kvnode("--help", stdout=full)
    assert (result.returncode, result.stderr) == (2, "kvnode: output: No space left on device\n")


@pytest.mark.parametrize("arguments", [["--help"], ["prove", "--list"], ["trace", "info"]])
def test_a_reader_that_went_away_is_no_failed_check(tmp_path: Path, arguments: list[str]) -> None:
    if arguments[0] == "trace":
        assert cli.run(["trace", "generate", "-o", str(tmp_path / "t"), "--requests", "9"]) == 0
        arguments = [*arguments, str(tmp_path / "t")]
    read, write = os.pipe()
    os.close(read)
    result = kvnode(*arguments, stdout=write)
    os.close(write)
    assert (result.returncode, result.stderr) == (cli.CUT_SHORT, "")


def test_names_that_are_no_text_are_printed(tmp_path: Path) -> None:
    for arguments in (["emit", "crc32c", "-o", "\udce9"], ["trace", "generate", "--requests", "9", "-o", "\udcff"]):
        result = kvnode(*arguments, stdout=subprocess.PIPE, cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.getcwd()})
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("\\udc")
    result = kvnode("trace", "info", "\udcfe", stdout=subprocess.PIPE)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "\\udcfe: No such file" in result.stderr


def test_an_interrupt_while_importing_is_one_line() -> None:
    script = (
        "import sys, builtins; real = builtins.__import__\n"
        "def stop(name, *rest):\n if name == 'click': raise KeyboardInterrupt\n return real(name, *rest)\n"
        "builtins.__import__ = stop; import scripts.cli"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "kvnode: interrupted\n")
