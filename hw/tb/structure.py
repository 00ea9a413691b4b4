"""What holds for the netlist of a component, whatever its stimulus."""

import re
import tempfile
from pathlib import Path

from amaranth.lib import wiring

from hw.params import KvnodeError
from hw.rtl.emit import run_yosys, to_rtlil


def combinational_inputs(component: wiring.Component, outputs: str, inputs: str) -> list[str]:
    """Return the input ports matching `inputs` that reach an output port matching `outputs` without a register.

    Patterns are those of the shell, as in `*__valid`. A memory counts as a register: its reads are synchronous.
    """
    search = f"select -list o:{outputs} %ci*:-$dff,$adff,$mem_v2 i:{inputs} %i"
    log = _yosys(component, ("proc", "memory_collect", "flatten"), search)
    return sorted(line.removeprefix("top/") for line in log.splitlines())


def lut4_levels(component: wiring.Component) -> int:
    """Return the most four-input look-up tables in a row on any path between ports, registers and memories.

    The mapping is for depth: Yosys's own script shares terms of wide parities and takes up to twice as many levels.
    """
    passes = (
        *("proc", "flatten", "opt -full", "wreduce", "alumacc", "opt", "memory_collect", "opt -full"),
        *("techmap t:$mem_v2 %n", "opt", "abc -lut 4 -script +strash;dch;if;mfs2", "opt_clean"),
    )
    length = re.search(r"Longest topological path in \S+ \(length=(\d+)\)", _yosys(component, passes, "ltp -noff"))
    if not length:
        raise KvnodeError("yosys reported no longest path")
    return int(length[1])


def _yosys(component: wiring.Component, passes: tuple[str, ...], question: str) -> str:
    """Return what Yosys answers to `question` about the component after `passes`."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "design.il")
        source.write_text(to_rtlil(component, "top"))
        return run_yosys(*(f"tee -q {command}" for command in (f"read_rtlil {source}", *passes)), question)
