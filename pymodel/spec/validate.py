"""INVALID: commands with a field outside its type, or naming a resource that does not exist."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.protocol import (
    EPOCH_BITS,
    FRAME_GENERATION_BITS,
    ITEM_BITS,
    KEY_BITS,
    SLOT_GENERATION_BITS,
    Handle,
    LookupMode,
    ModelState,
    PinId,
    RingId,
    SessionId,
    SlotId,
)
from pymodel.spec.core import Core
from pymodel.spec.state import NO_POOL

Check = Callable[[Core, Any], bool]


def _number(value: object, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << bits


def _index(value: Any, size: int) -> bool:
    return _number(value, 32) and value < size


def _word(core: Core, value: object) -> bool:
    return _number(value, 32)


def _flag(core: Core, value: object) -> bool:
    return isinstance(value, bool)


def _length(core: Core, length: object) -> bool:
    return _number(length, 32) and length != 0


def _key(core: Core, key: object) -> bool:
    return _number(key, KEY_BITS)


def _keys(core: Core, keys: object) -> bool:
    if not isinstance(keys, Sequence):
        return False
    few = 1 <= len(keys) <= core.params.tables.lookup_keys
    return few and all(_number(key, KEY_BITS) for key in keys)


def _data(core: Core, data: object) -> bool:
    octets = not isinstance(data, memoryview) or (data.ndim, data.itemsize) == (1, 1)
    return isinstance(data, bytes | bytearray | memoryview) and octets and len(data) > 0


def _handle(core: Core, handle: object) -> bool:
    return (
        isinstance(handle, Handle)
        and (handle.node, handle.slice) == (core.node, core.index)
        and _index(handle.frame, len(core.frames))
        and _number(handle.generation, FRAME_GENERATION_BITS)
        and _number(handle.epoch, EPOCH_BITS)
    )


def _slot(name: SlotId, size: int) -> bool:
    return _index(name.slot, size) and _number(name.generation, SLOT_GENERATION_BITS)


def _session(core: Core, session: object) -> bool:
    return isinstance(session, SessionId) and _slot(session, core.params.tables.sessions)


def _pin(core: Core, pin: object) -> bool:
    return isinstance(pin, PinId) and _slot(pin, core.params.tables.pins_per_ring)


def _ring(core: Core, ring: object) -> bool:
    tables = core.params.tables
    return isinstance(ring, RingId) and _index(ring.port, tables.ports) and _index(ring.ring, tables.rings_per_port)


def _partition(core: Core, partition: object) -> bool:
    return _index(partition, len(core.partitions))


def _configured(core: Core, partition: Any) -> bool:
    return _partition(core, partition) and core.partitions[partition].pool is not NO_POOL


_CHECKS: dict[str, Check] = {
    "model": lambda core, model: _index(model, len(core.models)),
    "key": _key,
    "keys": _keys,
    "mode": lambda core, mode: isinstance(mode, LookupMode),
    "pin": _flag,
    "handle": _handle,
    "session": _session,
    "ring": _ring,
    "to": lambda core, to: isinstance(to, Binding) or _configured(core, to),
    "partition": _partition,
    "pool": lambda core, pool: _index(pool, len(core.pools)),
    "segment": lambda core, segment: _number(segment, ITEM_BITS),
    "count": lambda core, count: _number(count, ITEM_BITS) and count != 0,
    "length": _length,
    "crc": _word,
    "data": _data,
    "park": _flag,
    "writes": _word,
    "quota": _word,
    "guarantee": _word,
    "public": _flag,
    "read_mask": lambda core, mask: _number(mask, len(core.partitions)),
    "state": lambda core, state: isinstance(state, ModelState) and state is not ModelState.RETIRED,
    "epoch": lambda core, epoch: _number(epoch, EPOCH_BITS) and epoch != 0,
}
"""What a field of this name has to be."""

_SPECIAL: dict[tuple[type[Command], str], Check] = {
    (c.Unpin, "pin"): _pin,
    (c.DropPartition, "partition"): _configured,
}
"""The same, where one command means something else by that name."""


def _checks(command: type[Command]) -> list[tuple[str, Check]]:
    """A check for every field of a command; KeyError, on import, for a field that has none."""
    return [(f.name, _SPECIAL.get((command, f.name)) or _CHECKS[f.name]) for f in fields(command)]


_FIELDS = {command: _checks(command) for command in Command.__subclasses__()}


def well_formed(core: Core, command: Command) -> bool:
    """Whether every field is inside its type and names something that exists. Looks at no rights and no states."""
    return all(check(core, getattr(command, name)) for name, check in _FIELDS[type(command)])
