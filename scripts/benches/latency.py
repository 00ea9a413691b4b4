"""How late a slice is: alone with one command, and under load, beside what queueing theory says."""

import statistics
from bisect import bisect_right
from itertools import accumulate
from random import Random
from typing import NamedTuple

import google_crc32c
from matplotlib.axes import Axes

from hw.params import InputError, Params, load_params
from hw.params import commands as c
from hw.params.protocol import RingId, Status
from hw.tb.harness import Harness, Memory
from hw.tb.slice.software import Reply, Software
from scripts.benches import Figure, Result, Sheet
from scripts.report.style import COLORS, draw

GEOMETRY = (
    "preset=DEFAULT",
    "memory.channels=4",
    "pools.0.frame_bytes=8192",
    "pools.0.frames=64",
    "tables.sessions=16",
    "tables.pins_per_ring=64",
    "tables.parked_reads=16",
)
"""Four ports and channels of 64 bytes, segments of 4 KiB; tables that are compiled soon."""

LATENCIES = (50, 100, 200)
"""Of memory, in cycles."""

LOADS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Fractions of what the links carry."""

EARLIEST, LATEST = -16, 16
"""Cycles from BVALID in which a LOOKUP is tried."""


class Load(NamedTuple):
    """Cycles from command to last beat at one load: on average, at the 99th percentile, and by the formula."""

    load: float
    mean: float
    p99: float
    formula: float


LEAST = 100
"""Of `reads`."""


def run(trace: str | None, *, reads: int = 300, seed: int = 0) -> Result:
    """Measures a compiled slice of four ports and channels, with memory of a fixed latency, at its links.

    Unloaded: from the cycle in which a READ by handle is on the link to that of its first beat, less the latency of
    memory; from BVALID for the last write of a block whose SEAL waits to the first cycle in which the last flit of a
    LOOKUP that finds it is on the link. Under load every port gets `reads` READs of a block, at random times (Poisson):
    a link that carries nothing else is a queue with one server and equal service times (M/D/1), which adds
    S rho / (2 (1 - rho)) cycles on average for READs of S beats at the load rho.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark latency takes no trace")
    if reads < LEAST:
        raise InputError(f"--set reads={reads}: expected {LEAST} or more, for there to be something to measure")
    params = load_params(None, GEOMETRY)
    added = {latency: _unloaded(params, latency) for latency in LATENCIES}
    visible, answered = _visible(params, seed)
    loads = _loads(params, reads, seed)
    high = next(load for load in loads if load.load == 0.9)
    return Result(
        figures=[
            *(
                Figure.at_most(f"READ to first beat, memory {latency} cycles late", cycles, "cycles more", target=12)
                for latency, cycles in added.items()
            ),
            Figure.at_most("acknowledged to visible for a LOOKUP on the link", visible, "cycles", target=4),
            Figure(name="acknowledged to answer of the SEAL on the link, at most", value=answered, unit="cycles"),
            Figure(name="mean latency / M/D/1, at 90 % load", value=high.mean / high.formula, unit="x", limit=1.0),
        ],
        input=f"{params.tables.ports} ports, {params.memory.channels} channels, {reads} READs a port and load",
        seed=seed,
        params=[params],
        sheets=[_sheet(loads)],
        plots={"latency.svg": draw(lambda axes: _plot(axes, loads), label="Latency of READs by load")},
    )


def _begin(params: Params, latency: int, seed: int = 0) -> tuple[Software, list[RingId]]:
    """A slice in service, with a ring at each port."""
    software = Software(Harness(params, seed=seed, memory=Memory(latency=latency)), params)
    rings = [RingId(port, 0) for port in range(params.tables.ports)]
    software.begin(*rings)
    return software, rings


def _unloaded(params: Params, latency: int) -> int:
    """Cycles of a READ by handle from command to first beat, beyond those of memory."""
    software, rings = _begin(params, latency)
    handle = software.store(rings[0], 1, bytes(params.memory.segment_bytes))
    software.run(1_000)
    reply = software.ask(rings[0], c.Read(handle, 0, 1))
    return reply.cycles[0] - reply.asked - latency


def _visible(params: Params, seed: int) -> tuple[int, int]:
    """Cycles from BVALID: to the last flit of the first LOOKUP that finds the block; to the latest answer of a SEAL."""
    software, rings = _begin(params, LATENCIES[-1], seed)
    tries, answers = range(EARLIEST, LATEST), []

    def finds(after: int) -> bool:
        key = after - EARLIEST
        sealed, answered = _seal(params, software, rings[0], key)
        lookup = c.Lookup(0, [key])
        flits = 2  # of a LOOKUP with one key
        software.run(answered + after - (flits - 1) - software.harness.cycle)
        found = software.ask(rings[1], lookup)
        software.run(1_000)
        answers.append(sealed.cycles[-1] - answered)
        return found.answers[0].status is Status.HIT

    first = bisect_right(tries, False, key=finds)
    return tries[first], max(answers)


def _seal(params: Params, software: Software, ring: RingId, key: int) -> tuple[Reply, int]:
    """Write a block and have it sealed; return in the middle of memory's latency, with the cycle of BVALID."""
    harness = software.harness
    data = bytes([key]) * params.memory.segment_bytes
    handle = software.allocate(ring, key, len(data), software.session(ring))
    begun = sum(channel.write_beats for channel in harness.statistics())
    software.send(ring, c.Write(handle, 0, data))
    sealed = software.send(ring, c.Seal(handle, len(data), google_crc32c.value(data)))
    while sum(channel.write_beats for channel in harness.statistics()) - begun < params.segment_beats:
        software.run(1)
    answered = harness.cycle - 1 + harness.memory.latency
    software.run(harness.memory.latency // 2)
    return sealed, answered


def _loads(params: Params, reads: int, seed: int) -> list[Load]:
    """Latencies by load."""
    software, rings = _begin(params, LATENCIES[1], seed)
    random = Random(seed)
    segments = params.pools[0].frame_bytes // params.memory.segment_bytes
    beats = segments * params.segment_beats
    stored = [software.store(rings[0], key, random.randbytes(params.pools[0].frame_bytes)) for key in range(32)]
    blocks = [c.Read(handle, 0, segments) for handle in stored]
    alone = software.ask(rings[0], blocks[0])
    unloaded = alone.cycles[-2] - alone.asked  # the answer comes behind the last beat
    found = []
    for load in LOADS:
        begin = software.harness.cycle
        moments = [(at, ring) for ring in rings for at in _moments(random, begin, beats / load, reads)]
        cycles = sorted(_offer(software, moments, blocks, random))
        wait = beats * load / (2 * (1 - load))
        found.append(Load(load, statistics.fmean(cycles), cycles[len(cycles) * 99 // 100], unloaded + wait))
    return found


def _moments(random: Random, begin: int, gap: float, count: int) -> list[int]:
    """Random cycles, on average `gap` apart."""
    return [begin + int(at) for at in accumulate(random.expovariate(1 / gap) for _ in range(count))]


def _offer(software: Software, moments: list[tuple[int, RingId]], blocks: list[c.Read], random: Random) -> list[int]:
    """Have a block read at each of these moments; return how long each READ took."""
    replies: list[Reply] = []
    for at, ring in sorted(moments):
        software.run(at - software.harness.cycle)
        replies.append(software.send(ring, random.choice(blocks)))
    while not all(reply.ended for reply in replies):
        software.run(1_000)
    return [reply.cycles[-2] - reply.asked for reply in replies]


def _sheet(loads: list[Load]) -> Sheet:
    return Sheet(
        name="loads",
        title="READs under load: cycles from command to last beat",
        columns=("load of the links", "mean", "99 %", "M/D/1"),
        rows=[[f"{each.load:.2f}", *(f"{cycles:,.0f}" for cycles in each[1:])] for each in loads],
        note="The formula has the unloaded latency, and the mean wait of a queue for the link alone.",
    )


def _plot(axes: Axes, loads: list[Load]) -> None:
    x = [each.load for each in loads]
    axes.plot(x, [each.mean for each in loads], marker="o", color=COLORS["blue"], label="mean")
    axes.plot(x, [each.p99 for each in loads], marker="o", color=COLORS["orange"], label="99 %")
    axes.plot(x, [each.formula for each in loads], color=COLORS["grey"], linestyle="--", label="M/D/1, mean")
    axes.set_yscale("log")
    axes.set_xlabel("load of the links")
    axes.set_ylabel("cycles")
    axes.legend()
