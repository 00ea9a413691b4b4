"""How much more a node of two slices delivers than one of them."""

from collections.abc import Iterable
from random import Random

from hw.params import InputError, KvnodeError, Params, load_params
from hw.params import commands as c
from hw.params.protocol import Handle, RingId, Status
from hw.tb.harness import Harness, Memory
from hw.tb.node.one_slice import views
from hw.tb.slice.software import Reply, Software
from scripts.benches import Figure, Result

SLICES, PORTS, CHANNELS = 2, 4, 2
"""Of the node; channels of each slice: half as many as ports, so that both slices give what the links carry."""

LATENCY = 100
"""Of memory, in cycles."""

BLOCKS, SEGMENTS = 8, 8
"""Blocks of each slice, and segments of each."""

READS = 24
"""READs under way at a port, of each slice."""

STEP, WARMING = 100, 20
"""Cycles of a call, and calls before anything is counted."""


def run(trace: str | None, *, cycles: int = 6_000, seed: int = 0) -> Result:
    """Measures a compiled node of two slices behind the same ports, at its links.

    Every port reads blocks at random by handle, byte for byte compared, of one slice and then of both. What is counted
    is beats of READs that have come in `cycles` cycles. A slice has half as many channels as there are ports, and two
    slices give all that the links carry.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark node takes no trace")
    return Result(
        figures=figures(cycles=cycles, seed=seed),
        input=f"{SLICES} slices of {CHANNELS} channels, {PORTS} ports, beats of 64 bytes, memory {LATENCY} cycles late,"
        f" {cycles:,} cycles each",
        seed=seed,
    )


def figures(*, cycles: int, seed: int) -> list[Figure]:
    """The figures of `run`."""
    node = _Node(seed)
    one, two = node.rate(range(1), cycles), node.rate(range(SLICES), cycles)
    return [
        Figure(name="reads, one slice alone", value=one, unit="beats/cycle", limit=float(CHANNELS)),
        Figure(name="reads, both", value=two, unit="beats/cycle", limit=float(PORTS)),
        Figure.at_least("two slices, of one", two / one, "times", target=1.95, limit=2.0),
    ]


def _params() -> Params:
    """A node with little more than a data path: tables decide nothing here, and make it long to compile."""
    return load_params(
        None,
        [
            "preset=TINY",
            f"node.slices={SLICES}",
            "memory.segment_bytes=4096",
            "memory.beat_bytes=64",
            f"memory.channels={CHANNELS}",
            f"memory.latency_cycles={LATENCY}",
            "memory.waiting_reads=32",
            "link.commands=16",
            "link.answers=64",
            "link.response_flits=16",
            "link.data_flits=64",
            f"tables.ports={PORTS}",
            f"pools.0.frame_bytes={SEGMENTS * 4096}",
            f"pools.0.frames={BLOCKS}",
            "cam.sets=4",
            "tables.sessions=8",
            "tables.scan_frames=4",
        ],
    )


class _Node:
    """A compiled node with blocks that can be read at each slice."""

    def __init__(self, seed: int) -> None:
        params = _params()
        self._harness = Harness(params, seed=seed)
        self._slices = [Software(view, params) for view in views(self._harness, params)]
        self._random = Random(seed)
        self._rings = [RingId(port, 0) for port in range(PORTS)]
        self._segment = params.memory.segment_bytes
        for software in self._slices:
            software.begin(*self._rings)
        self._blocks = [[self._store(software, key) for key in range(BLOCKS)] for software in self._slices]
        self._harness.memory = Memory(latency=LATENCY)

    def _store(self, software: Software, key: int) -> tuple[Handle, bytes]:
        data = self._random.randbytes(SEGMENTS * self._segment)
        return software.store(self._rings[0], key, data), data

    def rate(self, numbers: Iterable[int], cycles: int) -> float:
        """Beats that come in a cycle while all ports read all they can of these slices."""
        slices = [(self._slices[number], self._blocks[number]) for number in numbers]
        under_way: list[list[tuple[RingId, Reply, bytes]]] = [[] for _ in slices]
        begun = 0
        for step in range(WARMING + cycles // STEP):
            if step == WARMING:
                begun = self._beats
            for (software, blocks), reads in zip(slices, under_way, strict=True):
                reads[:] = [each for each in reads if not _ended(*each[1:])]
                for ring in self._rings:
                    for _ in range(READS - sum(each[0] == ring for each in reads)):
                        handle, data = self._random.choice(blocks)
                        reads.append((ring, software.send(ring, c.Read(handle, 0, SEGMENTS)), data))
            self._run()
        moved = self._beats - begun
        while not all(_ended(reply, data) for reads in under_way for _, reply, data in reads):
            self._run()
        return moved / (cycles // STEP * STEP)

    @property
    def _beats(self) -> int:
        return sum(software.beats for software in self._slices)

    def _run(self) -> None:
        """Some cycles, and what has come in them from each slice."""
        self._harness.run(STEP)
        for software in self._slices:
            software.run(0)


def _ended(reply: Reply, data: bytes) -> bool:
    if not reply.ended:
        return False
    if reply.status is not Status.OK or reply.data != data:
        raise KvnodeError(f"a READ of {len(data):,} bytes ended {reply.status.name}, or with other bytes")
    return True
