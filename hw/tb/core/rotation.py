"""Turns for a core whose partitions are isolated and that is tested alone: each operation finds its owner's."""

from typing import NamedTuple

from hw.params.params import Params
from hw.rtl.node.layouts import Kind
from hw.tb.core.operations import Fields

IDLE = 150
"""Cycles after which it is somebody else's turn, while there is nothing to take."""


class Now(NamedTuple):
    """Fields of `turn_layout`, and whether the operation may be offered."""

    share: int
    left: int
    offered: bool


class Rotation:
    """Gives turns as they are needed, each when what was begun in the one before has ended."""

    def __init__(self, params: Params):
        self._params, self._longest = params, max(params.times.alloc, params.times.lookup)
        self._share = self._resting = self._idle = 0
        self._ends = params.times.other

    def owner(self, operation: Fields) -> int:
        """Whose an operation is; the number behind all partitions is the house's."""
        shares, stamp = self._params.shares, operation["stamp"]
        if operation["kind"] == Kind.LANDED:
            firsts = [sum(pool.frames for pool in self._params.pools[: i + 1]) for i in range(shares)]
            return sum(operation["handle"]["frame"] >= first for first in firsts)
        if operation["kind"] == Kind.LOST:
            return int(operation["ring"]["port"]) % shares
        return shares if stamp["registers"] else int(stamp["port"]) % shares

    def now(self, operation: Fields | None) -> Now:
        """The turn in the next cycle, in which this operation waits to be taken, if any does."""
        if operation is None:
            self._idle += 1
            wanted = (self._share + (self._idle > IDLE)) % (self._params.shares + 1)
        else:
            wanted, self._idle = self.owner(operation), 0
        if wanted != self._share:
            self._resting += 1
            if self._resting <= self._ends:
                return Now(self._share, 1, False)
            self._share, self._idle = wanted, 0
        self._resting = 0
        if operation is not None:
            long = operation["kind"] in (Kind.ALLOC, Kind.LOOKUP)
            self._ends = self._longest if long else self._params.times.other
        return Now(self._share, self._params.times.turn, operation is not None)
