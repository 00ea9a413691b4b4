"""Channels of DRAM, behind a slice, and behind a requester that has no data path."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hw.params.dram import DRAMS, MAPS, MemoryChannel
from hw.tb.harness import Memory
from scripts.benches import Figure, Sheet
from scripts.benches.stream.alone import best
from scripts.benches.stream.rates import WRITES, measure
from scripts.benches.stream.readers import Choice, blocks_at_random, segments_at_random, stream
from scripts.benches.stream.slices import Slice

REFRESHES = 16
"""Cycles are counted over so many intervals between refreshes."""

WAY = 20
"""Cycles to a channel and back."""


class Traffic(NamedTuple):
    """What ports read, and what part of all beats is written."""

    choose: Choice
    writes: float = 0.0


TRAFFIC: Mapping[str, Traffic] = {
    "a stream": Traffic(stream),
    "blocks at random": Traffic(blocks_at_random),
    "segments at random": Traffic(segments_at_random),
    "70/30, blocks at random": Traffic(blocks_at_random, WRITES),
}


class Beside(NamedTuple):
    """Fractions of the peak: what a slice gets, and what the other requester."""

    name: str
    dram: str
    traffic: str
    ours: float
    best: float
    writes: float

    @property
    def ratio(self) -> float:
        """What is left behind a data path."""
        return self.ours / self.best


def beside(slice_: Slice, seed: int) -> list[Beside]:
    """Measure all traffic on all devices, for as many cycles as some refreshes take."""
    return [_beside(slice_, dram, traffic, seed) for dram in DRAMS for traffic in TRAFFIC]


def _beside(slice_: Slice, dram: str, traffic: str, seed: int) -> Beside:
    memory = slice_.params.memory
    device, (choose, writes) = DRAMS[dram], TRAFFIC[traffic]
    channel = MemoryChannel(dram=device, map=MAPS["stream"])
    cycles = round(REFRESHES * device.refi / device.clocks_per_cycle(memory.beat_bytes))
    measured = measure(slice_, Memory(channel=channel, latency=WAY, reorder=True), cycles, choose=choose, writes=writes)
    counts = measured.counts
    moved = counts.read + counts.written
    ours, best_ = moved / counts.cycles / memory.channels, best(slice_.params, channel, measured, seed)
    return Beside(slice_.name, dram, traffic, ours, best_, counts.written / moved)


def figures(found: Sequence[Beside]) -> list[Figure]:
    """What is asked of each device and traffic, in the geometry that gets least."""
    made = []
    for dram in DRAMS:
        for traffic in TRAFFIC:
            ratio = min(each.ratio for each in found if (each.dram, each.traffic) == (dram, traffic))
            name = f"{dram}, {traffic}: slice / requester alone"
            made.append(Figure.at_least(name, ratio, "x", target=0.98, limit=1.0))
    return made


def sheet(found: Sequence[Beside]) -> Sheet:
    """All devices, traffic and geometries."""
    return Sheet(
        name="dram",
        title="Channels of DRAM: fractions of their peak",
        columns=("traffic", "device", "channels x ports", "slice", "requester alone", "ratio", "writes"),
        rows=[
            [
                *(each.traffic, each.dram, each.name),
                *(f"{fraction:.3f}" for fraction in (each.ours, each.best, each.ratio, each.writes)),
            ]
            for each in sorted(found, key=lambda each: list(TRAFFIC).index(each.traffic))
        ],
        note="The requester alone gives a channel the same bursts, and always has as many in flight as the slice can.",
    )
