"""The block CAM: throughput and latency, logic depth, storage, what a full pool refuses, and area by frames."""

from rich.console import Console
from rich.progress import Progress

from hw.params import InputError, load_params
from hw.rtl.node.cam import Cam
from hw.rtl.node.layouts import directory_bits
from hw.tb.cam.throughput import measure
from hw.tb.structure import lut4_levels
from scripts.benches import Figure, Result
from scripts.benches.cam.area import FRAMES, areas, plot, sheet
from scripts.benches.cam.area import figures as area_figures
from scripts.benches.cam.refusals import refused
from scripts.report import draw

POOL = 65_536
"""Frames of all that is not area."""
STORED = 4_096


def run(
    trace: str | None,
    *,
    lookups: int = 1_000_000,
    seeds: int = 20,
    replacements: int = 2_000_000,
    sampled: int = 100_000,
    largest: int = 1_048_576,
) -> Result:
    """Measures the emitted CAM of 65,536 frames at 5 banks x 8 ways, ECC on; refusals in a model of its placement.

    Throughput, latency and slots are counted under Verilator, every response compared. Logic depth is that of the
    netlist, mapped for depth, between registers, ports and SRAM. The directory is CAM and frame table without ECC,
    against one tag and one frame state a frame. Refusals are counted while a full pool is replaced at random; the
    emitted CAM does so for `sampled` replacements. Area is that of 64 to `largest` frames on ECP5 and UltraScale+.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark cam takes no trace")
    params = load_params(None, [f"pools.0.frames={POOL}"])
    counted = measure(params, lookups=lookups, stored=STORED, seed=0, replacements=sampled)
    directory, least = directory_bits(params)
    figures = [
        Figure.at_least("lookups a cycle", lookups / counted.cycles, "1/cycle", target=1.0, limit=1.0),
        Figure.at_most("latency of a hit", max(counted.hit), "cycles", target=4),
        Figure.at_most("latency of a miss", max(counted.miss), "cycles", target=4),
        Figure.at_most(
            "spread of latencies", max(counted.hit + counted.miss) - min(counted.hit + counted.miss), "cycles", target=0
        ),
        Figure.at_most("slots of an insert", counted.insert_slots, "slots", target=2),
        Figure.at_most("slots of a removal", counted.remove_slots, "slots", target=2, limit=1),
        Figure.at_most("directory / (tag + frame state)", directory / least, "x", target=1.35, limit=1.0),
        Figure.at_most("logic depth with ECC", lut4_levels(Cam(params)), "LUT4 levels", target=12),
    ]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        synthesis = progress.add_task("synthesis", total=len(FRAMES))
        found = areas(largest, progress=lambda: progress.advance(synthesis))
        task = progress.add_task(f"{seeds} seeds", total=seeds * replacements)
        count = refused(
            params, seeds=seeds, replacements=replacements, progress=lambda steps: progress.advance(task, steps)
        )
    figures += [
        Figure.at_most("refused inserts", count, f"of {seeds * (replacements + POOL):,}", target=0),
        Figure.at_most("refused inserts, RTL", counted.refused, f"of {sampled and sampled + POOL:,}", target=0),
        *area_figures(found),
    ]
    return Result(
        figures=figures,
        input=f"{POOL:,} frames, {lookups:,} lookups",
        seed=0,
        params=[params],
        sheets=[sheet(found)] if found else [],
        plots={"area.svg": draw(lambda axes: plot(axes, found), label="LUTs by frames")} if found else {},
    )
