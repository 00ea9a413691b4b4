"""Run one coroutine against a component in the Amaranth simulator."""

from collections.abc import Awaitable, Callable

from amaranth.lib import wiring
from amaranth.sim import Simulator, SimulatorContext


def simulate(dut: wiring.Component, bench: Callable[[SimulatorContext], Awaitable[None]]) -> None:
    """Run `bench` to its end, at one clock."""
    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
