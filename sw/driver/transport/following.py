"""The executable specification as a device that does what a recording says, and compares."""

from collections import defaultdict, deque
from dataclasses import fields, replace
from typing import TypeVar

from hw.params.commands import Command, Completion, Message
from hw.params.errors import InputError
from hw.params.orderlog import Restarted, Taken
from hw.params.params import Params
from hw.params.protocol import REGISTER_TAG, REGISTERS, RingId, Status
from hw.params.tasks import Task
from pymodel.spec.internal import IllegalOperation
from sw.driver.errors import Diverged
from sw.driver.transport.base import Arrival
from sw.driver.transport.engines import Engines
from sw.driver.transport.recording import Count, Name, Poll, Recording, Returned, Took, digest
from sw.driver.transport.specified import SpecifiedTransport

Kind = TypeVar("Kind", Poll, Count)

_COMPARED = tuple(f.name for f in fields(Completion) if f.name != "data")


class FollowingTransport(SpecifiedTransport):
    """Executes the operations of a recording, each when the recorded run had it behind itself.

    What arrives is what the recording has, when it has it, with the specification's contents. Raises Diverged at the
    first operation that is not legal where it stands, at the first field of an arrival that differs from the
    recording, and when it is used in another way than the recorded transport was.
    """

    def __init__(self, params: Params, recording: Recording) -> None:
        super().__init__(params)
        self._operations = recording.operations
        self._done = [0 for _ in self._slices]
        self._steps = recording.steps
        self._step = 0
        self._engines = Engines(params)
        self._commands: dict[Name, tuple[int, Command]] = {}
        """Commands and tasks under way, and the slice of each."""
        self._into: dict[Name, memoryview] = {}
        self._completed: dict[Name, Completion] = {}
        self._told: defaultdict[tuple[int, int], deque[Message]] = defaultdict(deque)
        """What slices have told ports, by both."""
        self._expired = [0 for _ in self._slices]

    # The specification.

    def _execute(self, slice_: int) -> None:
        """Execute the next operation of a slice."""
        operations, number = self._operations[slice_], self._done[slice_]
        if number == len(operations):
            raise Diverged(f"{self._log(slice_)} ends after {number:,} entries, expected one more")
        operation = operations[number]
        if isinstance(operation, Took):
            at, command = self._commands.get((operation.ring, operation.tag), (slice_, None))
            if isinstance(command, Task):
                command = self._engines.command(operation.ring, operation.tag)
            if command is None or at != slice_:
                raise Diverged(f"entry {number:,} of {self._log(slice_)}, {operation}: no such command was submitted")
            operation = Taken(operation.ring, operation.tag, command, operation.item)
        try:
            outputs = self._slices[slice_].slice.execute(operation)
        except IllegalOperation as error:
            raise Diverged(f"entry {number:,} of {self._log(slice_)}, {operation}: not legal here, {error}") from None
        self._done[slice_] += 1
        for output in outputs:
            if not isinstance(output, Completion):
                self._told[slice_, output.port].append(output)
            elif self._engines.command(output.ring, output.tag) is not None:
                self._engines.go_on(output)
            else:
                self._completed[output.ring, output.tag] = output
        self._end_tasks()

    def _end_tasks(self) -> None:
        """Note which tasks have ended."""
        self._completed |= {(each.ring, each.tag): each for each in self._engines.ended}
        self._engines.ended.clear()

    def _log(self, slice_: int) -> str:
        """An order log in messages."""
        return "the order log" if len(self._slices) == 1 else f"the order log of slice {slice_}"

    def _take(self, slice_: int, command: Command) -> Status:
        """Execute all that the slice did before the registers' command, and that."""
        name = REGISTERS, REGISTER_TAG
        self._commands[name] = slice_, command
        while name not in self._completed:
            self._execute(slice_)
        del self._commands[name]
        return self._completed.pop(name).status

    def _forget(self, slice_: int) -> None:
        """Execute all that the slice did before the restart, and that."""
        restarted, operations = False, self._operations[slice_]
        while not restarted:
            done = self._done[slice_]
            restarted = done < len(operations) and isinstance(operations[done], Restarted)
            self._execute(slice_)

    # What software does.

    def _queue(self, ring: RingId, tag: int, command: Command, into: memoryview | None, slice_: int) -> None:
        if (ring, tag) in self._commands:
            raise InputError(f"tag {tag} of {ring} is in use, expected one that has no command under way")
        self._commands[ring, tag] = slice_, command
        if isinstance(command, Task):
            self._engines.begin(ring, tag, command, slice_)
            self._end_tasks()
        if into is not None:
            self._into[ring, tag] = into

    def _follow(self, kind: type[Kind]) -> Kind:
        """The next step of the recording, with all executed that comes before it."""
        step = self._steps[self._step] if self._step < len(self._steps) else None
        if not isinstance(step, kind):
            found = "nothing more" if step is None else f"a {type(step).__name__}"
            raise Diverged(f"step {self._step:,} of the recording: expected a {kind.__name__}, found {found}")
        for slice_, until in enumerate(step.until):
            while self._done[slice_] < until:
                self._execute(slice_)
        self._step += 1
        return step

    def poll(self) -> list[Arrival]:
        return self.step() or []

    def step(self) -> list[Arrival] | None:
        arrivals = self._follow(Poll).arrivals
        return None if arrivals is None else [self._arrival(recorded) for recorded in arrivals]

    def lose(self, ring: RingId) -> None:
        """Nothing: the order log says when the ring was lost."""

    def counters(self, slice_: int = 0) -> dict[str, int]:
        """The specification's, and UNAVAILABLE for each command that had expired at its port."""
        step = self._follow(Count)
        if step.slice != slice_:
            raise Diverged(f"{self._where()}: the counters of slice {step.slice}, expected those of {slice_}")
        counters = super().counters(slice_)
        return counters | {"status_unavailable": counters["status_unavailable"] + self._expired[slice_]}

    def finish(self) -> None:
        """Raise Diverged unless the recording is at its end, and the specification said no more than that."""
        left, done = len(self._steps) - self._step, sum(self._done)
        if left or done < sum(map(len, self._operations)):
            raise Diverged(f"the recording has {left:,} steps more, from {done:,} operations on")
        for name in self._completed:
            raise Diverged(f"{self._commands[name][1]} of {name} has completed by the specification, and never arrived")
        for (_, port), messages in self._told.items():
            if messages:
                raise Diverged(f"port {port} was to be told {messages[0]}, and {len(messages) - 1:,} messages more")
        for each in self._slices:
            each.slice.monitor.audit()

    # What arrives.

    def _arrival(self, recorded: Returned | Message) -> Arrival:
        if isinstance(recorded, Message):
            return self._message(recorded)
        name = recorded.completion.ring, recorded.completion.tag
        slice_, command = self._commands.pop(name, (0, None))
        if command is None:
            raise Diverged(f"{self._where()}: {recorded.completion} arrived, but no such command was submitted")
        into = self._into.pop(name, None)
        if not recorded.logged:
            self._engines.forget(*name)
            self._end_tasks()
            self._expired[slice_] += recorded.completion.status is Status.UNAVAILABLE
            return replace(recorded.completion)
        completion = self._completed.pop(name, None)
        if completion is None:
            raise Diverged(f"{self._where()}: {recorded.completion} arrived, but {command} has not completed yet")
        self._deliver(completion, into)
        self._compare(command, recorded, completion)
        return completion

    def _message(self, recorded: Message) -> Message:
        waiting = self._told[recorded.slice, recorded.port]
        expected = waiting.popleft() if waiting else None
        if expected != recorded:
            raise Diverged(f"{self._where()}: {recorded} arrived, expected {expected}")
        return recorded

    def _compare(self, command: Command, recorded: Returned, completion: Completion) -> None:
        for name in _COMPARED:
            found, expected = getattr(recorded.completion, name), getattr(completion, name)
            if found != expected:
                what = f"{command.opcode.name}, tag {completion.tag} of {completion.ring}"
                raise Diverged(f"{self._where()}, {what}: {name} is {found!r}, expected {expected!r}")
        if recorded.digest is not None and recorded.digest != digest(completion.data):
            raise Diverged(f"{self._where()}, {command}, tag {completion.tag} of {completion.ring}: data differs")

    def _where(self) -> str:
        return f"step {self._step - 1:,} of the recording"
