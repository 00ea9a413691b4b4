"""What a slice delivers of what its channels can: reads, reads and writes on one bus, and behind DRAM."""

from itertools import product

from rich.console import Console
from rich.progress import Progress

from hw.params import InputError
from scripts.benches import Result
from scripts.benches.stream import covered, dram, ideal, mixed
from scripts.benches.stream.slices import LATENCIES, Geometry, Slice
from scripts.report.style import draw

GEOMETRIES = (
    *(Geometry(channels, ports) for channels, ports in product((1, 2, 4, 8), (1, 2, 4))),
    *(Geometry(4, 4, frame=size) for size in (4 << 10, 1 << 20, 40 << 20)),
    Geometry(2, 2, beat=16, segment=512),
    Geometry(2, 2, beat=64, segment=512),
    Geometry(2, 2, beat=128, segment=4096),
)
"""Channels and ports; frames from the least to the largest; beats and segments, of the fewest beats and the most."""

SHARED = (Geometry(1, 1), Geometry(2, 2), Geometry(4, 4))
"""Where reads and writes are on one bus, which they fill."""

BEHIND_DRAM = (Geometry(1, 1), Geometry(4, 4))

COVERED = Geometry(1, 1)
"""Where it is shown how much has to be in flight."""


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
    reads, shared, drams, knee = [], [], [], []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("slices", total=len(GEOMETRIES))
        for geometry in GEOMETRIES:
            progress.update(task, description=f"slice {geometry}")
            slice_ = Slice.of(geometry, seed)
            reads.append(ideal.reads(slice_, cycles))
            if geometry in SHARED:
                shared += mixed.mixed(slice_, cycles)
            if geometry in BEHIND_DRAM:
                drams += dram.beside(slice_, seed)
            if geometry == COVERED:
                knee = covered.covered(slice_, cycles)
            progress.advance(task)
    return Result(
        figures=[*ideal.figures(reads), *mixed.figures(shared), *dram.figures(drams)],
        input=f"memory {', '.join(map(str, LATENCIES))} cycles late, or DRAM; {cycles:,} cycles each",
        seed=seed,
        sheets=[ideal.sheet(reads), mixed.sheet(shared), dram.sheet(drams)],
        plots={"stream.svg": draw(lambda axes: covered.plot(axes, knee), label="READs by what is in flight")},
    )
