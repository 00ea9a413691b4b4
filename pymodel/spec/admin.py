"""BIND, SET_PARTITION, DROP_PARTITION, SET_MODEL, RETIRE, SET_EPOCH: what only the administrator does."""

from hw.params import commands as c
from hw.params.commands import Binding, Completion, Invalidate
from hw.params.orderlog import Taken
from hw.params.protocol import ModelState, Status
from pymodel.spec.core import Core, require
from pymodel.spec.state import NOBODY, Ring


def quiet(core: Core, ring: Ring) -> bool:
    """Whether nothing of the ring is left: no pin, no session, no command under way."""
    return not (len(ring.pins) or ring.sessions or any(owner == ring.id for owner, _ in core.outstanding))


def bind(core: Core, ring: Ring, op: Taken, command: c.Bind, result: Completion) -> bool:
    """Give a ring to a partition. A ring in use is lost first, and changes hands once nothing of it is left."""
    target = core.rings[command.ring]
    if core.params.strict and isinstance(command.to, int):  # a partition has ports of its own
        require(command.ring.port % core.params.shares == command.to, Status.RANGE)
    target.lost = target.lost or target.partition is not NOBODY or target.administrative
    require(quiet(core, target), Status.PENDING)
    target.lost = False
    target.partition = core.partitions[command.to] if isinstance(command.to, int) else NOBODY
    target.administrative = command.to is Binding.ADMINISTRATIVE
    return True


def set_partition(core: Core, ring: Ring, op: Taken, command: c.SetPartition, result: Completion) -> bool:
    """Configure a partition. A quota may fall below use; the pool changes only while no frame is used."""
    partition = core.partitions[command.partition]
    pool = core.pools[command.pool]
    frames = len(pool.frames)
    others = sum(p.guarantee for p in core.partitions if p.pool is pool and p is not partition)
    require(command.guarantee <= command.quota <= frames, Status.RANGE)
    require(others + command.guarantee <= frames, Status.RANGE)
    if core.params.strict:  # a pool each, and public as long as readers may hold frames
        require(command.pool == command.partition, Status.RANGE)
        require(command.public or not partition.public or partition.used == 0, Status.PENDING)
    if partition.pool is not pool:
        require(partition.used == 0, Status.PENDING)
        partition.pool = pool
        partition.hand = 0
        partition.victims.clear()
    partition.quota = command.quota
    partition.guarantee = command.guarantee
    partition.public = command.public
    partition.read_mask = command.read_mask
    return True


def drop_partition(core: Core, ring: Ring, op: Taken, command: c.DropPartition, result: Completion) -> bool:
    """Everything in the partition dies."""
    partition = core.partitions[command.partition]
    partition.scope.bump()
    core.outputs.extend(Invalidate(port, partition=partition.id, slice=core.index) for port in core.ports(partition))
    return True


def set_model(core: Core, ring: Ring, op: Taken, command: c.SetModel, result: Completion) -> bool:
    """LIVE or READ_ONLY; what was retired stays dead."""
    core.models[command.model].state = command.state
    return True


def retire(core: Core, ring: Ring, op: Taken, command: c.Retire, result: Completion) -> bool:
    """Everything of the model dies, in all partitions."""
    model = core.models[command.model]
    model.state = ModelState.RETIRED
    model.scope.bump()
    core.outputs.extend(Invalidate(port, model=model.id, slice=core.index) for port in core.ports())
    return True


def set_epoch(core: Core, ring: Ring, op: Taken, command: c.SetEpoch, result: Completion) -> bool:
    """Start service; nobody has the right to do so twice in a life."""
    require(core.epoch == 0, Status.DENIED)
    core.epoch = command.epoch
    return True
