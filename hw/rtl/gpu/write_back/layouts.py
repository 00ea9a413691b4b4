"""Layouts of what moves inside a write-back buffer."""

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params, crc32c
from hw.params.protocol import ITEM_BITS, RING_BITS, STATUS_BITS, TAG_BITS
from hw.rtl.fabric.layouts import flit_layout
from hw.rtl.gpu.layouts import FENCE_BITS, context_bits
from hw.rtl.layouts import handle_layout, slot_id_layout


class Phase(enum.Enum, shape=4):  # type: ignore[call-arg]
    """Where a slot is: free, or waiting for what the name says; `ASK_` until the command has begun.

    `WAIT`: for its fence. `FLUSH`: for the slots before it. `ANSWER`: for its answer to be taken; `COMPLETE`: for its
    completion to be in memory.
    """

    FREE = 0
    WAIT = 1
    ASK_ALLOC = 2
    ALLOC = 3
    ASK_WRITE = 4
    WRITE = 5
    ASK_SEAL = 6
    SEAL = 7
    ASK_ABORT = 8
    ABORT = 9
    ANSWER = 10
    COMPLETE = 11
    FLUSH = 12


def slot_bits(params: Params) -> int:
    """Return the width of the number of a slot."""
    return bits_for(params.requester.slots - 1)


def new_layout(params: Params) -> data.StructLayout:
    """Return the layout of what a slot has to know of its descriptor at any time.

    - `flush`: it is a FLUSH. `open`, `appended`: as in the flags of a PUT. `empty`: it has no bytes.
    """
    return data.StructLayout(
        {"context": context_bits(params)} | {name: 1 for name in ("flush", "open", "appended", "empty")}
    )


def slot_layout(params: Params) -> data.StructLayout:
    """Return the layout of a slot that something happens to in this cycle."""
    return data.StructLayout({"valid": 1, "slot": slot_bits(params)})


def step_layout(params: Params) -> data.StructLayout:
    """Return the layout of a slot that takes a step in this cycle; `dead`: it takes no more, and ends UNAVAILABLE."""
    return data.StructLayout({**slot_layout(params).members, "dead": 1})


def end_layout(params: Params) -> data.StructLayout:
    """Return the layout of the end of a slot's command, in this cycle."""
    return data.StructLayout({**slot_layout(params).members, "status": STATUS_BITS})


def phases_layout(params: Params) -> data.ArrayLayout:
    """Return the layout of the phases of all slots."""
    return data.ArrayLayout(Phase, params.requester.slots)


def sum_layout(params: Params) -> data.StructLayout:
    """Return the layout of the CRC32C of all that a slot's block has when its WRITE has ended."""
    return data.StructLayout({"slot": slot_bits(params), "crc": crc32c.WIDTH})


def writing_layout(params: Params) -> data.StructLayout:
    """Return the layout of a WRITE that begins in this cycle: its slot, its tag on the link, and its last segment."""
    return data.StructLayout({**slot_layout(params).members, "tag": TAG_BITS, "last": ITEM_BITS})


def sent_layout(params: Params) -> data.StructLayout:
    """Return the layout of a flit that leaves for the node in this cycle."""
    return data.StructLayout({"valid": 1, "flit": flit_layout(params)})


def seen_layout(params: Params) -> data.StructLayout:
    """Return the layout of what a write-back buffer sees of the requester around it, in this cycle.

    - `fences`: what the producer of each ring has reached.
    - `released`: the completion of `context` is in memory, or was not to be written.
    - `next_tag`: that of the command that begins, if one does.
    - `mover_free`: the `Mover` has asked memory for all data that it was given. `moved`: it is given that of a WRITE.
    - `sent`: what leaves it.
    """
    return data.StructLayout(
        {
            "fences": data.ArrayLayout(FENCE_BITS, params.tables.rings_per_port),
            "released": 1,
            "context": context_bits(params),
            "next_tag": TAG_BITS,
            "mover_free": 1,
            "moved": data.StructLayout({"valid": 1, "tag": TAG_BITS}),
            "sent": sent_layout(params),
        }
    )


def halt_layout(params: Params) -> data.StructLayout:
    """Return the layout of a session of a ring, of a slice, that is to be drained."""
    return data.StructLayout(
        {"valid": 1, "ring": RING_BITS, "slice": params.node.slice_bits, "session": slot_id_layout()}
    )


def wrote_layout(params: Params) -> data.StructLayout:
    """Return the layout of segments that the node has appended in a session, of a slice, for a ring."""
    return data.StructLayout(
        {"ring": RING_BITS, "slice": params.node.slice_bits, "session": slot_id_layout(), "segments": ITEM_BITS}
    )


def hook(params: Params) -> wiring.Signature:
    """Return the signature of what the manager of sessions may ask of a write-back buffer, from the buffer's view.

    - `halt`: the PUTs of this session that the buffer has accepted are drained: those that it has, in a slot or the
      backlog, and whose producer has reached what they wait for. All others end STALE as long as `halt` is valid. It
      stays until `drained`.
    - `drained`: as long as `halt` is valid, all that was accepted of the session has ended, and all it has written was
      told.
    - `wrote`: segments that the node has appended, of PUTs as they end.
    """
    wrote = stream.Signature(wrote_layout(params), always_ready=True)
    return wiring.Signature({"halt": In(halt_layout(params)), "drained": Out(1), "wrote": Out(wrote)})


GIVEN = data.StructLayout({"named": 1, "handle": handle_layout()})
"""The handle that the node has named with its answer to an ALLOC."""
