"""Invariant 12 in decisions: what a partition is told does not change when others do something else, or nothing.

An order log is executed twice: whole, and without what the partitions did that the observer has no business with. Both
times the observer must be told the same, and what the slice does for it must be possible.
"""

from collections.abc import Iterable, Sequence

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Completion, Message
from hw.params.orderlog import Hand, Operation, Taken, Timer
from hw.params.params import Params
from pymodel.spec.check.violation import invariant
from pymodel.spec.core import Core
from pymodel.spec.internal import IllegalOperation
from pymodel.spec.slice import Slice
from pymodel.spec.state import NOBODY, Reading, Session

CONFIGURATION = NOBODY.id
"""Whose the administrator's operations are, and a restart."""


def whose(core: Core, op: Operation) -> int:
    """The partition that an operation is of, or is done for, judged before it is executed."""
    match op:
        case Taken() | log.ReadDone() | log.Lost() | log.Step(hand=Hand.PINS):
            return NOBODY.id if op.ring is None else core.rings[op.ring].partition.id
        case log.Landed() | log.Sealed() | log.Drained():
            return core.frames[op.frame].partition.id
        case log.Step(hand=Hand.FRAMES):
            return core.frames[op.slot].partition.id
        case log.Step(hand=Hand.PARKED) | log.Expired(timer=Timer.PARKED_READ):
            entry: Reading | Session | None = core.parked.at(op.slot)
        case log.Step() | log.Expired() | log.Fenced():
            entry = core.sessions.at(op.slot)
        case _:
            return CONFIGURATION
    return NOBODY.id if entry is None else entry.ring.partition.id


def execute(slice_: Slice, op: Operation, observer: int) -> list[Completion | Message]:
    """Execute an operation; returns what the observer is told: completions, messages of its blocks and sessions."""
    rings = [ring for ring in slice_.core.rings.values() if ring.partition.id == observer]
    mine, ports = {ring.id for ring in rings}, {ring.id.port for ring in rings if not ring.lost}

    def concerns(output: Completion | Message) -> bool:
        if isinstance(output, Completion | c.Fence):
            return output.ring in mine
        owner = output.partition if isinstance(output, c.Event | c.Invalidate) else None
        return owner in (None, observer) and output.port in ports

    return [output for output in slice_.execute(op) if concerns(output)]


def published(order: Iterable[Operation]) -> set[int]:
    """The partitions that are public at some time: their content is there to be seen."""
    commands = (op.command for op in order if isinstance(op, Taken))
    return {command.partition for command in commands if isinstance(command, c.SetPartition) and command.public}


def independent(params: Params, order: Sequence[Operation], observer: int) -> int:
    """Check that ``observer`` is told the same with and without the others; returns in how many operations they did
    something. Raises InvariantViolation."""
    kept = {CONFIGURATION, observer} | published(order)
    whole, part = Slice(params), Slice(params)
    others = 0
    for at, op in enumerate(order):
        if whose(whole.core, op) not in kept:
            others += 1
            whole.execute(op)
            continue
        expected = execute(whole, op, observer)
        try:
            said = execute(part, op, observer)
        except IllegalOperation as why:
            invariant(12, False, "entry {} of partition {} needs the others: {}: {}", at, observer, op, why)
        else:
            invariant(12, said == expected, "entry {}: {} is told {}, alone {}", at, observer, expected, said)
    return others
