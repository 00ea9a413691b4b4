"""The commands on the page on verification run tests that exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.findall(r"^\$ (.*\.venv/bin/pytest .*)$", (ROOT / "docs/verify.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_finds_its_tests(command: str) -> None:
    variables, arguments = command.split(".venv/bin/pytest ")
    environment = os.environ | dict(variable.split("=") for variable in variables.split())
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", *shlex.split(arguments)]
    result = subprocess.run(collect, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "test_bench[" in result.stdout


def test_page_has_commands() -> None:
    assert len(COMMANDS) == 3
