"""Who uses an end of a link: sends against credits, takes what comes, and knows what may."""

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Optional

from hw.rtl.fabric.words import Buffers


class Sent(NamedTuple):
    """A flit, as far as a user looks at it."""

    channel: int
    content: int


@dataclass(eq=False)
class Life:
    """A user between two resets: what it has sent, which life of the other has heard of it, and of which it has."""

    sent: list[Sent] = field(default_factory=list)
    heard: bool = False
    hears: Optional["Life"] = None


class User:
    """One user of a link; `peer` is the other. A rule that is broken raises AssertionError.

    - `sends`, `takes`: probability, each cycle, that it sends if it may, and that a channel's next flit is taken.
    - `lives`: of them the last one is now.
    - `received`: how many flits have come in this life.
    """

    def __init__(self, *, sent: Buffers, received: Buffers, random: Random):
        self._credits = {channel.value: size for channel, size in sent.items()}
        self._room = {channel.value: size for channel, size in received.items()}
        self._random = random
        self.sends = self.takes = 1.0
        self.peer: User
        self.lives: list[Life] = []
        self.reset()

    def reset(self) -> None:
        """Forget everything, and begin a new life."""
        self.lives.append(Life())
        self._left = dict(self._credits)
        self._waiting: dict[int, deque[Sent]] = {channel: deque() for channel in self._room}
        self.received = 0

    def send(self, bits: int) -> Sent | None:
        """Return the flit that leaves in this cycle, if one does, with a content of so many bits."""
        ready = [channel for channel, count in self._left.items() if count]
        if not ready or self._random.random() >= self.sends:
            return None
        flit = Sent(self._random.choice(ready), self._random.getrandbits(bits))
        self._left[flit.channel] -= 1
        self.lives[-1].sent.append(flit)
        return flit

    def credit(self, given: int) -> None:
        """Take the credits of a cycle, a bit a channel."""
        for channel in range(given.bit_length()):
            if given >> channel & 1:
                assert self._left.get(channel, 0) < self._credits.get(channel, 0), "a credit for no flit"
                self._left[channel] += 1

    def receive(self, flit: Sent) -> None:
        """Take a flit: the next one of that life of the peer which this one hears, and no other ever has."""
        life = self.lives[-1]
        if life.hears is None:
            found = [each for each in self.peer.lives if not each.heard and each.sent[:1] == [flit]]
            assert found, "the first flit is that of no life that nobody has heard"
            life.hears = found[-1]
            life.hears.heard = True
            assert life.hears.hears in (None, life), "two hear each other, but one hears a third"
        assert self.received < len(life.hears.sent), "a flit that was not sent"
        assert life.hears.sent[self.received] == flit, "another flit than the next"
        self.received += 1
        self._waiting[flit.channel].append(flit)
        assert len(self._waiting[flit.channel]) <= self._room[flit.channel], "a flit without a credit"

    def take(self) -> int:
        """Return the credits that are given back in this cycle, a bit a channel, for what is taken."""
        returned = 0
        for channel, flits in self._waiting.items():
            if flits and self._random.random() < self.takes:
                flits.popleft()
                returned |= 1 << channel
        return returned

    @property
    def at_rest(self) -> bool:
        """All that was sent has come, and all credits are back."""
        return self.peer.received == len(self.lives[-1].sent) and self._left == self._credits
