"""What a requester without a data path would get from the same channels, for the same bursts."""

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from random import Random
from statistics import fmean

from hw.params import Params
from hw.params.dram import MemoryChannel
from hw.params.striping import Striping
from hw.tb.harness.dram import Request, request
from scripts.benches.stream.rates import Measured
from scripts.benches.stream.readers import Part
from scripts.benches.stream.slices import Place

BURSTS = 2_000
"""Bursts of a channel at most: more than a hundred refreshes."""


def best(params: Params, channel: MemoryChannel, measured: Measured, seed: int) -> float:
    """Return the fraction of its peak that a channel gives, on average, if it is asked for what a slice was asked for.

    Bursts of a port come in the order in which they were asked for, those of the ports in turn, and writes between
    reads at random, or in batches as long as the slice's: what is better counts. As many bursts are under way as the
    slice has buffers for reads of a channel.
    """
    reads = _by_channel(params, (_places(parts) for parts in measured.readers.sent.values()))
    writes = _by_channel(params, measured.writers.sent.values() if measured.writers else (), write=True)
    outstanding = params.tables.ports * params.read_segments
    return fmean(
        max(
            request(channel, bursts[:BURSTS], outstanding=outstanding).fraction
            for bursts in (_shuffled(Random(seed), *kinds), _batched(params.memory.turn_bursts, *kinds))
        )
        for kinds in zip(reads, writes, strict=True)
    )


def _places(parts: Iterable[Part]) -> list[Place]:
    """Where the segments of READs are."""
    return [(part.block.handle.frame, part.first + i) for part in parts for i in range(part.segments)]


def _by_channel(params: Params, ports: Iterable[Sequence[Place]], *, write: bool = False) -> list[list[Request]]:
    """The bursts of each channel, given the segments of each port."""
    stripes, size = Striping(params), params.memory.segment_bytes
    channels: list[list[list[Request]]] = [[] for _ in range(stripes.channels)]
    for places in ports:
        for bursts in channels:
            bursts.append([])
        for place in places:
            channel, address = stripes.locate(*place)
            channels[channel][-1].append(Request(address, size, write))
    return [[burst for burst in chain(*zip_longest(*bursts)) if burst] for bursts in channels]


def _shuffled(random: Random, reads: Sequence[Request], writes: Sequence[Request]) -> list[Request]:
    """Both, each in its order, otherwise at random."""
    kinds = [False] * len(reads) + [True] * len(writes)
    random.shuffle(kinds)
    left = iter(reads), iter(writes)
    return [next(left[write]) for write in kinds]


def _batched(batch: int, reads: Sequence[Request], writes: Sequence[Request]) -> list[Request]:
    """Both, each in its order, so many writes together."""
    made: list[Request] = []
    for begin in range(0, len(writes), batch):
        end = min(begin + batch, len(writes))
        first, last = (len(reads) * at // len(writes) for at in (begin, end))
        made += [*writes[begin:end], *reads[first:last]]
    return made or list(reads)
