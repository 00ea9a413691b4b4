"""What fraction of its channels' peak a slice delivers: every geometry, memory latency and size of frame."""

from collections.abc import Iterable
from itertools import product
from random import Random

from rich.console import Console
from rich.progress import Progress

from hw.params import InputError, KvnodeError, Params, load_params
from hw.params import commands as c
from hw.params.protocol import Handle, RingId, Status
from hw.tb.harness import Harness, Memory
from hw.tb.slice.software import Reply, Software
from scripts.benches import Figure, Result, Sheet

PORTS, CHANNELS = (1, 2, 4), (1, 2, 4, 8)
LATENCIES = (100, 200, 400)
"""Of memory, in cycles; buffers are sized for the last."""

FRAMES = (4 << 10, 32 << 10, 1 << 20, 40 << 20)
"""Bytes of a frame; of the large ones the first segments are used."""

USUAL = 32 << 10
BLOCKS, SEGMENTS = 8, 64
"""Blocks that are read, and most segments of each."""

READS = 24
"""READs under way at a port."""

STEP, WARMING = 100, 20
"""Cycles of a call, in which a port brings as many beats, and calls before anything is counted."""


def run(trace: str | None, *, cycles: int = 6_000, seed: int = 0) -> Result:
    """Measures compiled slices with beats of 64 bytes at their links, with memory of a fixed latency.

    Every port reads blocks at random, byte for byte compared. What is counted is beats of READs that have come, in
    `cycles` cycles, over what channels and ports can carry: a beat a cycle each, so the fewer of both decide. The
    buffers are those that the parameters give for 400 cycles, which is 1.25 times latency and bandwidth.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark stream takes no trace")
    figures, rows = [], []
    geometries = [(channels, ports, USUAL) for channels, ports in product(CHANNELS, PORTS)]
    geometries += [(4, 4, size) for size in FRAMES if size != USUAL]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("slices", total=len(geometries))
        for channels, ports, size in geometries:
            slice_ = _Slice(channels, ports, size, seed)
            all_ports = [slice_.rate(range(ports), latency, cycles) for latency in LATENCIES]
            alone = [slice_.rate(range(1), latency, cycles) for latency in LATENCIES]
            name = f"{channels} channels, {ports} ports, frames of {size >> 10:,} KiB"
            figures.append(Figure.at_least(f"reads, {name}", min(all_ports), "of peak", target=0.99, limit=1.0))
            rows.append([name, *(f"{rate:.4f}" for rate in (*all_ports, *alone))])
            if ports == 1 or (channels, ports) == (4, 4):
                figures.append(Figure.at_least(f"one port, {name}", min(alone), "of peak", target=0.97, limit=1.0))
            progress.advance(task)
    return Result(
        figures=figures,
        input=f"beats of 64 bytes, memory {', '.join(map(str, LATENCIES))} cycles late, {cycles:,} cycles each",
        seed=seed,
        sheets=[
            Sheet(
                name="stream",
                title="Beats of READs, of what channels and ports carry",
                columns=(
                    "slice",
                    *(f"all ports, {latency}" for latency in LATENCIES),
                    *(f"one port, {latency}" for latency in LATENCIES),
                ),
                rows=rows,
                note="By the latency of memory, in cycles.",
            )
        ],
    )


def _params(channels: int, ports: int, frame_bytes: int) -> Params:
    return load_params(
        None,
        [
            "preset=DEFAULT",
            f"memory.channels={channels}",
            f"memory.latency_cycles={LATENCIES[-1]}",
            f"tables.ports={ports}",
            f"pools.0.frame_bytes={frame_bytes}",
            "pools.0.frames=16",
            "tables.partitions=2",
            "tables.models=2",
            "tables.rings_per_port=2",
            "tables.sessions=16",
            "tables.pins_per_ring=16",
            "tables.parked_reads=4",
            "tables.fences=2",
            "tables.scan_frames=4",
            "tables.victims=4",
        ],
    )


class _Slice:
    """A compiled slice with blocks that can be read."""

    def __init__(self, channels: int, ports: int, frame_bytes: int, seed: int) -> None:
        params = _params(channels, ports, frame_bytes)
        self._harness = Harness(params, seed=seed)
        self._software = Software(self._harness, params)
        self._random = Random(seed)
        self._rings = [RingId(port, 0) for port in range(ports)]
        self._peak = min(channels, ports)
        self._channels = channels
        self._software.begin(*self._rings)
        self._segment = params.memory.segment_bytes
        self._blocks = [self._store(key, min(frame_bytes, SEGMENTS * self._segment)) for key in range(BLOCKS)]

    def _store(self, key: int, length: int) -> tuple[Handle, bytes]:
        data = self._random.randbytes(length)
        return self._software.store(self._rings[0], key, data), data

    def rate(self, ports: Iterable[int], latency: int, cycles: int) -> float:
        """Beats that come in a cycle while these ports read all they can, over what they could."""
        self._harness.memory = Memory(latency=latency)
        rings = [self._rings[port] for port in ports]
        under_way: list[tuple[RingId, Reply, bytes]] = []
        begun = 0
        for step in range(WARMING + cycles // STEP):
            if step == WARMING:
                begun = self._software.beats
            under_way = [each for each in under_way if not self._ended(*each[1:])]
            for ring in rings:
                for _ in range(READS - sum(each[0] == ring for each in under_way)):
                    under_way.append((ring, *self._read(ring)))
            self._software.run(STEP)
        moved = self._software.beats - begun
        while not all(self._ended(*each[1:]) for each in under_way):
            self._software.run(STEP)
        return moved / (cycles // STEP * STEP) / min(len(rings), self._channels)

    def _read(self, ring: RingId) -> tuple[Reply, bytes]:
        handle, data = self._random.choice(self._blocks)
        return self._software.send(ring, c.Read(handle, 0, len(data) // self._segment)), data

    def _ended(self, reply: Reply, data: bytes) -> bool:
        if not reply.ended:
            return False
        if reply.status is not Status.OK or reply.data != data:
            raise KvnodeError(f"a READ of {len(data):,} bytes ended {reply.status.name}, or with other bytes")
        return True
