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
        return int(self.block_hits[min(frames, self.deepest)]) / max(self.references, 1)

    def prefix_hit_rate(self, frames: int) -> float:
        """Prefix hits per reference with `frames` frames."""
        return int(self.prefix_hits[min(frames, self.deepest)]) / max(self.references, 1)


def lru_curve(trace: Trace) -> Curve:
    """The curve of a cache that evicts the block not used for longest. O(references log references)."""
    return _curve("lru", trace, kernels.lru_distances)


def optimum_curve(trace: Trace) -> Curve:
    """The curve of Belady's MIN, which knows the future and stores every block it is given.

    About O(references x blocks still needed / 64). MIN has the most hits, counted at each reference, of all policies
    that store what they are given (Belady, IBM Systems Journal 5(2), 1966), and every prefix hit is one of those: so
    no such policy's prefix hits exceed MIN's hits, and where the two curves of MIN agree its prefix hits are the most
    possible. A policy that may decline to store a block gains at most what one more frame would.
    """
    return _curve("optimum", trace, kernels.optimum_distances)


def previous_uses(trace: Trace) -> kernels.Ints:
    """[references] position of the previous reference to the same block, -1 for the first."""
    bound = int(trace.ids.max(initial=-1)) + 1
    if bound <= 4 * len(trace.ids):  # ids given out in sequence can index a table as they are
        return kernels.previous_uses(trace.ids, bound)
    distinct, dense = np.unique(trace.ids, return_inverse=True)
    return kernels.previous_uses(dense, len(distinct))


def _curve(policy: str, trace: Trace, distances_of: Callable[[kernels.Ints, kernels.Offsets], kernels.Ints]) -> Curve:
    distances = distances_of(previous_uses(trace), trace.offsets)
    deepest = int(distances.max(where=distances < kernels.ABSENT, initial=0))
    block, prefix = kernels.count_distances(distances, trace.offsets, deepest)
    return Curve(policy, len(trace.ids), np.cumsum(block), np.cumsum(prefix))
