"""INVALID: commands with a field outside its type, or naming a resource that does not exist."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.protocol import EPOCH_BITS, FRAME_GENERATION_BITS, KEY_BITS, REGISTERS, Handle, ModelState
from pymodel.spec.core import Core
from pymodel.spec.state import NO_POOL


def _number(value: object, bits: int) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << bits


def _handle(core: Core, handle: object) -> bool:
    return (
        isinstance(handle, Handle)
        and (handle.node, handle.slice) == (core.node, core.index)
        and 0 <= handle.frame < len(core.frames)
        and _number(handle.generation, FRAME_GENERATION_BITS)
        and _number(handle.epoch, EPOCH_BITS)
    )


def _length(core: Core, length: object) -> bool:
    return _number(length, 32) and length != 0


_CHECKS: dict[str, Callable[[Core, Any], bool]] = {
    "model": lambda core, model: _number(model, 16) and model < len(core.models),
    "key": lambda core, key: _number(key, KEY_BITS),
    "handle": _handle,
    "session": lambda core, session: session in core.sessions,
    "partition": lambda core, partition: _number(partition, 16) and partition < len(core.partitions),
    "pool": lambda core, pool: _number(pool, 16) and pool < len(core.pools),
    "segment": lambda core, segment: _number(segment, 32),
    "count": _length,
    "length": _length,
    "crc": lambda core, crc: _number(crc, 32),
    "data": lambda core, data: len(data) > 0,
    "writes": lambda core, writes: _number(writes, 32),
    "quota": lambda core, quota: _number(quota, 32),
    "guarantee": lambda core, guarantee: _number(guarantee, 32),
    "read_mask": lambda core, mask: _number(mask, len(core.partitions)),
    "epoch": lambda core, epoch: _number(epoch, EPOCH_BITS) and epoch != 0,
}


def _lookup(core: Core, command: c.Lookup) -> bool:
    few = 1 <= len(command.keys) <= core.params.tables.lookup_keys
    return few and all(_number(key, KEY_BITS) for key in command.keys)


def _bind(core: Core, command: c.Bind) -> bool:
    if command.ring not in core.rings or command.ring == REGISTERS:
        return False
    if isinstance(command.to, Binding):
        return True
    return 0 <= command.to < len(core.partitions) and core.partitions[command.to].pool is not NO_POOL


_SPECIAL: dict[type[Command], Callable[[Core, Any], bool]] = {
    c.Lookup: _lookup,
    c.Bind: _bind,
    c.DropPartition: lambda core, command: core.partitions[command.partition].pool is not NO_POOL,
    c.Unpin: lambda core, command: 0 <= command.pin.slot < core.params.tables.pins_per_ring,
    c.SetModel: lambda core, command: command.state in (ModelState.LIVE, ModelState.READ_ONLY),
}

_FIELDS = {
    command: [(f.name, _CHECKS[f.name]) for f in fields(command) if f.name in _CHECKS]
    for command in Command.__subclasses__()
}


def well_formed(core: Core, command: Command) -> bool:
    """Whether every field is inside its type and names something that exists. Looks at no rights and no states."""
    special = _SPECIAL.get(type(command))
    inside = all(check(core, getattr(command, name)) for name, check in _FIELDS[type(command)])
    return inside and (special is None or special(core, command))
