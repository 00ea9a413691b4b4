"""What a port was told, held against what it is to be told."""

from dataclasses import dataclass, field

from hw.tb.core.operations import Fields
from hw.tb.scoreboard import CheckError


@dataclass(slots=True)
class Told:
    """The messages of one port, in order.

    - `owed`: those that the specification gives; `given`: those that have come, each with whether it has LOST.
    """

    owed: list[Fields] = field(default_factory=list)
    given: list[tuple[bool, Fields]] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Messages that have not come."""
        return len(self.owed) - len(self.given)

    def compare(self, room: int) -> None:
        """Raise CheckError unless every message has come, but for one or more before each that has LOST.

        Behind the last that has come some may be missing, if there are more than the `room` that messages wait in.
        """
        heard = {0}
        for number, (lost, message) in enumerate(self.given):
            if lost:
                heard = {i + 1 for i, owed in enumerate(self.owed) if i > min(heard) and owed == message}
            else:
                heard = {i + 1 for i in heard if self.owed[i : i + 1] == [message]}
            if not heard:
                raise CheckError(f"message {number}: {message} was not to be told{' when others were lost' * lost}")
        if len(self.owed) not in heard and len(self.given) < room:
            raise CheckError(f"messages never came: {self.owed[max(heard) :][:3]}")
