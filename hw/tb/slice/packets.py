"""Commands as the flits of a link, and what comes back as answers, beats and messages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hw.params import commands as c
from hw.params.commands import Command
from hw.params.params import Params
from hw.params.protocol import KEY_BYTES, Handle, NoteKind, RingId, SlotId, Status
from hw.rtl.emit import describe
from hw.rtl.fabric.layouts import (
    COMMAND,
    COMMAND_BYTES,
    MESSAGE_BYTES,
    RESPONSE,
    RESPONSE_BYTES,
    Channel,
    flit_layout,
)
from hw.rtl.node.layouts import operation_layout
from hw.tb.core.messages import CODEC
from hw.tb.core.operations import Encoder, Fields
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError

NO_OPCODE = 0xFF
"""What a command is sent as that has a value which no flit can carry."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A RESPONSE packet; `outcome` is the status of the command, if it has ended."""

    ring: RingId
    tag: int
    item: int
    status: Status
    outcome: Status | None
    handle: Handle | None
    slot: SlotId | None


@dataclass(frozen=True, slots=True)
class Beat:
    """A DATA flit from a node."""

    ring: RingId
    tag: int
    segment: int
    data: bytes
    last: bool
    end: bool
    ok: bool
    crc: int


class Packets:
    """Packs and unpacks the flits of one set of parameters; a flit is an integer."""

    def __init__(self, params: Params) -> None:
        layout = flit_layout(params)
        self.flit_bytes = -(-layout.size // 8)
        self._params = params
        self._encoder = Encoder(params, Codec(describe(operation_layout(params))))
        self._flit, self._command, self._response = (Codec(describe(each)) for each in (layout, COMMAND, RESPONSE))
        self._at = {name: field.offset for name, field in layout}
        self._masks = {name: (1 << field.width) - 1 for name, field in layout}
        self._blank: Fields = self._command.unpack(0)

    def requests(self, ring: RingId, tag: int, command: Command) -> list[int]:
        """The REQUEST flits of a command."""
        keys: Sequence[int] = ()
        length = None
        if isinstance(command, c.Lookup):
            keys, command = command.keys, replace(command, keys=[0])
        elif isinstance(command, c.Write):
            length, command = len(command.data), replace(command, data=command.data or b"\0")
        fields = self._fields(self._encoder.command(ring, tag, command)[0])
        if keys:
            fields["count"] = len(keys)
        elif length is not None:
            fields["length"] = length
        payload = self._command.pack(fields)
        size = self._params.memory.beat_bytes
        head = payload.to_bytes(COMMAND_BYTES, "little").ljust(self._params.flits(COMMAND_BYTES) * size, b"\0")
        return self._packet(
            Channel.REQUEST, ring, tag, head + b"".join(key.to_bytes(KEY_BYTES, "little") for key in keys)
        )

    def data(self, ring: RingId, tag: int, command: Command) -> list[int]:
        """The DATA flits of a command, a packet a segment."""
        if not isinstance(command, c.Write) or self._encoder.command(ring, tag, command)[0]["malformed"]:
            return []
        size = self._params.memory.segment_bytes
        parts = (bytes(command.data[i : i + size]) for i in range(0, len(command.data), size))
        return [flit for part in parts for flit in self._packet(Channel.DATA, ring, tag, part)]

    def loss(self, ring: RingId) -> list[int]:
        """The MESSAGE flit that says that a ring is lost."""
        return self._packet(Channel.MESSAGE, ring, 0, bytes([NoteKind.LOST]))

    def heartbeat(self, port: int) -> list[int]:
        """The MESSAGE flit that says that a requester is there."""
        return self._packet(Channel.MESSAGE, RingId(port, 0), 0, bytes([NoteKind.HEARTBEAT]))

    def channel(self, flit: int) -> Channel:
        """Which channel a flit is of."""
        return Channel(self._field(flit, "channel"))

    def answer(self, port: int, flits: list[int]) -> Answer:
        """The answer in the flits of a RESPONSE packet from `port`."""
        size = self._params.memory.beat_bytes
        payload = b"".join(self._field(flit, "data").to_bytes(size, "little") for flit in flits)
        fields = self._response.unpack(int.from_bytes(payload[:RESPONSE_BYTES], "little"))
        return Answer(
            RingId(port, self._field(flits[0], "ring")),
            self._field(flits[0], "tag"),
            fields["item"],
            Status(fields["status"]),
            Status(fields["outcome"]) if fields["complete"] else None,
            Handle(**fields["handle"]) if fields["named"] else None,
            SlotId(**fields["slot"]) if fields["pinned"] else None,
        )

    def message(self, flits: list[int]) -> tuple[bool, Fields]:
        """The message in the flits of a MESSAGE packet, and whether it has LOST, which is taken out of it."""
        size = self._params.memory.beat_bytes
        payload = b"".join(
            self._field(flit, "data").to_bytes(size, "little")[: self._field(flit, "count")] for flit in flits
        )
        if len(payload) != MESSAGE_BYTES:
            raise CheckError(f"a message of {len(payload)} bytes, expected {MESSAGE_BYTES}")
        fields = CODEC.unpack(int.from_bytes(payload, "little"))
        return bool(fields["flags"]["lost"]), fields | {"flags": fields["flags"] | {"lost": 0}}

    def ends(self, flit: int) -> bool:
        """Whether a flit ends its packet."""
        return bool(self._field(flit, "last"))

    def beat(self, port: int, flit: int) -> Beat:
        """The beat in a DATA flit from `port`."""
        data = self._field(flit, "data").to_bytes(self._params.memory.beat_bytes, "little")
        return Beat(
            RingId(port, self._field(flit, "ring")),
            self._field(flit, "tag"),
            self._field(flit, "segment"),
            data[: self._field(flit, "count")],
            self.ends(flit),
            bool(self._field(flit, "end")),
            bool(self._field(flit, "ok")),
            self._field(flit, "crc"),
        )

    def _field(self, flit: int, name: str) -> int:
        return flit >> self._at[name] & self._masks[name]

    def _packet(self, channel: Channel, ring: RingId, tag: int, payload: bytes) -> list[int]:
        """The flits of a packet."""
        size, at = self._params.memory.beat_bytes, self._at
        header = channel << at["channel"] | ring.ring << at["ring"] | tag << at["tag"]
        flits = []
        for start in range(0, len(payload), size):
            part = payload[start : start + size]
            last = start + size >= len(payload)
            word = int.from_bytes(part, "little")
            flits.append(header | word << at["data"] | len(part) << at["count"] | last << at["last"])
        return flits

    def _fields(self, op: Fields) -> dict[str, Any]:
        """The command that an operation is made of."""
        if op["malformed"]:
            return self._blank | {"opcode": NO_OPCODE}
        subject, slot = dict(self._blank["subject"]), dict(self._blank["slot"])
        if op["key"]:
            subject["key"] = op["key"]
        elif any(op["handle"].values()):
            subject["handle"] = op["handle"]
        else:
            subject["settings"] = {
                "partition": op["partition"],
                "pool": op["limits"]["pool"],
                "public": op["public"],
                "binding": op["bind"],
                "port": op["ring"]["port"],
                "ring": op["ring"]["ring"],
                "quota": op["limits"]["quota"],
                "guarantee": op["limits"]["guarantee"],
            }
        if op["epoch"]:
            slot["epoch"] = op["epoch"]
        elif op["read_mask"]:
            slot["read_mask"] = op["read_mask"]
        else:
            slot["id"] = op["slot"]
        flags = self._blank["flags"] | {name: op[name] for name in ("pin", "run", "park", "live")}
        plain = {name: op[name] for name in ("model", "segment", "count", "length", "crc")}
        return self._blank | plain | {"opcode": op["kind"], "flags": flags, "subject": subject, "slot": slot}
