"""The plots of a replay on a device with a clock."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from scripts.replay.plots import legend, logarithmic
from scripts.replay.timing import Timing, utilisation
from scripts.report import COLORS

_POINTS = 300
"""Intervals of a plot over time."""


def latencies(axes: Axes, timing: Timing) -> None:
    """Of every command, which part of its completions took no longer than that."""
    colors = list(COLORS.values())
    opcodes = sorted({span.opcode for span in timing.spans})
    for number, opcode in enumerate(opcodes):
        values = np.sort(np.maximum(timing.latencies(opcode), 1))
        parts = np.arange(1, len(values) + 1) / len(values)
        style = "-" if number < len(colors) else "--"
        axes.step(values, parts, style, where="post", color=colors[number % len(colors)], label=opcode.name)
    logarithmic(axes, "cycles from doorbell to completion")
    axes.set(ylabel="part of the completions")
    axes.set_ylim(0, 1.02)
    legend(axes)


def channels(axes: Axes, timing: Timing) -> None:
    """The use of each memory channel, over time: a row a channel, which lets the page through where it is idle."""
    edges, use = utilisation(timing.samples, _POINTS)
    shades = LinearSegmentedColormap.from_list("use", [to_rgba(COLORS["blue"], alpha) for alpha in (0, 1)])
    axes.grid(visible=False)
    image = axes.imshow(
        use,
        shades,
        aspect="auto",
        interpolation="nearest",
        origin="lower",
        extent=(edges[0], edges[-1], -0.5, len(use) - 0.5),
        vmin=0,
        vmax=max(use.max(), 0.01),
    )
    _over_time(axes, edges)
    each = len(use) // timing.slices
    for above in range(each, len(use), each):
        axes.axhline(above - 0.5, color=COLORS["grey"], lw=0.8)
    what = "memory channel" if timing.slices == 1 else "memory channel, slice by slice"
    axes.set(ylabel=what, ylim=(-0.5, len(use) - 0.5))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.figure.colorbar(image, ax=axes, label="beats per cycle")


def in_flight(axes: Axes, timing: Timing) -> None:
    """Commands between doorbell and completion, over time: the mean of each interval."""
    begins, ends = (np.sort([getattr(span, name) for span in timing.spans]) for name in ("begin", "end"))
    edges = np.linspace(begins[0], max(ends[-1], begins[0] + 1), min(_POINTS, ends[-1] - begins[0] + 1) + 1)
    before = _elapsed(begins, edges) - _elapsed(ends, edges)
    axes.stairs(np.diff(before) / np.diff(edges), edges, color=COLORS["blue"], fill=True, alpha=0.7)
    _over_time(axes, edges)
    axes.set(ylabel="commands in flight")


def _elapsed(moments: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Cycles that have passed since all of the sorted moments that were before each edge, summed up."""
    count = np.searchsorted(moments, edges)
    return edges * count - np.concatenate([[0], np.cumsum(moments)])[count]


def _over_time(axes: Axes, edges: np.ndarray) -> None:
    axes.set(xlabel="cycles", xlim=(edges[0], edges[-1]))
    axes.set_ylim(0, None)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
