"""Requesters that read all they can, and compare every byte."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hw.params import KvnodeError
from hw.params import commands as c
from hw.params.protocol import RingId, Status
from hw.tb.slice.software import Reply
from scripts.benches.stream.slices import Block, Slice

BEATS = 4_000
"""What a port has asked for, so that nothing waits for READs: some times the longest latency, and a call."""

LEAST = 3
"""READs under way, however long they are."""


class Part(NamedTuple):
    """Segments of a block, that one READ is for."""

    block: Block
    first: int
    segments: int


Choice = Callable[[Slice, int], Part]
"""What is read next, given the number of READs so far."""


def blocks_at_random(slice_: Slice, number: int) -> Part:
    """Whole blocks here and there."""
    return _whole(slice_, slice_.random.choice(slice_.blocks))


def segments_at_random(slice_: Slice, number: int) -> Part:
    """One segment here, the next one elsewhere."""
    whole = blocks_at_random(slice_, number)
    return whole._replace(first=slice_.random.randrange(whole.segments), segments=1)


def stream(slice_: Slice, number: int) -> Part:
    """Block by block as they lie in memory, whichever port asks."""
    return _whole(slice_, slice_.blocks[number % len(slice_.blocks)])


def stream_of_segments(slice_: Slice, number: int) -> Part:
    """The same, segment by segment."""
    count = slice_.params.segments(slice_.length)
    return stream(slice_, number // count)._replace(first=number % count, segments=1)


def _whole(slice_: Slice, block: Block) -> Part:
    return Part(block, 0, slice_.params.segments(len(block.data)))


class Readers:
    """A requester at each of some ports that always has READs under way: `depth` of them, if that is given.

    - `sent`: what they have asked for, in order.
    """

    def __init__(self, slice_: Slice, ports: Sequence[int], choose: Choice, depth: int | None) -> None:
        self._slice, self._choose, self._depth = slice_, choose, depth
        self._rings = [slice_.rings[port] for port in ports]
        self.sent: list[Part] = []
        self._under_way: dict[RingId, list[tuple[Reply, Part]]] = {ring: [] for ring in self._rings}

    @property
    def busy(self) -> bool:
        """Whether READs are under way."""
        return any(self._under_way.values())

    def step(self, *, more: bool = True) -> None:
        """Look at what has ended, and ask for more."""
        for ring, under_way in self._under_way.items():
            under_way[:] = [(reply, part) for reply, part in under_way if not self._ended(reply, part)]
            while more and self._wants(under_way):
                under_way.append(self._ask(ring))

    def _wants(self, under_way: Sequence[tuple[Reply, Part]]) -> bool:
        """Whether a port that has these READs under way asks for another."""
        if self._depth is not None:
            return len(under_way) < self._depth
        memory = self._slice.params.memory
        asked = sum(part.segments for _, part in under_way) * self._slice.params.segment_beats
        return len(under_way) < (LEAST if asked > BEATS else memory.waiting_reads)

    def _ask(self, ring: RingId) -> tuple[Reply, Part]:
        part = self._choose(self._slice, len(self.sent))
        self.sent.append(part)
        part.block.reads += 1
        return self._slice.software.send(ring, c.Read(part.block.handle, part.first, part.segments)), part

    def _ended(self, reply: Reply, part: Part) -> bool:
        """Whether a READ has ended. Raises KvnodeError unless it has brought what was stored."""
        if not reply.ended:
            return False
        size = self._slice.params.memory.segment_bytes
        wanted = part.block.data[part.first * size : (part.first + part.segments) * size]
        if reply.status is not Status.OK or reply.data != wanted:
            raise KvnodeError(f"a READ of {len(wanted):,} bytes ended {reply.status.name}, or with other bytes")
        part.block.reads -= 1
        return True
