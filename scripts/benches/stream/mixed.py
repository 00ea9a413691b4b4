"""Reads and writes on one bus that turns around between the two."""

from collections.abc import Sequence
from typing import NamedTuple

from hw.tb.harness import Memory
from scripts.benches import Figure, Sheet
from scripts.benches.stream.rates import WRITES, measure
from scripts.benches.stream.slices import LATENCIES, Slice

TURNAROUND, BATCH = 16, 256
"""Cycles in which the bus rests when it turns, and beats that it moves at most while the others wait."""


MOST = 4
"""Channels of the slices that are measured."""


class Mixed(NamedTuple):
    """Fractions of all cycles: used for data or turning, and used for data; writes in the data, and beats a turn."""

    name: str
    latency: int
    used: float
    data: float
    writes: float
    beats: float


def mixed(slice_: Slice, cycles: int) -> list[Mixed]:
    """Measure READs of blocks at random beside WRITEs of whole blocks, at all latencies.

    Blocks are long: on fewer channels than `MOST` it goes on for longer than `cycles`, until as much has moved.
    """
    longer = cycles * MOST // slice_.params.memory.channels
    return [_mixed(slice_, latency, longer) for latency in LATENCIES]


def _mixed(slice_: Slice, latency: int, cycles: int) -> Mixed:
    memory = Memory(latency=latency, shared=True, turnaround=TURNAROUND, batch=BATCH)
    counts = measure(slice_, memory, cycles, writes=WRITES).counts
    moved, most = counts.read + counts.written, counts.cycles * slice_.params.memory.channels
    used = (moved + TURNAROUND * counts.turns) / most
    return Mixed(slice_.name, latency, used, moved / most, counts.written / moved, moved / counts.turns)


def figures(found: Sequence[Mixed]) -> list[Figure]:
    """What is asked of each geometry, at the latency at which it gives least."""
    made = []
    for name in dict.fromkeys(each.name for each in found):
        of = [each for each in found if each.name == name]
        used, share = min(each.used for each in of), min(each.writes for each in of)
        made += [
            Figure.at_least(f"70/30 after turnarounds, {name}", used, "of cycles", target=0.95, limit=1.0),
            Figure.at_least(f"70/30, writes, {name}", share, "of beats", target=0.9 * WRITES, limit=WRITES),
        ]
    return made


def sheet(found: Sequence[Mixed]) -> Sheet:
    """All latencies of all geometries."""
    return Sheet(
        name="mixed",
        title="70 % reads, 30 % writes on a shared bus",
        columns=("channels x ports", "latency", "used", "data alone", "writes", "beats a turn"),
        rows=[
            [
                *(each.name, str(each.latency)),
                *(f"{fraction:.3f}" for fraction in (each.used, each.data, each.writes)),
                f"{each.beats:.0f}",
            ]
            for each in found
        ],
        note=f"Used: data, and {TURNAROUND} cycles each time that the bus turns, of all cycles.",
    )
