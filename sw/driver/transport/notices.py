"""What a transport tells listeners by itself, beside the messages of a node."""

from dataclasses import dataclass

from hw.params.commands import Message
from hw.params.protocol import RingId


@dataclass(frozen=True, slots=True)
class MessagesLost(Message):
    """Messages to the port were lost before the next one: what is known from messages may be out of date."""


@dataclass(frozen=True, slots=True)
class RingFailed(Message):
    """A ring is out of service, its commands have ended UNAVAILABLE; it comes back with ``bind`` or ``reset``."""

    ring: RingId
    why: str
