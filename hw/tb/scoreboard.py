"""Comparison of what a design did with what it should have done."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from typing import Any

from hw.params import KvnodeError


class CheckError(KvnodeError, AssertionError):
    """The design under test did something wrong; ends the test at once."""


class Scoreboard:
    """Compares observed items with expected ones, each exactly once.

    Items are matched in order; with a `key`, in order among those of equal key (a tag, a stream, an address).
    """

    def __init__(self, name: str, key: Callable[[Any], Hashable] = lambda _: None):
        self.name = name
        self.compared = 0
        self._key = key
        self._expected: defaultdict[Hashable, deque[Any]] = defaultdict(deque)

    @property
    def outstanding(self) -> int:
        """Number of items expected and not yet observed."""
        return sum(map(len, self._expected.values()))

    def expect(self, item: Any) -> None:
        """The design owes `item`."""
        self._expected[self._key(item)].append(item)

    def observe(self, item: Any) -> None:
        """The design delivered `item`. Raises CheckError unless it is the next one owed."""
        queue = self._expected[self._key(item)]
        if not queue:
            raise CheckError(f"{self.name}: nothing expected, got {item!r} (after {self.compared} good)")
        wanted = queue.popleft()
        if item != wanted:
            raise CheckError(f"{self.name}: expected {wanted!r}, got {item!r} (after {self.compared} good)")
        self.compared += 1

    def reset(self) -> None:
        """Reset made the design forget what it owed."""
        self._expected.clear()

    def finish(self) -> None:
        """Raise CheckError unless everything expected was observed, and there was something to compare."""
        if self.outstanding:
            raise CheckError(f"{self.name}: {self.outstanding} items never came (after {self.compared} good)")
        if not self.compared:
            raise CheckError(f"{self.name}: nothing was compared")
