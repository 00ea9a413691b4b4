"""Commands as the operations that a core takes, and back from the log's entries to those of the specification."""

from collections.abc import Mapping
from typing import Any

import google_crc32c
from amaranth.utils import bits_for

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Binding, Command
from hw.params.orderlog import Hand, Operation, Timer
from hw.params.params import Params
from hw.params.protocol import ITEM_BITS, KEY_BITS, REGISTERS, Handle, LookupMode, ModelState, RingId, SlotId
from hw.rtl.node.layouts import COUNT_BITS, Bind, Kind
from hw.tb.payload import Codec

Fields = dict[str, Any]


class Encoder:
    """Makes operations; a field that a hardware word cannot hold makes its command malformed."""

    def __init__(self, params: Params, codec: Codec) -> None:
        self._params = params
        self._codec = codec

    def blank(self, kind: Kind) -> Fields:
        """An operation with nothing but its kind."""
        return self._codec.unpack(0) | {"kind": kind.value}

    def command(self, ring: RingId, tag: int, command: Command) -> list[Fields]:
        """The operations of a command: one, or one an item."""
        base = self.blank(Kind[command.opcode.name]) | {"stamp": stamp(ring), "tag": tag, "last": 1}
        try:
            return self._items(base, command)
        except (ValueError, OverflowError):
            return [base | {"malformed": 1}]

    def _items(self, base: Fields, command: Command) -> list[Fields]:
        if isinstance(command, c.Lookup):
            return self._lookup(base, command)
        if isinstance(command, c.Write):
            return self._write(base, command)
        fields = base | self._fields(command)
        self._codec.pack(fields)
        return [fields]

    def _lookup(self, base: Fields, command: c.Lookup) -> list[Fields]:
        if not 1 <= len(command.keys) <= self._params.tables.lookup_keys:
            raise ValueError("too few or too many keys")
        run = command.mode is LookupMode.RUN
        base = base | {"model": command.model, "run": int(run), "pin": int(command.pin)}
        last = len(command.keys) - 1
        return [
            base | {"item": item, "last": int(item == last), "key": fit(key, KEY_BITS)}
            for item, key in enumerate(command.keys)
        ]

    def _write(self, base: Fields, command: c.Write) -> list[Fields]:
        size = self._params.memory.segment_bytes
        parts = [command.data[i : i + size] for i in range(0, len(command.data), size)]
        if not parts:
            raise ValueError("no data")
        base = base | {"handle": handle(command.handle)}
        return [
            base
            | {
                "item": item,
                "last": int(item == len(parts) - 1),
                "segment": fit(command.segment + item, ITEM_BITS),
                "length": len(part),
                "crc": google_crc32c.value(bytes(part)),
            }
            for item, part in enumerate(parts)
        ]

    def _fields(self, command: Command) -> Fields:  # noqa: PLR0911, PLR0912 (one case a command)
        """The fields of a command with one operation."""
        match command:
            case c.Alloc(model, key, length, session):
                return {"model": model, "key": fit(key, KEY_BITS), "length": length, "slot": slot(session)}
            case c.Seal(name, length, crc):
                return {"handle": handle(name), "length": length, "crc": fit(crc, 32)}
            case c.Abort(name):
                return {"handle": handle(name)}
            case c.Read(name, segment, count, park):
                return {"handle": handle(name), "segment": segment, "count": count, "park": int(park)}
            case c.Unpin(pin):
                return {"slot": slot(pin)}
            case c.Drop(model, key):
                return {"model": model, "key": fit(key, KEY_BITS)}
            case c.CloseSession(session) | c.Migrate(session):
                return {"slot": slot(session)}
            case c.AnswerFence(session, writes):
                return {"slot": slot(session), "length": fit(writes, COUNT_BITS)}
            case c.Bind(ring, to):
                return self._bind(ring, to)
            case c.SetPartition(partition, pool, quota, guarantee, public, read_mask):
                most = (1 << bits_for(self._params.frames + 1)) - 1
                limits = {"pool": pool, "quota": min(quota, most), "guarantee": min(guarantee, most)}
                return {"partition": partition, "limits": limits, "public": int(public), "read_mask": read_mask}
            case c.DropPartition(partition):
                return {"partition": partition}
            case c.SetModel(model, state):
                if state is ModelState.RETIRED:
                    raise ValueError("SET_MODEL does not retire")
                return {"model": model, "live": int(state is ModelState.LIVE)}
            case c.Retire(model):
                return {"model": model}
            case c.SetEpoch(epoch):
                return {"epoch": epoch}
        return {}

    @staticmethod
    def _bind(ring: RingId, to: int | Binding) -> Fields:
        if ring == REGISTERS:
            raise ValueError("registers are not bound")
        kinds = {Binding.NONE: Bind.NONE, Binding.ADMINISTRATIVE: Bind.ADMINISTRATIVE}
        bound = Bind.PARTITION if isinstance(to, int) else kinds[to]
        return {"ring": stamp(ring), "bind": bound.value, "partition": to if isinstance(to, int) else 0}


def fit(value: int, bits: int) -> int:
    """The value, if it is an unsigned number of so many bits; else ValueError."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{value} is no number of {bits} bits")
    return value


def stamp(ring: RingId) -> Fields:
    """A stamp's fields."""
    if ring == REGISTERS:
        return {"ring": 0, "port": 0, "registers": 1}
    return {"ring": ring.ring, "port": ring.port, "registers": 0}


def ring_of(fields: Mapping[str, int]) -> RingId:
    """The ring that a stamp names."""
    return REGISTERS if fields["registers"] else RingId(fields["port"], fields["ring"])


def handle(name: Handle) -> Fields:
    """A handle's fields."""
    return name._asdict()


def slot(name: SlotId) -> Fields:
    """The fields of a pin or session id."""
    return name._asdict()


def operation(entry: Fields, commands: Mapping[tuple[RingId, int], Command]) -> Operation:
    """The specification's log entry for one of the core's."""
    kind, ring, tag = Kind(entry["kind"]), ring_of(entry["stamp"]), entry["tag"]
    if kind < Kind.LANDED:
        return log.Taken(ring, tag, commands[ring, tag], entry["item"])
    internal: dict[Kind, Operation] = {
        Kind.LANDED: log.Landed(entry["frame"], entry["count"], bool(entry["ok"])),
        Kind.SEALED: log.Sealed(entry["frame"]),
        Kind.READ_DONE: log.ReadDone(ring, tag, bool(entry["ok"])),
        Kind.DRAINED: log.Drained(entry["frame"]),
        Kind.EXPIRED_READ: log.Expired(Timer.PARKED_READ, entry["slot"]),
        Kind.EXPIRED_FENCE: log.Expired(Timer.FENCE, entry["slot"]),
        Kind.FENCED: log.Fenced(entry["slot"]),
        Kind.LOST: log.Lost(ring_of(entry["ring"])),
        Kind.STEP_FRAMES: log.Step(Hand.FRAMES, entry["frame"]),
        Kind.STEP_SESSIONS: log.Step(Hand.SESSIONS, entry["slot"]),
        Kind.STEP_PINS: log.Step(Hand.PINS, entry["slot"], ring_of(entry["ring"])),
        Kind.STEP_PARKED: log.Step(Hand.PARKED, entry["slot"]),
    }
    return internal[kind]
