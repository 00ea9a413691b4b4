"""The command line of `kvnode replay`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
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

from hw.params import InputError, load_params
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
    *("worn_frames", "worn_sessions", "worn_pins", "wrong_bytes", "wall_seconds"),
)
_IF_ANY = ("failed_requests", "retired_requests", "worn_frames", "worn_sessions", "worn_pins")
"""Statistics that are shown when they are not zero."""


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
    before = signal.signal(signal.SIGTERM, _terminated)
    ctx.call_on_close(lambda: signal.signal(signal.SIGTERM, before))
    params = load_params(config, overrides)
    transport = make_transport(backend, params)
    workload = Workload(load_trace(trace, limit, block_tokens=params.replay.block_tokens), params)
    replay = Replay(workload, params, transport)
    again = _again(trace, config, overrides, backend, limit)
    about = {"backend": backend, "trace": trace, "command": again, "git_rev": git_rev()}
    stem = Path(trace).name.split(".")[0] or "trace"
    out = out or Path("build", "replay", f"{stem}-{params.hash}")
    files: dict[str, str] = {}
    lost = ""
    try:
        with OutputFolder(out, _FILES, _is_result) as folder:
            with _interruptible(replay), _progress(replay) as ended:
                replay.run(ended)
            failed = failed_checks(replay)
            stats, files = _results(replay, about, failed)
            _write(folder, files)
    except OSError as error:
        if not files:
            raise
        lost = f"{out}: {error.strerror}, the results could not be written there; {_keep(files)}"
    transport.close()
    lines = [*stats["hints"], *([] if lost else [f"report: {out / 'report.html'}"])]
    unread = _say(_summary(stats) + "".join(f"{line}\n" for line in lines))
    if failed:
        more = f" (and {len(failed) - 1} more, see {out / 'stats.json'})" if failed[1:] else ""
        click.echo(f"kvnode: check failed: {failed[0]}{more}; run again: {again}", err=True)
        ctx.exit(1)
    if lost or unread:
        raise InputError(lost or f"standard output: {unread}; the results are in {out}")
    if not replay.complete:
        click.echo(f"kvnode: interrupted after {stats['requests']:,} of {len(workload):,} requests", err=True)
        ctx.exit(130)


def _results(replay: Replay, about: dict[str, Any], failed: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What is in ``stats.json``, and the text of each output file."""
    blocks = replay.workload.blocks(sorted(replay.history.numbers))
    lru, optimum = lru_curve(blocks), optimum_curve(blocks)
    stats = statistics(replay, about, failed, lru, optimum)
    report, drawings = page(replay, stats, lru, optimum)
    files = {"stats.json": json.dumps(stats, indent=2) + "\n", "report.html": report.html()}
    return stats, files | {f"{name}.svg": svg for name, svg in drawings.items()}


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _keep(files: dict[str, str]) -> str:
    """Results that found no place where they belong go to the folder for temporary files; says where they are."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="kvnode-replay-"))
        _write(folder, files)
    except OSError:
        return "only the table is left"
    return f"they are in {folder}"


def _is_result(folder: Path) -> bool:
    """Whether a folder is of an earlier replay."""
    try:
        stats = json.loads((folder / "stats.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(stats, dict) and {"hit_rate_definition", "params_hash", "wrong_bytes"} <= stats.keys()


def _say(text: str) -> str:
    """Print; returns why it could not be. A reader that has gone has read enough: that is no error."""
    try:
        click.echo(text, nl=False)
        return ""
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered is not tried again at exit
        return "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)


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
    """The first Ctrl-C ends the requests in flight in order, so that all can be checked; the next one stops all."""

    def stop(number: int, frame: FrameType | None) -> None:
        replay.service.stop = True
        restore()

    def restore() -> None:
        for caught, handler in before.items():
            signal.signal(caught, handler)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()


def _terminated(number: int, frame: FrameType | None) -> None:
    """SIGTERM is like Ctrl-C: what is half written goes away."""
    raise KeyboardInterrupt


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


def _summary(stats: dict[str, Any]) -> str:
    table = Table(title=f"{Path(stats['trace']).name} on {stats['backend']}, {stats['capacity_frames']:,} frames")
    table.add_column("statistic")
    table.add_column("value", justify="right")
    table.add_column("unit")
    units = {statistic.name: statistic.unit for statistic in STATISTICS}
    for name in _SUMMARY:
        if name not in _IF_ANY or lookup(stats, name):
            table.add_row(name, number(lookup(stats, name), name), units[name])
    console = Console()
    with console.capture() as captured:
        console.print(table)
    return captured.get()
