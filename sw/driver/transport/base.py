"""The interface that every transport implements: registers, commands out, completions and messages in."""

from abc import ABC, abstractmethod

from hw.params.commands import Command, Completion, Message
from hw.params.errors import InputError
from hw.params.params import Params
from hw.params.protocol import RingId, tags
from sw.driver.arguments import time_of

Arrival = Completion | Message


class Transport(ABC):
    """A node, reached in some way. Not thread-safe; ``Device`` has a lock around it.

    ``submit`` hands over one command of a ring, well typed (``sw.driver.arguments``), to one slice. Completions arrive
    in any order, each exactly once. A WRITE's data must not change, a READ's ``into`` not be read, before the
    completion. Administrative commands go out under the stamp ``hw.params.protocol.REGISTERS``.
    """

    params: Params

    @abstractmethod
    def read_register(self, offset: int, slice_: int = 0) -> int:
        """The 32-bit register of a slice at a byte offset; RegisterError where there is none."""

    @abstractmethod
    def write_register(self, offset: int, value: int, slice_: int = 0) -> None:
        """Write it; RegisterError for read-only registers, and for reserved or read-only bits that are set."""

    def submit(
        self, ring: RingId, tag: int, command: Command, into: memoryview | None = None, *, slice_: int = 0
    ) -> None:
        """Queue a command; a READ that ends OK has filled ``into``, if that is of its length.

        Data that is longer than ``into`` ends RANGE; of shorter data, ``Completion.length`` tells. In both cases, and
        when the READ fails, what is in ``into`` means nothing.

        InputError, and nothing changed, for a tag that is none of the ring's (``hw.params.protocol.tags``), and while
        the ring has a command with that tag outstanding, at any slice. After any exception, the transport does not have
        the command.
        """
        if tag not in tags(ring):
            raise InputError(f"tag = {tag}, expected a number from 0 to {tags(ring)[-1]}")
        self._queue(ring, tag, command, into, slice_)

    @abstractmethod
    def _queue(self, ring: RingId, tag: int, command: Command, into: memoryview | None, slice_: int) -> None:
        """``submit``, for a tag that is one; InputError, and nothing changed, while it is in use."""

    @abstractmethod
    def poll(self) -> list[Arrival]:
        """Let the device work until something arrives; empty only when nothing is outstanding."""

    def step(self) -> list[Arrival] | None:
        """``poll``, but for a while only: what has arrived, if anything; None when nothing is outstanding either."""
        return self.poll() or None

    def set_timeout(self, timeout: float, ring: RingId | None = None) -> None:
        """How long commands, or those of one ring, may take, from the next on; what has no answer by then ends
        UNAVAILABLE. In cycles of the device if its clock can be seen, else in seconds.

        InputError for a time that is none. No effect where every command is known to end.
        """
        time_of(timeout)

    @property
    def clock(self) -> float | None:
        """The time that has passed, in what ``set_timeout`` counts; None where none does."""
        return self.cycle

    @abstractmethod
    def lose(self, ring: RingId) -> None:
        """Reset a ring: what it held is released at every slice, its outstanding commands end UNAVAILABLE.

        Commands of a ring that is not bound end as they would have.
        """

    @abstractmethod
    def counters(self, slice_: int = 0) -> dict[str, int]:
        """The COUNTERS and LEVELS of a slice (``hw.params.registers``): all of them, also what is 0."""

    @property
    def cycle(self) -> int | None:
        """The device's clock, in cycles; None if it has none that could be seen."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Release what the transport holds."""
