"""Traces of block references: reading, writing, inventing and measuring them."""

from pymodel.trace.curve import Curve, lru_curve, optimum_curve
from pymodel.trace.reader import Trace, load_trace, read_requests
from pymodel.trace.request import BLOCK_TOKENS, Request, blocks_of
from pymodel.trace.writer import write_requests

__all__ = [
    "BLOCK_TOKENS",
    "Curve",
    "Request",
    "Trace",
    "blocks_of",
    "load_trace",
    "lru_curve",
    "optimum_curve",
    "read_requests",
    "write_requests",
]
