"""Flits, what they carry, and the links that they move on: the one home of each field."""

from enum import IntEnum

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, crc32c, records
from hw.params.protocol import (
    EPOCH_BITS,
    ITEM_BITS,
    KEY_BITS,
    KEY_BYTES,
    NODE_BITS,
    PORT_BITS,
    RING_BITS,
    SLICE_BITS,
    TAG_BITS,
)
from hw.rtl.layouts import beat_layout, handle_layout, layout_of, slot_id_layout


class Channel(IntEnum):
    """Virtual channels: each has a buffer at the receiver, and so credits of its own. None waits for another."""

    REQUEST = 0
    RESPONSE = 1
    DATA = 2
    MESSAGE = 3


def flit_layout(params: Params) -> data.StructLayout:
    """Return the layout of a flit: a beat, and beside it a header that every flit has. A packet is a row of flits.

    - `channel`: which virtual channel.
    - `node`: the memory node that it goes to or comes from. Nothing fills or reads it yet.
    - `slice`: of that node. A node of several reads it off what is sent to it, but for messages, and fills it in.
    - `port`, `ring`: of the requester that it comes from or goes to. A node reads the port off the link it came by, and
      fills it in data only.
    - `tag`: of the command that it belongs to.
    - `data`, `count`, `last`: as in `beat_layout`; `last` ends the packet.
    - `segment`, `end`, `ok`, `crc`: of data: which segment of the block; the last one of its READ; in the last flit of
      a segment its trailer, whether its bytes are those stored, and their CRC32C.
    """
    beat = {name: field.shape for name, field in beat_layout(params.memory.beat_bytes)}
    header = {
        "channel": Channel,
        "node": NODE_BITS,
        "slice": SLICE_BITS,
        "port": PORT_BITS,
        "ring": RING_BITS,
        "tag": TAG_BITS,
        "segment": ITEM_BITS,
        "end": 1,
        "ok": 1,
        "crc": crc32c.WIDTH,
    }
    return data.StructLayout(header | beat)


def lane(params: Params) -> wiring.Signature:
    """Return the signature of one direction of a link, from the sender's view.

    - `valid`, `flit`: a flit, which is always taken.
    - `credits`: a bit a channel: a flit has left the receiver's buffer, and another may come.
    """
    return wiring.Signature({"valid": Out(1), "flit": Out(flit_layout(params)), "credits": In(len(Channel))})


def link(params: Params) -> wiring.Signature:
    """Return the signature of a link, from the requester's view."""
    return wiring.Signature({"to_node": Out(lane(params)), "from_node": In(lane(params))})


def to_node_buffers(params: Params) -> dict[Channel, int]:
    """Return the flits that a node has room for, by channel."""
    keys = params.flits(KEY_BYTES * params.tables.lookup_keys)
    return {
        Channel.REQUEST: params.link.commands * params.flits(COMMAND_BYTES) + keys,
        Channel.DATA: params.link.write_segments * params.segment_beats,
        Channel.MESSAGE: params.link.message_flits,
    }


def from_node_buffers(params: Params) -> dict[Channel, int]:
    """Return the flits that a requester has room for, by channel."""
    link = params.link
    return {
        Channel.RESPONSE: link.response_flits,
        Channel.DATA: link.data_flits,
        Channel.MESSAGE: link.message_flits,
    }


SETTINGS = layout_of(records.SETTINGS)
"""What BIND, SET_PARTITION and DROP_PARTITION are about."""

COMMAND = layout_of(
    records.COMMAND,
    flags=data.StructLayout({"pin": 1, "run": 1, "park": 1, "live": 1, "reserved": 4}),
    subject=data.UnionLayout({"key": KEY_BITS, "handle": handle_layout(), "settings": SETTINGS}),
    slot=data.UnionLayout({"id": slot_id_layout(), "epoch": EPOCH_BITS, "read_mask": 64}),
)
"""A command as a REQUEST packet begins with it; those of LOOKUP go on with `count` keys, `KEY_BYTES` each.

- `opcode`: an `hw.params.protocol.Opcode`. What a command has no use for is not looked at.
- `flags`: `pin` and `run` of LOOKUP, `park` of READ, `live` of SET_MODEL.
- `count`: keys of LOOKUP, segments of READ. `length`: bytes of ALLOC, WRITE and SEAL.
- `subject`: `key` of ALLOC and DROP; `handle` of WRITE, SEAL, ABORT and READ; `settings` of the administrator.
- `slot`: the session of ALLOC, CLOSE_SESSION, MIGRATE and ANSWER_FENCE, the pin of UNPIN; `epoch` of SET_EPOCH;
  `read_mask` of SET_PARTITION.

The data of a WRITE comes as DATA packets, a segment each, in the order of the WRITEs of the link.
"""

COMMAND_BYTES = COMMAND.size // 8

RESPONSE = data.StructLayout(
    {
        "status": 8,
        "complete": 1,
        "named": 1,
        "pinned": 1,
        "streamed": 1,
        "reserved": 4,
        "item": ITEM_BITS,
        "outcome": 8,
        "padding": 24,
        "slot": slot_id_layout(),
        "handle": handle_layout(),
    }
)
"""An answer, a RESPONSE packet: of a LOOKUP one for each key, of any other command one.

- `status`: an `hw.params.protocol.Status`, of key number `item`, or of the command. A WRITE that is not OK has appended
  `item` segments; of any other command `item` is 0.
- `complete`: the command has ended, with the status `outcome`; of a LOOKUP that has looked every key up, OK.
- `handle`, if `named`; `slot`, the session or pin that was given, if `pinned`.
- `streamed`: the data of this READ was sent, and its last flit has `end`; without it there is none.
"""

RESPONSE_BYTES = RESPONSE.size // 8

MESSAGE_FLAGS = data.StructLayout({"of_partition": 1, "of_model": 1, "lost": 1, "reserved": 5})

MESSAGE = layout_of(records.MESSAGE, handle=handle_layout(), slot=slot_id_layout(), flags=MESSAGE_FLAGS)
"""What a node tells a port, a MESSAGE packet."""

MESSAGE_BYTES = records.MESSAGE.size

NOTE = data.StructLayout({"kind": 8})
"""What a requester tells a node, a MESSAGE packet of one flit: an `hw.params.protocol.NoteKind`.

LOST is about the ring in its header; HEARTBEAT is about nothing, and is dropped.
"""
