"""Scopes: everything under one partition or one model dies together, in one step."""

from dataclasses import dataclass


@dataclass(slots=True)
class Scope:
    """The generation of a partition or model, stamped into each entry under it.

    An entry is alive while its stamp equals ``generation``. ``bump`` kills all entries at once; the sweep takes the
    dead ones out later, and until then a stamp that one of them may still carry must not come back: a bump that would
    bring it back closes the scope instead, until no dead entry is left.

    ``live`` and ``stale`` count the entries with the current and with older stamps, ``bumps`` the bumps since there
    was no stale entry: the older stamps are among the last ``bumps``, so a counter each is all that hardware keeps.
    """

    stamps: int
    generation: int = 0
    live: int = 0
    stale: int = 0
    bumps: int = 0
    closed: bool = False

    def alive(self, stamp: int) -> bool:
        """Whether an entry with this stamp is alive."""
        return not self.closed and stamp == self.generation

    def enter(self) -> int:
        """The stamp of a new entry."""
        self.live += 1
        return self.generation

    def leave(self, stamp: int) -> None:
        """An entry is gone; the last dead one opens a closed scope again."""
        if self.alive(stamp):
            self.live -= 1
            return
        self.stale -= 1
        if self.stale == 0:
            self.bumps = 0
            if self.closed:
                self.closed = False
                self._next()

    def bump(self) -> None:
        """Kill everything under this scope."""
        self.stale += self.live
        self.live = 0
        if self.closed:
            return
        if self.stale == 0:
            self._next()
        elif self.bumps < self.stamps - 1:
            self.bumps += 1
            self._next()
        else:
            self.closed = True

    def _next(self) -> None:
        self.generation = (self.generation + 1) % self.stamps
