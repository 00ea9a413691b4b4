"""What goes into the data path, what comes out, and what moves between its parts: the one home of each field."""

from typing import TypedDict

from amaranth.lib import data
from amaranth.utils import bits_for

from hw.params import Params, crc32c
from hw.params.striping import Striping
from hw.rtl.layouts import beat_layout, frame_bits
from hw.rtl.node.layouts import TAG_BITS, ring_layout, segments_bits


class Widths(TypedDict):
    """Widths of an AXI4 interface, as `hw.rtl.axi` takes them."""

    address_bits: int
    data_bits: int
    id_bits: int
    user_bits: int


def write_widths(params: Params) -> Widths:
    """Return the widths of the write channels: an ID for each write in flight, a CRC on WUSER."""
    return _widths(params, write_id_layout(params).size)


def read_widths(params: Params) -> Widths:
    """Return the widths of the read channels: an ID for each read in flight, a CRC on RUSER."""
    return _widths(params, read_id_layout(params).size)


def _widths(params: Params, id_bits: int) -> Widths:
    return {
        "address_bits": Striping(params).address_bits,
        "data_bits": 8 * params.memory.beat_bytes,
        "id_bits": id_bits,
        "user_bits": crc32c.WIDTH,
    }


def write_id_layout(params: Params) -> data.StructLayout:
    """Return the layout of an AWID: the port that writes, and which of its writes that are in flight on the channel."""
    return data.StructLayout({"port": bits_for(params.tables.ports - 1), "slot": bits_for(params.write_bursts - 1)})


def read_id_layout(params: Params) -> data.StructLayout:
    """Return the layout of an ARID: the port that the read is for, and the buffer that it fills."""
    return data.StructLayout({"port": bits_for(params.tables.ports - 1), "slot": bits_for(params.read_segments - 1)})


def write_segment_layout(params: Params) -> data.StructLayout:
    """Return the layout of what is said of a segment to be written, besides its beats.

    - `frame`, `segment`: where it belongs.
    - `crc`: the CRC32C of its bytes.
    """
    return data.StructLayout({"frame": frame_bits(params), "segment": segments_bits(params), "crc": crc32c.WIDTH})


def landed_layout(params: Params) -> data.StructLayout:
    """Return the layout of what memory has answered: the next `count` segments of a frame.

    - `ok`: all of them are stored; without it, all but the last.
    """
    return data.StructLayout({"frame": frame_bits(params), "count": segments_bits(params), "ok": 1})


def read_layout(params: Params) -> data.StructLayout:
    """Return the layout of a READ that has been started.

    - `frame`, `segment`, `count`: the segments to stream; at least one.
    - `length`: bytes of the block, which decides whether its last segment is a short one.
    - `stamp`, `tag`: of the command. `stamp.port` is the port that the beats go to.
    """
    length = bits_for(max(pool.frame_bytes for pool in params.pools))
    segments = segments_bits(params)
    return data.StructLayout(
        {
            "frame": frame_bits(params),
            "segment": segments,
            "count": segments,
            "length": length,
            "stamp": ring_layout(),
            "tag": TAG_BITS,
        }
    )


def read_beat_layout(params: Params) -> data.StructLayout:
    """Return the layout of a beat on its way out.

    - `data`, `count`, `last`: as in `beat_layout`.
    - `ok`, `crc`: the trailer, in the last beat of a segment and 0 in others: whether the segment is what was stored,
      and the CRC32C of its bytes as they were read.
    - `segment`, `end`: which segment of the block, and whether it is the last of its READ.
    - `stamp`, `tag`: of the READ.
    """
    beat = {name: field.shape for name, field in beat_layout(params.memory.beat_bytes)}
    return data.StructLayout(
        beat
        | {
            "ok": 1,
            "crc": crc32c.WIDTH,
            "segment": segments_bits(params),
            "end": 1,
            "stamp": ring_layout(),
            "tag": TAG_BITS,
        }
    )


def read_done_layout(params: Params) -> data.StructLayout:
    """Return the layout of the end of a READ; `ok`: all its segments were."""
    return data.StructLayout({"frame": frame_bits(params), "stamp": ring_layout(), "tag": TAG_BITS, "ok": 1})


def lane_beat_layout(params: Params) -> data.StructLayout:
    """Return the layout of a beat on its way to a channel, with what holds for its whole segment."""
    return data.StructLayout(
        {
            "beat": beat_layout(params.memory.beat_bytes),
            "address": Striping(params).address_bits,
            "frame": frame_bits(params),
            "crc": crc32c.WIDTH,
        }
    )


def write_burst_layout(params: Params) -> data.StructLayout:
    """Return the layout of a burst that a port's bank has for its channel: half of its ID, and its beats, less one."""
    return data.StructLayout(
        {
            "slot": write_id_layout(params)["slot"].shape,
            "address": Striping(params).address_bits,
            "last": bits_for(params.segment_beats - 1),
        }
    )


def write_beat_layout(params: Params) -> data.StructLayout:
    """Return the layout of a beat as a channel gets it: its strobes, and `crc`, of the segment, in the last."""
    beat_bytes = params.memory.beat_bytes
    return data.StructLayout({"data": 8 * beat_bytes, "strobes": beat_bytes, "last": 1, "crc": crc32c.WIDTH})


def write_answer_layout(params: Params) -> data.StructLayout:
    """Return the layout of memory's answer to a burst: the half of its ID that is the bank's, and whether it is OK."""
    return data.StructLayout({"slot": write_id_layout(params)["slot"].shape, "ok": 1})


def read_plan_layout(params: Params) -> data.StructLayout:
    """Return the layout of a READ as a port works it off.

    - `number`: of its first segment, in `hw.params.striping`.
    - `last`, `bytes`: beats of its last segment, less one, and bytes of the last of these.
    """
    segments = segments_bits(params)
    return data.StructLayout(
        {
            "number": Striping(params).number_bits,
            "segment": segments,
            "count": segments,
            "last": bits_for(params.segment_beats - 1),
            "bytes": bits_for(params.memory.beat_bytes),
            "frame": frame_bits(params),
            "stamp": ring_layout(),
            "tag": TAG_BITS,
        }
    )


def lane_read_layout(params: Params) -> data.StructLayout:
    """Return the layout of what a port asks of a channel: an address, and a number of beats, less one."""
    return data.StructLayout({"address": Striping(params).address_bits, "last": bits_for(params.segment_beats - 1)})


def bank_beat_layout(params: Params) -> data.StructLayout:
    """Return the layout of a beat as it comes from a channel; `crc` and `error` hold for the segment, in its last."""
    return data.StructLayout({"data": 8 * params.memory.beat_bytes, "last": 1, "crc": crc32c.WIDTH, "error": 1})
