"""The command line of `kvnode replay`."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hw.params import load_params
from hw.params.statistics import STATISTICS
from pymodel.trace import load_trace, lru_curve, optimum_curve
from scripts.provenance import git_rev
from scripts.replay.backends import BACKENDS, make_transport
from scripts.replay.checks import failed_checks
from scripts.replay.report import PLOTS, lookup, number, page
from scripts.replay.run import Replay
from scripts.replay.stats import statistics
from scripts.replay.workload import Workload
from scripts.report import OutputFolder

_FILES = ("stats.json", "report.html", *(f"{name}.svg" for name in PLOTS))
_SUMMARY = (
    *("requests", "failed_requests", "retired_requests", "block_lookups", "hit_rate", "prefix_hit_rate"),
    *("lru_prefix_hit_rate", "optimum_prefix_hit_rate", "stored_blocks", "evictions", "bytes_read", "bytes_written"),
    *("wrong_bytes", "wall_seconds"),
)


@click.command("replay")
@click.argument("trace", metavar="TRACE")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Parameters (TOML).")
@click.option("--set", "overrides", metavar="K=V", multiple=True, help="Change one parameter; may be repeated.")
@click.option("--backend", default="spec", show_default=True, metavar="NAME", help=f"One of: {', '.join(BACKENDS)}.")
@click.option("--limit", type=int, metavar="N", help="Replay only the first N requests.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder [default: build/replay/TRACE-PARAMETERS]."
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    trace: str,
    config: Path | None,
    overrides: tuple[str, ...],
    backend: str,
    limit: int | None,
    out: Path | None,
) -> None:
    """Run TRACE (Mooncake JSON lines, plain or gzip) through driver and backend, and compare every byte.

    Writes stats.json, plots and report.html. Ends with 1 when a byte is wrong or counters disagree, with 130 when
    interrupted: what was done until then is written.
    """
    params = load_params(config, overrides)
    transport = make_transport(backend, params)
    workload = Workload(load_trace(trace, limit, block_tokens=params.replay.block_tokens), params)
    replay = Replay(workload, params, transport)
    again = _again(trace, config, overrides, backend, limit)
    about = {"backend": backend, "trace": trace, "command": again, "git_rev": git_rev()}
    stem = Path(trace).name.split(".")[0] or "trace"
    out = out or Path("build", "replay", f"{stem}-{params.hash}")
    with OutputFolder(out, _FILES) as folder:
        with _interruptible(replay), _progress(replay) as ended:
            replay.run(ended)
        failed = failed_checks(replay)
        stats = _write(folder, replay, about, failed)
    transport.close()
    Console().print(_summary(stats))
    click.echo(f"report: {out / 'report.html'}")
    if failed:
        more = f" (and {len(failed) - 1} more, see {out / 'stats.json'})" if failed[1:] else ""
        click.echo(f"kvnode: check failed: {failed[0]}{more}; run again: {again}", err=True)
        ctx.exit(1)
    if not replay.complete:
        click.echo(f"kvnode: interrupted after {stats['requests']:,} of {len(workload):,} requests", err=True)
        ctx.exit(130)


def _write(folder: Path, replay: Replay, about: dict[str, Any], failed: list[str]) -> dict[str, Any]:
    """All output files; returns what is in ``stats.json``."""
    blocks = replay.workload.blocks()
    lru, optimum = lru_curve(blocks), optimum_curve(blocks)
    stats = statistics(replay, about, failed, lru, optimum)
    report, drawings = page(replay, stats, lru, optimum)
    (folder / "stats.json").write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(report.html(), encoding="utf-8")
    for name, svg in drawings.items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    return stats


def _again(trace: str, config: Path | None, overrides: tuple[str, ...], backend: str, limit: int | None) -> str:
    """The command line that gives the same run."""
    words = ["kvnode", "replay", trace]
    words += ["--config", str(config)] if config else []
    words += [word for override in overrides for word in ("--set", override)]
    words += ["--backend", backend]
    words += ["--limit", str(limit)] if limit else []
    return shlex.join(words)


@contextmanager
def _interruptible(replay: Replay) -> Iterator[None]:
    """The first Ctrl-C lets requests in flight end, so that what was done can be checked; the next one stops all."""

    def stop(number: int, frame: FrameType | None) -> None:
        replay.stop = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Rate(ProgressColumn):
    """Requests a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} requests/s")


@contextmanager
def _progress(replay: Replay) -> Iterator[Any]:
    """A bar on a terminal, nothing elsewhere; gives what is to be called after each request."""
    console = Console(stderr=True)
    columns = (TextColumn("replay"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("replay", total=len(replay.workload))
        yield lambda: progress.advance(task)


def _summary(stats: dict[str, Any]) -> Table:
    table = Table(title=f"{Path(stats['trace']).name} on {stats['backend']}, {stats['capacity_frames']:,} frames")
    table.add_column("statistic")
    table.add_column("value", justify="right")
    table.add_column("unit")
    units = {statistic.name: statistic.unit for statistic in STATISTICS}
    for name in _SUMMARY:
        table.add_row(name, number(lookup(stats, name), name), units[name])
    return table
