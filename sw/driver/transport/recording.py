"""What a second run needs to repeat a first one's decisions without its clock, and what the first one was told."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from hw.params.commands import Command, Completion, Message, Read
from hw.params.orderlog import Operation, Taken
from hw.params.protocol import RingId, Status
from hw.params.tasks import Flush
from sw.driver.transport.base import Arrival
from sw.driver.transport.observed import Observer

Name = tuple[RingId, int]
"""Ring of a command, and the tag that the driver knows it by."""


@dataclass(frozen=True, slots=True)
class Took(Operation):
    """A command is taken, or its item number ``item``: ``Taken``, of a command that whoever follows has too.

    By the name of a task it is the command of the engine that the task has under way: one at a time.
    """

    ring: RingId
    tag: int
    item: int = 0


def named(operation: Operation) -> Operation:
    """An entry of an order log, as a recording has it."""
    return Took(operation.ring, operation.tag, operation.item) if isinstance(operation, Taken) else operation


def digest(data: bytes | memoryview) -> bytes:
    """What stands for the data of a READ."""
    return blake2b(data, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Returned:
    """A completion as it arrived, its data left out.

    - `digest`: of the data of a READ that ended OK, if it had a buffer.
    - `logged`: the order log has the command, or one of a PUT; else the requester has refused it, or it had expired at
      the port. A FLUSH, which no log has, counts as logged: those before it say when it may end.
    """

    completion: Completion
    digest: bytes | None
    logged: bool


@dataclass(frozen=True, slots=True)
class Poll:
    """A poll or step that returned ``arrivals``, when each slice had executed so many operations."""

    until: tuple[int, ...]
    arrivals: list[Returned | Message] | None


@dataclass(frozen=True, slots=True)
class Count:
    """The counters of ``slice`` were read, when each slice had executed so many operations."""

    until: tuple[int, ...]
    slice: int = 0


@dataclass(slots=True)
class Recording:
    """One run: the operations of the order log of each slice, and what software saw of it and when."""

    operations: list[list[Operation]]
    steps: list[Poll | Count] = field(default_factory=list)

    def __len__(self) -> int:
        """Operations, of all slices."""
        return sum(map(len, self.operations))


class Recorder(Observer):
    """Makes a recording of the transport that it observes.

    ``log`` gives the operations of each slice since it was last asked, at least all that what has arrived is owed to;
    ``named``.
    """

    def __init__(self, log: Callable[[], Sequence[Iterable[Operation]]], slices: int) -> None:
        self.recording = Recording([[] for _ in range(slices)])
        self._log = log
        self._into: dict[Name, memoryview | None] = {}
        self._taken: set[Name] = set()

    def submitted(
        self, ring: RingId, tag: int, command: Command, into: memoryview | None, *, cycle: int | None, slice_: int
    ) -> None:
        self._into[ring, tag] = into if isinstance(command, Read) else None
        if isinstance(command, Flush):
            self._taken.add((ring, tag))

    def polled(self, arrivals: Sequence[Arrival] | None) -> None:
        until = self._catch_up()
        seen = None if arrivals is None else [self._seen(arrival) for arrival in arrivals]
        self.recording.steps.append(Poll(until, seen))

    def counted(self, slice_: int) -> None:
        self.recording.steps.append(Count(self._catch_up(), slice_))

    def _catch_up(self) -> tuple[int, ...]:
        """Note what the logs have; returns how many operations there are, by slice."""
        operations = self.recording.operations
        for its, news in zip(operations, self._log(), strict=True):
            for operation in news:
                its.append(operation)
                if isinstance(operation, Took):
                    self._taken.add((operation.ring, operation.tag))
        return tuple(map(len, operations))

    def _seen(self, arrival: Arrival) -> Returned | Message:
        if isinstance(arrival, Message):
            return arrival
        name = arrival.ring, arrival.tag
        into, logged = self._into.pop(name), name in self._taken
        self._taken.discard(name)
        data = digest(into) if into is not None and arrival.status is Status.OK else None
        statuses, handles, pins = [*arrival.statuses], [*arrival.handles], [*arrival.pins]
        completion = replace(arrival, data=b"", statuses=statuses, handles=handles, pins=pins)
        return Returned(completion, data, logged)
