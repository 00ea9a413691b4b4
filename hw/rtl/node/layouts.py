"""What a slice takes in and gives out, and the rows of its tables: the one home of each field."""

from enum import IntEnum

from amaranth.lib import data
from amaranth.utils import bits_for

from hw.params.params import Params
from hw.params.protocol import (
    EPOCH_BITS,
    FRAME_BITS,
    ITEM_BITS,
    KEY_BITS,
    PORT_BITS,
    RING_BITS,
    SLOT_BITS,
    STATUS_BITS,
    TAG_BITS,
    FrameState,
    Opcode,
)
from hw.params.toeplitz import tag_bits
from hw.rtl.fabric.layouts import MESSAGE
from hw.rtl.layouts import frame_bits, handle_layout, place_layout, slot_id_layout

COUNT_BITS = 32
"""Segments of a session, as ANSWER_FENCE counts them."""


class Kind(IntEnum):
    """What an operation is: a command by its opcode, or an internal operation."""

    NONE = 0
    LOOKUP = Opcode.LOOKUP.value
    ALLOC = Opcode.ALLOC.value
    WRITE = Opcode.WRITE.value
    SEAL = Opcode.SEAL.value
    ABORT = Opcode.ABORT.value
    READ = Opcode.READ.value
    UNPIN = Opcode.UNPIN.value
    DROP = Opcode.DROP.value
    OPEN_SESSION = Opcode.OPEN_SESSION.value
    CLOSE_SESSION = Opcode.CLOSE_SESSION.value
    MIGRATE = Opcode.MIGRATE.value
    ANSWER_FENCE = Opcode.ANSWER_FENCE.value
    BIND = Opcode.BIND.value
    SET_PARTITION = Opcode.SET_PARTITION.value
    DROP_PARTITION = Opcode.DROP_PARTITION.value
    SET_MODEL = Opcode.SET_MODEL.value
    RETIRE = Opcode.RETIRE.value
    SET_EPOCH = Opcode.SET_EPOCH.value
    LANDED = 32
    SEALED = 33
    READ_DONE = 34
    DRAINED = 35
    LOST = 36
    EXPIRED_READ = 37
    EXPIRED_FENCE = 38
    FENCED = 39
    STEP_FRAMES = 40
    STEP_SESSIONS = 41
    STEP_PINS = 42
    STEP_PARKED = 43


class Bind(IntEnum):
    """What a ring is bound to."""

    NONE = 0
    PARTITION = 1
    ADMINISTRATIVE = 2


class State(IntEnum):
    """`hw.params.protocol.FrameState`, as hardware holds it."""

    FREE = FrameState.FREE.value
    WRITING = FrameState.WRITING.value
    SEALED = FrameState.SEALED.value
    DRAINING = FrameState.DRAINING.value
    QUARANTINED = FrameState.QUARANTINED.value


def ring_layout() -> data.StructLayout:
    """Return the layout of a stamp; `registers`: the command came through AXI4-Lite."""
    return data.StructLayout({"ring": RING_BITS, "port": PORT_BITS, "registers": 1})


def limits_layout(params: Params) -> data.StructLayout:
    """Return the layout of what limits a partition's use: its pool, and quota and guarantee in frames.

    The largest number of frames that fits is more than there are: whoever asks for that or more asks for too much.
    """
    count = bits_for(params.frames + 1)
    return data.StructLayout({"pool": bits_for(len(params.pools) - 1), "quota": count, "guarantee": count})


def operation_layout(params: Params) -> data.StructLayout:
    """Return the layout of an operation as the slice takes it: a command, one item of it, or an internal operation.

    - `kind`, `stamp`, `tag`, `item`, `last`: which command of which ring; of a LOOKUP or WRITE, which item, and
      whether it is the last.
    - `malformed`: whoever took the command apart found a field outside its type.
    - `model`, `key`: of LOOKUP, ALLOC, DROP, SET_MODEL, RETIRE.
    - `handle`: of WRITE, SEAL, ABORT, READ; of an internal operation, `handle.frame` alone.
    - `slot`: the session of ALLOC, CLOSE_SESSION, MIGRATE and ANSWER_FENCE, the pin of UNPIN.
    - `segment`, `count`: of WRITE and READ; LANDED answers `count` writes.
    - `length`: bytes of ALLOC, WRITE (this segment's) and SEAL; segments of ANSWER_FENCE.
    - `crc`: of SEAL; of a WRITE, that of the segment.
    - `pin`, `run`: of LOOKUP. `park`: of READ. `ok`: of LANDED and READ_DONE.
    - `ring`, `bind`, `partition`, `limits`, `public`, `read_mask`, `live`: of BIND, SET_PARTITION, DROP_PARTITION,
      SET_MODEL; `ring` also of LOST and STEP_PINS.
    - `epoch`: of SET_EPOCH.
    """
    tables = params.tables
    return data.StructLayout(
        {
            "kind": Kind,
            "stamp": ring_layout(),
            "tag": TAG_BITS,
            "item": ITEM_BITS,
            "last": 1,
            "malformed": 1,
            "model": 8,
            "key": KEY_BITS,
            "handle": handle_layout(),
            "slot": slot_id_layout(),
            "segment": ITEM_BITS,
            "count": ITEM_BITS,
            "length": 32,
            "crc": 32,
            "pin": 1,
            "run": 1,
            "park": 1,
            "ok": 1,
            "ring": ring_layout(),
            "bind": Bind,
            "partition": 8,
            "limits": limits_layout(params),
            "public": 1,
            "read_mask": tables.partitions,
            "live": 1,
            "epoch": EPOCH_BITS,
        }
    )


def verdict_layout() -> data.StructLayout:
    """Return the layout of what the slice says of an operation.

    - `kind`, `stamp`, `tag`, `item`: of which.
    - `status`: as `hw.params.protocol.Status`.
    - `outcome`: with `complete`, how the command has ended; of a LOOKUP that has looked every key up, OK.
    - `complete`: the command has ended; without it, a WRITE's segment is to be stored, a READ to be started, or a
      LOOKUP goes on. `parked`: the READ is not to be started yet, but waits; nothing has to be kept for it.
    - `handle`: of LOOKUP (HIT, PENDING) and ALLOC (GRANTED, EXISTS, PENDING); `named`: there is one.
    - `slot`: the session that was opened, or the pin that was given; `pinned`: there is one.
    - `frame`, `segment`, `count`, `length`: of a READ to be started, the last being the bytes of the block.
    """
    return data.StructLayout(
        {
            "kind": Kind,
            "stamp": ring_layout(),
            "tag": TAG_BITS,
            "item": ITEM_BITS,
            "status": STATUS_BITS,
            "outcome": STATUS_BITS,
            "complete": 1,
            "parked": 1,
            "handle": handle_layout(),
            "named": 1,
            "slot": slot_id_layout(),
            "pinned": 1,
            "frame": FRAME_BITS,
            "segment": ITEM_BITS,
            "count": ITEM_BITS,
            "length": 32,
        }
    )


NOTICE = data.StructLayout({"lost": 1, "message": MESSAGE})
"""What a port is told. `lost`: the block's key is lost, so that nothing can be told: the message is as good as lost."""


def notices_layout(params: Params) -> data.StructLayout:
    """Return the layout of a notice, and the `ports` that it is for, a bit each."""
    return data.StructLayout({"ports": params.tables.ports, "notice": NOTICE})


def log_layout() -> data.StructLayout:
    """Return the layout of an entry of the order log: an operation, as far as it is not known from its command."""
    return data.StructLayout(
        {
            "kind": Kind,
            "stamp": ring_layout(),
            "tag": TAG_BITS,
            "item": ITEM_BITS,
            "frame": FRAME_BITS,
            "slot": SLOT_BITS,
            "count": ITEM_BITS,
            "ok": 1,
            "ring": ring_layout(),
        }
    )


def levels_layout(params: Params) -> data.StructLayout:
    """Return the layout of what is in use: frames by `State`, pins, sessions and parked READs."""
    frames = data.ArrayLayout(bits_for(params.frames), len(State))
    pins = bits_for(params.rings * params.tables.pins_per_ring)
    sessions, parked = bits_for(params.tables.sessions), bits_for(params.tables.parked_reads)
    return data.StructLayout({"frames": frames, "pins": pins, "sessions": sessions, "parked": parked})


def frame_event_layout(params: Params) -> data.StructLayout:
    """Return the layout of what the scrubber of the frame table reports.

    - `uncorrectable`: the row of `frame` is lost, and the frame quarantined; else one bit of it was mended.
    """
    return data.StructLayout({"uncorrectable": 1, "frame": frame_bits(params)})


def session_layout(params: Params) -> data.StructLayout:
    """Return the layout of a session table entry; the fields are those of `pymodel.spec.state.Session`.

    `moved`: there is a `former` ring. `moving`: there is a `fence`, with this number.
    """
    return data.StructLayout(
        {
            "ring": ring_layout(),
            "former": ring_layout(),
            "moved": 1,
            "written": COUNT_BITS,
            "settled": COUNT_BITS,
            "moving": 1,
            "fence": bits_for(params.tables.fences - 1),
        }
    )


def fence_layout() -> data.StructLayout:
    """Return the layout of a migration under way; the fields are those of `pymodel.spec.state.Fencing`.

    `answered`: the old ring has answered, with `writes`.
    """
    return data.StructLayout({"target": ring_layout(), "tag": TAG_BITS, "answered": 1, "writes": COUNT_BITS})


def parked_layout(params: Params) -> data.StructLayout:
    """Return the layout of a parked READ: whose it is, and the command."""
    return data.StructLayout(
        {
            "stamp": ring_layout(),
            "tag": TAG_BITS,
            "frame": frame_bits(params),
            "generation": params.tables.generation_bits,
            "segment": ITEM_BITS,
            "count": ITEM_BITS,
        }
    )


def segments_bits(params: Params) -> int:
    """Return the width of a number of segments of one block."""
    return bits_for(max(pool.frame_bytes for pool in params.pools) // params.memory.segment_bytes)


def seal_layout() -> data.StructLayout:
    """Return the layout of what a row of the frame table, and a second table beside it, say of a SEAL that waits."""
    return data.StructLayout({"sealing": 1, "sealing_stamp": ring_layout(), "sealing_tag": TAG_BITS})


def frame_layout(params: Params) -> data.StructLayout:
    """Return the layout of a row of the frame table; the fields are those of `pymodel.spec.state.Frame`.

    `whole`: no short segment has been appended. `crc` is that of the accepted bytes.
    `place`: where the block's tag is in the CAM.
    """
    tables = params.tables
    length = bits_for(max(pool.frame_bytes for pool in params.pools))
    segments = segments_bits(params)
    return data.StructLayout(
        {
            "state": State,
            "generation": tables.generation_bits,
            "partition": bits_for(tables.partitions - 1),
            "partition_stamp": tables.stamp_bits,
            "model": bits_for(tables.models - 1),
            "model_stamp": tables.stamp_bits,
            "session_slot": bits_for(tables.sessions - 1),
            "session_generation": tables.slot_generation_bits,
            "bound": length,
            "length": length,
            "whole": 1,
            "accepted": segments,
            "answered": segments,
            "landed": segments,
            "crc": 32,
            **{name: field.shape for name, field in seal_layout()},
            "pins": bits_for(params.rings * tables.pins_per_ring),
            "reads": 16,
            "place": place_layout(params),
        }
    )


def directory_bits(params: Params) -> tuple[int, int]:
    """Return the bits a frame of the whole directory, without ECC, and of tag and frame state alone.

    The first counts every slot of the CAM, the frame table, the packed words and the free queue; the second, one tag
    and one row.
    """
    row = frame_layout(params).size
    slot = 1 + tag_bits(params) + frame_bits(params)
    packed = 3 + bits_for(params.tables.partitions - 1)
    directory = params.cam_slots * slot / params.frames + row + packed + frame_bits(params)
    return round(directory), tag_bits(params) + row
