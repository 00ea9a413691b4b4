"""The FPGA families: how Yosys maps to each, and what its cells are."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family.

    - `command`: Yosys command that maps to it, without the name of the top module.
    - `luts`: cell to the number of LUTs that it takes.
    - `flip_flops`, `block_rams`, `lut_rams`: cells.
    - `free`: cell to the inputs that dedicated wires reach: from the LUTs of the same slice, or along a carry chain.
    - `clocked`: clocked cells that are neither flip-flop nor memory.
    - `sampled`: cell that is read between clock edges to the inputs that it looks at only there: what LUTs write when
      they are memory. A path ends at them.
    """

    command: str
    luts: Mapping[str, int]
    flip_flops: frozenset[str]
    block_rams: frozenset[str]
    lut_rams: frozenset[str]
    free: Mapping[str, frozenset[str]]
    clocked: frozenset[str] = frozenset()
    sampled: Mapping[str, frozenset[str]] = field(default_factory=dict)


ECP5 = Family(
    command="synth_ecp5 -noiopad -nowidelut",
    luts={"LUT4": 1, "CCU2C": 2},
    flip_flops=frozenset({"TRELLIS_FF"}),
    block_rams=frozenset({"DP16KD"}),
    lut_rams=frozenset({"TRELLIS_DPR16X4"}),
    free={"CCU2C": frozenset({"CIN"})},
    sampled={"TRELLIS_DPR16X4": frozenset({"DI", "WAD", "WCK", "WRE"})},
)
"""Lattice ECP5: LUTs of four inputs, never joined to wider ones: a level is one LUT4. Block RAMs of 18 Kibit."""

XCUP_LUT_RAMS = frozenset(
    f"RAM{kind}" for kind in ("32M", "32M16", "64M", "64M8", "32X1D", "64X1D", "128X1D", "256X1D")
)

XCUP = Family(
    command="synth_xilinx -family xcup -flatten -noiopad -noclkbuf -nosrl",
    luts={f"LUT{inputs}": 1 for inputs in range(1, 7)},
    flip_flops=frozenset({"FDRE", "FDSE", "FDCE", "FDPE"}),
    block_rams=frozenset({"RAMB18E2", "RAMB36E2", "URAM288"}),
    lut_rams=XCUP_LUT_RAMS,
    free={
        "CARRY4": frozenset({"CI", "CYINIT", "DI", "S"}),
        "CARRY8": frozenset({"CI", "CI_TOP", "DI", "S"}),
        **{f"MUXF{inputs}": frozenset({"I0", "I1"}) for inputs in (7, 8, 9)},
        "INV": frozenset({"I"}),
    },
    clocked=frozenset({"DSP48E2"}),
    sampled=dict.fromkeys(XCUP_LUT_RAMS, frozenset({"WCLK", "WE", "D", *(f"DI{port}" for port in "ABCDEFGH")})),
)
"""AMD UltraScale+: LUTs of up to six inputs; block RAMs of 18 and 36 Kibit. Shift registers stay flip-flops."""

FAMILIES: dict[str, Family] = {"ecp5": ECP5, "xcup": XCUP}
