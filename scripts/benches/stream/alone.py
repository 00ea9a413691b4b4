"""What a requester without a data path would get from the same channels, for the same bursts."""

from collections.abc import Sequence
from random import Random
from statistics import fmean
from typing import NamedTuple

from hw.params import Params
from hw.params.dram import MemoryChannel
from hw.params.striping import Striping
from hw.tb.harness.dram import Request, request
from scripts.benches.stream.rates import Measured
from scripts.benches.stream.slices import Place

BURSTS = 2_000
"""Bursts of a channel at most: more than a hundred refreshes."""


class Alone(NamedTuple):
    """Fractions of the peak, with writes between reads at random, and in batches as long as those of a slice."""

    at_random: float
    in_batches: float


def alone(params: Params, channel: MemoryChannel, measured: Measured, seed: int) -> Alone:
    """Return what a channel gives, on average, if it is asked for what a slice was asked for.

    Bursts come in the order in which ports asked for them, and as many are under way as the slice has buffers for reads
    of a channel.
    """
    reads = [(part.block.handle.frame, part.first + i) for part in measured.readers.sent for i in range(part.segments)]
    writes = measured.writers.sent if measured.writers else []
    kinds = list(zip(_by_channel(params, reads), _by_channel(params, writes, write=True), strict=True))

    def fraction(bursts: list[Request]) -> float:
        outstanding = params.tables.ports * params.read_segments
        return request(channel, bursts[:BURSTS], outstanding=outstanding).fraction

    return Alone(
        fmean(fraction(_shuffled(Random(seed), *each)) for each in kinds),
        fmean(fraction(_batched(params.memory.turn_bursts, *each)) for each in kinds),
    )


def _by_channel(params: Params, places: Sequence[Place], *, write: bool = False) -> list[list[Request]]:
    """The bursts of each channel."""
    stripes, size = Striping(params), params.memory.segment_bytes
    channels: list[list[Request]] = [[] for _ in range(stripes.channels)]
    for place in places:
        channel, address = stripes.locate(*place)
        channels[channel].append(Request(address, size, write))
    return channels


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
