"""Traces of block references: reading, writing, inventing and measuring them."""

from pymodel.trace.curve import Curve, lru_curve, optimum_curve
from pymodel.trace.generator import generate
from pymodel.trace.reader import Trace, load_trace, read_requests
from pymodel.trace.request import BLOCK_TOKENS, Request, blocks_of
from pymodel.trace.summary import Statistic, summarize
from pymodel.trace.workload import Workload, workload_of
from pymodel.trace.writer import write_requests

__all__ = [
    "BLOCK_TOKENS",
    "Curve",
    "Request",
    "Statistic",
    "Trace",
    "Workload",
    "blocks_of",
    "generate",
    "load_trace",
    "lru_curve",
    "optimum_curve",
    "read_requests",
    "summarize",
    "workload_of",
    "write_requests",
]
