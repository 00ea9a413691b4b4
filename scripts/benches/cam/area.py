"""Area of the block CAM by number of frames, beside that of exact CAMs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from hw.params import Params, load_params
from hw.params.toeplitz import tag_bits
from hw.rtl.node.cam import Cam
from hw.rtl.node.cam.entry import EntryFormat
from hw.synth import Report, synthesise
from hw.synth.flow import BUILD
from scripts.benches import Figure, Sheet
from scripts.report import COLORS

FRAMES = (64, 1_024, 65_536, 1_048_576)

RAMB18 = ((36, 512), (18, 1_024), (9, 2_048), (4, 4_096), (2, 8_192), (1, 16_384))
"""Bits and rows of a block RAM of 18 Kibit, in its shapes with one port to write and one to read."""


@dataclass(frozen=True, kw_only=True)
class ExactCam:
    """A measured CAM that compares every entry in every lookup; its cost is proportional to entries x bits.

    - `luts`: on ECP5 of four inputs, on AMD of up to six.
    """

    name: str
    entries: int
    bits: int
    luts: int
    flip_flops: int | None = None
    block_rams: int | None = None

    def luts_for(self, entry_bits: int) -> float:
        """Return the LUTs of one with so many entries x bits, in proportion."""
        return self.luts / (self.entries * self.bits) * entry_bits

    def block_rams_for(self, entry_bits: int) -> float:
        """Return the RAMB18 of one with so many entries x bits, in proportion."""
        return (self.block_rams or 0) / (self.entries * self.bits) * entry_bits


REGISTERS = ExactCam(name="register CAM, ECP5", entries=64, bits=96, luts=7_700, flip_flops=6_300)
"""Measured by `tests/hw/test_synth.py::test_register_cam`."""

SLICED = ExactCam(name="BRAM-sliced CAM, AMD", entries=1_024, bits=64, luts=33_000, block_rams=399)
"""As published; design.md, section 10."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """The block CAM of so many frames.

    - `entry_bits`: frames x bits of a tag, what an exact CAM of the same capacity would have to compare.
    - `ramb18`: block RAMs of 18 Kibit that its SRAMs would take, computed from their shape.
    """

    frames: int
    entry_bits: int
    memory_bits: int
    ramb18: int
    ecp5: Report
    xcup: Report


def area(params: Params, *, build: Path = BUILD) -> Area:
    """Synthesise the block CAM; an equal one of an earlier run is not synthesised again."""
    ecp5, xcup = (synthesise(Cam(params), "cam", family, build=build) for family in ("ecp5", "xcup"))
    cam = params.cam
    lane = ramb18(rows=params.cam_sets, width=EntryFormat(params).layout.size)
    return Area(
        frames=params.frames,
        entry_bits=params.frames * tag_bits(params),
        memory_bits=ecp5.memory_bits,
        ramb18=cam.banks * cam.ways * lane,
        ecp5=ecp5,
        xcup=xcup,
    )


def areas(largest: int, *, progress: Callable[[], Any], build: Path = BUILD) -> list[Area]:
    """Return the area at each of FRAMES that is not beyond `largest`; `progress` hears of each."""
    found = []
    for frames in FRAMES:
        if frames <= largest:
            found.append(area(load_params(None, [f"pools.0.frames={frames}"]), build=build))
        progress()
    return found


def ramb18(*, rows: int, width: int) -> int:
    """Return the block RAMs of 18 Kibit that `rows` of `width` bits take, in the shape that suits best."""
    return min(math.ceil(width / bits) * math.ceil(rows / depth) for bits, depth in RAMB18)


def figures(found: Sequence[Area]) -> list[Figure]:
    """Return the numbers of each size."""
    return [
        Figure(name=f"{name} at {one.frames:,} frames", value=value, unit=unit)
        for one in found
        for name, value, unit in (
            ("area", one.ecp5.luts, "LUT4"),
            ("area, UltraScale+", one.xcup.luts, "LUT6"),
            ("registers", one.ecp5.flip_flops, "flip-flops"),
            ("depth, mapped for area", one.ecp5.levels, "LUT4 levels"),
            ("memory", one.memory_bits, "bits"),
            ("memory a frame", one.memory_bits / one.frames, "bits"),
            ("memory in block RAMs", one.ramb18, "RAMB18"),
            ("area an entry bit", one.ecp5.luts / one.entry_bits, "LUT4"),
            ("register CAM / block CAM", REGISTERS.luts_for(one.entry_bits) / one.ecp5.luts, "x LUT4"),
            ("BRAM-sliced CAM / block CAM", SLICED.luts_for(one.entry_bits) / one.xcup.luts, "x LUT6"),
            ("BRAM-sliced CAM / block CAM, memory", SLICED.block_rams_for(one.entry_bits) / one.ramb18, "x RAMB18"),
        )
    ]


def sheet(found: Sequence[Area]) -> Sheet:
    """Return block CAMs, exact CAMs of the same capacities as computed, and exact CAMs as measured."""
    rows = []
    for one in found:
        rows.append(
            (
                f"block CAM, {one.frames:,} frames",
                *(f"{n:,}" for n in (one.entry_bits, one.ecp5.luts, one.ecp5.flip_flops, one.ecp5.levels)),
                *(f"{n:,}" for n in (one.xcup.luts, one.xcup.levels, one.memory_bits, one.ramb18)),
                f"{one.memory_bits / one.frames:,.0f}",
                _small(one.ecp5.luts / one.entry_bits),
                _small(one.xcup.luts / one.entry_bits),
            )
        )
        rows += [(f"- {exact.name}, computed", *_exact(exact, one.entry_bits, per_bit=False)) for exact in EXACT]
    rows += [
        (f"{exact.name}, {exact.entries:,} x {exact.bits}, measured", *_exact(exact, exact.entries * exact.bits))
        for exact in EXACT
    ]
    return Sheet(
        name="area",
        title="Area of the block CAM (tags of 138 bits, ECC) and of exact CAMs",
        columns=(
            *("CAM", "entry bits", "LUT4", "flip-flops", "levels", "LUT6", "levels", "memory bits", "RAMB18"),
            *("bits a frame", "LUT4 an entry bit", "LUT6 an entry bit"),
        ),
        rows=rows,
        note="Entry bits: frames x bits of a tag. LUT4, flip-flops and levels on ECP5, LUT6 on UltraScale+, mapped for"
        " area. RAMB18 of the block CAM follows from the shape of its SRAMs; what is computed of exact CAMs is"
        " what was measured, in proportion to entry bits.",
    )


EXACT = (REGISTERS, SLICED)


def _exact(exact: ExactCam, entry_bits: int, *, per_bit: bool = True) -> tuple[str, ...]:
    """Return the cells of an exact CAM, all but its name."""
    share = entry_bits / (exact.entries * exact.bits)
    lut4 = exact.block_rams is None
    luts, cost = f"{exact.luts * share:,.0f}", _small(exact.luts / (exact.entries * exact.bits)) if per_bit else ""
    return (
        f"{entry_bits:,}",
        luts if lut4 else "",
        "" if exact.flip_flops is None else f"{exact.flip_flops * share:,.0f}",
        "",
        "" if lut4 else luts,
        "",
        "" if exact.block_rams is None else f"{exact.block_rams * share * 18_432:,.0f}",
        "" if exact.block_rams is None else f"{exact.block_rams * share:,.0f}",
        "",
        cost if lut4 else "",
        "" if lut4 else cost,
    )


def plot(axes: Axes, found: Sequence[Area]) -> None:
    """Draw LUTs by frames: the block CAM as synthesised, exact CAMs as measured, and in proportion from there."""
    frames = [one.frames for one in found]
    bits = tag_bits(load_params())
    axes.loglog(frames, [one.ecp5.luts for one in found], "o-", color=COLORS["blue"], label="block CAM, LUT4")
    axes.loglog(frames, [one.xcup.luts for one in found], "s-", color=COLORS["green"], label="block CAM, LUT6")
    for exact, color, unit in ((REGISTERS, COLORS["orange"], "LUT4"), (SLICED, COLORS["red"], "LUT6")):
        label = f"{exact.name.partition(',')[0]}, {unit}"
        axes.loglog(frames, [exact.luts_for(one.entry_bits) for one in found], "--", color=color, lw=1, label=label)
        axes.loglog([exact.entries * exact.bits / bits], [exact.luts], "D", color=color)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xticks(frames)
    axes.set_xlabel(f"frames, each with a tag of {bits} bits")
    axes.set_ylabel("LUTs")
    axes.legend(fontsize=8)


def _small(value: float) -> str:
    return f"{value:.2g}"
