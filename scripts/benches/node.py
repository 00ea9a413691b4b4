"""How much more a node of two slices delivers than one of them."""

from collections.abc import Iterable
from random import Random

from hw.params import InputError, KvnodeError, Params
from hw.params import commands as c
from hw.params.protocol import Handle, RingId, Status
from hw.tb.harness import Harness, Memory
from hw.tb.node.compiled import small_node
from hw.tb.node.one_slice import views
from hw.tb.slice.software import Reply, Software
from scripts.benches import Figure, Result

LATENCY = 32
"""Of memory, in cycles: what buffers are sized for."""

BLOCKS, SEGMENTS = 4, 8
"""Blocks of each slice, and segments of each."""

READS = 4
"""READs under way at a port, of each slice: as many as can be, so that none waits and keeps credits."""

STEP, WARMING = 100, 20
"""Cycles of a call, and calls before anything is counted."""

LEAST = 1_000
"""Of `cycles`."""


def run(trace: str | None, *, cycles: int = 6_000, seed: int = 0) -> Result:
    """Measures a compiled node of two of the smallest slices behind the same ports, at its links.

    Every port reads blocks at random by handle, byte for byte compared, of one slice and then of both. What is counted
    is beats of READs that have come in `cycles` cycles. A slice has half as many channels as there are ports, a beat a
    cycle each; two slices give all that the links carry.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark node takes no trace")
    if cycles < LEAST:
        raise InputError(f"--set cycles={cycles}: expected {LEAST} or more, for there to be something to measure")
    params = small_node()
    return Result(
        figures=figures(cycles=cycles, seed=seed),
        input=f"{params.node.slices} slices, channels of each {params.memory.channels}, ports {params.tables.ports},"
        f" beats of {params.memory.beat_bytes} bytes, memory {LATENCY} cycles late, {cycles:,} cycles each",
        seed=seed,
        params=[params],
    )


def figures(*, cycles: int, seed: int) -> list[Figure]:
    """The figures of `run`."""
    params = small_node()
    node, slices = _Node(params, seed), params.node.slices
    one, two = node.rate(range(1), cycles), node.rate(range(slices), cycles)
    return [
        Figure(name="reads, one slice alone", value=one, unit="beats/cycle", limit=float(params.memory.channels)),
        Figure(name="reads, both", value=two, unit="beats/cycle", limit=float(slices * params.memory.channels)),
        Figure.at_least("two slices, of one", two / one, "times", target=1.95, limit=float(slices)),
    ]


class _Node:
    """A compiled node with blocks that can be read at each slice."""

    def __init__(self, params: Params, seed: int) -> None:
        self._harness = Harness(params, seed=seed)
        self._slices = [Software(view, params) for view in views(self._harness, params)]
        self._random = Random(seed)
        self._rings = [RingId(port, 0) for port in range(params.tables.ports)]
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
