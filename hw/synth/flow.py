"""Synthesises a component, counts its cells and remembers the result."""

import hashlib
import importlib.metadata
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from hw.kept import keep, kept
from hw.rtl.emit import MACROS, run_yosys, to_rtlil
from hw.synth.depth import longest_path
from hw.synth.family import FAMILIES, Family

BUILD = Path("build/synth")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Size and depth of a component.

    - `luts`: LUTs, those of carry chains included, those used as memory not.
    - `flip_flops`: small memories that became registers included.
    - `memory_bits`: all bits of arrays that are written, however they were mapped, and of SRAM macros.
    - `macro_bits`: those of them in SRAM macros, which are not synthesised.
    - `block_rams`, `lut_rams`: cells.
    - `levels`: of the longest combinational path, from a register, memory or input to another or an output; a level
      is a cell that is entered over general routing, so carry chains and the multiplexers of a slice add none.
    - `path_start`, `path_end`: nets at the ends of one such path.
    - `seconds`: of the synthesis.
    """

    block: str
    family: str
    luts: int
    flip_flops: int
    memory_bits: int
    macro_bits: int
    block_rams: int
    lut_rams: int
    levels: int
    path_start: str
    path_end: str
    seconds: float


def synthesise(component: wiring.Component, name: str, family: str, *, build: Path = BUILD) -> Report:
    """Return the report of `component`; an equal design of an earlier run is not synthesised again."""
    text = to_rtlil(component, name)
    record = build / f"{name}-{family}-{_digest(text, FAMILIES[family])}.json"
    found = kept(record)
    if found is not None:
        return Report(**found)
    report = _synthesise(text, name, family)
    keep(record, asdict(report))
    return report


def _digest(text: str, family: Family) -> str:
    """Name a synthesis by all that it depends on."""
    version = importlib.metadata.version("pyosys")
    return hashlib.sha256(f"{text}\n{family}\n{version}".encode()).hexdigest()[:16]


def _synthesise(text: str, name: str, family: str) -> Report:
    cells = FAMILIES[family]
    macros = {macro.MACRO for macro in MACROS}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        source, arrays, mapped = (Path(directory, file) for file in ("design.il", "arrays.json", "mapped.json"))
        source.write_text(text)
        models = (f"read_verilog -lib {macro.MODEL}" for macro in MACROS)
        read = (*models, f"read_rtlil {source}", f"hierarchy -top {name}", "proc", "flatten")
        run_yosys(
            *read,
            "memory_collect",
            f"select t:$mem_v2 {' '.join(f't:{macro}' for macro in macros)}",
            f"write_json -selected {arrays}",
            "design -reset",
            *read,
            "opt_clean -purge",  # abc9 trips over the many names of a net
            f"{cells.command} -top {name}",
            f"write_json {mapped}",
        )
        module = json.loads(mapped.read_text())["modules"][name]
        memory_bits, macro_bits = _memory_bits(json.loads(arrays.read_text())["modules"].get(name, {"cells": {}}))
    counts = Counter(cell["type"] for cell in module["cells"].values())
    path = longest_path(module, cells.flip_flops | cells.block_rams | cells.clocked | macros, cells.free, cells.sampled)
    return Report(
        block=name,
        family=family,
        luts=sum(number * counts[cell] for cell, number in cells.luts.items()),
        flip_flops=sum(counts[cell] for cell in cells.flip_flops),
        memory_bits=memory_bits + macro_bits,
        macro_bits=macro_bits,
        block_rams=sum(counts[cell] for cell in cells.block_rams),
        lut_rams=sum(counts[cell] for cell in cells.lut_rams),
        levels=path.levels,
        path_start=path.start,
        path_end=path.end,
        seconds=round(time.monotonic() - started, 1),
    )


def _memory_bits(module: Mapping[str, Any]) -> tuple[int, int]:
    """Bits in arrays that are written, and bits in SRAM macros."""
    arrays = macros = 0
    for cell in module["cells"].values():
        size = {key: int(value, 2) for key, value in cell["parameters"].items() if set(value) <= {"0", "1"} and value}
        if cell["type"] in {macro.MACRO for macro in MACROS}:
            macros += math.prod(size[name] for name in ("ROWS", "LANES", "LANE_BITS", "WIDTH") if name in size)
        elif cell["type"] == "$mem_v2" and size["WR_PORTS"]:
            arrays += size["WIDTH"] * size["SIZE"]
    return arrays, macros
