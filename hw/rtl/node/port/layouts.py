"""What moves between the parts of a port: the one home of each field."""

from amaranth.lib import data
from amaranth.utils import bits_for

from hw.params import Params, crc32c
from hw.params.protocol import RING_BITS, TAG_BITS
from hw.rtl.fabric.layouts import RESPONSE
from hw.rtl.node.data.layouts import write_segment_layout


def arrival_layout(params: Params) -> data.StructLayout:
    """Return the layout of what is known of a segment of write data once all of it is here."""
    return data.StructLayout({"length": bits_for(params.memory.segment_bytes), "crc": crc32c.WIDTH})


def move_layout(params: Params) -> data.StructLayout:
    """Return the layout of what becomes of a segment of write data: it is kept, at a place, or dropped."""
    fields = {name: field.shape for name, field in write_segment_layout(params)}
    return data.StructLayout({"keep": 1} | fields)


ANSWER = data.StructLayout({"ring": RING_BITS, "tag": TAG_BITS, "response": RESPONSE})
"""An answer, and whose it is."""
