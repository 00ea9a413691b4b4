"""Make `.venv`: one virtual environment with the pinned packages and the project itself, editable.

Runs on the standard library alone, before anything is installed. Usage: `python3 scripts/setup.py run|test|lock`.

- `run`: what the models, the command line and compiled RTL need; a C++ compiler for Verilator among it.
- `test`: also the other HDL tools, the tests and the documentation.
- `lock`: resolves the newest allowed versions of everything in a fresh environment and rewrites `constraints.txt`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
CONSTRAINTS = ROOT / "constraints.txt"
PYTHON_MIN = (3, 11)
EXTRAS = {"run": "[rtl]", "test": "[hw,test,docs]"}
TOOLS = {"g++": "g++", "make": "make", "perl": "perl"}
"""Programs that both sets need, with the Debian package of each."""

LOCK_HEADER = """\
# Versions that set-up and CI install. Written by `python3 scripts/setup.py lock`; do not edit.
"""


class MissingTool(Exception):
    """Something that must be on the machine is not; the message names it and the Debian package."""


def check_machine(level: str) -> None:
    """Raise MissingTool for the first thing that `level` needs and the machine does not have."""
    if sys.version_info < PYTHON_MIN:
        found = ".".join(map(str, sys.version_info[:3]))
        raise MissingTool(f"Python {found} is too old: 3.11 or newer is needed (Debian package python3, from 12 on)")
    if not importlib.util.find_spec("ensurepip"):
        raise MissingTool(
            "Python has no ensurepip, so no virtual environment can be made (Debian package python3-venv)"
        )
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            raise MissingTool(f"{tool} is not on PATH (Debian package {package})")
    if level != "run" and not has_shared_libpython():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise MissingTool(f"the shared library of Python {version} is missing (Debian package libpython{version})")


def has_shared_libpython() -> bool:
    """Return whether the simulator can load this interpreter as a library."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    for candidate in (str(Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib", name)), name):
        try:
            ctypes.CDLL(candidate)
        except OSError:
            continue
        return True
    return False


def pip(environment: Path, *arguments: str) -> None:
    """Run pip of `environment`, quietly."""
    command = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments]
    subprocess.run(command, cwd=ROOT, check=True)


def make_environment(path: Path) -> None:
    """Create the virtual environment, anew if the one there does not run."""
    python = path / "bin" / "python"
    probe = [str(python), "-c", "import pip"]
    alive = os.access(python, os.X_OK) and subprocess.run(probe, check=False).returncode == 0
    venv.create(path, with_pip=True, clear=not alive)


def install(level: str) -> None:
    """Install the set `level` and leave a stamp for make: the larger set satisfies the smaller."""
    make_environment(VENV)
    pinned = ("install", "--quiet", "--constraint", str(CONSTRAINTS))
    pip(VENV, *pinned, "setuptools")
    pip(VENV, *pinned, "--no-build-isolation", "--editable", f".{EXTRAS[level]}")
    for done in ("run", "test") if level == "test" else ("run",):
        (VENV / f"{done}.stamp").touch()


def lock() -> None:
    """Rewrite constraints.txt from the newest allowed versions."""
    with tempfile.TemporaryDirectory() as directory:
        environment = Path(directory, "venv")
        venv.create(environment, with_pip=True)
        pip(environment, "install", "--quiet", "--upgrade", "setuptools")
        pip(environment, "install", "--quiet", "--no-build-isolation", "--editable", f".{EXTRAS['test']}")
        freeze = [str(environment / "bin" / "pip"), "freeze", "--all", "--exclude-editable", "--exclude", "pip"]
        pins = subprocess.run(freeze, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    CONSTRAINTS.write_text(LOCK_HEADER + pins)


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 done, 1 pip failed, 2 bad argument or something missing on the machine."""
    level = arguments[0] if len(arguments) == 1 else ""
    if level not in (*EXTRAS, "lock"):
        print("kvnode: usage: python3 scripts/setup.py run|test|lock", file=sys.stderr)
        return 2
    try:
        check_machine(level)
        if level == "lock":
            lock()
        else:
            print(f"Installing the `{level}` set into {VENV.name} (once)", file=sys.stderr)
            install(level)
    except MissingTool as error:
        print(f"kvnode: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"kvnode: set-up stopped: pip ended with status {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
