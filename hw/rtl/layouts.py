"""Field layouts of everything that moves on a stream: the one home of each field."""

from amaranth.lib import data
from amaranth.utils import bits_for


def beat_layout(beat_bytes: int) -> data.StructLayout:
    """Return the layout of one word of the data path; a segment is a row of beats, the last one marked.

    - `data`: the bytes, the first in the low bits.
    - `count`: number of valid bytes, from the low end; `beat_bytes` in all beats but the last of a segment.
    - `last`: the segment ends here.
    """
    return data.StructLayout({"data": 8 * beat_bytes, "count": bits_for(beat_bytes), "last": 1})
