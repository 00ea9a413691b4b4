"""The plots of a replay."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from hw.params.protocol import FrameState
from pymodel.trace import Curve
from scripts.replay.ledger import Ledger
from scripts.replay.tally import History, Tally
from scripts.report import COLORS

_POINTS = 600
"""Points of a line: as many as a plot has pixels."""

_STATES = {
    FrameState.SEALED: COLORS["blue"],
    FrameState.WRITING: COLORS["orange"],
    FrameState.DRAINING: COLORS["purple"],
    FrameState.QUARANTINED: COLORS["red"],
    FrameState.FREE: COLORS["grey"],
}

_THOUSANDS = StrMethodFormatter("{x:,.0f}")
_PERCENT = FuncFormatter(lambda value, _: f"{100 * value:g} %")


def window(requests: int) -> int:
    """Requests that a rolling rate is taken over: a twenty-fifth of the run."""
    return max(1, requests // 25)


def hits_over_time(axes: Axes, history: History) -> None:
    """Rolling and cumulative hit rates, by requests ended."""
    references, prefix, hits = (np.cumsum(v) for v in (history.references, history.prefix_hits, history.hits))
    requests = len(references)
    width = window(requests)
    at = np.unique(np.linspace(0, requests - 1, min(requests, _POINTS)).astype(int)) if requests else np.array([], int)
    before = np.maximum(at - width, 0)
    spans = np.maximum(references[at] - references[before], 1)
    rolling = (prefix[at] - prefix[before]) / spans
    shown = at >= min(width, requests // 2)
    axes.plot(at[shown] + 1, rolling[shown], color=COLORS["blue"], lw=1, alpha=0.65, label=f"prefix, last {width:,}")
    axes.plot(at + 1, prefix[at] / np.maximum(references[at], 1), color=COLORS["blue"], lw=2, label="prefix, so far")
    if requests and hits[-1] != prefix[-1]:
        rate = hits[at] / np.maximum(references[at], 1)
        axes.plot(at + 1, rate, color=COLORS["orange"], ls="--", label="any block, so far")
    axes.set(xlabel="requests", ylabel="hits per block reference", xlim=(0, max(requests, 1)))
    _mark(axes, history.events)
    axes.set_ylim(0, None)
    axes.xaxis.set_major_formatter(_THOUSANDS)
    axes.yaxis.set_major_formatter(_PERCENT)
    legend(axes)


def hit_rate_curve(axes: Axes, lru: Curve, optimum: Curve, capacity: int, rate: float) -> None:
    """What LRU and the optimum would do at every capacity, and what this run did at its own."""
    deepest = max(2, lru.deepest, optimum.deepest, capacity)
    frames = np.unique(np.geomspace(min(10, deepest), deepest, _POINTS).astype(int))
    for curve, label, color, style in (
        (optimum, "optimum", COLORS["green"], "-"),
        (lru, "LRU", COLORS["grey"], "-"),
    ):
        rates = curve.prefix_hits[np.minimum(frames, curve.deepest)] / max(curve.references, 1)
        axes.plot(frames, rates, style, color=color, label=label)
    axes.axvline(capacity, color=COLORS["blue"], lw=0.8, ls=":")
    axes.plot([capacity], [rate], "o", color=COLORS["blue"], ms=7, label=f"this run, {100 * rate:.2f} %", zorder=5)
    logarithmic(axes, "frames")
    axes.set(ylabel="prefix hits per block reference")
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(_PERCENT)
    legend(axes)


def occupancy(axes: Axes, history: History) -> None:
    """Frames by state, stacked."""
    samples = np.array(history.occupancy, float).reshape(-1, 1 + len(FrameState))
    shown = [state for state in _STATES if samples[:, 1 + state].any()]
    axes.stackplot(
        samples[:, 0],
        [samples[:, 1 + state] for state in shown],
        colors=[_STATES[state] for state in shown],
        labels=[state.name for state in shown],
        alpha=0.8,
        lw=0,
    )
    _mark(axes, history.events, named=False)
    axes.set(xlabel="requests", ylabel="frames", xlim=(0, max(1, samples[-1, 0])))
    axes.set_ylim(0, samples[0, 1:].sum())
    axes.xaxis.set_major_formatter(_THOUSANDS)
    axes.yaxis.set_major_formatter(_THOUSANDS)
    legend(axes, columns=len(shown))


def eviction_ages(axes: Axes, ledger: Ledger) -> None:
    """How old blocks were when they were evicted, and how long nobody had asked for them."""
    edges = _edges(np.maximum([*ledger.ages, *ledger.idle], 1))
    for values, label, color in (
        (ledger.ages, "since stored", COLORS["blue"]),
        (ledger.idle, "since stored or last hit", COLORS["orange"]),
    ):
        counts, _ = np.histogram(np.maximum(values, 1), edges)
        axes.stairs(counts, edges, color=color, lw=1.6, label=label)
    logarithmic(axes, "block references")
    axes.set(ylabel="evictions")
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(_THOUSANDS)
    legend(axes)


def by_partition(axes: Axes, tallies: Sequence[Tally]) -> None:
    """Hit rates of the partitions, side by side."""
    places = np.arange(len(tallies))
    for offset, label, color, rates in (
        (-0.2, "prefix", COLORS["blue"], [tally.prefix_hit_rate for tally in tallies]),
        (0.2, "any block", COLORS["orange"], [tally.hit_rate for tally in tallies]),
    ):
        axes.bar(places + offset, rates, 0.36, color=color, label=label)
    axes.axhline(Tally.total(tallies).prefix_hit_rate, color=COLORS["blue"], lw=1, ls=":", label="prefix, all")
    axes.grid(axis="x", visible=False)
    axes.set(xlabel="partition", ylabel="hits per block reference")
    axes.set_xticks(places[:: max(1, len(places) // 16)])
    axes.set_xlim(-0.7, len(tallies) - 0.3)
    axes.yaxis.set_major_formatter(_PERCENT)
    legend(axes)


def by_slice(axes: Axes, counters: Sequence[Mapping[str, int]]) -> None:
    """Blocks of each slice, side by side."""
    places = np.arange(len(counters))
    for offset, label, color, name in (
        (-0.27, "granted", COLORS["orange"], "status_granted"),
        (0.0, "evicted", COLORS["purple"], "evictions"),
        (0.27, "sealed at the end", COLORS["blue"], "frames_sealed"),
    ):
        axes.bar(places + offset, [each[name] for each in counters], 0.25, color=color, label=label)
    axes.grid(axis="x", visible=False)
    axes.set(xlabel="slice", ylabel="blocks")
    axes.set_xticks(places)
    axes.yaxis.set_major_formatter(_THOUSANDS)
    legend(axes)


def _edges(ages: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bins of equal width on a logarithmic axis, none narrower than one reference."""
    low, high = (int(ages.min()), int(ages.max()) + 1) if len(ages) else (1, 2)
    edges = np.unique(np.round(np.geomspace(low, high, 48)))
    return edges if len(edges) > 1 else np.array([low, low + 1.0])


def logarithmic(axes: Axes, label: str) -> None:
    """A logarithmic abscissa with whole numbers at 1, 2 and 5."""
    axes.set_xscale("log")
    axes.set_xlabel(label)
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
    axes.xaxis.set_major_formatter(_THOUSANDS)
    axes.xaxis.set_minor_formatter(NullFormatter())


def _mark(axes: Axes, events: Sequence[tuple[int, str]], *, named: bool = True) -> None:
    """Vertical lines where something was done to the device; names of neighbours at different heights."""
    heights = [1.0]
    for (before, _), (after, _) in pairwise(events):
        near = after - before < 0.2 * max(1, events[-1][0])
        heights.append(heights[-1] - 0.09 if near else 1.0)
    for (request, what), height in zip(events, heights, strict=False):
        axes.axvline(request, color=COLORS["red"], lw=1, ls=":")
        if not named:
            continue
        late = request > 0.7 * axes.get_xlim()[1]  # to the left of the line, or the name leaves the axes
        axes.annotate(
            what,
            (request, height),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if late else 4, 0),
            textcoords="offset points",
            ha="right" if late else "left",
            va="top",
            fontsize=8.5,
            color=COLORS["red"],
        )


def legend(axes: Axes, columns: int = 3) -> None:
    """Above the axes: it never covers what is drawn."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=columns, fontsize=9, handlelength=1.4, columnspacing=1.2
    )
