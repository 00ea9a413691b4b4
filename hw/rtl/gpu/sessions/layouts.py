"""Layouts of what the manager of sessions sees and keeps."""

from amaranth.lib import data
from amaranth.utils import bits_for

from hw.params import Params
from hw.params.protocol import ITEM_BITS, RING_BITS
from hw.rtl.gpu.layouts import COMPLETION, DESCRIPTOR, context_bits
from hw.rtl.layouts import slot_id_layout

COUNT_BITS = 32
"""Width of a count of segments, as ANSWER_FENCE has it."""

PIN_BITS = 16
"""Width of a count of pins."""


def name_layout(params: Params) -> data.StructLayout:
    """Return the layout of what names a session of this requester: its ring, and its number in a slice."""
    return data.StructLayout({"ring": RING_BITS, "slice": params.node.slice_bits, "session": slot_id_layout()})


def entry_bits(params: Params) -> int:
    """Return the width of the number of an entry of the table."""
    return bits_for(params.requester.sessions - 1)


def note_layout(params: Params) -> data.StructLayout:
    """Return the layout of what is kept of a command of software's that is under way.

    - `name`: the session that it names. `counted`: it is a WRITE, in the session of this `entry`.
    """
    return data.StructLayout(
        {
            "opcode": DESCRIPTOR["opcode"].shape,
            "pin": 1,
            "name": name_layout(params),
            "counted": 1,
            "entry": entry_bits(params),
        }
    )


def pins_layout(params: Params) -> data.ArrayLayout:
    """Return the layout of the pins that each ring has."""
    return data.ArrayLayout(PIN_BITS, params.tables.rings_per_port)


def watched_layout(params: Params) -> data.StructLayout:
    """Return the layout of what the manager sees of the requester around it, in this cycle.

    - `begun`: software's command gets a context; `name` is of the ring, slice and `slot` of its descriptor.
    - `ended`: software's command has ended: what `given` names it was given; `count` segments it has appended, or the
      keys of a LOOKUP that hit.
    - `fence`: the node tells that this session is to move.
    - `lost`: rings that are lost, or do not run. `settled`: those that have nothing under way.
    """
    begun = {"valid": 1, "context": context_bits(params), "opcode": DESCRIPTOR["opcode"].shape, "pin": 1}
    ended = {"valid": 1, "context": context_bits(params), "ring": RING_BITS, "status": COMPLETION["status"].shape}
    return data.StructLayout(
        {
            "begun": data.StructLayout(begun | {"name": name_layout(params)}),
            "ended": data.StructLayout(ended | {"given": 1, "slot": slot_id_layout(), "count": ITEM_BITS}),
            "fence": data.StructLayout({"valid": 1, "name": name_layout(params)}),
            "lost": params.tables.rings_per_port,
            "settled": params.tables.rings_per_port,
        }
    )
