"""`tables.isolation = strict`: what keeps a partition from learning of the others. None of it is in a shared slice.

Partition i has pool i, the ports and the slots of sessions and parked READs that are i modulo the partitions, and its
own sets of the CAM, so nothing of its own depends on others. What is left is refused here: to ask for what is theirs.
"""

from hw.params import commands as c
from hw.params.commands import Command
from pymodel.spec.core import Core
from pymodel.spec.state import Partition


def foreign(core: Core, partition: Partition, command: Command) -> bool:
    """Whether a command names what another partition has, or takes out of a public one: DENIED, whatever is there."""
    if not core.params.strict:
        return False
    if isinstance(command, c.Alloc | c.CloseSession | c.Migrate | c.AnswerFence):
        return command.session.slot % core.params.shares != partition.id
    if isinstance(command, c.Write | c.Seal | c.Abort | c.Read):
        owner = core.partitions[core.pools.index(core.frames[command.handle.frame].pool)]
        read = isinstance(command, c.Read) and core.readable(partition, owner)
        return owner is not partition and not read
    return isinstance(command, c.Drop) and partition.public
