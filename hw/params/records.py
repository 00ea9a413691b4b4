"""What requesters and software exchange in host memory: the fields of descriptors, completions and events.

Little-endian, without gaps; every field is a row of whole bytes. RTL, driver and C header are made from these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hw.params.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Record:
    """A structure in memory: the width of each field in bits, the first at the lowest address."""

    doc: str
    fields: Mapping[str, int]

    @cached_property
    def size(self) -> int:
        """Size of the structure."""
        return sum(self.fields.values()) // 8

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where each field begins, in bytes."""
        offsets, at = {}, 0
        for name, bits in self.fields.items():
            offsets[name] = at // 8
            at += bits
        return offsets

    def pack(self, **values: int) -> bytes:
        """The bytes of a record; what is not given is 0. InputError for a value that does not fit its field."""
        word = 0
        for name, value in values.items():
            if not 0 <= value < 1 << self.fields[name]:
                raise InputError(f"{name} = {value:#x}, expected a number of {self.fields[name]} bits")
            word |= value << 8 * self.offsets[name]
        return word.to_bytes(self.size, "little")

    def unpack(self, data: bytes | memoryview) -> dict[str, int]:
        """The values of a record."""
        word = int.from_bytes(data, "little")
        return {name: word >> 8 * self.offsets[name] & (1 << bits) - 1 for name, bits in self.fields.items()}


ALIGNMENT = 128
"""Of rings, keys, results and lists of pages in host memory, in bytes. Data is aligned to a segment."""

PAGE_SHIFTS = range(9, 32)
"""Page sizes that a list of pages may have, as powers of two; a page holds whole segments."""

_COMMAND = {
    "opcode": 8,
    "flags": 8,
    "model": 16,
    "segment": 16,
    "count": 16,
    "length": 32,
    "crc": 32,
    "subject": 128,
    "slot": 64,
}

COMMAND = Record(doc="A command on a link.", fields=_COMMAND | {"reserved": 64})

DESCRIPTOR = Record(
    doc="An entry of a submission ring: a command as on a link, and where its data is.",
    fields=_COMMAND | {"data": 64, "results": 64, "tag": 16, "page_shift": 8, "slice": 8, "reserved": 32},
)
"""- `flags`: PIN and RUN of LOOKUP, PARK of READ, LIVE of SET_MODEL; SCATTERED of WRITE and READ; STAGED of PREFETCH.
- `count`: keys of LOOKUP, segments of READ. `length`: bytes of ALLOC, WRITE and SEAL; of READ, the bytes that there is
  room for: nothing is written behind them; of ANSWER_FENCE, the segments.
- `subject`: the key of ALLOC and DROP; the handle of WRITE, SEAL, ABORT and READ; SETTINGS of the administrator.
- `slot`: the session of ALLOC, CLOSE_SESSION, MIGRATE and ANSWER_FENCE, the pin of UNPIN; the epoch of SET_EPOCH; the
  read mask of SET_PARTITION. Of WRITE, the session of the block, if the requester manages it; the node does not look.
- `data`: of LOOKUP, the address of its keys, 16 bytes each. Of WRITE and READ, where segment number `segment` of the
  block is or goes; the others follow. With SCATTERED, the address of a list of page addresses, 8 bytes each: the first
  page has segment number `segment` at its beginning, and every page has 2**`page_shift` bytes.
- `results`: of LOOKUP, where a RESULT for each key goes.
- `tag`: comes back in the completion; means nothing to the device.
- `slice`: of the node, that the command goes to; of its number as many bits count as the node needs.
- PREFETCH: `count` blocks, whose BLOCK entries are at `data`; of each, `length` segments from `segment` on, in layer
  ranges of `slot` segments. The arrival table is at `results`, with rows of 2**`page_shift` ARRIVAL entries. With
  STAGED, segments go one behind the other to a ring in the GPU's memory, which `subject` describes (STAGING); `crc` is
  what CONSUMED of the ring reads when it begins.
- CANCEL: `count` is the `tag` of the PREFETCH on this ring.

Of a PUT:

- `flags`: SCATTERED; FENCED: it waits until the FENCE register of its ring has reached the low 32 bits of `results`;
  OPEN: the block is not sealed, another PUT goes on; APPENDED: it goes on with a block.
- `subject`, `model`: the key; with APPENDED, the handle. `slot`: the session, with APPENDED too.
- `data`, `length`, `page_shift`: the bytes, as of WRITE. Only the last PUT of a block may have a number of them that is
  not one of whole segments, or none.
- `count`: with OPEN and without APPENDED, the segments that the block may have in all.
- `segment`, `crc`: with APPENDED, the segments that the block has, and their CRC32C.

Of a FLUSH: `flags`: OF_SESSION; `slot`: then, the session.
"""

STAGING = Record(
    doc="The subject of a PREFETCH that is STAGED.", fields={"address": 64, "log2_segments": 8, "reserved": 56}
)
"""A ring of 2**`log2_segments` segments from `address` on."""

BLOCK = Record(
    doc="An entry of the list of blocks of a PREFETCH.",
    fields={"handle": 128, "data": 64, "length": 32, "page_shift": 8, "flags": 8, "reserved": 272},
)
"""- `handle`: of the block.
- `data`, `page_shift`, and SCATTERED of `flags`: where its segments go, from the first one that is wanted on, as of
  READ. With STAGED of the PREFETCH they mean nothing.
- `length`: the bytes that there is room for.
"""

ARRIVAL = Record(
    doc="An entry of the arrival table of a PREFETCH.",
    fields={
        "length": 32,
        "block": 16,
        "segment": 16,
        "count": 16,
        "tag": 16,
        "status": 8,
        "flags": 8,
        "reserved": 16,
    },
)
"""- `flags`: ARRIVED, all bytes are in memory and were checked; or FAILED, of a block only: then `status` says why.
- `block`: its number in the list. `segment`, `count`: which segments of it. `length`: their bytes.
- `tag`: of the PREFETCH.

A block has a row of 2**`page_shift` entries: the first is for all of it, the others for its layer ranges, in order. An
entry is written once; those behind a range that has failed are not written.
"""

ARRIVED, FAILED = 1, 2
"""Flags of an arrival."""

SETTINGS = Record(
    doc="The subject of BIND, SET_PARTITION and DROP_PARTITION.",
    fields={
        "partition": 8,
        "pool": 8,
        "public": 8,
        "binding": 8,
        "port": 8,
        "ring": 8,
        "quota": 32,
        "guarantee": 32,
    },
)
"""`binding`: an `hw.params.registers.Bound`."""

PIN, RUN, PARK, LIVE, SCATTERED, STAGED = (1 << bit for bit in range(6))
"""Flags of a descriptor. The first four are those of a command."""

FENCED, OPEN, APPENDED = (1 << bit for bit in range(5, 8))
"""Flags of a PUT: it waits for its producer; its block is not sealed yet; it goes on with a block."""

OF_SESSION = 1 << 5
"""A flag of a FLUSH: it is about one session."""

_OUTCOME = {"handle": 128, "slot": 64, "tag": 16, "count": 16, "items": 16, "status": 8, "flags": 8}

COMPLETION = Record(doc="An entry of a completion ring, and a result of one key of a LOOKUP.", fields=_OUTCOME)
"""- `handle`, `slot`: of the block, and of the session or pin that was given, if `flags` has NAMED and GIVEN.
- `slot` of a PUT that is OPEN and ended OK: with GIVEN, the CRC32C of the block so far.
- `slot` of a READ that ended OK or RANGE, without GIVEN: the bytes of its data. Of all else it is 0 without GIVEN, as
  `handle` is without NAMED.
- `tag`: of the descriptor; 0 in a result.
- `count`: of LOOKUP, the keys that hit. Of WRITE and PUT, the segments that the node has appended, as it says, whatever
  the status is. Of READ, the segments if the status is OK, else 0.
- `items`: of LOOKUP, the results that were written; in a result, the number of its key.
- `status`: an `hw.params.protocol.Status`.
- `flags`: NAMED, GIVEN; PHASE is the first thing to look at: 1 in the first round of a ring after it was enabled, then
  alternating; 0 in a result.

A descriptor, and all before it on its ring, may be overwritten when any command behind it, or itself, has completed.
"""

PHASE, NAMED, GIVEN = 1, 2, 4
"""Flags of a completion."""

_MESSAGE = {
    "handle": 128,
    "key": 128,
    "slot": 64,
    "model": 16,
    "partition": 8,
    "ring": 8,
    "kind": 8,
    "fate": 8,
    "flags": 8,
    "slice": 8,
}

MESSAGE = Record(doc="What a node tells a port, on a link.", fields=_MESSAGE)
"""- `kind`: an `hw.params.protocol.MessageKind`; decides which other fields mean something.
- `fate`, `partition`, `model`, `key`, `handle`: of EVENT; `fate` is an `hw.params.commands.Fate`.
- `ring`, `slot`: of FENCE, the ring that has to answer, and the session.
- `flags`: OF_PARTITION or OF_MODEL of INVALIDATE, whose `partition` or `model` has died; LOST: at least one message was
  lost between the one before and this one.
- `slice`: in an event ring, the slice that tells it. On a link it is 0: the header says so.

What a kind has no use for is 0.
"""

OF_PARTITION, OF_MODEL, LOST = 1, 2, 4
"""Flags of a message."""

MANAGED = 8
"""A flag of an event alone."""

EVENT = Record(doc="An entry of an event ring: a message.", fields=_MESSAGE | {"padding": 120, "phase": 8})
"""- `phase`: 1 or 0 as in a completion.
- `flags`: also MANAGED, of FENCE: the requester answers it, software has not to.
"""
