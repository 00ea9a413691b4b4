"""How much a consumer waits for a session that is prefetched, by window and latency, beside what a formula says."""

from collections.abc import Iterator
from math import ceil, log2
from random import Random
from typing import NamedTuple

from matplotlib.axes import Axes

from hw.params import InputError, Params, load_params
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.params.records import ARRIVAL, ARRIVED, BLOCK, STAGED, STAGING
from hw.tb.harness import Memory
from hw.tb.harness.system import SystemHarness
from hw.tb.scoreboard import CheckError
from hw.tb.system.load import STRIDE, Ring, serve
from scripts.benches import Figure, Result, Sheet
from scripts.report.style import COLORS, draw

GEOMETRY = (
    "preset=TINY",
    "memory.latency_cycles=16",
    "memory.waiting_reads=32",
    "link.replay=true",
    "link.commands=16",
    "link.answers=64",
    "link.response_flits=64",
    "link.data_flits=1200",
    "pools.0.frame_bytes=8192",
    "pools.0.frames=6",
    "cam.ways=4",
    "tables.ports=1",
    "requester.commands=40",
    "requester.prefetches=1",
    "requester.fills=32",
    "requester.fill_segments=4",
    "requester.window_segments=128",
)
"""One port with beats of 16 bytes and segments of 512; credits, and READs at the node, do for the longest latency."""

LATENCIES = (50, 100, 200, 500)
"""`link.latency`, each way."""

WINDOWS = (4, 8, 16, 32, 64, 128)
"""Segments of the staging ring: what may be asked for and not yet used."""

RATE = 0.95
"""Of the link, at which data is used."""

BLOCKS = 4
"""That are stored; a session has them again and again."""

MEMORY = 16
"""Cycles from a READ at the memory of the node to its data."""

REST = 50
"""Cycles from the consumer's doorbell to a READ on the link, through both ends of a link and the node, and from data in
HBM to its mark: what the system adds to the latency of link and memory."""


class Point(NamedTuple):
    """Share of cycles in which the consumer waits, with a latency and a window; by the formula; what covers it.

    `adaptive`: the window is the largest of those in the staging ring, and fewer segments are under way.
    """

    latency: int
    window: int
    stall: float
    formula: float
    covers: float
    adaptive: bool = False


def run(trace: str | None, *, blocks: int = 40, seed: int = 0) -> Result:
    """Measures compiled systems of one requester and a slice, with a link with replay between them: a session of
    `blocks` blocks goes through a staging ring in HBM while a consumer uses it at 95 % of what the link carries.

    The window is the staging ring: a place is taken from the READ until the consumer has done with it. The latency is
    that of the link, each way. The consumer waits when a range that it is to use next is not marked; the wait for the
    first does not count. The formula: a place goes round once in two ways of the link, the latency of memory and what
    the system adds, transfer of a READ and use of a range, so that w places carry at most w segments in that time, and
    the consumer waits for the rest of what it could use.

    With `requester.window_adapts` the session is used twice, and measured the second time: the window has been found.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark prefetch takes no trace")
    points = [point for latency in LATENCIES for point in _measure(latency, blocks, seed)]
    fixed = [point for point in points if not point.adaptive]
    frame = load_params(None, GEOMETRY).pools[0].frame_bytes
    covered = {
        latency: next(p for p in fixed if p.latency == latency and p.window >= p.covers) for latency in LATENCIES
    }
    return Result(
        figures=[
            *(
                Figure.at_most(
                    f"stall, link latency {latency}, {point.window} segments, {point.covers:.1f} cover it",
                    100 * point.stall,
                    "%",
                    target=1,
                    limit=0,
                )
                for latency, point in covered.items()
            ),
            *(
                Figure.at_most(
                    f"stall, link latency {point.latency}, adaptive", 100 * point.stall, "%", target=1, limit=0
                )
                for point in points
                if point.adaptive
            ),
            Figure(
                name="stall, largest difference from the formula",
                value=100 * max(abs(point.stall - point.formula) for point in fixed),
                unit="points",
            ),
        ],
        input=f"{blocks} blocks of {frame} bytes, {len(points)} windows and latencies",
        seed=seed,
        sheets=[_sheet(points)],
        plots={"prefetch.svg": draw(lambda axes: _plot(axes, points), label="Stall of a consumer by window")},
    )


def _measure(latency: int, blocks: int, seed: int) -> list[Point]:
    """All windows with a latency of the link, and at last the window that adapts."""
    fixed = _session([f"link.latency={latency}"], blocks, seed)
    points = [fixed.play(latency, window) for window in WINDOWS]
    fixed.harness.close()
    adaptive = _session([f"link.latency={latency}", "requester.window_adapts=true"], blocks, seed)
    adaptive.play(latency, max(WINDOWS))
    points.append(adaptive.play(latency, max(WINDOWS))._replace(adaptive=True))
    adaptive.harness.close()
    return points


def _session(settings: list[str], blocks: int, seed: int) -> "Session":
    """A session in the node of a system of its own."""
    params = load_params(None, (*GEOMETRY, *settings))
    harness = SystemHarness(params, seed=seed, memory=Memory(latency=MEMORY))
    serve(harness, params)
    return Session(harness, params, Ring(harness, params, 0, bytearray(params.pools[0].frame_bytes)), blocks, seed)


class Session:
    """A session's blocks in the node, and what software has for them in memory."""

    def __init__(self, harness: SystemHarness, params: Params, ring: Ring, blocks: int, seed: int):
        self.harness, self.params, self.ring = harness, params, ring
        self._count = blocks
        self._span = params.segments(params.pools[0].frame_bytes)
        self._range = params.requester.fill_segments
        self._row = 1 << ceil(log2(1 + self._span // self._range))
        self._consumed = 0
        rng = Random(seed)
        opened = ring.ask(Opcode.OPEN_SESSION, Status.OK)["slot"]
        self._data = [rng.randbytes(params.pools[0].frame_bytes) for _ in range(BLOCKS)]
        handles = [ring.store(key, data, opened) for key, data in enumerate(self._data)]
        entries = (BLOCK.pack(handle=handles[i % BLOCKS], length=len(self._data[0])) for i in range(blocks))
        self._list = bytearray(b"".join(entries))
        self._table = bytearray(ARRIVAL.size * self._row * blocks)
        self._staging = bytearray(params.memory.segment_bytes * max(WINDOWS))
        for place, memory in enumerate((self._list, self._table, self._staging), start=4):
            harness.map(0, place * STRIDE, memoryview(memory), writable=True)

    def play(self, latency: int, window: int) -> Point:
        """Use the session once. CheckError for data that is not that of the blocks, or that does not come."""
        harness, ring, size = self.harness, self.ring, self.params.memory.segment_bytes
        self._table[:] = bytes(len(self._table))
        ring.put(
            EngineOpcode.PREFETCH,
            flags=STAGED,
            count=self._count,
            length=self._span,
            crc=self._consumed,
            slot=self._range,
            page_shift=self._row.bit_length() - 1,
            subject=int.from_bytes(STAGING.pack(address=6 * STRIDE, log2_segments=int(log2(window))), "little"),
            data=4 * STRIDE,
            results=5 * STRIDE,
        )
        ring.ring()
        use = self._range * self.params.segment_beats / RATE
        begin = stall = 0
        due = 0.0
        for number, (block, first) in enumerate(self._ranges()):
            waited = self._wait(block, first)
            stall += waited * (number > 0)
            if not number:
                begin = harness.cycle
            start = self._consumed % window * size
            found = self._staging[start : start + self._range * size]
            if found != self._data[block % BLOCKS][first * size :][: self._range * size]:
                raise CheckError(f"segment {first} of block {block} is marked, and is not in HBM")
            due = (harness.cycle if waited or not number else due) + use
            harness.run(max(0, round(due) - harness.cycle))
            self._consumed = (self._consumed + self._range) & 0xFFFF
            ring.write("CONSUMED", self._consumed)
        cycles = harness.cycle - begin
        ended = ring.end(EngineOpcode.PREFETCH, Status.OK)
        if ended["count"] != self._count:
            raise CheckError(f"{ended['count']} blocks have arrived of {self._count}")
        covers = self._covers(latency)
        return Point(latency, window, stall / cycles, max(0.0, 1 - window / covers), covers)

    def _covers(self, latency: int) -> float:
        """Segments that are used while a place goes round."""
        beats = self.params.segment_beats
        read = self._range * beats
        return RATE / beats * (2 * latency + MEMORY + REST + read + read / RATE)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        for block in range(self._count):
            for first in range(0, self._span, self._range):
                yield block, first

    def _wait(self, block: int, first: int) -> int:
        """Run until a range is marked; return for how long. CheckError if it never is."""
        at = ARRIVAL.size * (block * self._row + 1 + first // self._range)
        flags = at + ARRIVAL.offsets["flags"]
        for cycles in range(100_000):
            if self._table[flags] == ARRIVED:
                return cycles
            self.harness.run(1)
        raise CheckError(f"segment {first} of block {block} does not come")


def _sheet(points: list[Point]) -> Sheet:
    rows = [
        [
            str(p.latency),
            "adaptive" if p.adaptive else str(p.window),
            f"{p.covers:.1f}",
            f"{p.stall:.1%}",
            f"{p.formula:.1%}",
        ]
        for p in points
    ]
    return Sheet(
        name="prefetch",
        title="Cycles in which a consumer waits",
        columns=["link latency", "window, segments", "covers it, segments", "stall", "formula"],
        rows=rows,
        note="The consumer uses data at 95 % of the link; the window is the staging ring in HBM, which has "
        f"{max(WINDOWS)} segments where the window adapts.",
    )


def _plot(axes: Axes, points: list[Point]) -> None:
    for latency, color in zip(LATENCIES, COLORS.values(), strict=False):
        mine = [p for p in points if p.latency == latency and not p.adaptive]
        axes.plot(
            [p.window / p.covers for p in mine], [p.stall for p in mine], "o", color=color, label=f"{latency} cycles"
        )
    ratios = [i / 50 for i in range(1, 151)]
    axes.plot(ratios, [max(0.0, 1 - ratio) for ratio in ratios], color="black", linewidth=1, label="formula")
    axes.set_xlim(0, 3)
    axes.set_xlabel("window / what covers the latency")
    axes.set_ylabel("cycles in which the consumer waits")
    axes.legend()
