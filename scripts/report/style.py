"""One quiet style for all plots: SVG that takes its ink from the page, so that it reads in light, dark and print."""

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLORS = {
    "blue": "#4682c4",
    "orange": "#cf7f2b",
    "green": "#3f9b6f",
    "purple": "#9272c4",
    "red": "#c4564f",
    "grey": "#8b9097",
}
"""Mid-tones: at least 3:1 against white and against the dark background."""

_INK = "#0a0b0c"
"""Stands for the text colour of the page."""

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": _INK,
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "grid.alpha": 0.15,
    "grid.color": _INK,
    "grid.linewidth": 0.6,
    "legend.edgecolor": "none",
    "legend.facecolor": "none",
    "legend.framealpha": 0,
    "legend.labelcolor": _INK,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "text.color": _INK,
    "xtick.color": _INK,
    "xtick.major.width": 0.6,
    "ytick.color": _INK,
    "ytick.major.width": 0.6,
}

_NUMBERED = re.compile(r' id="[\w.]+_\d+"')
_PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)


def draw(plot: Callable[[Axes], None], label: str) -> str:
    """The SVG element of what ``plot`` draws into empty axes; ``label`` says it to those who cannot see it."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": label}):
        figure = Figure(figsize=(5.8, 3.1), layout="constrained")
        plot(figure.add_subplot())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    svg = _METADATA.sub("", _PROLOGUE.sub("", buffer.getvalue()))
    svg = _NUMBERED.sub("", svg).replace(_INK, "currentColor")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
