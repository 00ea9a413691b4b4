"""Reads on memory that is late and has a beat for every cycle."""

from collections.abc import Sequence
from typing import NamedTuple

from hw.rtl.fabric.layouts import RESPONSE_BYTES
from hw.tb.harness import Memory
from scripts.benches import Figure, Sheet
from scripts.benches.stream.rates import measure
from scripts.benches.stream.slices import LATENCIES, Slice


class Reads(NamedTuple):
    """Of what channels and ports carry, by latency: what all ports get together, and one alone.

    - `limit`: of the first: what links carry beside the answers of the READs.
    """

    name: str
    limit: float
    together: list[float]
    alone: list[float]


def reads(slice_: Slice, cycles: int) -> Reads:
    """Measure READs of blocks at random: beats that have come, over a beat a cycle of ports or channels, the fewer."""

    def rate(ports: int, latency: int) -> float:
        counts = measure(slice_, Memory(latency=latency), cycles, ports=range(ports)).counts
        return counts.came / counts.cycles / slice_.peak(ports)

    params = slice_.params
    ports, beats = params.tables.ports, params.segments(slice_.length) * params.segment_beats
    carried = ports * beats / (beats + params.flits(RESPONSE_BYTES)) / slice_.peak(ports)
    together = [rate(ports, latency) for latency in LATENCIES]
    return Reads(
        slice_.name, min(1.0, carried), together, together if ports == 1 else [rate(1, each) for each in LATENCIES]
    )


def figures(found: Sequence[Reads]) -> list[Figure]:
    """What is asked of each geometry, at the latency at which it gives least."""
    return [
        figure
        for each in found
        for figure in (
            Figure.at_least(f"reads, {each.name}", min(each.together), "of peak", target=0.99, limit=each.limit),
            Figure.at_least(f"one port, {each.name}", min(each.alone), "of peak", target=0.97, limit=1.0),
        )
    ]


def sheet(found: Sequence[Reads]) -> Sheet:
    """All latencies of all geometries."""
    return Sheet(
        name="reads",
        title="Beats of READs, of what channels and ports carry",
        columns=(
            "channels x ports",
            *(f"all ports, {latency}" for latency in LATENCIES),
            *(f"one port, {latency}" for latency in LATENCIES),
        ),
        rows=[[each.name, *(f"{rate:.4f}" for rate in (*each.together, *each.alone))] for each in found],
        note="By the latency of memory, in cycles.",
    )
