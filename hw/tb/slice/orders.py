"""Administrative commands as accesses to the registers."""

from collections.abc import Generator

from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.protocol import REGISTERS, ModelState, Status
from hw.params.registers import Bound
from hw.rdl import register_map

Access = tuple[int, int | None]
"""Offset, and the word to write there; None reads it."""

REGISTER_MAP = register_map()

Order = Generator[Access, int, Status | None]
"""Accesses, one after the other; each is sent what was read. Returns the status; None when registers tell none."""


def order(command: Command) -> Order:
    """Have a command done by way of the registers, and wait for its end."""
    if isinstance(command, c.SetEpoch):
        yield from _write("EPOCH_LOW", low=command.epoch & 0xFFFFFFFF)
        yield from _write("EPOCH_HIGH", high=command.epoch >> 32)
        yield from _write("CONTROL", start=1)
        return None
    opcode = command.opcode.value
    for name, fields in _operands(command).items():
        register = REGISTER_MAP[name]
        if any(not 0 <= value < 1 << register.field(field).width for field, value in fields.items()):
            opcode = 0
            break
        yield from _write(name, **fields)
    yield from _write("ADMIN_COMMAND", opcode=opcode, go=1)
    busy, status = (REGISTER_MAP["ADMIN_STATUS"].field(name) for name in ("busy", "status"))
    while True:
        word = yield REGISTER_MAP["ADMIN_STATUS"].offset, None
        if not word & busy.mask:
            return Status((word & status.mask) >> status.low)


def _write(name: str, **fields: int) -> Order:
    register = REGISTER_MAP[name]
    yield register.offset, sum(value << register.field(field).low for field, value in fields.items())
    return None


def _operands(command: Command) -> dict[str, dict[str, int]]:
    """The registers of a command's operands, with what goes into their fields."""
    match command:
        case c.Bind(ring, to):
            kinds = {Binding.NONE: Bound.NONE, Binding.ADMINISTRATIVE: Bound.ADMINISTRATIVE}
            bound = Bound.PARTITION if isinstance(to, int) else kinds[to]
            place = {"port": 1 << 8, "ring": 0} if ring == REGISTERS else ring._asdict()
            target = {"ADMIN_PARTITION": {"partition": to}} if isinstance(to, int) else {}
            return {"ADMIN_RING": {**place, "binding": bound}, **target}
        case c.SetPartition(partition, pool, quota, guarantee, public, read_mask):
            return {
                "ADMIN_PARTITION": {"partition": partition, "pool": pool, "public": int(public)},
                "ADMIN_QUOTA": {"quota": quota},
                "ADMIN_GUARANTEE": {"guarantee": guarantee},
                "ADMIN_READ_MASK_LOW": {"low": read_mask & 0xFFFFFFFF},
                "ADMIN_READ_MASK_HIGH": {"high": read_mask >> 32},
            }
        case c.DropPartition(partition):
            return {"ADMIN_PARTITION": {"partition": partition}}
        case c.SetModel(model, state):
            return {"ADMIN_MODEL": {"model": model, "state": ModelState(state).value}}
        case c.Retire(model):
            return {"ADMIN_MODEL": {"model": model}}
    return {}
