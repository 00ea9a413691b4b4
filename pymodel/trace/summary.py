"""The statistics that describe a trace."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from pymodel.trace.curve import previous_uses
from pymodel.trace.reader import Trace


@dataclass(frozen=True)
class Statistic:
    """One line of a description; a number of things, and a time, is exact."""

    name: str
    value: int | float | Decimal | None  # None: not defined
    unit: str


def summarize(trace: Trace) -> list[Statistic]:
    """What a trace holds, how fast it arrives, and what can be reused of it.

    Reuse is counted per block reference, a partial last block as one, over the whole trace with unlimited room.
    """
    requests, references = len(trace), len(trace.ids)
    sizes = np.diff(trace.offsets)
    seconds = Decimal(int(trace.timestamps[-1] - trace.timestamps[0])) / 1000
    new = np.flatnonzero(previous_uses(trace) < 0)
    uses = np.unique(trace.ids, return_counts=True)[1]
    private = uses[uses < requests]
    everywhere = len(uses) - len(private)
    begins, ends = trace.offsets[:-1], trace.offsets[1:]
    first_new = np.append(new, references)[np.searchsorted(new, begins)]
    reused = np.minimum(first_new, ends) - begins
    return [
        Statistic("requests", requests, ""),
        Statistic("duration", seconds, "s"),
        Statistic("arrivals", requests / float(seconds) if seconds else None, "1/s"),
        *_spread("input", trace.input_lengths, "tokens"),
        *_spread("output", trace.output_lengths, "tokens"),
        *_spread("blocks of a request", sizes, "blocks"),
        Statistic("block references", references, ""),
        Statistic("distinct blocks", len(uses), ""),
        Statistic("blocks used once", int((uses == 1).sum()), ""),
        Statistic("blocks in every request", everywhere, ""),
        Statistic("most uses of any other block", int(private.max(initial=0)), ""),
        Statistic("requests that reuse nothing else", float(np.mean(reused <= everywhere)), "share"),
        Statistic("prefix hit rate, unlimited", int(reused.sum()) / max(references, 1), "share"),
    ]


def _spread(name: str, values: NDArray[np.int64], unit: str) -> list[Statistic]:
    """Mean, median and maximum."""
    return [
        Statistic(f"{name}, mean", float(np.mean(values)), unit),
        Statistic(f"{name}, median", float(np.median(values)), unit),
        Statistic(f"{name}, maximum", int(np.max(values)), unit),
    ]
