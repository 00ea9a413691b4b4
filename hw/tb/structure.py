"""What holds for the netlist of a component, whatever its stimulus."""

import tempfile
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

from hw.rtl.emit import run_yosys


def combinational_inputs(component: wiring.Component, outputs: str, inputs: str) -> list[str]:
    """Return the input ports matching `inputs` that reach an output port matching `outputs` without a register.

    Patterns are those of the shell, as in `*__valid`. A memory counts as a register: its reads are synchronous.
    """
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "design.il")
        source.write_text(rtlil.convert(component, name="top"))
        log = run_yosys(
            *(f"tee -q {command}" for command in (f"read_rtlil {source}", "proc", "memory_collect", "flatten")),
            f"select -list o:{outputs} %ci*:-$dff,$adff,$mem_v2 i:{inputs} %i",
        )
    return sorted(line.removeprefix("top/") for line in log.splitlines())
