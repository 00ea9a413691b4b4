"""Layouts of what moves inside the prefetch engine: the one home of each field."""

from amaranth.lib import data
from amaranth.utils import bits_for

from hw.params import Params, records
from hw.params.protocol import ITEM_BITS, RING_BITS, TAG_BITS
from hw.rtl.gpu.layouts import ADDRESS_BITS, context_bits, place_layout
from hw.rtl.layouts import handle_layout, layout_of

COUNT_BITS = 32
"""Width of a number of bytes."""

BLOCK = layout_of(
    records.BLOCK, handle=handle_layout(), flags=data.StructLayout({"unused": 4, "scattered": 1, "reserved": 3})
)
ARRIVAL = layout_of(records.ARRIVAL, flags=data.StructLayout({"arrived": 1, "failed": 1, "reserved": 6}))


def fill_bits(params: Params) -> int:
    """Return the width of the number of a fill: of a READ under way."""
    return bits_for(params.requester.fills - 1)


def job_bits(params: Params) -> int:
    """Return the width of the number of a job: of a PREFETCH under way."""
    return max(1, bits_for(params.requester.prefetches - 1))


def list_layout(params: Params) -> data.StructLayout:
    """Return the layout of a question for an entry of a list of blocks, at `address`, for a `job`."""
    return data.StructLayout({"address": ADDRESS_BITS, "job": job_bits(params)})


def listed_layout(params: Params) -> data.StructLayout:
    """Return the layout of its answer; `error`: memory refused it."""
    return data.StructLayout({"block": BLOCK, "error": 1, "job": job_bits(params)})


def want_layout() -> data.StructLayout:
    """Return the layout of the segments that a job wants next.

    - `ring`, `tag`: of the PREFETCH.
    - `handle`, `segment`, `count`: what to READ; fewer segments will do.
    - `place`, `number`: where it goes: to segment number `number` of data at this place. `room`: bytes from there on.
    """
    return data.StructLayout(
        {
            "ring": RING_BITS,
            "tag": TAG_BITS,
            "handle": handle_layout(),
            "segment": ITEM_BITS,
            "count": ITEM_BITS,
            "place": place_layout(),
            "number": ITEM_BITS,
            "room": COUNT_BITS,
        }
    )


def given_layout(params: Params) -> data.StructLayout:
    """Return the layout of what becomes of a want: `made`, the first `count` of its segments are in this `fill`;
    `error`, their place is none; neither, it was given up."""
    return data.StructLayout({"made": 1, "error": 1, "fill": fill_bits(params), "count": ITEM_BITS})


READ = data.StructLayout(
    {
        "ring": RING_BITS,
        "handle": handle_layout(),
        "segment": ITEM_BITS,
        "count": ITEM_BITS,
        "address": ADDRESS_BITS,
        "room": COUNT_BITS,
    }
)
"""A READ, and where its data goes: what two fills have in common if they are one."""

FATE = data.StructLayout({"status": 8, "length": COUNT_BITS})
"""How a fill has ended: the status of its READ, and its bytes if that is OK."""


def step_layout(params: Params) -> data.StructLayout:
    """Return the layout of a step of a job, in order.

    - `made`: it is a `fill`, of `count` segments; else nothing more is read of the block, with an `error` because their
      place is none.
    - `range_ends`, `block_ends`: with it.
    """
    flags = {name: 1 for name in ("made", "error", "range_ends", "block_ends")}
    return data.StructLayout(flags | {"fill": fill_bits(params), "count": ITEM_BITS})


def order_layout(params: Params) -> data.StructLayout:
    """Return the layout of the order to stop a job, given by the CANCEL in `context`."""
    return data.StructLayout({"context": context_bits(params)})
