"""In which life of a device a pin or session was given, and by which slices.

Their slots and generations begin anew with each epoch, and in each slice. A handle has its epoch and slice on the wire.
Of a pin and a session the driver remembers them beside the value: they are not on the wire, and make no difference to
what they equal.
"""

from collections.abc import Mapping
from itertools import count

from hw.params import commands as c
from hw.params.commands import Command, Completion, Fence
from hw.params.protocol import PinId, SessionId
from hw.params.tasks import Flush, Put


class GivenPin(PinId):
    """A pin that a slice has given; ``life`` is None for one that was made from it."""

    life: int | None = None
    slice: int = 0


class GivenSession(SessionId):
    """The same of a session: one session in each slice of ``parts``, equal to the first of them; None as ``life``."""

    life: int | None = None
    parts: Mapping[int, SessionId] | None = None


LIVES = count()
"""Gives each life of each device in this process a number of its own."""


def parts_of(session: SessionId) -> Mapping[int, SessionId]:
    """The sessions of a session, by slice; one that its caller has made up is of slice 0."""
    known = session.parts if isinstance(session, GivenSession) else None
    return {0: session} if known is None else known


def slice_of(pin: PinId) -> int:
    """The slice of a pin; one that its caller has made up is of slice 0."""
    return pin.slice if isinstance(pin, GivenPin) else 0


def session_of(parts: Mapping[int, SessionId], life: int) -> GivenSession:
    """A session of these parts, by slice."""
    given = GivenSession(*next(iter(parts.values())))
    given.life, given.parts = life, parts
    return given


def mark(completion: Completion, life: int, slice_: int) -> None:
    """Have what a command was given carry its life and slice; in no call for each pin."""
    if completion.session is not None:
        completion.session = session_of({slice_: completion.session}, life)
    if any(completion.pins):
        pins = [None if pin is None else tuple.__new__(GivenPin, pin) for pin in completion.pins]
        for pin in pins:
            if pin is not None:
                pin.life, pin.slice = life, slice_
        completion.pins = [*pins]


def marked(fence: Fence, life: int) -> Fence:
    """The same of a FENCE."""
    return Fence(fence.port, fence.ring, session_of({fence.slice: fence.session}, life), fence.slice)


def outlived(command: Command, life: int) -> bool:
    """Whether a command names a pin or session of another life; what its caller has made up, the device judges."""
    match command:
        case (
            c.Unpin(name)
            | c.CloseSession(name)
            | c.Migrate(name)
            | c.Alloc(session=name)
            | c.AnswerFence(name)
            | Put(session=name)
            | Flush(name)
        ):
            return isinstance(name, GivenPin | GivenSession) and name.life not in (None, life)
        case _:
            return False
