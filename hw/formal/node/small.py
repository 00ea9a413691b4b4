"""A core small enough for a solver: no parameter makes some of its fields that narrow, so the proof does."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from hw.params import Params, load_params, toeplitz
from hw.rtl import layouts as shared
from hw.rtl.node import fences, layouts, parking

OVERRIDES = (
    "preset=TINY",
    "memory.segment_bytes=2048",
    "tables.ecc=false",
    "tables.generation_bits=2",
    "tables.slot_generation_bits=2",
    "tables.stamp_bits=2",
)
"""Two ports of two rings, two partitions, models and sessions, four frames of two segments; no ECC."""

WIDTHS = {
    "KEY_BITS": 2,
    "EPOCH_BITS": 2,
    "NODE_BITS": 1,
    "SLICE_BITS": 1,
    "FRAME_BITS": 2,
    "FRAME_GENERATION_BITS": 2,
    "SLOT_BITS": 2,
    "SLOT_GENERATION_BITS": 2,
    "PORT_BITS": 1,
    "RING_BITS": 1,
    "TAG_BITS": 2,
    "ITEM_BITS": 3,
    "COUNT_BITS": 3,
}
"""Widths of fields that the core moves or compares, whatever their width."""


def small_params() -> Params:
    """Return the parameters."""
    return load_params(None, OVERRIDES)


@contextmanager
def small() -> Iterator[None]:
    """Let fields be narrow while a core is built."""
    with ExitStack() as stack:
        for module in (shared, layouts, toeplitz, fences, parking):
            for name, width in WIDTHS.items():
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, width))
        yield
