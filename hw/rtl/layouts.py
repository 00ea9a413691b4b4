"""Field layouts of everything that moves on a stream: the one home of each field."""

from typing import Any

from amaranth.lib import data, enum
from amaranth.utils import bits_for

from hw.params import Params
from hw.params.protocol import (
    EPOCH_BITS,
    FRAME_BITS,
    FRAME_GENERATION_BITS,
    NODE_BITS,
    SLICE_BITS,
    SLOT_BITS,
    SLOT_GENERATION_BITS,
)
from hw.params.records import Record
from hw.params.toeplitz import tag_bits


def beat_layout(beat_bytes: int) -> data.StructLayout:
    """Return the layout of one word of the data path; a segment is a row of beats, the last one marked.

    - `data`: the bytes, the first in the low bits.
    - `count`: number of valid bytes, from the low end; `beat_bytes` in all beats but the last of a segment.
    - `last`: the segment ends here.
    """
    return data.StructLayout({"data": 8 * beat_bytes, "count": bits_for(beat_bytes), "last": 1})


def layout_of(record: Record, **shapes: Any) -> data.StructLayout:
    """Return the layout of a record; fields have the shapes that are given, of the same width, else are numbers."""
    layout = data.StructLayout(dict(record.fields) | shapes)
    for name, field in layout:
        if field.width != record.fields[name]:
            raise ValueError(f"{name}: {field.width} bits, expected the {record.fields[name]} of the record")
    return layout


def handle_layout() -> data.StructLayout:
    """Return the layout of a handle, as `hw.params.protocol.Handle.pack` packs it."""
    return data.StructLayout(
        {
            "epoch": EPOCH_BITS,
            "generation": FRAME_GENERATION_BITS,
            "frame": FRAME_BITS,
            "slice": SLICE_BITS,
            "node": NODE_BITS,
        }
    )


def slot_id_layout() -> data.StructLayout:
    """Return the layout of a pin or session id, as `hw.params.protocol.SlotId.pack` packs it."""
    return data.StructLayout({"generation": SLOT_GENERATION_BITS, "slot": SLOT_BITS})


class CamOp(enum.Enum, shape=2):  # type: ignore[call-arg]
    """What a request asks of the block CAM."""

    LOOKUP = 0
    UPDATE = 1
    READ = 2


def frame_bits(params: Params) -> int:
    """Return the width of a frame number."""
    return bits_for(params.frames - 1)


def place_layout(params: Params) -> data.StructLayout:
    """Return the layout of a slot of the block CAM; a part that there is only one of has no bits."""
    return data.StructLayout(
        {
            "bank": (params.cam.banks - 1).bit_length(),
            "set": (params.cam_sets - 1).bit_length(),
            "way": (params.cam.ways - 1).bit_length(),
        }
    )


def cam_request_layout(params: Params) -> data.StructLayout:
    """Return the layout of a request to the block CAM; a LOOKUP uses `op` and `tag` only, a READ `op` and `place`.

    - `op`: LOOKUP, UPDATE or READ.
    - `tag`: partition above model above key, as `hw.params.toeplitz.pack_tag` packs it.
    - `frame`, `valid`: what an UPDATE stores with the tag; `valid` 0 frees the place.
    - `place`: the slot that an UPDATE writes, or a READ reads.
    """
    return data.StructLayout(
        {
            "op": CamOp,
            "tag": tag_bits(params),
            "frame": frame_bits(params),
            "valid": 1,
            "place": place_layout(params),
        }
    )


def cam_response_layout(params: Params) -> data.StructLayout:
    """Return the layout of the answer to a LOOKUP.

    - `hit`: the tag is stored; `frame` is what is stored with it (0 for a miss).
    - `full`: the tag is not stored, and none of its sets has a free way.
    - `place`: where the tag is, or else where it would go; means nothing if `full`.
    """
    return data.StructLayout({"hit": 1, "full": 1, "frame": frame_bits(params), "place": place_layout(params)})


def cam_content_layout(params: Params) -> data.StructLayout:
    """Return the layout of the answer to a READ.

    - `found`: a tag is stored there, and is not lost; `tag` is that tag, and means nothing else.
    """
    return data.StructLayout({"found": 1, "tag": tag_bits(params)})


def cam_event_layout(params: Params) -> data.StructLayout:
    """Return the layout of what the scrubber reports.

    - `uncorrectable`: the entry at `place` is lost, and its place out of service until it is written.
    - `place`: where one bit was mended (`uncorrectable` 0), or more were wrong.
    """
    return data.StructLayout({"uncorrectable": 1, "place": place_layout(params)})
