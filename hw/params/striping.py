"""Where a segment lies: which memory channel, and which address on it.

The segments of a slice are numbered pool by pool, frame by frame. Number n is in row ``n // channels`` of a channel
that is a linear function of n over GF(2): each bit of n that is set adds its column. The columns of the lowest bits are
the unit vectors, so a row of numbers is spread over all channels, in an order of its own; channel and row name one
segment, and nothing is left unused. Any log2(channels) neighbouring columns are linearly independent, so as those bits
count through their values, all channels are used: segments at any power of two of distance go through all channels, and
so do frames of a power of two of segments.

That much holds for a remainder modulo any irreducible polynomial (Rau, "Pseudo-randomly interleaved memory", ISCA
1991), whose columns repeat with a short period; strides near a multiple of it then lean on one channel by a factor of
up to 3.7. So each column adds the one log2(channels) before it to a choice of those between, made by SHA-256.

All this is `memory.striping = "permuted"`. With "interleaved" all higher bits add nothing: the channel is the number
modulo the channels, as plain interleaving has it, which is there to be compared with.
"""

from functools import cached_property, reduce
from hashlib import sha256
from itertools import accumulate
from operator import xor

from hw.params.errors import KvnodeError
from hw.params.params import Params


class Striping:
    """The map from segments of frames to channels and addresses, and back.

    - `channels`, `segment_bytes`: as in the parameters.
    - `firsts`: the first frame of each pool. `sizes`: segments of a frame of each pool.
    - `bases`: number of the first segment of each pool, a multiple of `channels`.
    """

    def __init__(self, params: Params) -> None:
        self.channels = params.memory.channels
        self._permuted = params.memory.striping == "permuted"
        self.segment_bytes = params.memory.segment_bytes
        self.sizes = tuple(pool.frame_bytes // self.segment_bytes for pool in params.pools)
        frames = tuple(pool.frames for pool in params.pools)
        rows = (-(-count * size // self.channels) for count, size in zip(frames, self.sizes, strict=True))
        *self.firsts, self._frames = accumulate(frames, initial=0)
        *self.bases, self._numbers = accumulate((self.channels * row for row in rows), initial=0)

    @property
    def number_bits(self) -> int:
        """Width of a segment's number."""
        return max(1, (self._numbers - 1).bit_length())

    @property
    def channel_bits(self) -> int:
        """Width of a channel."""
        return self.channels.bit_length() - 1

    @property
    def segment_bits(self) -> int:
        """Width of a byte's place in its segment."""
        return self.segment_bytes.bit_length() - 1

    @property
    def address_bits(self) -> int:
        """Width of an address on a channel."""
        return (self.channel_bytes - 1).bit_length()

    @property
    def channel_bytes(self) -> int:
        """Bytes that a channel has to hold."""
        return self._numbers // self.channels * self.segment_bytes

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """For each bit of the channel, the bits of the number whose parity it is."""
        return tuple(
            sum((column >> row & 1) << bit for bit, column in enumerate(self._columns))
            for row in range(self.channel_bits)
        )

    def number(self, frame: int, segment: int) -> int:
        """Return the number of a segment. Raises KvnodeError if there is no such segment."""
        if 0 <= frame < self._frames:
            pool = max(i for i, first in enumerate(self.firsts) if first <= frame)
            if 0 <= segment < self.sizes[pool]:
                return self.bases[pool] + (frame - self.firsts[pool]) * self.sizes[pool] + segment
        raise KvnodeError(f"there is no segment {segment} of frame {frame}")

    def locate(self, frame: int, segment: int) -> tuple[int, int]:
        """Return channel, and byte address on that channel, of a segment."""
        number = self.number(frame, segment)
        return self._channel(number), number // self.channels * self.segment_bytes

    def segment_at(self, channel: int, address: int) -> tuple[int, int]:
        """Return frame and segment of a byte on a channel. Raises KvnodeError if none is stored there."""
        row = address // self.segment_bytes * self.channels
        number = row + (channel ^ self._channel(row))
        for first, size, base, end in zip(
            self.firsts, self.sizes, self.bases, [*self.firsts[1:], self._frames], strict=True
        ):
            if base <= number < base + (end - first) * size:
                frame, segment = divmod(number - base, size)
                return first + frame, segment
        raise KvnodeError(f"channel {channel} has no segment at {address:#x}")

    @cached_property
    def _columns(self) -> list[int]:
        """For each bit of a number, what it adds to the channel."""
        width = self.channel_bits
        columns = [1 << bit for bit in range(width)] or [0] * self.number_bits
        while len(columns) < self.number_bits:
            choice = sha256(f"{self.channels} {len(columns)}".encode()).digest()[0]
            between = (columns[-i] for i in range(1, width) if choice >> i & 1)
            columns.append(reduce(xor, between, columns[-width]) if self._permuted else 0)
        return columns

    def _channel(self, number: int) -> int:
        """Return the channel of a numbered segment."""
        return reduce(xor, (column for bit, column in enumerate(self._columns) if number >> bit & 1), 0)
