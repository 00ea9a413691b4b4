"""What moves while requesters do all they can: beats a cycle, of reads and of writes."""

from collections.abc import Sequence
from typing import NamedTuple

from hw.params import KvnodeError
from hw.tb.harness import Memory
from scripts.benches.stream.readers import Choice, Readers, blocks_at_random
from scripts.benches.stream.slices import Slice
from scripts.benches.stream.writers import Writers

STEP, WARMING = 100, 2_000
"""Cycles of a call, and those before anything is counted."""

PATIENCE = 200_000
"""Cycles for all that is under way to end."""

WRITES = 0.3
"""Share of the beats that are written where there are reads and writes."""


class Counts(NamedTuple):
    """What has moved in so many cycles: beats of READs that came, beats on all channels, and turns of their buses."""

    cycles: int
    came: int
    read: int
    written: int
    turns: int

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*(now - then for now, then in zip(self, other, strict=True)))


class Measured(NamedTuple):
    """Counts, and what had been asked for."""

    counts: Counts
    readers: Readers
    writers: Writers | None


def measure(
    slice_: Slice,
    memory: Memory,
    cycles: int,
    *,
    choose: Choice = blocks_at_random,
    ports: Sequence[int] | None = None,
    depth: int | None = None,
    step: int = STEP,
    writes: float = 0.0,
) -> Measured:
    """Have ports read, and all write if `writes` of the beats are to be written; count for so many cycles.

    Raises KvnodeError if anything ends otherwise than it should, if bytes are not those stored, or if there is no end.
    """
    slice_.harness.memory = memory
    readers = Readers(slice_, range(len(slice_.rings)) if ports is None else ports, choose, depth)
    writers = Writers(slice_, writes) if writes else None

    def run(count: int, *, more: bool = True) -> None:
        readers.step(more=more)
        if writers:
            writers.step(more=more)
        slice_.software.run(count)

    for _ in range(WARMING // step):
        run(step)
    begun = _counts(slice_)
    for left in range(cycles, 0, -step):
        run(min(step, left))
    counts = _counts(slice_) - begun
    end = slice_.harness.cycle + PATIENCE
    while readers.busy or (writers and writers.busy):
        if slice_.harness.cycle > end:
            raise KvnodeError(f"what was under way has not ended in {PATIENCE:,} cycles")
        run(step, more=False)
    if writers:
        writers.close()
    return Measured(counts, readers, writers)


def _counts(slice_: Slice) -> Counts:
    channels = slice_.harness.statistics()
    turns = (
        each.turns + more.turnarounds for each, more in zip(channels, slice_.harness.channel_statistics(), strict=True)
    )
    return Counts(
        slice_.harness.cycle,
        slice_.software.beats,
        sum(each.read_beats for each in channels),
        sum(each.write_beats for each in channels),
        sum(turns),
    )
