"""Reads by what is in flight: when channels are busy all the time."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from hw.tb.harness import Memory
from scripts.benches.stream.rates import measure
from scripts.benches.stream.readers import stream_of_segments
from scripts.benches.stream.slices import LATENCIES, Slice
from scripts.report.style import COLORS

STEP = 4
"""Cycles after which a requester sees that a READ has ended."""

MOST = 1.75
"""Latency times bandwidth, as far as is shown."""


class Covered(NamedTuple):
    """In flight, over latency times bandwidth; and beats that come, of what channels and ports carry."""

    in_flight: float
    rate: float


def covered(slice_: Slice, cycles: int) -> list[Covered]:
    """Measure READs of a segment each, one behind the other, by how many are under way."""
    latency, found = LATENCIES[-1], []
    ports = slice_.params.tables.ports
    each = ports * slice_.params.segment_beats / slice_.peak(ports) / latency
    for depth in range(1, int(MOST / each) + 1):
        counts = measure(
            slice_, Memory(latency=latency), cycles, choose=stream_of_segments, depth=depth, step=STEP
        ).counts
        found.append(Covered(depth * each, counts.came / counts.cycles / slice_.peak(ports)))
    return found


def plot(axes: Axes, found: Sequence[Covered]) -> None:
    """The fraction by what is in flight, with what a channel could give at most."""
    x = [each.in_flight for each in found]
    axes.plot(x, [each.rate for each in found], marker="o", color=COLORS["blue"], label="slice")
    axes.plot(x, [min(1.0, each) for each in x], color=COLORS["grey"], linestyle="--", label="in flight / latency")
    axes.axvline(1.25, color=COLORS["orange"], linewidth=1.0, label="1.25")
    axes.set_xlabel("bytes in flight / (latency x bandwidth)")
    axes.set_ylabel("fraction of peak")
    axes.legend()
