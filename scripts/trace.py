"""`kvnode trace`: describe a trace, invent one, or compute its hit-rate curves."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from hw.params import InputError
from pymodel.trace import (
    BLOCK_TOKENS,
    Curve,
    generate,
    load_trace,
    lru_curve,
    optimum_curve,
    summarize,
    workload_of,
    write_requests,
)
from scripts.outputs import Folder, complete_files

_LONG = 50_000
"""Requests from which writing a trace takes long enough to show progress."""

_limit = click.option(
    "--limit", type=click.IntRange(1, sys.maxsize), metavar="N", help="Read only the first N requests."
)
_block_tokens = click.option(
    "--block-tokens", type=click.IntRange(1), default=BLOCK_TOKENS, show_default=True, help="Tokens of a block."
)


@click.group(invoke_without_command=True)
@click.pass_context
def trace(ctx: click.Context) -> None:
    """Describe a trace, invent one, or compute its hit-rate curves."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@trace.command()
@click.argument("path", metavar="TRACE")
@_limit
@_block_tokens
def info(path: str, limit: int | None, block_tokens: int) -> None:
    """Print the statistics of TRACE (Mooncake JSON lines, plain or gzip)."""
    table = Table(title=path)
    table.add_column("statistic")
    table.add_column("value", justify="right")
    table.add_column("unit")
    for line in summarize(load_trace(path, limit, block_tokens=block_tokens)):
        table.add_row(line.name, _number(line.value), line.unit)
    _print(table)


@trace.command("generate")
@click.option("-o", "--out", required=True, metavar="FILE", help="File to write; gzipped if it ends in .gz.")
@click.option("--requests", type=int, metavar="N", help="Number of requests.")
@click.option("--seed", type=int, metavar="S", help="Equal seeds give equal traces.")
@click.option("--set", "overrides", metavar="K=V", multiple=True, help="Change one parameter; may be repeated.")
def generate_command(out: str, requests: int | None, seed: int | None, overrides: tuple[str, ...]) -> None:
    """Invent a trace; by default one like the public Mooncake conversation trace."""
    given = [f"{name}={value}" for name, value in (("requests", requests), ("seed", seed)) if value is not None]
    workload = workload_of([*overrides, *given])
    lines = track(
        generate(workload),
        description="generating",
        total=workload.requests,
        console=Console(stderr=True),
        transient=True,
        disable=workload.requests < _LONG,
    )
    click.echo(f"{out}: {write_requests(out, lines):,} requests, seed {workload.seed}")


@trace.command()
@click.argument("path", metavar="TRACE")
@click.option("--out", type=Folder(), metavar="DIR", help="Folder for CSV, JSON, PNG and SVG.")
@click.option("--capacities", metavar="N,N,...", help="Frames to list (default: powers of two).")
@_limit
@_block_tokens
def curve(path: str, out: Path | None, capacities: str | None, limit: int | None, block_tokens: int) -> None:
    """Compute the exact hit rates of LRU and of the offline optimum at every capacity."""
    chosen = None if capacities is None else _capacities(capacities)
    loaded = load_trace(path, limit, block_tokens=block_tokens)
    curves = [lru_curve(loaded), optimum_curve(loaded)]
    deepest = curves[0].deepest
    chosen = chosen or [1 << bit for bit in range(8, max(deepest, 256).bit_length() + 1)]
    table = Table(title=f"hits per block reference, {path}")
    for column in ("frames", *(f"{c.policy}, {kind}" for c in curves for kind in ("prefix", "block"))):
        table.add_column(column, justify="right")
    for frames in chosen:
        rates = (rate for c in curves for rate in (c.prefix_hit_rate(frames), c.hit_rate(frames)))
        table.add_row(f"{frames:,}", *(f"{rate:.4f}" for rate in rates))
    if out is not None:  # first, as a table in front of an error would look like success
        _write(out, path, curves, chosen)
    _print(table)
    if out is not None:
        click.echo(f"wrote curve.csv, curve.json, curve.png and curve.svg to {out}")


def _print(table: Table) -> None:
    """Print a table whose title has a file's name, in which nothing is markup."""
    Console(markup=False, emoji=False).print(table)


def _number(value: int | float | Decimal | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}".rstrip("0").rstrip(".")


def _capacities(text: str) -> list[int]:
    try:
        chosen = [int(part) for part in text.split(",")]
    except ValueError:
        chosen = []
    if not chosen or min(chosen) < 1:
        raise InputError(f"--capacities {text}: expected frames from 1 up, for example 4096,16384")
    return chosen


def _write(out: Path, path: str, curves: list[Curve], capacities: list[int]) -> None:
    """`curve.csv` has the hits at every capacity, `curve.json` the rates at the listed ones."""
    from pymodel.trace.plot import draw  # noqa: PLC0415 (matplotlib is slow to import)

    deepest = max(c.deepest for c in curves)
    columns = {"frames": np.arange(deepest + 1)}
    for c in curves:
        for kind, hits in (("prefix", c.prefix_hits), ("block", c.block_hits)):
            columns[f"{c.policy}_{kind}_hits"] = np.pad(hits, (0, deepest - c.deepest), mode="edge")
    report = {
        "trace": path,
        "references": curves[0].references,
        "unlimited_prefix_hit_rate": curves[0].prefix_hit_rate(deepest),
        "rates": [
            {"frames": frames}
            | {f"{c.policy}_prefix_hit_rate": c.prefix_hit_rate(frames) for c in curves}
            | {f"{c.policy}_hit_rate": c.hit_rate(frames) for c in curves}
            for frames in capacities
        ],
    }
    with complete_files(out) as folder:
        table = np.column_stack(list(columns.values()))
        np.savetxt(folder / "curve.csv", table, fmt="%d", delimiter=",", header=",".join(columns), comments="")
        (folder / "curve.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        figure = draw(curves, Path(path).name)
        figure.savefig(folder / "curve.png", dpi=150)
        figure.savefig(folder / "curve.svg", metadata={"Date": None})
