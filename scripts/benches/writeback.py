"""The write-back buffer: whether a producer waits while a slot is free, and how much of the link it fills."""

from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from rich.console import Console

from hw.params import InputError, KvnodeError, Params
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.params.sections import RequesterParams
from hw.rdl import requester_map
from hw.tb.harness.simulation import Memory
from hw.tb.harness.system import SystemHarness
from hw.tb.system.load import Ring, serve
from scripts.benches import Figure, Result, Sheet
from scripts.benches.stream.slices import Geometry
from scripts.report.style import COLORS, draw

SLOTS = 8
PARAMS = replace(
    Geometry(channels=4, ports=1, frames=(64 << 10,)).params(),
    requester=RequesterParams(slots=SLOTS),
)
"""A port, four channels, beats of 64 bytes, segments of 4 KiB; tables that are compiled soon."""

LATENCY = 100
"""Of all memories, in cycles."""

FRAMES = 40
"""That there may be at once: few enough for the small CAM to find a place for each."""

SIZES = (1, 4, 16)
"""Segments of a block."""

STEP = 20
"""Cycles after which the producer looks again."""

PATIENCE = 200_000
"""Cycles in which a run has to end."""


@dataclass
class Drain:
    """What became of some PUTs: `share` of the link's data-flit slots used, cycles a PUT has waited for a slot."""

    share: float
    full: int
    beats: int
    entries: list[dict[str, int]]


def run(trace: str | None, *, blocks: int = 32) -> Result:
    """Puts blocks through the rings of a compiled system, a slice with a requester, at one port.

    A producer has a number of PUTs under way: as many as there are slots, or fewer; it submits another one when it sees
    a completion. The share of data-flit slots is that of cycles, from the first completion to the last PUT that is
    submitted: a flit carries a beat, so it is the beats that HBM is read, or those that the node writes to its memory,
    whichever are fewer. Then the same blocks are put again: they exist. Every byte is read back.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark writeback takes no trace")
    if not 2 * SLOTS <= blocks <= FRAMES - SLOTS:
        raise InputError(f"--set blocks={blocks}, expected {2 * SLOTS} to {FRAMES - SLOTS}")
    params = PARAMS
    with Console(stderr=True).status("compiling the system"):
        memory = Memory(latency=LATENCY)
        harness = SystemHarness(params, memory=memory, host=memory, hbm=memory)
    serve(harness, params, quota=FRAMES)
    length = params.pools[0].frame_bytes
    content = bytes(i * 7 + (i >> 8) & 0xFF for i in range(length))
    ring = Ring(harness, params, 0, bytearray(content))
    session = ring.ask(Opcode.OPEN_SESSION, Status.OK)["slot"]
    bench = Producer(harness, params, ring, session)
    largest = SIZES[-1] * params.memory.segment_bytes
    by_window = {window: bench.drain(blocks, largest, window) for window in (1, 2, 3, 4, SLOTS)}
    stored = by_window[SLOTS]
    _read_back(ring, stored, content)
    again = bench.drain(blocks, largest, SLOTS, wanted=Status.EXISTS, key=bench.key - blocks)
    by_size = {size: bench.drain(blocks, size * params.memory.segment_bytes, SLOTS) for size in SIZES[:-1]}
    waited = sum(each.full for each in (*by_window.values(), *by_size.values()))
    needed = blocks * params.flits(largest)
    return Result(
        figures=[
            Figure.at_most("PUTs that wait while a slot is free", waited, "cycles", target=0, limit=0),
            Figure.at_least("link's data-flit slots used", 100 * stored.share, "%", target=98, limit=100),
            Figure.at_least(
                "data flits saved of blocks that exist", 100 * (1 - again.beats / needed), "%", target=100, limit=100
            ),
            *(
                Figure(
                    name=f"link's data-flit slots used, blocks of {size * params.memory.segment_bytes >> 10} KiB",
                    value=100 * each.share,
                    unit="%",
                    limit=100,
                )
                for size, each in by_size.items()
            ),
        ],
        input=f"blocks of {largest >> 10} KiB, {SLOTS} slots, memories {LATENCY} cycles late",
        seed=0,
        sheets=[_sheet(by_window)],
        plots={"writeback.svg": draw(lambda axes: _plot(axes, by_window), label="Use of the link by PUTs under way")},
    )


class Producer:
    """Puts blocks with one source."""

    def __init__(self, harness: SystemHarness, params: Params, ring: Ring, session: int) -> None:
        self._harness, self._ring, self._session = harness, ring, session
        self._full = requester_map(params)["COUNT_PUTS_FULL"].offset
        self.key = 1

    def drain(
        self, blocks: int, length: int, window: int, *, wanted: Status = Status.OK, key: int | None = None
    ) -> Drain:
        """Put so many blocks, at most `window` at once, with new keys or from `key` on."""
        ring = self._ring
        first = self.key if key is None else key
        self.key += 0 if key is not None else blocks
        before, begun = self._waited(), self._beats()
        marks: list[tuple[int, int, int]] = []
        entries: list[dict[str, int]] = []
        submitted, deadline = 0, self._harness.cycle + PATIENCE
        while len(entries) < blocks:
            if self._harness.cycle > deadline:
                raise KvnodeError(f"{len(entries)} of {blocks} blocks are put in {PATIENCE:,} cycles")
            more = min(blocks, len(entries) + window) - submitted
            for i in range(submitted, submitted + more):
                ring.put(EngineOpcode.PUT, subject=first + i, length=length, slot=self._session)
            if more:
                submitted += more
                ring.ring()
                if entries:
                    marks.append((self._harness.cycle, self._beats(), self._stored()))
            self._harness.run(STEP)
            entries += ring.taken()
        for entry in entries:
            if entry["status"] != wanted:
                raise KvnodeError(f"a PUT ended {Status(entry['status']).name}, expected {wanted.name}")
        cycles, *beats = (to - since for since, to in zip(marks[0], marks[-1], strict=True))
        share = min(beats) / cycles
        return Drain(share, self._waited() - before, self._beats() - begun, entries)

    def _waited(self) -> int:
        value, _ = self._harness.read_register(self._full, unit=1)
        return value

    def _beats(self) -> int:
        """Beats that were read for the link."""
        return self._harness.statistics(of="hbm")[0].read_beats

    def _stored(self) -> int:
        """Beats that the node has written to its memory."""
        return sum(channel.write_beats for channel in self._harness.statistics())


def _read_back(ring: Ring, stored: Drain, content: bytes) -> None:
    """Raise KvnodeError unless every block has its bytes."""
    segments = ring.params.segments(len(content))
    for entry in stored.entries:
        ring.data[:] = bytes(len(content))
        ring.ask(Opcode.READ, Status.OK, subject=entry["handle"], count=segments, length=len(content))
        if ring.data != content:
            raise KvnodeError("a block has other bytes than were put")
    ring.data[:] = content


def _sheet(drains: dict[int, Drain]) -> Sheet:
    return Sheet(
        name="windows",
        title="PUTs under way: use of the link",
        columns=("PUTs under way", "data-flit slots used"),
        rows=[[str(window), f"{100 * each.share:.1f} %"] for window, each in drains.items()],
        note="With one the link waits for its ALLOC, its SEAL and its completion.",
    )


def _plot(axes: Axes, drains: dict[int, Drain]) -> None:
    axes.plot(list(drains), [100 * each.share for each in drains.values()], marker="o", color=COLORS["blue"])
    axes.axhline(98, color=COLORS["grey"], linestyle="--")
    axes.set_xlabel("PUTs under way")
    axes.set_ylabel("data-flit slots used, %")
    axes.set_ylim(0, 105)
