"""Run one coroutine against a component in the Amaranth simulator."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from amaranth import ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator, SimulatorContext

Restart: TypeAlias = Callable[[SimulatorContext], Awaitable[None]]
"""Resets the component for one cycle."""


def simulate(dut: wiring.Component, bench: Callable[[SimulatorContext, Restart], Awaitable[None]]) -> None:
    """Run `bench` to its end, at one clock."""
    reset = Signal()

    async def restart(ctx: SimulatorContext) -> None:
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)

    async def run(ctx: SimulatorContext) -> None:
        await bench(ctx, restart)

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-9)
    simulator.add_testbench(run)
    simulator.run()
