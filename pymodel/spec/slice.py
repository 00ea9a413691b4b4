"""One slice of a memory node: takes the entries of an order log, one by one, and says what the ports are told."""

from collections.abc import Callable, Iterator

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Command, Completion, Message
from hw.params.orderlog import Hand, Operation, Taken
from hw.params.params import Params
from hw.params.protocol import Opcode, Status
from pymodel.spec import admin, blocks, internal, sessions
from pymodel.spec.check.monitor import Monitor
from pymodel.spec.core import Core, Refused, require
from pymodel.spec.internal import legal, present
from pymodel.spec.isolation import foreign
from pymodel.spec.state import NOBODY, Ring
from pymodel.spec.validate import well_formed

COMMANDS: dict[Opcode, Callable[..., bool]] = {
    Opcode.LOOKUP: blocks.lookup,
    Opcode.ALLOC: blocks.alloc,
    Opcode.WRITE: blocks.write,
    Opcode.SEAL: blocks.seal,
    Opcode.ABORT: blocks.abort,
    Opcode.READ: blocks.read,
    Opcode.UNPIN: blocks.unpin,
    Opcode.DROP: blocks.drop,
    Opcode.OPEN_SESSION: sessions.open_session,
    Opcode.CLOSE_SESSION: sessions.close_session,
    Opcode.MIGRATE: sessions.migrate,
    Opcode.ANSWER_FENCE: sessions.answer_fence,
    Opcode.BIND: admin.bind,
    Opcode.SET_PARTITION: admin.set_partition,
    Opcode.DROP_PARTITION: admin.drop_partition,
    Opcode.SET_MODEL: admin.set_model,
    Opcode.RETIRE: admin.retire,
    Opcode.SET_EPOCH: admin.set_epoch,
}

INTERNAL: dict[type[Operation], Callable[..., None]] = {
    log.Landed: internal.landed,
    log.Sealed: internal.sealed,
    log.ReadDone: internal.read_done,
    log.Drained: internal.drained,
    log.Expired: internal.expired,
    log.Fenced: internal.fenced,
    log.Lost: internal.lost,
    log.Step: internal.step,
}


class Slice:
    """The specification of a slice. No clock: its whole behaviour is a function of its order log.

    ``execute`` raises IllegalOperation for a log entry that is not legal at its place, and InvariantViolation (an
    AssertionError) when the specification itself breaks an invariant of the contract.
    """

    def __init__(self, params: Params, node: int = 0, index: int = 0) -> None:
        self.core = Core(params, node, index)
        self.monitor = Monitor(self.core)

    def execute(self, op: Operation) -> list[Completion | Message]:
        """Take one entry of the order log; returns the completions and messages that it causes."""
        core = self.core
        self.monitor.before(op)
        if isinstance(op, Taken):
            self._take(op)
        elif isinstance(op, log.Restarted):
            self._restart()
        else:
            INTERNAL[type(op)](core, op)
        outputs, core.outputs = core.outputs, []
        self.monitor.after(op, outputs)
        return outputs

    def _take(self, op: Taken) -> None:
        core = self.core
        ring = present(core.rings.get(op.ring), "there is no ring {}", op.ring)
        name = (op.ring, op.tag)
        if op.item == 0:
            legal(name not in core.outstanding, "tag {} of {} is outstanding already", op.tag, op.ring)
        else:
            legal(core.unfinished.get(name) == (op.command, op.item), "item {} is not next for {}", op.item, name)
        result = core.outstanding.setdefault(name, Completion(*name))
        try:
            require(op.item > 0 or well_formed(core, op.command), Status.INVALID)
            self._admit(ring, op.command)
            complete = COMMANDS[op.command.opcode](core, ring, op, op.command, result)
        except Refused as refused:
            result.status = refused.status
            complete = True
        if complete:
            core.unfinished.pop(name, None)
            core.finish(*name, result.status)
        elif isinstance(op.command, c.Lookup | c.Write):
            core.unfinished[name] = (op.command, op.item + 1)

    def _admit(self, ring: Ring, command: Command) -> None:
        """What a well-formed command is refused for before it is looked at: UNAVAILABLE, DENIED."""
        core = self.core
        require(core.epoch != 0 or isinstance(command, c.SetEpoch), Status.UNAVAILABLE)
        require(not ring.lost, Status.UNAVAILABLE)
        if command.opcode.administrative:
            require(ring.administrative, Status.DENIED)
            return
        if isinstance(command, c.Lookup | c.Alloc | c.Drop):
            closed = ring.partition.scope.closed or core.models[command.model].scope.closed
            require(not closed, Status.UNAVAILABLE)
        nobody = ring.partition is NOBODY and not isinstance(command, c.Lookup)
        require(not nobody, Status.DENIED)
        require(not foreign(core, ring.partition, command), Status.DENIED)

    def _restart(self) -> None:
        core = self.core
        for result in core.outstanding.values():
            result.status = Status.UNAVAILABLE
        orphans = list(core.outstanding.values())
        core.restart()
        core.counters["status_unavailable"] += len(orphans)
        core.outputs.extend(orphans)

    def possible(self) -> Iterator[Operation]:
        """Internal operations that are legal now, but for timers, losses, restarts and the sweep over frames."""
        core = self.core
        for frame in core.waiting.values():
            if frame.answered < frame.accepted:
                yield log.Landed(frame.index, 1)
            if internal.decidable(frame):
                yield log.Sealed(frame.index)
            if internal.drainable(frame):
                yield log.Drained(frame.index)
        for ring, tag in core.reads:
            yield log.ReadDone(ring, tag)
        for slot, session in core.fenced.items():
            if internal.passable(session):
                yield log.Fenced(slot)
        if len(core.parked):
            for slot, parked in core.parked.items():
                if internal.answer(core, parked) is not Status.PENDING:
                    yield log.Step(Hand.PARKED, slot)
        yield from self._walks()

    def _walks(self) -> Iterator[Operation]:
        """What the hands still find of lost rings."""
        core = self.core
        lost = [ring for ring in core.rings.values() if ring.lost]
        for ring in lost:
            if len(ring.pins):
                for slot, _ in ring.pins.items():
                    yield log.Step(Hand.PINS, slot, ring.id)
        if lost and (core.fenced or any(ring.sessions for ring in lost)):
            for slot, session in core.sessions.items():
                if internal.forsaken(session):
                    yield log.Step(Hand.SESSIONS, slot)

    def dead(self, index: int) -> bool:
        """Whether ``Step(FRAMES, index)`` is legal: the frame's block is dead and still in its frame."""
        return internal.dead(self.core, self.core.frames[index])
