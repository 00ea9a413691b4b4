"""Whose turn it is in a slice whose partitions are isolated: how long turns are, and what has to end in them.

A turn is that of a partition, or the house's, in which the registers administer. What is begun in a turn ends in it, so
nobody finds a core or a memory that still does something of somebody else's.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hw.params.section import Section, param

if TYPE_CHECKING:
    from hw.params.params import Params

SETTLED = 16
"""Cycles of an operation on one row, with what follows it and what ports are told of it."""

SEARCHED = 48
"""Cycles of an ALLOC besides its search: a row of the CAM, of a victim, of a dead block of the same key."""

STREAMED = 24
"""Cycles from a LOOKUP to its last answer, less one a key."""


@dataclass(frozen=True, kw_only=True)
class RotaParams(Section):
    """Turns of partitions that are isolated; without meaning where they are not."""

    section: ClassVar[str] = "rota"
    turn: int = param(
        0, "a turn of a partition; 0: twice what has to fit in it, and `guard`", low=0, high=1 << 20, unit="cycles"
    )
    guard: int = param(
        0,
        "the end of a turn, in which memory ends what it has begun and comes to rest; 0: by the latency to be covered",
        low=0,
        high=1 << 20,
        unit="cycles",
    )


@dataclass(frozen=True, kw_only=True)
class Rota:
    """The times of a rota, in cycles.

    - `alloc`, `lookup`, `key`, `other`: for which the core is busy at most with an ALLOC, the first key of a LOOKUP and
      all that may be streamed behind it, another key, and anything else with what follows it.
    - `guard`: at the end of a turn, in which no burst begins. `turn`: of a partition. `house`: that of the registers.
    - `least`: of a turn, so that nothing waits for ever.
    """

    alloc: int
    lookup: int
    key: int
    other: int
    guard: int
    turn: int
    house: int
    least: int

    @classmethod
    def of(cls, params: "Params") -> "Rota":
        """Return the rota of a slice.

        A search looks at each word of the pool twice, in 5 cycles, and at each victim in the queue once. A write waits
        for `turn_cycles` among reads, and then for a batch of them.
        """
        memory, tables = params.memory, params.tables
        words = math.ceil(max(pool.frames for pool in params.pools) / tables.scan_frames)
        alloc = SEARCHED + 5 * (2 * words + tables.scan_steps) + 4 * tables.victims
        key = SETTLED + 10 * tables.partitions
        lookup = STREAMED + tables.lookup_keys + key
        other = SETTLED + memory.segment_bytes.bit_length()
        bursts = math.ceil(tables.ports / params.shares) * (params.read_segments + params.write_bursts)
        guard = params.rota.guard or 2 * (memory.latency_cycles + bursts * params.segment_beats)
        used = params.turn_cycles + 2 * memory.turn_bursts
        least = max(guard + used, alloc, lookup)
        return cls(
            alloc=alloc,
            lookup=lookup,
            key=key,
            other=other,
            guard=guard,
            turn=params.rota.turn or max(guard + 2 * used, 2 * alloc, 2 * lookup),
            house=2 * other,
            least=least,
        )

    def period(self, partitions: int) -> int:
        """Return the cycles from a turn to the next of the same partition."""
        return partitions * self.turn + self.house
