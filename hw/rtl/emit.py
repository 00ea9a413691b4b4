"""Verilog of a component, and the map from its flat ports back to the layouts they came from."""

import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Shape, Value
from amaranth.hdl._ir import PortDirection  # what `rtlil.convert` takes; it has no public name
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hw.params import KvnodeError
from hw.rtl import sram, two_port_sram
from hw.rtl.shared import Modules, flat_ports

MACROS = (sram, two_port_sram)
"""The modules with an SRAM macro: its name is MACRO, its behavioural model the file MODEL."""

PASSES = (
    "proc",
    "memory_collect",
    "setattr -unset init w:*",
    "setparam -set INIT 1'x t:$mem_v2 r:WR_PORTS>0 %i",
    "opt_clean -purge",
)
"""Makes Verilog with one register or one expression a statement.

Registers and memories get no initial value: silicon has none, so reset alone leads to a known state, and simulation
shows it. A memory that is never written keeps its content.
"""


@dataclass(frozen=True, kw_only=True)
class Emission:
    """A component as text.

    - `name`: the top module.
    - `verilog`: the whole design; clock `clk`, synchronous active-high reset `rst`.
    - `ports`: name to `{direction, width, shape}`; see `describe` for the shape.
    """

    name: str
    verilog: str
    ports: dict[str, dict[str, Any]]

    @property
    def signal_map(self) -> str:
        """The ports as JSON text."""
        return json.dumps({"top": self.name, "ports": self.ports}, indent=2) + "\n"

    def write(self, directory: Path) -> tuple[Path, Path]:
        """Write `NAME.v` and `NAME.json` into `directory` and return their paths."""
        directory.mkdir(parents=True, exist_ok=True)
        files = directory / f"{self.name}.v", directory / f"{self.name}.json"
        for file, text in zip(files, (self.verilog, self.signal_map), strict=True):
            file.write_text(text)
        return files


def emit(component: wiring.Component, name: str) -> Emission:
    """Return `component` as Verilog with the top module `name`, and its ports; macros come with their models."""
    verilog = _verilog(to_rtlil(component, name))
    for macro in MACROS:
        if f"{macro.MACRO} #(" in verilog:
            verilog += "\n" + macro.MODEL.read_text()
    return Emission(name=name, verilog=verilog, ports=_ports(component))


def to_rtlil(component: wiring.Component, name: str) -> str:
    """Return `component` as RTLIL with the top module `name`, and no word of where the source lies."""
    directions = {In: PortDirection.Input, Out: PortDirection.Output}
    texts: list[str] = []
    with _uncollected():
        for module, part, fragment in Modules(component, name).fragments():
            ports = {port: (Value.cast(value), directions[member.flow]) for port, member, value in flat_ports(part)}
            text = rtlil.convert(fragment, name=module, ports=ports, emit_src=False)
            texts.append(text.replace("attribute \\top 1\n", "", 1) if texts else text)
    return "".join(texts)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let garbage be: a conversion makes objects by the million and hardly any of it, and is a third faster."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def describe(shape: Any) -> dict[str, Any]:
    """Return a shape as plain data.

    `{"width": w}`, and for a number `"signed"`, for an enumeration `"members"` (name to value), for a structure
    `"fields"` (name to shape, each with its `"offset"` in bits), for an array `"length"` and `"element"`.
    """
    if isinstance(shape, type) and issubclass(shape, data.View):
        shape = data.Layout.cast(shape)
    width = Shape.cast(shape).width
    if isinstance(shape, data.ArrayLayout):
        return {"width": width, "length": shape.length, "element": describe(shape.elem_shape)}
    if isinstance(shape, data.Layout):
        return {"width": width, "fields": {str(key): describe(f.shape) | {"offset": f.offset} for key, f in shape}}
    if isinstance(shape, enum.EnumMeta):
        return {"width": width, "members": {member.name: member.value for member in shape}}
    return {"width": width, "signed": Shape.cast(shape).signed}


def _ports(component: wiring.Component) -> dict[str, dict[str, Any]]:
    """Return every port of the top module, clock and reset left out."""
    ports = {}
    for port, member, _ in flat_ports(component):
        shape = describe(member.shape)
        ports[port] = {"direction": "in" if member.flow is In else "out", "width": shape["width"], "shape": shape}
    return ports


def _verilog(text: str) -> str:
    """Return RTLIL as Verilog; without attributes, so that equal designs are equal text wherever they lie."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "design.il"), Path(directory, "design.v")
        source.write_text(text)
        run_yosys(f"read_rtlil {source}", *PASSES, f"write_verilog -noattr {target}")
        return target.read_text()


def run_yosys(*commands: str) -> str:
    """Run Yosys commands on a new design and return their log. Raises KvnodeError with the end of it on failure.

    A process of its own: Yosys numbers nets through the life of a process, and ends it at an error.
    """
    command = [sys.executable, "-c", YOSYS, *commands]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise KvnodeError(f"yosys failed: {' '.join((result.stdout + result.stderr).split()[-40:])}")
    return result.stdout


YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    design.run_pass(command)
"""
