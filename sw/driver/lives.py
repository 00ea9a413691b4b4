"""In which life of a device a pin or session was given: their slots and generations begin anew with each epoch.

A handle has its epoch on the wire. Of a pin and a session the driver remembers the life beside the value: it is not on
the wire, and makes no difference to what they equal.
"""

from itertools import count

from hw.params import commands as c
from hw.params.commands import Command, Completion, Fence
from hw.params.protocol import PinId, SessionId


class GivenPin(PinId):
    """A pin that a device has given; ``life`` is None for one that was made from it."""

    life: int | None = None


class GivenSession(SessionId):
    """The same of a session."""

    life: int | None = None


LIVES = count()
"""Gives each life of each device in this process a number of its own."""


def _session(name: SessionId, life: int) -> GivenSession:
    given = GivenSession(*name)
    given.life = life
    return given


def mark(completion: Completion, life: int) -> None:
    """Have what a command was given carry its life; in no call for each pin."""
    if completion.session is not None:
        completion.session = _session(completion.session, life)
    if any(completion.pins):
        pins = [None if pin is None else tuple.__new__(GivenPin, pin) for pin in completion.pins]
        for pin in pins:
            if pin is not None:
                pin.life = life
        completion.pins = [*pins]


def marked(fence: Fence, life: int) -> Fence:
    """The same of a FENCE."""
    return Fence(fence.port, fence.ring, _session(fence.session, life))


def outlived(command: Command, life: int) -> bool:
    """Whether a command names a pin or session of another life; what its caller has made up, the device judges."""
    match command:
        case c.Unpin(name) | c.CloseSession(name) | c.Migrate(name) | c.Alloc(session=name) | c.AnswerFence(name):
            return isinstance(name, GivenPin | GivenSession) and name.life not in (None, life)
        case _:
            return False
