"""A slice of isolated partitions, one of which is watched: what comes to its port, and in which cycle, whatever the
other does."""

from hw.params import commands as c
from hw.params.dram import HBM3, Controller, MemoryChannel
from hw.params.params import Params
from hw.params.protocol import ModelState, RingId
from hw.params.rota import RotaParams
from hw.params.sections import CamParams, LinkParams, MemoryParams, PoolParams, TableParams
from hw.rtl.emit import Emission
from hw.tb.harness import Harness, Memory
from hw.tb.scoreboard import CheckError
from hw.tb.slice.diary import OTHER, RINGS, WATCHED, diary, load
from hw.tb.slice.party import Party, Trace
from hw.tb.slice.software import STEP

LATENCY = 20
"""Cycles of the way to the device and back."""

CHANNEL = MemoryChannel(dram=HBM3, controller=Controller(queue=16, high=12, low=4, close=40))
"""Behind the slice: rows, banks and refresh, and rows that are closed when nothing wants them."""


PATIENCE = 3_000_000
"""Cycles for a diary."""


def watched_params(isolation: str = "strict") -> Params:
    """Two partitions with a port each, in front of one channel."""
    memory = MemoryParams(
        segment_bytes=512, beat_bytes=16, channels=1, latency_cycles=8, waiting_reads=4, turn_bursts=2
    )
    bursts = 4  # two reads and two writes of a port
    guard = CHANNEL.rest(bursts, memory.segment_bytes, memory.beat_bytes) + bursts * 32 + LATENCY
    return Params(
        memory=memory,
        link=LinkParams(commands=4, write_segments=4, answers=8, heartbeat_cycles=0, silence_cycles=0),
        cam=CamParams(banks=2, ways=2, sets=8),
        pools=(PoolParams(frame_bytes=4096, frames=6), PoolParams(frame_bytes=4096, frames=6)),
        tables=TableParams(
            ports=2,
            rings_per_port=RINGS,
            partitions=2,
            models=1,
            sessions=16,
            pins_per_ring=4,
            parked_reads=4,
            park_cycles=20_000,
            fences=2,
            fence_cycles=20_000,
            lookup_keys=4,
            victims=4,
            scan_frames=4,
            isolation=isolation,
        ),
        rota=RotaParams(guard=guard),
    )


def behind(channel: MemoryChannel = CHANNEL, latency: int = LATENCY) -> Memory:
    """Memory that follows from what it is asked, and nothing else."""
    return Memory(channel=channel, latency=latency)


def watch(params: Params, load_number: int, *, emission: Emission | None = None, memory: Memory | None = None) -> Trace:
    """Return what comes to the watched port while its diary is played, beside that load. Raises CheckError."""
    harness = Harness(params, seed=0, emission=emission, memory=memory or behind())
    watched = Party(harness, params, WATCHED, diary())
    other = Party(harness, params, OTHER, load(load_number))
    rings = [RingId(port, ring) for port in (WATCHED, OTHER) for ring in range(params.tables.rings_per_port)]
    watched.configure(
        [
            *(c.SetPartition(i, pool=i, quota=pool.frames) for i, pool in enumerate(params.pools)),
            c.SetModel(0, ModelState.LIVE),
            *(c.Bind(ring, ring.port) for ring in rings),
        ]
    )
    while not watched.over:
        if harness.cycle > PATIENCE:
            raise CheckError(f"the diary is not at its end after {harness.cycle:,} cycles")
        watched.step()
        other.step()
        harness.run(STEP)
        harness.log()
    harness.close()
    return watched.trace
