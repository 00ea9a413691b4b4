"""How long a requester takes at most to end what is cut off or cancelled, as docs/requester.md says.

`latency` are the cycles within which its memories answer, `waiting` the descriptors that software has submitted and
that have not completed.
"""

from hw.params import Params
from hw.tb.slice.bounds import cycles_to_rest

OVERHEAD = 32
"""Cycles that a requester adds to a command, besides those of data and memory."""


def cycles_to_cut(params: Params, latency: int, waiting: int) -> int:
    """From the loss of ring, link or node until every command has ended: what is under way moves its data, what is not
    is fetched and told."""
    under_way = params.requester.commands * _cycles_to_move(params, latency)
    return cycles_to_rest(params) + under_way + waiting * (2 * latency + OVERHEAD)


def cycles_to_cancel(params: Params, latency: int, waiting: int) -> int:
    """From the doorbell of a CANCEL until it and its PREFETCH have ended, behind all other commands."""
    return cycles_to_rest(params) + (params.requester.commands + waiting) * _cycles_to_move(params, latency)


def _cycles_to_move(params: Params, latency: int) -> int:
    """Of the largest command: its data, a page for every segment, and its completion."""
    frame = max(pool.frame_bytes for pool in params.pools)
    return frame // params.memory.beat_bytes + (params.segments(frame) + 2) * latency + OVERHEAD
