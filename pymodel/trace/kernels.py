"""Compiled loops behind the hit-rate curves: stack distances of LRU and of the offline optimum.

A policy is a *stack algorithm* when what a cache of `C` frames holds is always part of what one of `C + 1` frames holds
(Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970). One
list, the stack, then describes all capacities: its first `C` entries are what a cache of `C` frames holds. The
*distance* of a reference is the stack depth (from 1) of its block; it hits in exactly the capacities at or above it.

Distances here are taken at the start of the request a reference belongs to, before any of the request's own references,
because that is when a lookup is done. `ABSENT` is the distance of a block never seen before.
"""

import numba
import numpy as np
from numpy.typing import NDArray

ABSENT = np.iinfo(np.int32).max
"""Distance of a block that no cache can hold, and the next use of one that is never used again."""

_CHUNK = 64
"""Stack entries under one maximum: a scan of one chunk costs about as much as a walk over the maxima."""

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]


@numba.njit(cache=True)
def previous_uses(ids: NDArray[np.int64], distinct: int) -> Ints:
    """[references] position of the previous reference to the same block, -1 for the first; ids are below `distinct`."""
    latest = np.full(distinct, -1, np.int32)
    previous = np.empty(len(ids), np.int32)
    for time in range(len(ids)):
        previous[time] = latest[ids[time]]
        latest[ids[time]] = time
    return previous


@numba.njit(cache=True)
def lru_distances(previous: Ints, offsets: Offsets) -> Ints:
    """[references] LRU stack distances.

    The LRU stack is ordered by last use, so the depth of a block is the number of blocks last used no earlier than it:
    a suffix sum over marks at the positions of last uses, kept in a Fenwick tree. Where a request repeats what an
    earlier one referenced back to back, each block lies one higher than the one before it, and no sum is needed.
    """
    count = len(previous)
    distances = np.empty(count, np.int32)
    tree = np.zeros(count + 1, np.int32)
    present = 0
    for request in range(len(offsets) - 1):
        begin, end = offsets[request], offsets[request + 1]
        for time in range(begin, end):
            last = previous[time]
            if last < 0:
                distances[time] = ABSENT
            elif last >= begin:  # repeated within the request
                distances[time] = distances[last]
            elif time > begin and previous[time - 1] >= 0 and last == previous[time - 1] + 1:
                distances[time] = distances[time - 1] - 1
            else:
                older = 0
                node = last
                while node > 0:
                    older += tree[node]
                    node &= node - 1
                distances[time] = present - older
        for time in range(begin, end):
            last = previous[time]
            node = time + 1
            while node <= count:
                tree[node] += 1
                node += node & -node
            if last < 0:
                present += 1
                continue
            node = last + 1
            while node <= count:
                tree[node] -= 1
                node += node & -node
    return distances


@numba.njit(cache=True)
def optimum_distances(previous: Ints, offsets: Offsets) -> Ints:
    """[references] stack distances of Belady's MIN: evict the block whose next use is farthest away.

    On a reference its block moves to the top, and the entries above the place it left are pushed down as by bubble
    sort: at each depth the entry with the sooner next use stays and the other is carried on (Mattson et al.). A block
    never used again loses every comparison, so it is as good as a gap: the carried entry comes to rest in the first
    one, and the stack is no deeper than the number of blocks still needed. Entries are next uses, which are unique and
    so name their block. Chunks whose maximum does not exceed the carried entry are stepped over.
    """
    count = len(previous)
    never = count
    following = np.full(count, never, np.int32)
    for time in range(count):
        if previous[time] >= 0:
            following[previous[time]] = time
    distances = np.empty(count, np.int32)
    stack = np.full(count + _CHUNK, never, np.int32)
    maxima = np.full(len(stack) // _CHUNK, never, np.int32)  # upper bounds, without the top of the stack
    depths = np.empty(count + 1, np.int32)  # [next use] index in the stack
    for request in range(len(offsets) - 1):
        begin, end = offsets[request], offsets[request + 1]
        for time in range(begin, end):
            last = previous[time]
            if last < 0:
                distances[time] = ABSENT
            elif last >= begin:  # repeated within the request
                distances[time] = distances[last]
            else:
                distances[time] = depths[time] + 1
        for time in range(begin, end):
            if previous[time] >= 0:
                gap = depths[time]
                stack[gap] = never
                maxima[gap // _CHUNK] = never
            _push(stack, maxima, depths, following[time])
    return distances


@numba.njit(cache=True)
def _push(stack: Ints, maxima: Ints, depths: Ints, top: int) -> None:
    """Puts an entry on the optimum's stack and carries the one it displaces down into the first gap."""
    never = len(depths) - 1
    carried = stack[0]
    stack[0] = top
    depths[top] = 0
    chunk = 0
    while carried < never:
        if maxima[chunk] > carried:
            largest = 0
            for depth in range(max(1, chunk * _CHUNK), (chunk + 1) * _CHUNK):
                entry = stack[depth]
                if entry > carried:
                    stack[depth] = carried
                    depths[carried] = depth
                    carried, entry = entry, carried
                largest = max(largest, entry)
            maxima[chunk] = largest
        chunk += 1


@numba.njit(cache=True)
def count_distances(distances: Ints, offsets: Offsets, deepest: int) -> tuple[Offsets, Offsets]:
    """Histograms [deepest + 1] of the least capacity at which a reference is a block hit, and a prefix hit."""
    block = np.zeros(deepest + 1, np.int64)
    prefix = np.zeros(deepest + 1, np.int64)
    for request in range(len(offsets) - 1):
        farthest = 0
        for time in range(offsets[request], offsets[request + 1]):
            distance = distances[time]
            farthest = max(farthest, distance)
            if distance < ABSENT:
                block[distance] += 1
            if farthest < ABSENT:
                prefix[farthest] += 1
    return block, prefix
