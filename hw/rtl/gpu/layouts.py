"""Layouts of what moves inside a requester: the one home of each field."""

from enum import IntEnum
from typing import Any

from amaranth.lib import data, wiring
from amaranth.utils import bits_for

from hw.params import Params, records
from hw.params.protocol import ITEM_BITS, RING_BITS, STATUS_BITS, TAG_BITS, EngineOpcode
from hw.rtl.axi import axi4_read, axi4_write
from hw.rtl.fabric.layouts import COMMAND, flit_layout
from hw.rtl.layouts import handle_layout, layout_of, slot_id_layout

ADDRESS_BITS = 64
"""Width of an address in the requester's memory."""

BOUNDARY = 4096
"""Bytes of the blocks that no AXI4 burst may cross (IHI 0022, A3.4.1)."""

JOB_BITS = 16
"""Width of the number that an engine gives a command of its own."""


class Owner(IntEnum):
    """Whose a command on the link is: it ends by a completion, or is given to the engine that has started it."""

    SOFTWARE = 0
    PREFETCH = 1
    WRITE_BACK = 2
    SESSIONS = 3


ENGINE_OPCODES = {
    Owner.PREFETCH: (EngineOpcode.PREFETCH, EngineOpcode.CANCEL),
    Owner.WRITE_BACK: (EngineOpcode.PUT, EngineOpcode.FLUSH),
    Owner.SESSIONS: (),
}
"""Which descriptors are for which engine; the manager of sessions is given none."""


def engine_owners(params: Params) -> tuple[Owner, ...]:
    """Return the engines that a requester has."""
    has = {Owner.PREFETCH: params.requester.prefetches, Owner.WRITE_BACK: params.requester.slots}
    has[Owner.SESSIONS] = params.requester.sessions
    return tuple(owner for owner in ENGINE_OPCODES if has[owner])


def _whose(params: Params) -> dict[str, Any]:
    """Return the fields that say whose a command is, where there is a choice: its `owner`, and that engine's number of
    it (`job`), 0 of software's."""
    return {"owner": Owner, "job": JOB_BITS} if engine_owners(params) else {}


ENGINE_FLAGS = data.UnionLayout(
    {
        "prefetch": data.StructLayout({"staged": 1}),
        "put": data.StructLayout({"fenced": 1, "open": 1, "appended": 1}),
        "flush": data.StructLayout({"of_session": 1}),
    }
)
"""Flags that mean something to an engine alone."""

DESCRIPTOR = layout_of(
    records.DESCRIPTOR,
    flags=data.StructLayout({"pin": 1, "run": 1, "park": 1, "live": 1, "scattered": 1, "engine": ENGINE_FLAGS}),
    subject=data.UnionLayout(dict(COMMAND["subject"].shape.members) | {"staging": layout_of(records.STAGING)}),
    slot=COMMAND["slot"].shape,
)
COMPLETION = layout_of(
    records.COMPLETION,
    handle=handle_layout(),
    slot=slot_id_layout(),
    flags=data.StructLayout({"phase": 1, "named": 1, "given": 1, "reserved": 5}),
)


def context_bits(params: Params) -> int:
    """Return the width of the number of a context: of a command in flight."""
    return bits_for(params.requester.commands - 1)


def memory_read(params: Params, *, id_bits: int) -> wiring.Signature:
    """Return the signature of the read channels to a requester's memory."""
    beat = 8 * params.memory.beat_bytes
    return axi4_read(address_bits=ADDRESS_BITS, data_bits=beat, id_bits=id_bits, user_bits=0)


def memory_write(params: Params, *, id_bits: int) -> wiring.Signature:
    """Return the signature of the write channels to a requester's memory."""
    beat = 8 * params.memory.beat_bytes
    return axi4_write(address_bits=ADDRESS_BITS, data_bits=beat, id_bits=id_bits, user_bits=0)


def host_id_layout(params: Params, clients: int) -> data.StructLayout:
    """Return the layout of an AWID of a `HostWriter`."""
    return data.StructLayout({"client": bits_for(clients - 1), "token": context_bits(params)})


def place_layout() -> data.StructLayout:
    """Return the layout of where the data of a WRITE or READ is.

    - `address`: of the data, or with `scattered` of the list of its pages.
    - `page_shift`: with `scattered`, the logarithm of the bytes of a page.
    """
    return data.StructLayout({"address": ADDRESS_BITS, "scattered": 1, "page_shift": 8})


def walk_layout() -> data.StructLayout:
    """Return the layout of a question to a `PageWalker`: the address of segment number `segment`, counted from the
    first of the command, of data that is at `place`."""
    return data.StructLayout({"place": place_layout(), "segment": ITEM_BITS})


def found_layout() -> data.StructLayout:
    """Return the layout of its answer: the address, or `error` if the list could not be read or the page is not
    aligned to a segment."""
    return data.StructLayout({"address": ADDRESS_BITS, "error": 1})


def read_layout() -> data.StructLayout:
    """Return the layout of a burst to read: `beats` (1 to 256) from `address` on, which do not cross a `BOUNDARY`."""
    return data.StructLayout({"address": ADDRESS_BITS, "beats": 9})


def read_beat_layout(params: Params) -> data.StructLayout:
    """Return the layout of a beat that was read; `error`: memory refused it; `last`: of the burst."""
    return data.StructLayout({"data": 8 * params.memory.beat_bytes, "error": 1, "last": 1})


def write_layout(params: Params) -> data.StructLayout:
    """Return the layout of a burst to write: `beats` (1 to 256) from `address` on, which do not cross a `BOUNDARY`.

    `token` comes back with the acknowledgement.
    """
    return data.StructLayout({"address": ADDRESS_BITS, "beats": 9, "token": context_bits(params)})


def write_beat_layout(params: Params) -> data.StructLayout:
    """Return the layout of a beat to write; bytes without a bit in `strobe` stay as they are."""
    return data.StructLayout({"data": 8 * params.memory.beat_bytes, "strobe": params.memory.beat_bytes})


def acknowledgement_layout(params: Params) -> data.StructLayout:
    """Return the layout of the end of a burst that was written; `error`: memory refused it."""
    return data.StructLayout({"token": context_bits(params), "error": 1})


def move_layout(params: Params) -> data.StructLayout:
    """Return the layout of the data of a WRITE that is to be sent: `length` bytes, at least 1, as `ring` and `tag` to
    `slice`."""
    return data.StructLayout(
        {
            "place": place_layout(),
            "length": 32,
            "slice": params.node.slice_bits,
            "ring": RING_BITS,
            "tag": TAG_BITS,
            "context": context_bits(params),
        }
    )


def target_layout() -> data.StructLayout:
    """Return the layout of where the data of the READ goes that a flit belongs to.

    - `place`: of segment number `segment` of the block; `room`: bytes that there are from there on.
    - `known`: there is such a READ.
    - `mute`: none of its data is to be written any more.
    """
    return data.StructLayout({"place": place_layout(), "segment": ITEM_BITS, "room": 32, "known": 1, "mute": 1})


def inspected_layout(params: Params) -> data.StructLayout:
    """Return the layout of what is checked of a flit of a READ: its bytes and trailer."""
    flit = flit_layout(params)
    checked = {name: flit[name].shape for name in ("data", "count", "last", "ok", "crc")}
    return data.StructLayout({"context": context_bits(params)} | checked)


def placed_layout(params: Params) -> data.StructLayout:
    """Return the layout of the end of a READ's data.

    - `error`: a segment was dropped, because its page is in error; then the others say nothing.
    - `length`: the bytes of all its segments; `longer`: some of them had no room, and were not written.
    """
    return data.StructLayout({"token": context_bits(params), "error": 1, "longer": 1, "length": 32})


def issued_layout(params: Params) -> data.StructLayout:
    """Return the layout of what names a command on both sides: software's `tag` on `ring`, and `link_tag`.

    Where there are engines, it says whose it is (`owner`); of a command of an engine's, `tag` is of that engine's task.
    """
    names = {"ring": RING_BITS, "tag": TAG_BITS, "link_tag": TAG_BITS}
    return data.StructLayout(names | ({"owner": Owner} if engine_owners(params) else {}))


CONTEXT = data.StructLayout(
    {
        "ring": RING_BITS,
        "tag": TAG_BITS,
        "lookup": 1,
        "read": 1,
        "count": ITEM_BITS,
        "segment": ITEM_BITS,
        "place": place_layout(),
        "room": 32,
        "results": ADDRESS_BITS,
        "refused": 1,
        "refusal": STATUS_BITS,
    }
)
"""What stays of a descriptor as long as its command is under way.

- `tag`: software's. `segment`: of READ, the first one. `place`: of its data; `room`: the bytes that READ may bring.
- `lookup`: it is a LOOKUP, of `count` keys, whose results go to `results`; else `count` are the segments that it is
  about. `read`: it is a READ.
- `refused`: the node does not see it; it ends with the status `refusal`.
"""


def context_layout(params: Params) -> data.StructLayout:
    """Return the layout of a `CONTEXT`; where there are engines, it says whose it is, and whether it is a `task`: the
    node does not see that, and an engine ends it."""
    task = {"task": 1} if engine_owners(params) else {}
    return data.StructLayout({name: field.shape for name, field in CONTEXT} | _whose(params) | task)


OUTCOME = data.StructLayout(
    {"status": 8, "named": 1, "given": 1, "count": ITEM_BITS, "slot": slot_id_layout(), "handle": handle_layout()}
)
"""How a command ended, or one key of a LOOKUP, as the node says; `count`: the segments that it has done."""


def answer_layout(params: Params) -> data.StructLayout:
    """Return the layout of what an answer of the node means for the context that it is of.

    - `complete`: the command has ended, as `outcome` says; `streamed`: after data, the last of which has `end`.
    - `counted`: it is a result of one key, a `hit` or not; `written`: that goes to memory.
    """
    flags = {name: 1 for name in ("complete", "streamed", "counted", "hit", "written")}
    return data.StructLayout({"context": context_bits(params)} | flags | {"outcome": OUTCOME})


ASKED = data.StructLayout({name: CONTEXT[name].shape for name in ("ring", "lookup", "count", "results")})
"""What an answer is to, as in `CONTEXT`."""


def ended_layout(params: Params) -> data.StructLayout:
    """Return the layout of a command that has ended: what it was, how it ended, `hits` and `items` of a LOOKUP; where
    there are engines, whose it was."""
    completed = {name: field.shape for name, field in completed_layout(params)}
    return data.StructLayout(completed | _whose(params))


def completed_layout(params: Params) -> data.StructLayout:
    """Return the layout of the same of a command of software's."""
    context = {name: CONTEXT[name].shape for name in ("ring", "tag", "lookup")}
    counts = {"hits": ITEM_BITS, "items": ITEM_BITS}
    return data.StructLayout({"number": context_bits(params)} | context | {"outcome": OUTCOME} | counts)


def start_layout(params: Params) -> data.StructLayout:
    """Return the layout of a command that is to begin, and, where there are engines, for whom."""
    return data.StructLayout({"ring": RING_BITS} | _whose(params) | {"descriptor": DESCRIPTOR})


def task_layout(params: Params) -> data.StructLayout:
    """Return the layout of a descriptor that an engine has to execute, and whose `context` it has to end."""
    return data.StructLayout({"ring": RING_BITS, "context": context_bits(params), "descriptor": DESCRIPTOR})


def send_layout() -> data.StructLayout:
    """Return the layout of a command that goes to the node, with the `tag` that it has on the link."""
    return data.StructLayout({"ring": RING_BITS, "tag": TAG_BITS, "descriptor": DESCRIPTOR})


def record_layout(params: Params, record: data.StructLayout) -> data.StructLayout:
    """Return the layout of a record that goes to memory at `address`, a multiple of its size."""
    return data.StructLayout({"address": ADDRESS_BITS, "token": context_bits(params), "record": record})


FENCE_BITS = 32
"""Width of what the producer of a ring's blocks has reached, and of what a PUT waits for."""

INDEX_BITS = 16
"""Width of the number of an entry of a ring."""

RING_SETTINGS = data.StructLayout(
    {
        "enable": 1,
        "lose": 1,
        "submission": ADDRESS_BITS,
        "completion": ADDRESS_BITS,
        "log2_entries": 4,
        "tail": data.StructLayout({"data": INDEX_BITS, "write": 1}),
        "head": data.StructLayout({"data": INDEX_BITS, "write": 1}),
        "fence": FENCE_BITS,
    }
)
"""What software says of a ring; of the event ring `completion` and `head`. `lose` and the `write` of a doorbell are for
one cycle. `fence`: what the producer of its blocks has reached."""

RING_STATE = data.StructLayout(
    {"active": 1, "failed": 1, "losing": 1, "outstanding": INDEX_BITS, "tail": INDEX_BITS, "head": INDEX_BITS}
)
"""What software reads of a ring."""

EVENT = layout_of(
    records.EVENT,
    handle=handle_layout(),
    slot=slot_id_layout(),
    flags=data.StructLayout({"of_partition": 1, "of_model": 1, "lost": 1, "managed": 1, "reserved": 4}),
)


COUNTED_PUTS = data.StructLayout({name: 1 for name in ("taken", "existed", "sealed", "failed", "full")})
"""What is to be counted of the write-back buffer in this cycle.

- `taken`: a PUT has got a slot. `full`: a descriptor waits for one.
- `existed`, `sealed`, `failed`: a PUT ends EXISTS, with its block sealed, with any other status that is not OK.
"""


COUNTED_SESSIONS = data.StructLayout({name: 1 for name in ("answered", "failed", "unmanaged")})
"""What is to be counted of the manager of sessions in this cycle.

- `answered`, `failed`: the node has taken its answer to a fence, or has not.
- `unmanaged`: a session finds no place in its table.
"""


def counts_layout() -> data.StructLayout:
    """Return the layout of what software can count or be interrupted by, each for one cycle."""
    names = ("fetched", "refused", "dropped", "completion", "event", "failed", "inactive")
    return data.StructLayout({name: 1 for name in names} | {"puts": COUNTED_PUTS, "sessions": COUNTED_SESSIONS})
