"""The one parameter object: RTL, models, driver and reports are all built from it."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property

from hw.params.errors import ParameterError
from hw.params.protocol import FRAME_BITS, ITEM_BITS
from hw.params.rota import Rota, RotaParams
from hw.params.sections import (
    CamParams,
    LinkParams,
    MemoryParams,
    NodeParams,
    PoolParams,
    ReplayParams,
    RequesterParams,
    TableParams,
)

SLOTS_PER_FRAME = 1.25
"""Least index slots per frame: at this load 5 x 8 ways refused none of 20 M inserts under replacement."""


LEAST_COMMANDS = 4
"""Commands in flight that engines can work with: one of each, one of software, and two that software asks them for."""

COVER = 1.25
"""Bytes in flight per latency times bandwidth: a quarter more than just covers it."""


@dataclass(frozen=True, kw_only=True)
class Params:
    """All parameters. Raises ParameterError for a value out of range or a contradiction."""

    node: NodeParams = field(default_factory=NodeParams)
    memory: MemoryParams = field(default_factory=MemoryParams)
    link: LinkParams = field(default_factory=LinkParams)
    requester: RequesterParams = field(default_factory=RequesterParams)
    cam: CamParams = field(default_factory=CamParams)
    pools: tuple[PoolParams, ...] = (PoolParams(),)
    tables: TableParams = field(default_factory=TableParams)
    rota: RotaParams = field(default_factory=RotaParams)
    replay: ReplayParams = field(default_factory=ReplayParams)

    def __post_init__(self) -> None:
        def require(good: bool, message: str) -> None:
            if not good:
                raise ParameterError(f"parameters contradict each other: {message}")

        cam, memory, replay, tables = self.cam, self.memory, self.replay, self.tables
        require(1 <= len(self.pools) <= 16, f"{len(self.pools)} pools, expected 1 to 16")
        require(
            self.frames <= 1 << FRAME_BITS, f"pools have {self.frames:,} frames in all, at most {1 << FRAME_BITS:,}"
        )
        require(
            self.cam_sets & (self.cam_sets - 1) == 0, f"cam.sets = {cam.sets}, expected a power of two, or 0 to derive"
        )
        require(
            self.cam_slots > self.frames,
            f"cam.banks x sets x ways = {self.cam_slots:,} slots for {self.frames:,} frames,"
            " expected more slots than frames",
        )
        if self.strict:
            self._require_shares(require)
        largest = 0
        for i, pool in enumerate(self.pools):
            require(
                pool.frame_bytes % memory.segment_bytes == 0,
                f"pools.{i}.frame_bytes = {pool.frame_bytes} is no multiple of"
                f" memory.segment_bytes = {memory.segment_bytes}",
            )
            require(
                pool.frame_bytes // memory.segment_bytes < 1 << ITEM_BITS,
                f"pools.{i}.frame_bytes = {pool.frame_bytes} has too many segments of"
                f" memory.segment_bytes = {memory.segment_bytes}, expected fewer than {1 << ITEM_BITS:,}",
            )
            largest = max(largest, pool.frame_bytes)
        require(
            replay.block_bytes <= largest,
            f"replay.block_bytes = {replay.block_bytes} exceeds the largest frame, {largest} bytes",
        )
        bounds = [
            ("partitions", "partitions"),
            ("partitions", "rings_per_port"),
            ("models", "models"),
            ("ports", "ports"),
        ]
        for name, bound in bounds:
            wanted, have = getattr(replay, name), getattr(tables, bound)
            require(wanted <= have, f"replay.{name} = {wanted} exceeds tables.{bound} = {have}")
        link = self.link
        require(
            not link.silence_cycles or 0 < 2 * link.heartbeat_cycles <= link.silence_cycles,
            f"link.silence_cycles = {link.silence_cycles} with link.heartbeat_cycles = {link.heartbeat_cycles},"
            " expected at least two heartbeats in that time, or 0 for never",
        )
        requester = self.requester
        require(
            not (requester.prefetches or requester.slots) or requester.commands >= LEAST_COMMANDS,
            f"requester.commands = {requester.commands} with requester.prefetches = {requester.prefetches} and"
            f" requester.slots = {requester.slots}, expected {LEAST_COMMANDS} or more, or no engine",
        )
        require(
            requester.low_mark <= requester.high_mark,
            f"requester.slots_low = {requester.slots_low} with requester.slots_high = {requester.slots_high} and"
            f" requester.slots = {requester.slots}, expected no more than from which on it is urgent",
        )
        require(
            not requester.sessions or requester.slots > 0,
            f"requester.sessions = {requester.sessions} with requester.slots = 0, expected a write-back buffer",
        )
        require(
            requester.fill_segments <= requester.window_segments,
            f"requester.fill_segments = {requester.fill_segments} exceeds"
            f" requester.window_segments = {requester.window_segments}",
        )
        require(
            requester.prefetches <= max(2, requester.commands - 2),
            f"requester.prefetches = {requester.prefetches} of requester.commands = {requester.commands},"
            " expected two fewer at most",
        )
        require(
            link.replay or (link.latency == 0 and link.flit_cycles == 1),
            f"link.latency = {link.latency} and link.flit_cycles = {link.flit_cycles}, of a link without link.replay,"
            " expected 0 and 1",
        )
        require(
            not link.timer_cycles or link.timer_cycles > self.link_round_trip,
            f"link.timer_cycles = {link.timer_cycles} with a round trip of {self.link_round_trip} cycles,"
            " expected more, or 0 to derive",
        )
        sure = replay.guarantee / replay.partitions
        require(
            sure <= replay.quota,
            f"replay.guarantee = {replay.guarantee} of an equal share is {sure:.3g} of the pool,"
            f" replay.quota only {replay.quota}",
        )
        require(
            not replay.retire_model_at or replay.models > 1,
            "replay.retire_model_at needs a model that stays: replay.models of 2 or more",
        )
        require(
            not replay.lose_port_at or replay.ports > 1,
            "replay.lose_port_at needs a port that stays: replay.ports of 2 or more",
        )

    def _require_shares(self, require: Callable[[bool, str], None]) -> None:
        """What is divided among partitions that are isolated can be."""
        tables, count = self.tables, self.tables.partitions
        slots = self.cam_slots // count
        require(
            count == len(self.pools),
            f"tables.isolation = 'strict' with tables.partitions = {count} and {len(self.pools)} pools,"
            " expected a pool for each partition",
        )
        require(
            count & (count - 1) == 0 and count <= self.cam_sets,
            f"tables.isolation = 'strict' with tables.partitions = {count},"
            f" expected a power of two, and at most the sets of a bank, {self.cam_sets}",
        )
        for i, pool in enumerate(self.pools):
            require(
                slots > pool.frames,
                f"cam.banks x sets x ways = {self.cam_slots:,} slots, {slots:,} for each of {count} isolated"
                f" partitions, for pools.{i}.frames = {pool.frames:,}, expected more slots than frames",
            )
            require(
                pool.frame_bytes >= self.replay.block_bytes or i >= self.replay.partitions,
                f"replay.block_bytes = {self.replay.block_bytes} exceeds pools.{i}.frame_bytes = {pool.frame_bytes},"
                f" which isolated partition {i} is replayed in",
            )
        require(
            self.replay.ports >= self.replay.partitions,
            f"replay.ports = {self.replay.ports} for replay.partitions = {self.replay.partitions} that are isolated,"
            " expected a port for each",
        )
        for name in ("ports", "sessions", "parked_reads", "fences"):
            entries = getattr(tables, name)
            require(
                entries % count == 0,
                f"tables.isolation = 'strict' with tables.{name} = {entries} for {count} partitions,"
                " expected a multiple",
            )
        require(
            self.times.turn >= self.times.least,
            f"tables.isolation = 'strict' with rota.turn = {self.rota.turn}, expected {self.times.least:,} or more,"
            f" of which memory has {self.times.guard:,} to come to rest, or 0 to derive",
        )

    @property
    def strict(self) -> bool:
        """Whether partitions are isolated: each has a pool, ports, turns, and a share of each table and of the CAM."""
        return self.tables.isolation == "strict"

    @property
    def shares(self) -> int:
        """Shares that ports, sessions, parked READs, fences and the sets of the CAM are divided into: one, or one a
        partition. Port i, and slot i of a table, is of share i modulo `shares`.
        """
        return self.tables.partitions if self.strict else 1

    def ports_of(self, partition: int) -> range:
        """Return the ports that a partition may have rings on."""
        return range(partition % self.shares, self.tables.ports, self.shares)

    @cached_property
    def times(self) -> Rota:
        """Whose turn is how long, where partitions are isolated."""
        return Rota.of(self)

    @property
    def frames(self) -> int:
        """Frames of a slice, over all pools."""
        return sum(pool.frames for pool in self.pools)

    @property
    def cam_sets(self) -> int:
        """Sets of a bank: as given, or the smallest power of two with 1.25 slots a frame, in each share."""
        if self.cam.sets:
            return self.cam.sets
        frames = self.shares * max(pool.frames for pool in self.pools) if self.strict else self.frames
        needed = math.ceil(SLOTS_PER_FRAME * frames / (self.cam.banks * self.cam.ways))
        return 1 << (needed - 1).bit_length()

    @property
    def cam_slots(self) -> int:
        """Slots of the block CAM."""
        return self.cam.banks * self.cam_sets * self.cam.ways

    @property
    def segment_beats(self) -> int:
        """Beats of a whole segment."""
        return self.memory.segment_bytes // self.memory.beat_bytes

    def segments(self, length: int) -> int:
        """Segments that ``length`` bytes need."""
        return -(-length // self.memory.segment_bytes)

    def flits(self, size: int) -> int:
        """Flits that ``size`` bytes need; a flit carries a beat."""
        return -(-size // self.memory.beat_bytes)

    @property
    def answers(self) -> int:
        """Answers that a port may be owed: those of one LOOKUP at least."""
        return max(self.link.answers, self.tables.lookup_keys)

    @property
    def link_round_trip(self) -> int:
        """Cycles from a word of a link with replay until all that was sent without knowledge of it has been heard.

        Each way `link.latency`, and at both ends together: 7 registers, and a word that leaves, a word that waits for
        its turn behind another, and that word.
        """
        return 2 * self.link.latency + 3 * self.link.flit_cycles + 8

    @property
    def link_timer(self) -> int:
        """Cycles without progress after which a link sends again: as given, or twice the round trip."""
        return self.link.timer_cycles or 2 * self.link_round_trip

    @property
    def covering_bursts(self) -> int:
        """Bursts in flight that keep a channel busy: 1.25 x latency in beats, and the one being sent."""
        return 1 + math.ceil(COVER * self.memory.latency_cycles / self.segment_beats)

    @property
    def write_bursts(self) -> int:
        """Writes in flight for a port on a channel, each with an AXI ID: its share of those that keep a channel busy.

        All ports together keep a channel busy, and all channels together a port: the fewer of them decide the share,
        which is two at least. Ports that can take and give all that the channels do have no slack, and an order of
        channels each: one more for every doubling of the channels (found by simulation) lets none of them run dry.
        """
        ports, channels = self.tables.ports, self.memory.channels
        slack = channels.bit_length() - 1 if ports >= channels else 0
        return max(2, math.ceil(self.covering_bursts / min(ports, channels)) + slack)

    @property
    def write_buffers(self) -> int:
        """Segments of write data that are buffered for a port at a channel: one that comes and one that goes.

        One more where the ports give all that the channels take: it keeps those busy while a port has several segments
        for one channel behind each other (found by simulation). Those of all ports hold a batch, and one that comes.
        """
        ports, channels = self.tables.ports, self.memory.channels
        return max(3 if ports >= channels > 1 else 2, 1 + math.ceil(self.memory.turn_bursts / ports))

    @property
    def turn_cycles(self) -> int:
        """Cycles for which a write waits for a batch while there are reads: it comes in them if a fourth are writes."""
        return 4 * self.memory.turn_bursts * self.segment_beats

    @property
    def read_segments(self) -> int:
        """Reads in flight for a port on a channel, each with a buffer: as given, or as many as writes."""
        return self.memory.read_segments or self.write_bursts

    @property
    def rings(self) -> int:
        """Rings of a slice, over all ports."""
        return self.tables.ports * self.tables.rings_per_port

    @cached_property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name this set of parameters."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


TINY = Params(
    memory=MemoryParams(segment_bytes=512, beat_bytes=16, channels=2, latency_cycles=32, waiting_reads=2),
    link=LinkParams(
        commands=2,
        write_segments=2,
        answers=4,
        messages=2,
        response_flits=4,
        data_flits=8,
        message_flits=2,
        heartbeat_cycles=64,
        silence_cycles=1024,
    ),
    requester=RequesterParams(commands=4, write_segments=2),
    cam=CamParams(banks=2, ways=2, sets=2),
    pools=(PoolParams(frame_bytes=4096, frames=4),),
    tables=TableParams(
        ports=2,
        rings_per_port=2,
        partitions=2,
        models=2,
        sessions=2,
        pins_per_ring=2,
        parked_reads=2,
        fences=1,
        lookup_keys=4,
        victims=2,
        scan_frames=2,
        generation_bits=4,
        slot_generation_bits=4,
        stamp_bits=2,
    ),
)
"""The smallest slice with all its parts: for proofs and exhaustive tests."""

DEFAULT = Params()
"""A slice of 16,384 frames of 4 MiB."""

LARGE = Params(
    memory=MemoryParams(beat_bytes=128, channels=32),
    pools=(PoolParams(frame_bytes=4 << 20, frames=1 << FRAME_BITS),),
    tables=TableParams(ports=8, partitions=64, models=256, sessions=16384, parked_reads=256),
)
"""A slice of 1 Mi frames of 4 MiB."""

PRESETS = {"TINY": TINY, "DEFAULT": DEFAULT, "LARGE": LARGE}
