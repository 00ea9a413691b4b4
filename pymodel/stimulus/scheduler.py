"""What hardware does by itself when nothing records it: a seeded choice of what a slice takes next."""

import random
from collections import deque
from collections.abc import Iterable
from enum import Enum

from hw.params import orderlog as log
from hw.params.commands import Command, Completion, Lookup, Message, Write
from hw.params.orderlog import Hand, Operation, Step, Taken
from hw.params.params import Params
from hw.params.protocol import FrameState, Opcode, RingId, Status
from pymodel.spec.slice import Slice


class Policy(Enum):
    """EAGER: internal operations first, one at a time. RANDOM: any interleaving of whatever is possible."""

    EAGER = "eager"
    RANDOM = "random"


_KILLS_ALL = {Opcode.DROP_PARTITION, Opcode.RETIRE}
"""Commands that may leave dead blocks anywhere."""
_KILLS_WRITING = {Opcode.CLOSE_SESSION, Opcode.BIND}
"""Commands that may leave dead blocks among those being written."""
_KINDS = (None, log.Landed, log.Sealed, log.ReadDone, log.Drained, log.Fenced, log.Step)
"""What RANDOM holds back in turn."""
PATIENCE = 40
"""For so many operations."""


class Scheduler:
    """Queues of commands, one a ring, and the internal operations of a slice, in one sequence.

    Commands of a ring are taken in order; a batched one item by item, with anything else in between. Timers and
    losses come from outside, by ``inject``. A tag is free again when its completion has been returned.

    With ``record``, ``log`` is the order log so far: ``replay`` gives the same outputs from it.
    """

    def __init__(self, slice_: Slice, seed: int, policy: Policy = Policy.EAGER, *, record: bool = False) -> None:
        self.slice = slice_
        self.log: list[Operation] | None = [] if record else None
        self._random = random.Random(seed)
        self._policy = policy
        self._params = slice_.core.params
        self._queues: dict[RingId, deque[tuple[int, Command]]] = {}
        self._ready: list[RingId] = []
        self._items: dict[RingId, int] = {}
        self._tags: set[tuple[RingId, int]] = set()
        self._writing: set[int] = set()
        self._suspects: list[int] = []
        self._next: Operation | None = None
        self._next_known = False
        self._withheld: type[Operation] | None = None
        self._patience = 0

    def submit(self, ring: RingId, tag: int, command: Command) -> None:
        """Queue a command behind those of its ring. Raises ValueError while another command has its tag."""
        name = (ring, tag)
        if name in self._tags:
            raise ValueError(f"tag {tag} of {ring} is in use, expected one that has no command under way")
        self._tags.add(name)
        queue = self._queues.setdefault(ring, deque())
        if not queue:
            self._ready.append(ring)
        queue.append((tag, command))

    def step(self) -> list[Completion | Message]:
        """Execute one operation, if there is any; returns what the ports are told."""
        if self._policy is Policy.EAGER:
            op = self._first_internal()
            if op is None:
                op = self._take() if self._ready else None
        else:
            op = self._any()
        return [] if op is None else self._execute(op)

    def inject(self, op: Operation) -> list[Completion | Message]:
        """Execute an operation that comes from outside: a timer, a loss, a restart, a memory error."""
        return self._execute(op)

    def flush(self, ring: RingId) -> list[Completion | Message]:
        """Take all that a ring has queued, now: what follows a loss or a restart, which ends it UNAVAILABLE."""
        outputs: list[Completion | Message] = []
        while ring in self._ready:
            outputs += self._execute(self._take(self._ready.index(ring)))
        return outputs

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do: what is still outstanding waits for a requester or a timer."""
        return not self._ready and self._first_internal() is None

    @property
    def outstanding(self) -> set[tuple[RingId, int]]:
        """Ring and tag of every command that has not completed."""
        return set(self._tags)

    def drain(self) -> list[Completion | Message]:
        """Step until idle; ``outstanding`` then holds parked READs and migrations whose FENCE is not answered."""
        outputs: list[Completion | Message] = []
        while not self.idle:
            outputs += self.step()
        return outputs

    def _execute(self, op: Operation) -> list[Completion | Message]:
        outputs = self.slice.execute(op)
        if self.log is not None:
            self.log.append(op)
        self._next_known = False
        for output in outputs:
            if isinstance(output, Completion):
                self._tags.discard((output.ring, output.tag))
                if output.ring in self._items:
                    self._forget_rest(output.ring, output.tag)
                if output.status is Status.GRANTED and output.handle is not None:
                    self._writing.add(output.handle.frame)
        self._suspect(op)
        return outputs

    # Commands.

    def _take(self, at: int | None = None) -> Taken:
        """The next item of the command at the head of ready ring number ``at``, or of any."""
        ready = self._ready
        if at is None:
            at = int(self._random.random() * len(ready)) if len(ready) > 1 else 0
        ring = ready[at]
        tag, command = self._queues[ring][0]
        item = self._items.get(ring, 0)
        if item + 1 < self._count(command):
            self._items[ring] = item + 1
        else:
            self._items.pop(ring, None)
            self._leave(at)
        return Taken(ring, tag, command, item)

    def _count(self, command: Command) -> int:
        """Items of a command."""
        if isinstance(command, Lookup):
            return len(command.keys)
        if isinstance(command, Write):
            return self._params.segments(len(command.data))
        return 1

    def _leave(self, at: int) -> None:
        """The command at the head of the queue of ready ring number ``at`` has been taken whole."""
        queue = self._queues[self._ready[at]]
        queue.popleft()
        if not queue:
            self._ready[at] = self._ready[-1]
            self._ready.pop()

    def _forget_rest(self, ring: RingId, tag: int) -> None:
        """A command that completes before its last item has none left."""
        if self._queues[ring][0][0] == tag:
            del self._items[ring]
            self._leave(self._ready.index(ring))

    # Internal operations.

    def _first_internal(self) -> Operation | None:
        """An internal operation that is legal now; the sweep comes last."""
        if not self._next_known:
            self._next = next(self.slice.possible(), None) or self._sweep()
            self._next_known = True
        return self._next

    def _sweep(self) -> Operation | None:
        """The next dead frame, looked for only where something may have died."""
        while self._suspects:
            if self.slice.dead(self._suspects[-1]):
                return Step(Hand.FRAMES, self._suspects[-1])
            self._suspects.pop()
        return None

    def _any(self) -> Operation | None:
        """One of all the operations that are legal now; for a while, those of one kind only when there is no other.

        So each kind is sometimes late by many operations, as a slow memory or a busy hand would make it.
        """
        self._suspects = [index for index in self._suspects if self.slice.dead(index)]
        internal = [*self.slice.possible(), *(Step(Hand.FRAMES, index) for index in self._suspects)]
        if self._patience == 0:
            self._withheld, self._patience = self._random.choice(_KINDS), PATIENCE
        self._patience -= 1
        hasty = [op for op in internal if type(op) is not self._withheld]
        if hasty or self._ready:
            internal = hasty
        at = int(self._random.random() * (len(internal) + len(self._ready)))
        if at < len(internal):
            return internal[at]
        return self._take() if self._ready else None

    def _suspect(self, op: Operation) -> None:
        """Send the sweep where ``op`` may have left dead blocks."""
        opcode = op.command.opcode if isinstance(op, Taken) else None
        frames = self.slice.core.frames
        if opcode in _KILLS_ALL:
            self._suspects = list(range(len(frames) - 1, -1, -1))
        elif opcode in _KILLS_WRITING or isinstance(op, log.Lost | log.Expired):
            self._writing = {index for index in self._writing if frames[index].state is FrameState.WRITING}
            self._suspects = sorted(self._writing.union(self._suspects), reverse=True)
        elif isinstance(op, log.Restarted):
            self._suspects.clear()
            self._writing.clear()


def replay(params: Params, order: Iterable[Operation]) -> list[Completion | Message]:
    """What the ports are told when a fresh slice follows an order log."""
    target = Slice(params)
    return [output for op in order for output in target.execute(op)]
