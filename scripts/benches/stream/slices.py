"""The slices that are measured: compiled once each, with blocks that can be read."""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from hw.params import Params, load_params
from hw.params.protocol import Handle, RingId
from hw.tb.harness import Harness
from hw.tb.slice.software import Software

LATENCIES = (100, 200, 400)
"""Of memory, in cycles; buffers are sized for the last."""

USUAL = 32 << 10
"""Bytes of a frame."""

POOL = 64
"""Frames: a channel of DRAM has them in tens of rows. Of large ones there are fewer."""

LONGEST = 64
"""Most segments of a block; what large frames have beyond is not used."""

BLOCKS = 24
"""That there always are; in large frames fewer."""

Place = tuple[int, int]
"""A segment: its frame, and its number there."""


class Geometry(NamedTuple):
    """What is compiled: channels, ports, bytes of a beat and a segment, and of a frame of each pool."""

    channels: int
    ports: int
    beat: int = 64
    segment: int = 4096
    frames: tuple[int, ...] = (USUAL,)

    @property
    def usual(self) -> bool:
        """Whether beats and segments are what they mostly are."""
        return (self.beat, self.segment) == (64, 4096)

    def name(self, pool: int) -> str:
        """Return what is written in tables."""
        text = f"{self.channels} x {self.ports}"
        if not self.usual:
            text += f", beats of {self.beat} and segments of {self.segment:,} bytes"
        return text if self.frames[pool] == USUAL else f"{text}, frames of {self.frames[pool] >> 10:,} KiB"

    def large(self, pool: int) -> bool:
        """Return whether a block is a sample of its frame."""
        return self.frames[pool] > LONGEST * self.segment

    def params(self) -> Params:
        """Return all parameters; tables are small and without ECC, so that they are compiled soon."""
        settings = {
            "memory.channels": self.channels,
            "memory.beat_bytes": self.beat,
            "memory.segment_bytes": self.segment,
            "memory.latency_cycles": LATENCIES[-1],
            "tables.ports": self.ports,
            "tables.partitions": 2,
            "tables.models": 2,
            "tables.rings_per_port": 2,
            "tables.sessions": 16,
            "tables.pins_per_ring": 16,
            "tables.parked_reads": 4,
            "tables.fences": 2,
            "tables.scan_frames": 4,
            "tables.victims": 4,
            "tables.lookup_keys": 4,
            "tables.ecc": "false",
            "cam.banks": 2,
            "cam.ways": 4,
        }
        for i, size in enumerate(self.frames):
            settings[f"pools.{i}.frame_bytes"] = size
            settings[f"pools.{i}.frames"] = POOL // 4 if self.large(i) else POOL
        return load_params(None, ["preset=DEFAULT", *(f"{name}={value}" for name, value in settings.items())])


@dataclass(eq=False, slots=True)
class Block:
    """A sealed block; `reads` of it are under way."""

    key: int
    handle: Handle
    data: bytes
    reads: int = 0


class Slice:
    """A compiled slice in service, with a ring at each port, and blocks of random bytes in one of its pools.

    - `name`: in tables. `length`: of all blocks. `frames`: of the pool.
    """

    def __init__(self, params: Params, *, name: str, length: int, blocks: int, seed: int, pool: int = 0) -> None:
        self.params, self.name, self.length, self.random = params, name, length, Random(seed)
        self.frames = params.pools[pool].frames
        self.harness = Harness(params, seed=seed)
        self.software = Software(self.harness, params)
        self.rings = [RingId(port, 0) for port in range(params.tables.ports)]
        self.software.begin(*self.rings, pool=pool)
        self.keys = iter(range(1 << 32))
        self.blocks = [self._store() for _ in range(blocks)]

    @classmethod
    def of(cls, geometry: Geometry, pool: int, seed: int) -> "Slice":
        """Compile a geometry, unless it was, and use one of its pools."""
        return cls(
            geometry.params(),
            name=geometry.name(pool),
            length=min(geometry.frames[pool], LONGEST * geometry.segment),
            blocks=BLOCKS // 3 if geometry.large(pool) else BLOCKS,
            seed=seed,
            pool=pool,
        )

    def peak(self, ports: int) -> int:
        """Beats a cycle that the channels and so many ports carry one way: a beat each, so the fewer decide."""
        return min(self.params.memory.channels, ports)

    def new_bytes(self) -> bytes:
        """What another block holds."""
        return self.random.randbytes(self.length)

    def _store(self) -> Block:
        key, data = next(self.keys), self.new_bytes()
        return Block(key, self.software.store(self.rings[0], key, data), data)
