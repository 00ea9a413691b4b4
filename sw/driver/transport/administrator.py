"""The ADMIN registers: one administrative command at a time, the others wait."""

from collections import deque
from collections.abc import Iterator

from hw.params.commands import Command, SetEpoch
from hw.params.errors import InputError
from hw.params.protocol import Status
from sw.driver.errors import RegisterError
from sw.driver.transport.administration import operands_of
from sw.driver.transport.unit import Unit


class Administrator:
    """Gives commands to the registers of a slice, in order.

    A new epoch is not among them: ``CONTROL.start`` takes one, once, and so SET_EPOCH is DENIED. ``deadline``: when the
    command that was begun counts as unanswered.
    """

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._waiting: deque[tuple[int, Command]] = deque()
        self._asked: int | None = None
        self.deadline = 0.0

    @property
    def outstanding(self) -> int:
        """Commands that have not ended."""
        return len(self._waiting) + (self._asked is not None)

    def submit(self, tag: int, command: Command) -> None:
        """Queue a command."""
        self._waiting.append((tag, command))

    @property
    def next(self) -> Command | None:
        """The command that can be begun now."""
        return self._waiting[0][1] if self._waiting and self._asked is None else None

    def begin(self) -> Iterator[tuple[int, Status]]:
        """Begin the next command; tells how it has ended if the registers do not take it."""
        tag, command = self._waiting.popleft()
        if isinstance(command, SetEpoch):
            yield tag, Status.DENIED
            return
        operands = operands_of(command) | {"ADMIN_COMMAND.opcode": command.opcode, "ADMIN_COMMAND.go": 1}
        try:
            self._unit.put(self._unit.word(operands))
        except RegisterError:
            yield tag, Status.UNAVAILABLE
        except InputError:
            yield tag, Status.INVALID
        else:
            self._asked = tag

    def refuse(self) -> Iterator[tuple[int, Status]]:
        """The next command cannot be begun: it has ended UNAVAILABLE."""
        yield self._waiting.popleft()[0], Status.UNAVAILABLE

    def ended(self) -> Iterator[tuple[int, Status]]:
        """The command that was asked for, if it has ended."""
        if self._asked is not None and not self._unit.get("ADMIN_STATUS.busy"):
            tag, self._asked = self._asked, None
            yield tag, Status(self._unit.get("ADMIN_STATUS.status"))

    def give_up(self) -> Iterator[tuple[int, Status]]:
        """The command that was asked for does not end: it has ended UNAVAILABLE, and so will all while it is busy."""
        if self._asked is not None:
            tag, self._asked = self._asked, None
            yield tag, Status.UNAVAILABLE
