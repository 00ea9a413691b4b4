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
    - `block_rams`: RAMB18.
    """

    name: str
    entries: int
    bits: int
    luts: int
    flip_flops: int = 0
    block_rams: int = 0

    @property
    def entry_bits(self) -> int:
        """Bits compared."""
        return self.entries * self.bits

    def luts_for(self, entry_bits: int) -> float:
        """Return the LUTs of one with so many entries x bits, in proportion."""
        return self.luts / self.entry_bits * entry_bits

    def flip_flops_for(self, entry_bits: int) -> float:
        """Return the flip-flops of one with so many entries x bits, in proportion."""
        return self.flip_flops / self.entry_bits * entry_bits

    def block_rams_for(self, entry_bits: int) -> float:
        """Return the RAMB18 of one with so many entries x bits, in proportion."""
        return self.block_rams / self.entry_bits * entry_bits


REGISTERS = ExactCam(name="register CAM", entries=64, bits=96, luts=7_700, flip_flops=6_300)
"""On ECP5; measured by `tests/hw/test_synth.py::test_register_cam`."""

SLICED = ExactCam(name="BRAM-sliced CAM", entries=1_024, bits=64, luts=33_000, block_rams=399)
"""On AMD; as published."""

EXACT = (REGISTERS, SLICED)


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
    """Return block CAMs by frames, exact CAMs as measured, and exact CAMs of the same capacities as computed."""
    lines: list[tuple[str, Callable[[Area], float], dict[ExactCam, float]]] = [
        ("entry bits", lambda one: one.entry_bits, {cam: cam.entry_bits for cam in EXACT}),
        ("LUT4", lambda one: one.ecp5.luts, {REGISTERS: REGISTERS.luts}),
        ("LUT4 levels", lambda one: one.ecp5.levels, {}),
        ("flip-flops", lambda one: one.ecp5.flip_flops, {REGISTERS: REGISTERS.flip_flops}),
        ("LUT RAMs", lambda one: one.ecp5.lut_rams, {}),
        ("LUT6", lambda one: one.xcup.luts, {SLICED: SLICED.luts}),
        ("LUT6 levels", lambda one: one.xcup.levels, {}),
        ("memory bits", lambda one: one.memory_bits, {SLICED: 18 * 1_024 * SLICED.block_rams}),
        ("RAMB18", lambda one: one.ramb18, {SLICED: SLICED.block_rams}),
        ("memory bits a frame", lambda one: one.memory_bits / one.frames, {}),
        ("LUT4 an entry bit", lambda one: one.ecp5.luts / one.entry_bits, {REGISTERS: REGISTERS.luts_for(1)}),
        ("LUT6 an entry bit", lambda one: one.xcup.luts / one.entry_bits, {SLICED: SLICED.luts_for(1)}),
        ("register CAM, computed: LUT4", lambda one: REGISTERS.luts_for(one.entry_bits), {}),
        ("register CAM, computed: flip-flops", lambda one: REGISTERS.flip_flops_for(one.entry_bits), {}),
        ("BRAM-sliced CAM, computed: LUT6", lambda one: SLICED.luts_for(one.entry_bits), {}),
        ("BRAM-sliced CAM, computed: RAMB18", lambda one: SLICED.block_rams_for(one.entry_bits), {}),
    ]
    return Sheet(
        name="area",
        title=f"Area of the block CAM, tags of {tag_bits(load_params())} bits with ECC, and of exact CAMs",
        columns=(
            "",
            *(f"{one.frames:,} frames" for one in found),
            *(f"{cam.name} {cam.entries:,} x {cam.bits}" for cam in EXACT),
        ),
        rows=[
            (
                name,
                *(_number(value(one)) for one in found),
                *(_number(measured[cam]) if cam in measured else "" for cam in EXACT),
            )
            for name, value, measured in lines
        ],
        note="Entry bits: frames x bits of a tag. LUT4, flip-flops and LUT RAMs on ECP5, LUT6 on UltraScale+. Banks of"
        " up to 64 Kibit are mapped, to LUT RAMs and their registers; bigger ones are macros. RAMB18 follows from the"
        " shape of the SRAMs. Computed is what was measured of exact CAMs, in proportion to entry bits.",
    )


def plot(axes: Axes, found: Sequence[Area]) -> None:
    """Draw LUTs by frames: the block CAM as synthesised, exact CAMs as measured, and in proportion from there."""
    frames = [one.frames for one in found]
    bits = tag_bits(load_params())
    axes.loglog(frames, [one.ecp5.luts for one in found], "o-", color=COLORS["blue"], label="block CAM, LUT4")
    axes.loglog(frames, [one.xcup.luts for one in found], "s-", color=COLORS["green"], label="block CAM, LUT6")
    for exact, color, unit in ((REGISTERS, COLORS["orange"], "LUT4"), (SLICED, COLORS["red"], "LUT6")):
        label = f"{exact.name}, {unit}: \N{BLACK DIAMOND} measured, in proportion"
        axes.loglog(frames, [exact.luts_for(one.entry_bits) for one in found], "--", color=color, lw=1, label=label)
        axes.loglog([exact.entry_bits / bits], [exact.luts], "D", color=color)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xticks(frames)
    axes.set_xlabel(f"frames, each with a tag of {bits} bits")
    axes.set_ylabel("LUTs")
    axes.legend(fontsize=8)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
