"""The command line of `kvnode replay`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
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
from scripts.replay.backends import BACKENDS, Waves, check_backend, make_transport
from scripts.replay.checks import failed_checks
from scripts.replay.clocked import ClockedTransport
from scripts.replay.following import compared, follow
from scripts.replay.report import PLOTS, number, page
from scripts.replay.run import Replay, check_sessions
from scripts.replay.stats import lookup, statistics
from scripts.replay.timeline import timeline
from scripts.replay.workload import Workload
from scripts.report import OutputFolder

_WAVES = "waves.vcd"
_FILES = ("stats.json", "report.html", "timeline.json", _WAVES, *(f"{name}.svg" for name in PLOTS))
_SUMMARY = (
    *("requests", "failed_requests", "retired_requests", "block_lookups", "hit_rate", "prefix_hit_rate"),
    *("lru_prefix_hit_rate", "optimum_prefix_hit_rate", "stored_blocks", "evictions", "bytes_read", "bytes_written"),
    *("worn_frames", "worn_sessions", "worn_pins", "wrong_bytes"),
    *("cycles", "read_latency_cycles.p50", "read_latency_cycles.p99", "stall_cycles", "wall_seconds"),
)
_IF_ANY = (
    *("failed_requests", "retired_requests", "worn_frames", "worn_sessions", "worn_pins"),
    *("cycles", "read_latency_cycles.p50", "read_latency_cycles.p99", "stall_cycles"),
)
"""Statistics that are shown when they are not zero."""


@click.command("replay")
@click.argument("trace", metavar="TRACE")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Parameters (TOML).")
@click.option("--set", "overrides", metavar="K=V", multiple=True, help="Change one parameter; may be repeated.")
@click.option("--backend", default="spec", show_default=True, metavar="NAME", help=f"One of: {', '.join(BACKENDS)}.")
@click.option("--limit", type=int, metavar="N", help="Replay only the first N requests.")
@click.option("--waves", metavar="FROM:TO", help="Write the waves of these cycles (VCD); rtl.")
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
    waves: str | None,
    out: Path | None,
) -> None:
    """Run TRACE (Mooncake JSON lines, plain or gzip) through driver and backend, and compare every byte.

    Writes stats.json, plots and report.html. What a backend with a clock decides, the specification repeats after it,
    and both are compared; a timeline for Perfetto is written too. Ends with 1 when a byte is wrong, counters disagree
    or the specification differs, with 130 when interrupted: what was done until then is written.
    """
    before = signal.signal(signal.SIGTERM, _terminated)
    ctx.call_on_close(lambda: signal.signal(signal.SIGTERM, before))
    params = load_params(config, overrides)
    window = _window(waves)
    check_backend(backend, waves=window is not None)
    workload = Workload(load_trace(trace, limit, block_tokens=params.replay.block_tokens), params)
    check_sessions(params)
    again = _again(trace, config, overrides, backend, limit)
    about = {"backend": backend, "trace": trace, "command": again, "git_rev": git_rev()}
    stem = Path(trace).name.split(".")[0] or "trace"
    out = out or Path("build", "replay", f"{stem}-{params.hash}")
    results: _Results | None = None
    lost = ""
    try:
        with OutputFolder(out, _FILES, _is_result) as folder:
            wanted = None if window is None else Waves(folder / _WAVES, *window)
            with closing(make_transport(backend, params, wanted)) as transport:
                replay = Replay(workload, params, transport)
                with _interruptible(replay), _progress("replay", len(workload)) as ended:
                    replay.run(ended)
                results = _results(replay, about)
            _write(folder, results.files)
    except OSError as error:
        if results is None:
            raise
        lost = f"{out}: {error.strerror}, the results could not be written there; {_keep(results.files)}"
    stats, failed = results.stats, results.stats["failed_checks"]
    lines = [*stats["hints"], *([] if lost else [f"report: {out / 'report.html'}"])]
    if window is not None and stats["cycles"] <= window[0]:
        lines.append(f"no waves: the run ended after {stats['cycles']:,} cycles, before cycle {window[0]:,}")
    unread = _say(_summary(results) + "".join(f"{line}\n" for line in lines))
    if failed:
        more = f" (and {len(failed) - 1} more, see {out / 'stats.json'})" if failed[1:] else ""
        click.echo(f"kvnode: check failed: {failed[0]}{more}; run again: {again}", err=True)
        ctx.exit(1)
    if lost or unread:
        raise InputError(lost or f"standard output: {unread}; the results are in {out}")
    if not replay.complete:
        click.echo(f"kvnode: interrupted after {stats['requests']:,} of {len(workload):,} requests", err=True)
        ctx.exit(130)
    if results.alone:
        click.echo("kvnode: interrupted while the specification followed: nothing is compared", err=True)
        ctx.exit(130)


def _window(waves: str | None) -> tuple[int, int] | None:
    """The cycles that ``--waves`` asks for."""
    if waves is None:
        return None
    begin, _, end = waves.partition(":")
    if not (begin.isdecimal() and end.isdecimal() and int(begin) < int(end) < 1 << 64):
        raise InputError(f"--waves {waves}: expected two cycles FROM:TO, the first before the second, of 64 bits")
    return int(begin), int(end)


@dataclass(slots=True)
class _Results:
    """What there is to show.

    - ``stats``: what is in ``stats.json``; ``beside``: the same of the specification that followed, if it came so far.
    - ``files``: the text of each output file.
    - ``alone``: the specification was to follow, but was interrupted.
    """

    stats: dict[str, Any]
    beside: dict[str, Any] | None = None
    files: dict[str, str] = field(default_factory=dict)
    alone: bool = False


def _results(replay: Replay, about: dict[str, Any]) -> _Results:
    """Judge a run, have the specification follow it if it was recorded, and make the report."""
    blocks = replay.workload.blocks(sorted(replay.history.numbers))
    lru, optimum = lru_curve(blocks), optimum_curve(blocks)
    device = replay.device.transport
    timing = device.timing if isinstance(device, ClockedTransport) else None
    results = _Results(statistics(replay, about, failed_checks(replay), lru, optimum, timing=timing))
    if isinstance(device, ClockedTransport):
        _follow(results, replay, device, lambda second: statistics(second, about, failed_checks(second), lru, optimum))
    report, drawings = page(replay, results.stats, lru, optimum, timing)
    results.files = {"stats.json": json.dumps(results.stats, indent=2) + "\n", "report.html": report.html()}
    results.files |= {f"{name}.svg": svg for name, svg in drawings.items()}
    if timing is not None:
        results.files["timeline.json"] = timeline(timing, replay.visits)
    return results


def _follow(
    results: _Results, replay: Replay, device: ClockedTransport, judge: Callable[[Replay], dict[str, Any]]
) -> None:
    """Have the specification follow, and put into the results how it compares."""
    recording, stats = device.recorder.recording, results.stats
    try:
        with _progress("specification", stats["requests"]) as ended:
            second = follow(replay, recording, judge, ended)
    except KeyboardInterrupt:
        results.alone = True
        return
    stats["following"] = section = compared(stats, second, len(recording))
    if not section["identical"]:
        stats["failed_checks"].append(f"the specification differs: {section['difference']}")
    if isinstance(second, dict):
        results.beside = second


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


def _difference(value: Any, other: Any, name: str) -> str:
    """Between two runs; nothing where only one has such."""
    if other is None or name == "wall_seconds":
        return ""
    return number(value - other, name) if value != other else "0"


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
        replay.interrupted = True
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
def _progress(what: str, requests: int) -> Iterator[Any]:
    """A bar on a terminal, nothing elsewhere; gives what is to be called after each request."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=requests)
        yield lambda: progress.advance(task)


def _summary(results: _Results) -> str:
    """A table; with what the specification had, following, and how far that is away."""
    stats, beside = results.stats, results.beside
    title = f"{Path(stats['trace']).name} on {stats['backend']}, {stats['capacity_frames']:,} frames"
    table = Table(title=title if beside is None else f"{title}; the specification follows")
    table.add_column("statistic", no_wrap=True)
    for column in ("value",) if beside is None else (stats["backend"], "specification", "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("unit")
    units = {statistic.name: statistic.unit for statistic in STATISTICS}
    for name in _SUMMARY:
        value = lookup(stats, name)
        if name in _IF_ANY and not value:
            continue
        cells = [number(value, name)]
        if beside is not None:
            other = lookup(beside, name)
            cells += [number(other, name), _difference(value, other, name)]
        table.add_row(name, *cells, units[name])
    console = Console()
    with console.capture() as captured:
        console.print(table)
    return captured.get()
