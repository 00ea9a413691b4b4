"""Builds an emitted block with Verilator and runs a module of cocotb tests on it."""

import fcntl
import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import cocotb
import cocotb_tools.config
from cocotb_tools.runner import get_runner

from hw.rtl.emit import Emission
from hw.tb.objcache import objcache_environment
from hw.tb.scoreboard import CheckError
from hw.tb.verilator import BUILD, COMPILED, find_verilator, run_whole

RESULTS = "results.xml"
LOG_TAIL = 60
"""Lines of a failing run's log to show."""

MEMORY = "mem"
"""The array of every SRAM, by its name in Verilog."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a bench.

    - `emission`: the block.
    - `module`: the Python module with the cocotb tests.
    - `settings`: what the tests need to know, as `Bench.settings`.
    - `seed`: of everything random.
    - `node`: the pytest node that runs it, for the rerun command.
    """

    emission: Emission
    module: str
    settings: Mapping[str, Any]
    seed: int
    node: str

    def __call__(self) -> list[str]:
        """Return the tests that ran, all passed, as `module::test`.

        A pass needs exit status 0 and a result file with at least one test in it, none of them failed or skipped.
        Raises CheckError, with the end of the log and the one command that repeats the run with waves.
        """
        waves = os.environ.get("KVNODE_WAVES", "") not in ("", "0")
        print(f"seed {self.seed}")
        build = build_simulation(self.emission, waves=waves)
        directory = self.directory(build)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        context = directory / "bench.json"
        context.write_text(
            json.dumps({"ports": self.emission.ports, "settings": dict(self.settings), "seed": self.seed})
        )
        results, log = directory / RESULTS, directory / "run.log"
        try:
            with environment():
                get_runner("verilator").test(
                    test_module=self.module,
                    hdl_toplevel=self.emission.name,
                    hdl_toplevel_lang="verilog",
                    build_dir=build,
                    test_dir=directory,
                    results_xml=str(results),
                    log_file=log,
                    seed=self.seed,
                    plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{self.seed % (2**31 - 1) + 1}"],
                    extra_env={"KVNODE_BENCH": str(context), "COCOTB_ANSI_OUTPUT": "0"},
                    waves=waves,
                )
            passed = read_results(results)
        except (CheckError, RuntimeError, SystemExit) as error:
            raise CheckError(self._report(error, log)) from None
        if waves:
            print(f"waves: {directory / 'dump.vcd'}")
        return passed

    def directory(self, build: Path) -> Path:
        """Return where a run of the simulator in `build` leaves its log and its `RESULTS`."""
        return build / hashlib.sha256(f"{self.node} {self.seed}".encode()).hexdigest()[:12]

    def _report(self, error: BaseException, log: Path) -> str:
        tail = log.read_text().splitlines()[-LOG_TAIL:] if log.exists() else []
        command = f"KVNODE_SEED={self.seed} KVNODE_WAVES=1 .venv/bin/pytest -m '' -s {shlex.quote(self.node)}"
        return "\n".join([*tail, f"{self.module} failed: {error}", f"again, with waves: {command}"])


def build_simulation(emission: Emission, *, waves: bool) -> Path:
    """Return the directory of the simulator built from `emission`; builds it unless one of equal content is there."""
    verilator = find_verilator()
    tools = f"{verilator.program} {verilator.program.stat().st_mtime_ns} cocotb {cocotb.__version__} {COMPILED} {waves}"
    digest = hashlib.sha256(f"{tools}\n{_public(emission)}\n{emission.verilog}".encode()).hexdigest()[:16]
    directory = BUILD / f"{emission.name}-{digest}"
    directory.mkdir(parents=True, exist_ok=True)
    done = directory / "done"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _compile(emission, directory, waves=waves)
            done.touch()
    return directory


def _compile(emission: Emission, directory: Path, *, waves: bool) -> None:
    """Build the simulator `directory / emission.name`.

    cocotb's own runner makes every variable of a design public, and Verilator must then keep each as it is; here it
    may do away with all that no test reads. Twice as much is made and compiled otherwise.
    """
    verilator, libraries = find_verilator(), cocotb_tools.config.libs_dir
    source, _ = emission.write(directory)
    public = directory / "public.vlt"
    public.write_text(_public(emission))
    command = [  # -Wno-fatal: warnings are the lint test's business
        *(str(verilator.program), "--cc", "--exe", "--build", "-j", "2", "-Wno-fatal", "--x-initial", "unique"),
        *("--vpi", "--timescale", "1ns/1ps", "--top-module", emission.name, "--prefix", "Vtop"),
        *("--Mdir", str(directory), "-o", emission.name, "-MAKEFLAGS", COMPILED, *(["--trace"] if waves else [])),
        *("-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator"),
        *(str(cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"), str(public), str(source)),
    ]
    variables = verilator.environment | objcache_environment(BUILD / "objects")
    result = run_whole(command, os.environ | variables)
    text = result.stdout + result.stderr
    (directory / "build.log").write_text(text)
    if result.returncode:
        raise CheckError(f"{text}\n{emission.name} did not build")


def _public(emission: Emission) -> str:
    """Return Verilator's configuration: tests see the ports of the top, and all memories."""
    seen = [(emission.name, port) for port in ("clk", "rst", *emission.ports)] + [("*", MEMORY)]
    lines = ["`verilator_config", *(f'public_flat_rw -module "{module}" -var "{name}"' for module, name in seen)]
    return "\n".join(lines) + "\n"


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set environment variables for a while; pytest's own is hidden, by which cocotb's runner changes its behaviour."""
    saved = dict(os.environ)
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def read_results(results: Path) -> list[str]:
    """Return the tests of a result file as `module::test`, variants of one test as one.

    Raises CheckError unless there are some and all passed.
    """
    if not results.exists():
        raise CheckError("the simulation ended without a result file")
    cases = list(ElementTree.parse(results).iter("testcase"))
    bad = [case.get("name", "?") for case in cases if any(case.find(kind) is not None for kind in BAD)]
    if bad:
        raise CheckError(f"{len(bad)} of {len(cases)} tests did not pass: {', '.join(bad)}")
    if not cases:
        raise CheckError("the result file has no test in it")
    return sorted({f"{case.get('classname')}::{case.get('name', '').split('/')[0]}" for case in cases})


BAD = ("failure", "error", "skipped")
"""Elements that a test case in a result file has when it did not pass."""
