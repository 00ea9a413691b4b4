"""Administrative commands as the registers carry them."""

from collections.abc import Callable

from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.protocol import ModelState, Opcode, RingId
from hw.params.registers import Bound

_BOUND = {Binding.NONE: Bound.NONE, Binding.ADMINISTRATIVE: Bound.ADMINISTRATIVE}


def bound_of(to: int | Binding) -> Bound:
    """What BIND is told to bind to; which partition that is, is another field."""
    return _BOUND[to] if isinstance(to, Binding) else Bound.PARTITION


def operands_of(command: Command) -> dict[str, int]:
    """The fields of the ADMIN registers that describe a command, by ``REGISTER.field``; none if they have no such."""
    match command:
        case c.Bind(ring, to):
            operands = {"ADMIN_RING.port": ring.port, "ADMIN_RING.ring": ring.ring, "ADMIN_RING.binding": bound_of(to)}
            return operands if isinstance(to, Binding) else operands | {"ADMIN_PARTITION.partition": to}
        case c.SetPartition(partition, pool, quota, guarantee, public, read_mask):
            return {
                "ADMIN_PARTITION.partition": partition,
                "ADMIN_PARTITION.pool": pool,
                "ADMIN_PARTITION.public": int(public),
                "ADMIN_QUOTA.quota": quota,
                "ADMIN_GUARANTEE.guarantee": guarantee,
                "ADMIN_READ_MASK_LOW.low": read_mask & 0xFFFFFFFF,
                "ADMIN_READ_MASK_HIGH.high": read_mask >> 32,
            }
        case c.DropPartition(partition):
            return {"ADMIN_PARTITION.partition": partition}
        case c.SetModel(model, state):
            return {"ADMIN_MODEL.model": model, "ADMIN_MODEL.state": state}
        case c.Retire(model):
            return {"ADMIN_MODEL.model": model}
        case _:
            return {}


def command_of(get: Callable[[str], int]) -> Command | None:
    """The command that the ADMIN registers describe, read by ``REGISTER.field``; None for an opcode that is none."""
    partition, model = get("ADMIN_PARTITION.partition"), get("ADMIN_MODEL.model")
    match get("ADMIN_COMMAND.opcode"):
        case Opcode.BIND:
            ring = RingId(get("ADMIN_RING.port"), get("ADMIN_RING.ring"))
            targets: dict[int, int | Binding] = {
                Bound.NONE: Binding.NONE,
                Bound.PARTITION: partition,
                Bound.ADMINISTRATIVE: Binding.ADMINISTRATIVE,
            }
            binding = get("ADMIN_RING.binding")
            return c.Bind(ring, targets[binding]) if binding in targets else None
        case Opcode.SET_PARTITION:
            return c.SetPartition(
                partition,
                get("ADMIN_PARTITION.pool"),
                get("ADMIN_QUOTA.quota"),
                get("ADMIN_GUARANTEE.guarantee"),
                bool(get("ADMIN_PARTITION.public")),
                get("ADMIN_READ_MASK_HIGH.high") << 32 | get("ADMIN_READ_MASK_LOW.low"),
            )
        case Opcode.DROP_PARTITION:
            return c.DropPartition(partition)
        case Opcode.SET_MODEL:
            state = get("ADMIN_MODEL.state")
            return c.SetModel(model, ModelState(state)) if state in list(ModelState) else None
        case Opcode.RETIRE:
            return c.Retire(model)
        case _:
            return None
