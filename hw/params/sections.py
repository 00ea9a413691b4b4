"""The sections of parameters, each with its fields: what they mean, their units, and what is allowed."""

from dataclasses import dataclass
from typing import ClassVar

from hw.params.protocol import FRAME_BITS, FRAME_GENERATION_BITS, SLOT_GENERATION_BITS
from hw.params.section import Section, param

STRIPING = ("permuted", "interleaved")
"""How segments are spread over channels: a permutation for each row of them, or the same order in all rows."""


ISOLATION = ("shared", "strict")
"""How partitions share a slice."""


HOMES = ("root", "key")
"""What decides the slice of a block: the first key of its chain, or its own."""


@dataclass(frozen=True, kw_only=True)
class NodeParams(Section):
    """Slices of a node: each is what the other sections say, with memory channels of its own."""

    section: ClassVar[str] = "node"
    slices: int = param(1, "slices behind one set of ports", low=1, high=16, power_of_two=True)
    home: str = param(
        "root", "a block's slice follows from the key of its chain's first block, or from its own", choices=HOMES
    )

    @property
    def slice_bits(self) -> int:
        """Bits that the number of a slice needs."""
        return (self.slices - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class MemoryParams(Section):
    """Data path and memory channels."""

    section: ClassVar[str] = "memory"
    segment_bytes: int = param(
        4096, "unit of striping, burst, CRC, transform, progress", low=512, high=4096, unit="bytes", power_of_two=True
    )
    beat_bytes: int = param(64, "word of the data path", low=16, high=128, unit="bytes", power_of_two=True)
    channels: int = param(8, "memory channels", low=1, high=32, power_of_two=True)
    striping: str = param(
        "permuted",
        "segments over channels; interleaved: in turn, so that a stride of as many segments uses one channel",
        choices=STRIPING,
    )
    latency_cycles: int = param(
        128, "memory latency that the bursts in flight are to cover", low=1, high=1024, unit="cycles"
    )
    read_segments: int = param(
        0, "reads in flight for a port on a channel, each with buffer and AXI ID; 0: by the latency", low=0, high=512
    )
    turn_bursts: int = param(
        4, "bursts of reads, and of writes, that a channel lets out in turn while both wait", low=1, high=16
    )
    banks: int = param(
        4, "rows that a channel has open beside each other; 1: it has none", low=1, high=64, power_of_two=True
    )
    row_bytes: int = param(
        4096,
        "bytes of a channel behind each other in one of them",
        low=4096,
        high=1 << 20,
        unit="bytes",
        power_of_two=True,
    )
    waiting_reads: int = param(32, "READs under way at a port", low=2, high=64)


@dataclass(frozen=True, kw_only=True)
class LinkParams(Section):
    """What is buffered at both ends of the link of a port; each buffer gives its credits."""

    section: ClassVar[str] = "link"
    commands: int = param(16, "commands that wait at a port, besides the keys of one LOOKUP", low=2, high=256)
    write_segments: int = param(4, "segments of write data that wait at a port", low=2, high=64)
    answers: int = param(64, "answers that a port may be owed, if one LOOKUP needs no more", low=4, high=4096)
    messages: int = param(16, "messages that wait at a port for its link; more are lost", low=2, high=1024)
    response_flits: int = param(16, "buffer for completions at the requester", low=2, high=1024, unit="flits")
    data_flits: int = param(64, "buffer for read data at the requester", low=2, high=4096, unit="flits")
    message_flits: int = param(4, "buffer for messages at each end", low=2, high=1024, unit="flits")
    heartbeat_cycles: int = param(
        4096,
        "a requester that has sent nothing for so long says that it is there; 0: never",
        low=0,
        high=1 << 24,
        unit="cycles",
    )
    silence_cycles: int = param(
        65536,
        "a port whose requester has sent nothing for so long is lost; 0: never",
        low=0,
        high=1 << 28,
        unit="cycles",
    )
    replay: bool = param(False, "links are serial, find errors and send again what is lost; else they are wires")
    latency: int = param(0, "cycles that a word is under way at most, each way", low=0, high=2000, unit="cycles")
    flit_cycles: int = param(1, "cycles that a link with replay takes for a flit: its width", low=1, high=64)
    timer_cycles: int = param(
        0,
        "no sign of progress for so long: all that is not acknowledged is sent again; 0: twice the round trip",
        low=0,
        high=1 << 20,
        unit="cycles",
    )
    tries: int = param(8, "so much is sent again without progress until the link is given up", low=1, high=255)


@dataclass(frozen=True, kw_only=True)
class RequesterParams(Section):
    """The requester at the other end of a port's link."""

    section: ClassVar[str] = "requester"
    commands: int = param(64, "commands in flight of a requester, over all its rings", low=2, high=256)
    write_segments: int = param(4, "segments of write data that are fetched ahead", low=2, high=64)
    prefetches: int = param(
        0, "prefetches under way of a requester, over all its rings; 0: it has none", low=0, high=16
    )
    fills: int = param(16, "READs under way of all prefetches", low=4, high=64)
    fill_segments: int = param(4, "segments of such a READ at most", low=1, high=64)
    window_segments: int = param(32, "segments under way of all prefetches", low=1, high=1024)
    window_adapts: bool = param(False, "as many at most as round trips say; else as many at all times")
    slots: int = param(0, "blocks that its write-back buffer holds; 0: it has none", low=0, high=64)
    slots_high: int = param(
        0, "used slots from which on write-back comes before prefetch; 0: three quarters of them", low=0, high=64
    )
    slots_low: int = param(0, "used slots below which it does not any more; 0: a quarter of them", low=0, high=64)
    sessions: int = param(0, "sessions whose fences a requester answers; 0: software answers all", low=0, high=64)

    @property
    def high_mark(self) -> int:
        """Used slots from which on write-back is urgent."""
        return self.slots_high or max(1, self.slots * 3 // 4)

    @property
    def low_mark(self) -> int:
        """Used slots below which it is not any more."""
        return self.slots_low or max(1, self.slots // 4)


@dataclass(frozen=True, kw_only=True)
class CamParams(Section):
    """Geometry of the block CAM; one bank with one set is a true CAM."""

    section: ClassVar[str] = "cam"
    banks: int = param(5, "banks, each with a hash of its own", low=1, high=16)
    ways: int = param(8, "ways of a set", low=1, high=4096)
    sets: int = param(
        0, "sets of a bank, a power of two; 0: the fewest with 1.25 slots a frame", low=0, high=1 << FRAME_BITS
    )
    seed: int = param(1, "seed of the bank hashes; the driver writes what follows from it", low=0, high=2**63 - 1)


@dataclass(frozen=True, kw_only=True)
class PoolParams(Section):
    """A pool of equal frames."""

    section: ClassVar[str] = "pools"
    frame_bytes: int = param(4 << 20, "size of a frame", low=4 << 10, high=64 << 20, unit="bytes")
    frames: int = param(16384, "frames of the pool", low=1, high=1 << FRAME_BITS)


@dataclass(frozen=True, kw_only=True)
class TableParams(Section):
    """Sizes of the tables of a slice."""

    section: ClassVar[str] = "tables"
    ports: int = param(4, "fabric ports", low=1, high=16)
    rings_per_port: int = param(4, "rings of a port", low=1, high=16)
    partitions: int = param(16, "partition table entries", low=1, high=64)
    models: int = param(64, "model table entries", low=1, high=256)
    sessions: int = param(1024, "open sessions", low=1, high=65536)
    pins_per_ring: int = param(2048, "pin table entries of a ring", low=1, high=65536)
    parked_reads: int = param(64, "READs that can wait for a seal", low=1, high=1024)
    park_cycles: int = param(
        1 << 20, "a parked READ waits as long at least, and twice as long at most", low=16, high=1 << 40, unit="cycles"
    )
    fences: int = param(16, "sessions that can be moving between rings", low=1, high=64)
    fence_cycles: int = param(
        1 << 20, "a session moves for as long at least, and twice as long at most", low=16, high=1 << 40, unit="cycles"
    )
    lookup_keys: int = param(256, "keys of one LOOKUP", low=1, high=4096)
    victims: int = param(64, "victim FIFO of a partition", low=1, high=1024)
    scan_frames: int = param(
        64, "frames that the replacement hand sees in one step", low=1, high=256, power_of_two=True
    )
    scan_steps: int = param(2, "steps of the hand for an ALLOC that evicts", low=1, high=16)
    generation_bits: int = param(
        FRAME_GENERATION_BITS, "generation counter of a frame", low=2, high=FRAME_GENERATION_BITS
    )
    slot_generation_bits: int = param(
        SLOT_GENERATION_BITS, "generation counter of a pin or session slot", low=2, high=SLOT_GENERATION_BITS
    )
    stamp_bits: int = param(8, "scope stamp of partition and model in a frame", low=1, high=32)
    isolation: str = param(
        "shared", "strict: what a partition is told does not depend on others; each has a pool", choices=ISOLATION
    )
    ecc: bool = param(True, "SECDED and scrubbing of the SRAM words of CAM and tables")


@dataclass(frozen=True, kw_only=True)
class ReplayParams(Section):
    """How a trace is replayed: the workload that goes with the hardware."""

    section: ClassVar[str] = "replay"
    seed: int = param(0, "seed of schedule and payloads", low=0, high=2**63 - 1)
    in_flight: int = param(8, "requests in flight", low=1, high=1024)
    decode: bool = param(True, "append the blocks of each request's output")
    block_tokens: int = param(512, "tokens of a block in the trace", low=1, high=65536)
    block_bytes: int = param(1024, "stored bytes of a block, scaled down", low=64, high=64 << 20, unit="bytes")
    partitions: int = param(1, "partitions that the conversations are spread over", low=1, high=64)
    models: int = param(1, "models that the conversations are spread over", low=1, high=256)
    ports: int = param(1, "ports that requests arrive at, in turn", low=1, high=16)
    quota: float = param(1.0, "quota of a partition, as a fraction of the pool", low=0.001, high=1.0)
    guarantee: float = param(0.0, "guarantee of a partition, as a fraction of an equal share", low=0.0, high=1.0)
    retire_model_at: float = param(
        0.0, "retire the last model after this fraction of requests; 0: never", low=0, high=1
    )
    lose_port_at: float = param(0.0, "lose the last port after this fraction of requests; 0: never", low=0, high=1)
