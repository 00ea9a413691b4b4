"""What a slice delivers of what its channels can: reads, reads and writes on one bus, and behind DRAM."""

from rich.console import Console
from rich.progress import Progress

from hw.params import InputError
from scripts.benches import Result
from scripts.benches.stream import covered, dram, ideal, mixed
from scripts.benches.stream.slices import LATENCIES, USUAL, Geometry, Slice
from scripts.report.style import draw

GEOMETRIES = (
    *(Geometry(1, ports) for ports in (1, 2)),
    Geometry(1, 4, frames=(USUAL, 4 << 10)),
    Geometry(2, 1),
    Geometry(2, 2, frames=(USUAL, 4 << 10, 1 << 20, 40 << 20)),
    *(Geometry(4, ports) for ports in (1, 4)),
    *(Geometry(8, ports) for ports in (1, 4)),
    *(Geometry(2, 2, beat=beat, segment=segment) for beat, segment in ((16, 512), (64, 512), (128, 4096))),
)
"""Channels and ports; frames from the least to the largest; beats and segments, of few beats and of many."""

FILLED = tuple(each for each in GEOMETRIES if each.ports >= each.channels and each.usual)
"""Whose ports fill the buses that reads and writes share, with beats and segments as they mostly are."""

COVERED = GEOMETRIES[0]
"""Where it is shown how much has to be in flight."""

LEAST = 1_000
"""Of `cycles`."""


def run(trace: str | None, *, cycles: int = 6_000, seed: int = 0) -> Result:
    """Measures compiled slices at their links, byte for byte compared, in `cycles` cycles of each kind.

    Ports read blocks at random, as many at a time as they can, with memory of a fixed latency. What counts is beats
    that have come, over what channels and ports can carry: a beat a cycle each, so the fewer of both decide. Buffers
    are those that the parameters give for 400 cycles, which is 1.25 times latency and bandwidth.

    On a bus that turns, new blocks are written, sealed, read and dropped beside that, 30 % of all beats. What counts is
    cycles with data, and those that turns take, over all.

    In front of DRAM, what counts is beats, over those that the same channels give to a requester that asks for the same
    bursts and has no data path.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark stream takes no trace")
    if cycles < LEAST:
        raise InputError(f"--set cycles={cycles}: expected {LEAST} or more, for there to be something to measure")
    reads, shared, drams, knee = [], [], [], []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("slices", total=len(GEOMETRIES))
        for geometry in GEOMETRIES:
            progress.update(task, description=f"slice {geometry.name(0)}")
            slice_, *others = (Slice.of(geometry, pool, seed) for pool in range(len(geometry.frames)))
            reads += [ideal.reads(each, cycles) for each in (slice_, *others)]
            if geometry in FILLED:
                shared += mixed.mixed(slice_, cycles)
                drams += dram.beside(slice_, seed)
            if geometry == COVERED:
                knee = covered.covered(slice_, cycles)
            progress.advance(task)
    return Result(
        figures=[*ideal.figures(reads), *mixed.figures(shared), *dram.figures(drams)],
        input=f"memory {', '.join(map(str, LATENCIES))} cycles late, or DRAM; {cycles:,} cycles each",
        seed=seed,
        params=[geometry.params() for geometry in GEOMETRIES],
        sheets=[ideal.sheet(reads), mixed.sheet(shared), dram.sheet(drams)],
        plots={"stream.svg": draw(lambda axes: covered.plot(axes, knee), label="READs by what is in flight")},
    )
