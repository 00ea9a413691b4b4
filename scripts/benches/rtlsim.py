"""The compiled system: cycles a second with all its models, beside the clock alone and beside cocotb."""

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from xml.etree import ElementTree

from rich.console import Console

from hw.params import TINY, InputError
from hw.rtl.node.slice import Slice
from hw.tb.core.settings import settings_of
from hw.tb.harness.build import emit_top
from hw.tb.harness.system import SystemHarness
from hw.tb.runner import RESULTS, Run, build_simulation
from hw.tb.slice.compiled import CompiledWorld
from hw.tb.system.load import busy
from scripts.benches import Figure, Result

TURN = 200
"""Cycles of a turn: short, so that of many some are not disturbed."""

BRIEF = replace(TINY, tables=replace(TINY.tables, park_cycles=150, fence_cycles=400))
"""The slice of both benches: what waits in it for what does not come ends soon."""

SETTLED = 5_000
"""Cycles after which an idle system has initialised its tables."""


def run(trace: str | None, *, turns: int = 500, moves: int = 100, commands: int = 1_000) -> Result:
    """Measures the TINY system, the smallest: there models weigh most. Memory answers after 10 cycles.

    Systems take turns of 200 cycles: one whose clock runs alone, one with all its models but no commands, one whose
    rings are full of READs and WRITEs of 4 KiB; of each the quickest of `turns` counts. The clock alone has a design
    with nothing to do, which costs less than one that works: what is charged to the models is too much. cocotb runs its
    bench of the TINY slice with `moves` moves of random traffic, the compiled harness the same slice and traffic for
    `commands` commands; both with the specification as judge.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark rtlsim takes no trace")
    console = Console(stderr=True)
    with console.status("compiling the system"):
        alone, idle, loaded = (SystemHarness(TINY) for _ in range(3))
    busy(loaded, TINY)
    alone.run(SETTLED)
    idle.run(SETTLED)
    moved, begin = _beats(loaded), loaded.cycle
    seconds = _quickest({"alone": alone.run_alone, "idle": idle.run, "loaded": loaded.run}, turns)
    rate = (_beats(loaded) - moved) / (loaded.cycle - begin) / (2 * TINY.tables.ports)
    with console.status("compiling the slice, and running cocotb"):
        cocotb, compiled = _cocotb(moves), _compiled(commands)
    return Result(
        figures=[
            Figure.at_most("loaded / clock alone", seconds["loaded"] / seconds["alone"], "x", target=1.5, limit=1.0),
            Figure.at_most("idle / clock alone", seconds["idle"] / seconds["alone"], "x", target=1.5, limit=1.0),
            Figure(name="load: beats on each port of HBM, each way", value=rate, unit="1/cycle", limit=1.0),
            *(Figure(name=f"system, {kind}", value=TURN / time_, unit="cycles/s") for kind, time_ in seconds.items()),
            Figure(name="slice with random traffic, compiled", value=compiled, unit="cycles/s"),
            Figure(name="slice with random traffic, cocotb", value=cocotb, unit="cycles/s"),
            Figure(name="compiled / cocotb", value=compiled / cocotb, unit="x"),
        ],
        input="TINY, reads and writes of 4 KiB",
        seed=0,
        params=[TINY, BRIEF],
    )


def _quickest(runs: dict[str, Callable[[int], object]], turns: int) -> dict[str, float]:
    """Seconds of the quickest turn of each, all taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run_cycles in runs.items():
            begin = time.perf_counter()
            run_cycles(TURN)
            seconds[name].append(time.perf_counter() - begin)
    return {name: min(each) for name, each in seconds.items()}


def _beats(harness: SystemHarness) -> int:
    """Beats that HBM has moved, at all ports."""
    return sum(each.read_beats + each.write_beats for each in harness.statistics(of="hbm"))


def _cocotb(moves: int) -> float:
    """Cycles a second of the slice's bench."""
    emission = emit_top(Slice, "slice", BRIEF)
    settings = settings_of(BRIEF) | {"moves": moves}
    bench = Run(emission=emission, module="hw.tb.slice.bench", settings=settings, seed=0, node="kvnode bench rtlsim")
    build = build_simulation(emission, waves=False)
    with redirect_stdout(sys.stderr):
        bench()
    cases = list(ElementTree.parse(bench.directory(build) / RESULTS).iter("testcase"))
    nanoseconds = sum(float(_property(case, "sim_time_duration")) for case in cases)  # one a cycle
    return nanoseconds / sum(float(case.get("time", 0)) for case in cases)


def _property(case: ElementTree.Element, name: str) -> str:
    return next(each.get("value", "") for each in case.iter("property") if each.get("name") == name)


def _compiled(commands: int) -> float:
    """Cycles a second of the compiled slice with the same traffic."""
    world = CompiledWorld(BRIEF, 0)
    begin = time.perf_counter()
    world.play(commands)
    return world.harness.cycle / (time.perf_counter() - begin)
