"""Draws hit-rate curves."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from pymodel.trace.curve import Curve

_POINTS = 2_000
"""Capacities drawn: more than a plot has pixels."""


def draw(curves: Sequence[Curve], title: str) -> Figure:
    """Hit rate over capacity, logarithmic: prefix hits solid, block hits dotted, what unlimited room gives dashed."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot(xscale="log", xlabel="capacity (frames)", ylabel="hits per block reference", title=title)
    deepest = max(2, *(curve.deepest for curve in curves))
    frames = np.unique(np.geomspace(1, deepest, _POINTS).astype(int))
    for color, curve in zip(("C0", "C1"), curves, strict=True):
        for label, hits, style in (("prefix", curve.prefix_hits, "-"), ("block", curve.block_hits, ":")):
            rates = hits[np.minimum(frames, curve.deepest)] / max(curve.references, 1)
            axes.plot(frames, rates, style, color=color, label=f"{curve.policy}, {label}")
    axes.axhline(curves[0].prefix_hit_rate(deepest), color="0.4", linestyle="--", label="unlimited, prefix")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
