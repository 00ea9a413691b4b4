"""Channels of DRAM, behind a slice, and behind a requester that has no data path."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from hw.params.dram import DRAMS, MAPS, MemoryChannel
from hw.tb.harness import Memory
from scripts.benches import Figure, Sheet
from scripts.benches.stream.alone import Alone, alone
from scripts.benches.stream.rates import WRITES, Counts, measure
from scripts.benches.stream.readers import Choice, blocks_at_random, segments_at_random, stream
from scripts.benches.stream.slices import Slice

REFRESHES, CYCLES = 24, 6_000
"""Beats are counted over so many intervals between refreshes; over so many cycles where there are none."""

WAY = 20
"""Cycles to a channel and back."""


IDEAL = Memory(latency=60, shared=True)
"""What is measured beside DRAM: a beat for every cycle, about as late, and a bus that turns in no time."""


class Traffic(NamedTuple):
    """What ports read, and what part of all beats is written; and whether that keeps all channels busy alike."""

    choose: Choice
    writes: float = 0.0
    even: bool = True


TRAFFIC: Mapping[str, Traffic] = {
    "a stream": Traffic(stream),
    "blocks at random": Traffic(blocks_at_random),
    "segments at random": Traffic(segments_at_random, even=False),
    "70/30, blocks at random": Traffic(blocks_at_random, WRITES),
}


class Beside(NamedTuple):
    """Fractions of the peak: what a slice gets, and what a requester alone; and writes, of all beats."""

    name: str
    channels: int
    device: str
    traffic: str
    ours: float
    alone: Alone
    writes: float

    @property
    def ratio(self) -> float:
        """What is left behind a data path."""
        return self.ours / self.alone.at_random


def beside(slice_: Slice, seed: int) -> list[Beside]:
    """Measure all traffic on ideal memory and on all devices."""
    return [
        row
        for traffic in TRAFFIC
        for row in (_on_ideal(slice_, traffic), *(_on_dram(slice_, device, traffic, seed) for device in DRAMS))
    ]


def _on_ideal(slice_: Slice, traffic: str) -> Beside:
    measured = measure(slice_, IDEAL, CYCLES, choose=TRAFFIC[traffic].choose, writes=TRAFFIC[traffic].writes)
    return _row(slice_, "ideal", traffic, measured.counts, Alone(1.0, 1.0))


def _on_dram(slice_: Slice, device: str, traffic: str, seed: int) -> Beside:
    """For as many cycles as some refreshes take."""
    dram, (choose, writes, _) = DRAMS[device], TRAFFIC[traffic]
    channel = MemoryChannel(dram=dram, map=MAPS["stream"])
    cycles = round(REFRESHES * dram.refi / dram.clocks_per_cycle(slice_.params.memory.beat_bytes))
    measured = measure(slice_, Memory(channel=channel, latency=WAY, reorder=True), cycles, choose=choose, writes=writes)
    return _row(slice_, device, traffic, measured.counts, alone(slice_.params, channel, measured, seed))


def _row(slice_: Slice, device: str, traffic: str, counts: Counts, others: Alone) -> Beside:
    channels, moved = slice_.params.memory.channels, counts.read + counts.written
    ours = moved / counts.cycles / channels
    return Beside(slice_.name, channels, device, traffic, ours, others, counts.written / moved)


def figures(found: Sequence[Beside]) -> list[Figure]:
    """What is asked of each device and traffic, in the geometry that gets least; of several channels if it is even."""
    made = []
    for device, (traffic, (*_, even)) in product(DRAMS, TRAFFIC.items()):
        of = [each for each in found if (each.device, each.traffic) == (device, traffic)]
        ratio = min(each.ratio for each in of if even or each.channels == 1)
        name = f"{device}, {traffic}: slice / requester alone"
        made.append(Figure.at_least(name, ratio, "x", target=0.98, limit=1.0))
    return made


def sheet(found: Sequence[Beside]) -> Sheet:
    """All devices, traffic and geometries."""
    return Sheet(
        name="dram",
        title="Channels of DRAM: fractions of their peak",
        columns=("traffic", "channels x ports", "device", "slice", "alone", "ratio", "alone, in batches", "writes"),
        rows=[
            [
                *(each.traffic, each.name, each.device),
                *(f"{fraction:.3f}" for fraction in (each.ours, each.alone.at_random, each.ratio)),
                *(f"{fraction:.3f}" if each.writes else "" for fraction in (each.alone.in_batches, each.writes)),
            ]
            for each in sorted(found, key=lambda each: list(TRAFFIC).index(each.traffic))
        ],
        note="Alone: a requester that asks a channel for the same bursts, and always has as many in flight as the slice"
        " can; writes between reads at random, or together in batches.",
    )
