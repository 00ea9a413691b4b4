"""What requests count while they run."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Tally:
    """Counts of one partition, or of all; ``hw.params.statistics`` says what each means."""

    requests: int = 0
    failed_requests: int = 0
    retired_requests: int = 0
    block_lookups: int = 0
    block_hits: int = 0
    prefix_hits: int = 0
    pending_lookups: int = 0
    cut_lookups: int = 0
    stored_blocks: int = 0
    decode_blocks: int = 0
    existing_blocks: int = 0
    pending_blocks: int = 0
    refused_no_space: int = 0
    refused_quota: int = 0
    refused_retired: int = 0
    evictions: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """The sum of several."""
        total = cls()
        for tally in tallies:
            for f in fields(cls):
                setattr(total, f.name, getattr(total, f.name) + getattr(tally, f.name))
        return total

    @property
    def hit_rate(self) -> float:
        """Block hits per reference; 0 without any."""
        return self.block_hits / max(self.block_lookups, 1)

    @property
    def prefix_hit_rate(self) -> float:
        """Prefix hits per reference; 0 without any."""
        return self.prefix_hits / max(self.block_lookups, 1)

    @property
    def refused_blocks(self) -> int:
        """ALLOCs refused, for whatever cause."""
        return self.refused_no_space + self.refused_quota + self.refused_retired


@dataclass(slots=True)
class History:
    """The course of a run: per request in the order of their ends, and samples of the frames by state."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    """Which request of the workload it was."""
    references: array[int] = field(default_factory=lambda: array("q"))
    hits: array[int] = field(default_factory=lambda: array("q"))
    prefix_hits: array[int] = field(default_factory=lambda: array("q"))
    occupancy: list[tuple[int, ...]] = field(default_factory=list)
    """Requests ended, then frames by state in the order of ``FrameState``."""
    events: list[tuple[int, str]] = field(default_factory=list)
    """Requests started, and what was done to the device then."""

    def add(self, number: int, references: int, hits: int, prefix_hits: int) -> None:
        """A request has ended."""
        self.numbers.append(number)
        self.references.append(references)
        self.hits.append(hits)
        self.prefix_hits.append(prefix_hits)
