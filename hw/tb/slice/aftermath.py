"""What is left of a ring that was lost, until nothing is; and how long that may take."""

from dataclasses import dataclass, field

from hw.params.commands import Bind
from hw.params.orderlog import Landed, Lost, Operation, ReadDone, Taken
from hw.params.params import Params
from hw.params.protocol import FrameState, RingId
from hw.rtl.node.core.tables import HANDS_EVERY
from hw.tb.scoreboard import CheckError
from hw.tb.slice.latency import STEP, Span, Surroundings, bounds, in_turns, operation_cycles, turn_cycles
from pymodel.spec.core import Core
from pymodel.spec.state import Ring


def turns(params: Params, rings: int) -> int:
    """Turns of the hands in which the pins, sessions and blocks go that so many lost rings have left."""
    tables = params.tables
    return rings * tables.pins_per_ring + tables.sessions + params.frames


def operations(params: Params, rings: int) -> int:
    """The same in operations: what is offered when a turn is due waits, so there are so many in between at most.

    Of isolated partitions the others' are in between, too, one a cycle at most.
    """
    return cycles(params, rings) if params.strict else HANDS_EVERY * (turns(params, rings) + 1)


def cycles(params: Params, rings: int) -> int:
    """The same in cycles, though operations come without a pause."""
    a_turn = HANDS_EVERY * (operation_cycles(params) + STEP) + 2 * STEP + params.rings
    return in_turns(params, turns(params, rings) * a_turn)


def command_cycles(params: Params, around: Surroundings) -> int:
    """Until what such a ring had asked for has ended: a SEAL, a READ, or one that was parked and needs a place."""
    limits = bounds(params, around)
    return limits[Span.SEAL] + 2 * limits[Span.READING] + params.tables.parked_reads * turn_cycles(params)


@dataclass(slots=True)
class _Loss:
    """A ring that was lost in a cycle, and what it had: blocks being written, by frame and generation, and commands.

    - `rings`: how many were lost by then; `operations`: taken since; `had`: it had something;
      `vacated`: no pin or session is left, `gone`: nor a block, since when.
    """

    cycle: int
    blocks: set[tuple[int, int]]
    commands: set[tuple[RingId, int]]
    rings: int = 1
    operations: int = 0
    had: bool = False
    vacated: bool = False
    gone: int | None = None


@dataclass(slots=True)
class Aftermath:
    """Watches the specification as it follows the log.

    - `longest`: the most cycles in which pins, sessions and blocks of a lost ring had gone; `most`: operations.
    - `losses`: how many are over; `busy`: how many of those rings had any.
    - `fresh`: losses since `settle`.
    """

    params: Params
    core: Core
    longest: int = 0
    most: int = 0
    losses: int = 0
    busy: int = 0
    fresh: int = 0
    _lost: set[RingId] = field(default_factory=set)
    _open: dict[RingId, _Loss] = field(default_factory=dict)

    @property
    def pending(self) -> bool:
        """Whether something of a lost ring is left."""
        return bool(self._open)

    def settle(self) -> bool:
        """Whether a ring has been lost since the last call, and nothing is left of any."""
        fresh = self.fresh > 0 and not self._open
        if fresh:
            self.fresh = 0
        return fresh

    def follow(self, op: Operation, cycle: int, around: Surroundings) -> None:
        """An entry of the log was executed. Raises CheckError if something is left for too long."""
        if isinstance(op, Lost) or (isinstance(op, Taken) and isinstance(op.command, Bind)):
            self._look(cycle)
        for name in list(self._open):
            self._go_on(name, op, cycle, around)

    def _look(self, cycle: int) -> None:
        """Which rings have been lost, and which are bound again."""
        now = {name for name, ring in self.core.rings.items() if ring.lost}
        for name in now - self._lost:
            for other in self._open.values():
                other.rings += 1
            self._open[name] = self._loss(self.core.rings[name], cycle)
            self._open[name].rings = len(self._open)
        self._lost = now

    def _loss(self, ring: Ring, cycle: int) -> _Loss:
        mine = {slot for slot, each in self.core.sessions.items() if each.ring is ring}
        blocks = {
            (frame.index, frame.generation)
            for frame in self.core.frames
            if frame.state is FrameState.WRITING and frame.session.slot in mine
        }
        return _Loss(cycle, blocks, {name for name in self.core.outstanding if name[0] == ring.id})

    def _go_on(self, name: RingId, op: Operation, cycle: int, around: Surroundings) -> None:
        loss, core, params = self._open[name], self.core, self.params
        loss.operations += isinstance(op, Landed | ReadDone | Lost) or (isinstance(op, Taken) and op.item == 0)
        took = cycle - loss.cycle
        held = "" if loss.gone is not None else self._held(core.rings[name], loss)
        if held:
            loss.had = True
            if loss.operations > operations(params, loss.rings) or took > cycles(params, loss.rings):
                raise CheckError(f"{loss.operations} operations, {took:,} cycles after {name} was lost: still {held}")
            return
        if loss.gone is None:
            loss.gone = took
            self.longest, self.most = max(self.longest, took), max(self.most, loss.operations)
        loss.commands &= core.outstanding.keys()
        if loss.commands and took > cycles(params, loss.rings) + command_cycles(params, around):
            raise CheckError(f"{took:,} cycles after {name} was lost: still commands {sorted(loss.commands)}")
        if not loss.commands:
            self.losses += 1
            self.fresh += 1
            self.busy += loss.had
            del self._open[name]

    def _held(self, ring: Ring, loss: _Loss) -> str:
        """What a lost ring still has that the hands take. Its next tenant may come when there are blocks left only."""
        bound = "" if loss.vacated else self._bound(ring)
        if bound:
            return bound
        loss.vacated = True
        loss.blocks = {each for each in loss.blocks if self._writing(*each)}
        return f"frames {sorted(index for index, _ in loss.blocks)}" if loss.blocks else ""

    def _bound(self, ring: Ring) -> str:
        if len(ring.pins):
            return f"{len(ring.pins)} pins"
        if ring.sessions:
            return f"{ring.sessions} sessions"
        moving = any(each.fence is not None and each.fence.target is ring for each in self.core.fenced.values())
        return "a migration to it" if moving else ""

    def _writing(self, index: int, generation: int) -> bool:
        frame = self.core.frames[index]
        return frame.state is FrameState.WRITING and frame.generation == generation
