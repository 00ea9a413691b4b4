"""Exact hit-rate curves: LRU and the offline optimum at every capacity, each from one pass over the trace."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymodel.trace import kernels
from pymodel.trace.reader import Trace


@dataclass(frozen=True, eq=False)
class Curve:
    """Hits of one policy as a function of the capacity in frames (index 0 .. deepest; constant beyond).

    A *block hit* is a reference whose block is present at the start of its request. A *prefix hit* is one in the
    request's leading run of block hits, the only ones that save prefill work.
    """

    policy: str
    references: int
    block_hits: NDArray[np.int64]  # [deepest + 1]
    prefix_hits: NDArray[np.int64]  # [deepest + 1]

    @property
    def deepest(self) -> int:
        """The least capacity in frames that no larger one improves on."""
        return len(self.block_hits) - 1

    def hit_rate(self, frames: int) -> float:
        """Block hits per reference with `frames` frames."""
        return int(self.block_hits[min(frames, self.deepest)]) / self.references

    def prefix_hit_rate(self, frames: int) -> float:
        """Prefix hits per reference with `frames` frames."""
        return int(self.prefix_hits[min(frames, self.deepest)]) / self.references


def lru_curve(trace: Trace) -> Curve:
    """The curve of a cache that evicts the block not used for longest. O(references log references)."""
    return _curve("lru", trace, kernels.lru_distances)


def optimum_curve(trace: Trace) -> Curve:
    """The curve of Belady's MIN, which knows the future and stores every block it is given.

    Near O(references x blocks still needed / 64). No policy that fetches on demand hits more often, whatever it looks
    at; one that may also decline to store a block gains at most what one more frame would.
    """
    return _curve("optimum", trace, kernels.optimum_distances)


def _curve(policy: str, trace: Trace, distances_of: Callable[[kernels.Ints, kernels.Offsets], kernels.Ints]) -> Curve:
    ids, distinct = _dense(trace.ids)
    distances = distances_of(kernels.previous_uses(ids, distinct), trace.offsets)
    deepest = int(distances.max(where=distances < kernels.ABSENT, initial=0))
    block, prefix = kernels.count_distances(distances, trace.offsets, deepest)
    return Curve(policy, len(ids), np.cumsum(block), np.cumsum(prefix))


def _dense(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The same ids as numbers below a bound that a table can have; ids given out in sequence stay as they are."""
    bound = int(ids.max(initial=-1)) + 1
    if bound <= 4 * len(ids):
        return ids, bound
    distinct, dense = np.unique(ids, return_inverse=True)
    return dense, len(distinct)
