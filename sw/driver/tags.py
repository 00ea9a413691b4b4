"""The tags of one ring, each for one command at a time."""

from collections import deque

from hw.params.errors import InputError
from hw.params.protocol import RingId, tags


class Tags:
    """Gives tags out, those never used first, then the one that has been free longest."""

    def __init__(self, ring: RingId) -> None:
        self._ring = ring
        self._fresh = iter(tags(ring))
        self._freed: deque[int] = deque()

    def take(self) -> int:
        """A tag that no command has; InputError when each has one."""
        tag = next(self._fresh, None)
        if tag is not None:
            return tag
        if not self._freed:
            raise InputError(
                f"{self._ring} has a command outstanding under each of its {len(tags(self._ring)):,} tags,"
                " expected one of them to be waited for first"
            )
        return self._freed.popleft()

    def free(self, tag: int) -> None:
        """The command that had the tag has ended."""
        self._freed.append(tag)
