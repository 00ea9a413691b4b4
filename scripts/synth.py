"""`kvnode synth`: size and logic depth of blocks."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from hw.params import load_params
from hw.rtl.blocks import BLOCKS, PARTS
from hw.synth import FAMILIES, Report, synthesise
from scripts.provenance import git_rev

HEADINGS = {
    "block": "block",
    "number": "number",
    "luts": "LUTs",
    "flip_flops": "flip-flops",
    "memory_bits": "memory bits",
    "macro_bits": "in macros",
    "block_rams": "BRAMs",
    "lut_rams": "LUT RAMs",
    "levels": "levels",
}
"""Columns of the table, by field of a report, but for the number of them that a slice has."""

MADE = ("slice", "node", "system")
"""Blocks that are made of the others."""

BUILDS = BLOCKS | {name: part.build for name, part in PARTS.items()}


@click.command()
@click.argument("blocks", metavar="[BLOCK]...", nargs=-1, type=click.Choice(sorted(BUILDS)))
@click.option("--config", type=click.Path(path_type=Path), help="Parameter file (TOML).")
@click.option("--set", "overrides", metavar="K=V", multiple=True, help="Change one parameter; may be repeated.")
@click.option("--family", type=click.Choice(sorted(FAMILIES)), default="ecp5", show_default=True, help="FPGA family.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def synth(blocks: tuple[str, ...], config: Path | None, overrides: tuple[str, ...], family: str, as_json: bool) -> None:
    """Synthesise each BLOCK for an FPGA family and count LUTs, registers, memory and logic levels.

    Without a BLOCK, all are, but for slice, node and system, which are made of them. Lanes and ports are parts of data:
    a slice has one for each memory channel, or for each port. A node of several slices has a fan for each port.
    """
    params = load_params(config, overrides)
    reports: list[Report] = []
    blocks = blocks or tuple(block for block in BLOCKS if block not in MADE)
    with Console(stderr=True).status("") as status:
        for block in blocks:
            status.update(f"{block} ({len(reports) + 1} of {len(blocks)})")
            reports.append(synthesise(BUILDS[block](params), block, family))
    rows = [
        asdict(each) | {"number": PARTS[each.block].number(params) if each.block in PARTS else 1} for each in reports
    ]
    if as_json:
        click.echo(json.dumps({"blocks": rows, "params_hash": params.hash, "git_rev": git_rev()}))
    else:
        Console().print(_table(rows, f"{family}, parameters {params.hash}"))
        for report in reports:
            click.echo(f"{report.block}: longest path from {report.path_start} to {report.path_end}")


def _table(rows: list[dict[str, Any]], title: str) -> Table:
    table = Table(title=title, padding=(0, 0))
    for column, heading in HEADINGS.items():
        table.add_column(heading, justify="left" if column == "block" else "right")
    for row in rows:
        values = (row[column] for column in HEADINGS)
        table.add_row(*(f"{value:,}" if isinstance(value, int) else value for value in values))
    return table
