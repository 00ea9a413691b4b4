"""The report of a replay: plots, and the page they stand in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from hw.params import PRESETS, Params
from hw.params.load import names
from hw.params.statistics import STATISTICS, Statistic
from pymodel.trace import Curve
from scripts.replay import clockplots, plots
from scripts.replay.run import Replay
from scripts.replay.stats import lookup
from scripts.replay.timing import Timing
from scripts.report import Page, Plot, Row, Table, draw

PLOTS = ("hits", "curve", "occupancy", "evictions", "partitions", "slices", "latency", "channels", "in_flight")
"""Names of the drawings; each is a file too. The last three need a clock."""


def page(
    replay: Replay, stats: dict[str, Any], lru: Curve, optimum: Curve, timing: Timing | None = None
) -> tuple[Page, dict[str, str]]:
    """The report, and its drawings by name."""
    drawn = _plots(replay, stats, lru, optimum)
    if timing is not None and timing.spans:
        drawn |= _plots_over_time(timing)
    headline = ("prefix_hit_rate", "hit_rate", "requests", "evictions", "wrong_bytes")
    tables = [_group(stats, group) for group in dict.fromkeys(s.group for s in STATISTICS)]
    report = Page(
        kind="kvnode replay",
        title=Path(stats["trace"]).name,
        alerts=_alerts(stats),
        headline=[
            *((name.replace("_", " "), number(stats[name], name)) for name in headline),
            ("read", _large(stats["bytes_read"])),
            ("written", _large(stats["bytes_written"])),
        ],
        facts=[
            ("backend", stats["backend"]),
            ("frames", f"{stats['capacity_frames']:,}"),
            ("requests in flight", str(replay.params.replay.in_flight)),
            ("seed", str(stats["seed"])),
            ("parameters", stats["params_hash"]),
            ("revision", _short(stats["git_rev"])),
        ],
        command=stats["command"],
        plots=list(drawn.values()),
        tables=[*(table for table in tables if table.rows), _parameters(replay.params)],
    )
    return report, {name: plot.svg for name, plot in drawn.items()}


def _plots(replay: Replay, stats: dict[str, Any], lru: Curve, optimum: Curve) -> dict[str, Plot]:
    history, ledger, tallies = replay.history, replay.ledger, replay.tallies
    capacity, rate = stats["capacity_frames"], stats["prefix_hit_rate"]
    width = plots.window(len(history.references))
    drawings: dict[str, tuple[str, str, Callable[[Axes], None]]] = {
        "hits": (
            "Hits over time",
            f"Thin: prefix hit rate of the last {width:,} requests. Bold: of all requests so far; where it ends is"
            " the figure above.",
            lambda axes: plots.hits_over_time(axes, history),
        ),
        "curve": (
            "Hit rate by capacity",
            "What LRU and the unreachable optimum would hit with any number of frames, one request at a time, without"
            " blocks of outputs, losses and retired models. The dot is this run: what it is below LRU, these, its"
            " schedule, its quotas or its replacement cost.",
            lambda axes: plots.hit_rate_curve(axes, lru, optimum, capacity, rate),
        ),
        "occupancy": (
            "Frames by state",
            "When FREE is used up, every new block evicts another.",
            lambda axes: plots.occupancy(axes, history),
        ),
        "evictions": (
            "Evictions by age",
            "Age in block references of the whole run. Blocks evicted soon after their last hit say that more frames"
            " would help; old and unused ones were no loss.",
            lambda axes: plots.eviction_ages(axes, ledger),
        ),
        "partitions": (
            "Hit rate by partition",
            "Partitions far from the dotted line see other requests, or have too few frames for them.",
            lambda axes: plots.by_partition(axes, tallies),
        ),
        "slices": (
            "Blocks by slice",
            "A slice with more than its share evicts while others have room: what comes first in the chains of this"
            " trace, or its keys, are spread badly by the home map.",
            lambda axes: plots.by_slice(axes, [replay.device.counters(at) for at in replay.device.slices]),
        ),
    }
    wanted = {"partitions": len(tallies) > 1, "evictions": stats["evictions"], "slices": len(replay.device.slices) > 1}
    chosen = [name for name in drawings if wanted.get(name, True)]
    return {
        name: Plot(title=title, reading=reading, svg=draw(plot, title))
        for name, (title, reading, plot) in ((name, drawings[name]) for name in chosen)
    }


def _plots_over_time(timing: Timing) -> dict[str, Plot]:
    drawings: dict[str, tuple[str, str, Callable[..., None]]] = {
        "latency": (
            "Latency by command",
            "From before the doorbell until software saw the completion. A curve far to the right of the others waits"
            " for memory, or for commands before it.",
            clockplots.latencies,
        ),
        "channels": (
            "Use of the memory channels",
            "Beats read and written, per cycle; each way can move one. A row that is fuller than the others says that"
            " blocks are striped badly.",
            clockplots.channels,
        ),
        "in_flight": (
            "Commands in flight",
            "Between doorbell and completion, over all rings. Few of them and idle channels say that requests are short"
            " of things to ask for.",
            clockplots.in_flight,
        ),
    }
    return {
        name: Plot(title=title, reading=reading, svg=draw(partial(plot, timing=timing), title))
        for name, (title, reading, plot) in drawings.items()
    }


def _alerts(stats: dict[str, Any]) -> list[str]:
    alerts = [f"Check failed: {failed}" for failed in stats["failed_checks"]]
    alerts += stats["hints"]
    if not stats["complete"]:
        alerts.append(f"Interrupted after {stats['requests']:,} of {stats['trace_requests']:,} requests.")
    return alerts


def _group(stats: dict[str, Any], group: str) -> Table:
    """The statistics of one group; those of partitions side by side."""
    members = [s for s in STATISTICS if s.group == group]
    if group == "Partitions":
        partitions = stats["partitions"] if len(stats["partitions"]) > 1 else []
        rows = [_partition(s, partitions) for s in members if partitions and not s.name.endswith(".partition")]
        return Table(title=group, rows=rows, columns=[str(partition["partition"]) for partition in partitions])
    rows = []
    for s in members:
        value = lookup(stats, s.name)
        if s.name == "statuses":
            rows += [Row(name=name, values=[f"{n:,}"], unit=s.unit, definition="") for name, n in value.items()]
        elif s.name not in ("params", "command", "hit_rate_definition"):
            strong = s.name in ("hit_rate", "prefix_hit_rate", "wrong_bytes")
            values = [number(value, s.name)]
            rows.append(Row(name=s.name, values=values, unit=s.unit, definition=s.definition, strong=strong))
    title = "Completions by command and status" if group == "Details" else group
    note = f"Hit rates: {stats['hit_rate_definition']}." if group == "Hits" else ""
    return Table(title=title, rows=rows, note=note)


def _partition(statistic: Statistic, partitions: list[dict[str, Any]]) -> Row:
    name = statistic.name.removeprefix("partitions[].")
    values = [number(partition[name], name) for partition in partitions]
    return Row(name=name, values=values, unit=statistic.unit, definition=statistic.definition)


def _parameters(params: Params) -> Table:
    """Every parameter; the eye is caught by those that differ from the preset DEFAULT."""
    rows = []
    for dotted, section in names():
        prefix, name = dotted.rsplit(".", 1)
        about = next(f for f in fields(section) if f.name == name)
        for number_of_pool, pool in enumerate(params.pools if prefix == "pools.0" else [getattr(params, prefix, None)]):
            value = getattr(pool, name)
            label = f"pools.{number_of_pool}.{name}" if prefix == "pools.0" else dotted
            rows.append(
                Row(
                    name=label,
                    values=[json.dumps(value) if isinstance(value, bool | str) else f"{value:,}"],
                    unit=about.metadata["unit"],
                    definition=about.metadata["doc"],
                    strong=value != _default(dotted),
                )
            )
    return Table(title="Parameters", note="Marked: other than in the preset DEFAULT.", rows=rows)


def _default(dotted: str) -> Any:
    value: Any = PRESETS["DEFAULT"]
    for part in dotted.split("."):
        value = value[int(part)] if part.isdecimal() else getattr(value, part)
    return value


def _short(revision: str | None) -> str:
    """As much of a revision as tells it from others."""
    commit, _, dirty = (revision or "unknown").partition("-")
    return f"{commit[:12]}, changed" if dirty else commit[:12]


def _large(value: int) -> str:
    """Bytes in few digits."""
    power = min(4, (len(str(value)) - 1) // 3)
    return f"{value / 1000**power:.{0 if power == 0 else 1}f} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"


def number(value: Any, name: str) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(_entry(entry) for entry in value) or "none"
    if isinstance(value, float):
        return f"{value:.4f}" if name.endswith("rate") else f"{value:,.1f}"
    if isinstance(value, int) and name != "seed":
        return f"{value:,}"
    return str(value)


def _entry(entry: Any) -> str:
    return f"{entry['what']} after {entry['request']:,} requests" if isinstance(entry, dict) else str(entry)
