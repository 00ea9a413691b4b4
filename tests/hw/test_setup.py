"""Set-up says in one line what is missing, and which Verilator is used does not depend on luck."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hw.tb import verilator
from hw.tb.objcache import main as objcache
from scripts import setup

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("tool", "package"), setup.TOOLS.items())
def test_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch, tool: str, package: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == tool else f"/usr/bin/{name}")
    with pytest.raises(setup.MissingTool, match=re.escape(f"{tool} is not on PATH (Debian package {package})")):
        setup.check_machine("test")
    with pytest.raises(setup.MissingTool, match=re.escape(f"{tool} is not on PATH")):
        setup.check_machine("run")


def test_old_python_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    assert setup.main(["run"]) == 2
    assert capsys.readouterr().err == (
        "kvnode: Python 3.10.4 is too old: 3.11 or newer is needed (Debian package python3, from 12 on)\n"
    )


def test_python_without_venv_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert setup.main(["run"]) == 2
    assert "Debian package python3-venv" in capsys.readouterr().err


def test_python_without_shared_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: "nowhere")
    with pytest.raises(setup.MissingTool, match=r"Debian package libpython3\.\d+"):
        setup.check_machine("test")
    setup.check_machine("run")


def test_what_runs_rtl_needs_no_testbench() -> None:
    """`make run` installs less than `make test`."""
    code = "import sys; sys.modules |= dict.fromkeys(['cocotb', 'cocotb_tools', 'vcd']); import scripts.replay.rtl"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_bad_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main(["everything"]) == 2
    assert "usage: python3 scripts/setup.py run|test|lock" in capsys.readouterr().err


def test_constraints_pin_every_dependency() -> None:
    pins = {line.split("==")[0].lower().replace("_", "-") for line in setup.CONSTRAINTS.read_text().splitlines()}
    wanted = re.findall(r'^    "([\w-]+)[>=<]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert len(wanted) > 10
    assert {name.lower().replace("_", "-") for name in wanted} <= pins


@pytest.mark.parametrize(("banner", "root"), [("Verilator 5.006 2023", True), ("Verilator 5.036 2025", False)])
def test_system_verilator_is_used_if_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, root: bool
) -> None:
    program = tmp_path / "verilator"
    program.write_text(f"#!/bin/sh\necho '{banner}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = verilator.find_verilator.__wrapped__()
    assert bool(found.root) == root
    assert (found.program == program) != root


def test_runtime_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVNODE_OBJECTS", str(tmp_path / "objects"))
    source, output = tmp_path / "verilated_x.cpp", tmp_path / "x.o"
    source.write_text("int x;\n")
    command = ["g++", "-c", "-o", str(output), str(source)]
    assert objcache(command) == 0
    first = output.read_bytes()
    output.unlink()
    monkeypatch.setattr(subprocess, "run", None)
    assert objcache(command) == 0
    assert output.read_bytes() == first


def test_make_says_what_it_can_do() -> None:
    command = ["make", "--no-print-directory", "help"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in text.splitlines()] == [
        "help", "run", "test", "prove", "lint", "docs", "bench", "nightly", "clean",
    ]  # fmt: skip
