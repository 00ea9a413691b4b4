"""The compiled system of the parameters as a device, recorded and timed."""

from __future__ import annotations

from rich.console import Console

from hw.params import Params
from hw.tb.harness import Memory
from scripts.replay.backends import Waves
from scripts.replay.clocked import ClockedTransport
from scripts.replay.journal import Journal
from sw.driver.transport import MmioTransport
from sw.driver.transport.verilator import VerilatorBus


class RtlTransport(ClockedTransport):
    """Compiles the system, if that has not been done for these parameters, which takes a minute, and drives it.

    Memory answers after the latency that its bursts in flight are to cover. Raises DeviceError when nothing can be
    compiled.
    """

    def __init__(self, params: Params, seed: int, waves: Waves | None) -> None:
        memory = Memory(latency=params.memory.latency_cycles)
        console = Console(stderr=True)
        with console.status("compiling the system (once for these parameters; a minute)"):
            bus = VerilatorBus(params, seed=seed, memory=memory, waves=waves.path if waves else None)
        if waves is not None:
            bus.harness.trace(waves.begin, waves.end)
        harness = bus.harness
        journal = Journal(harness, params.node.slices)
        device = MmioTransport(params, bus)
        device.filled = journal.filled
        super().__init__(
            device,
            journal.news,
            lambda: [counts.read_beats + counts.write_beats for counts in harness.statistics()],
            journal,
        )
