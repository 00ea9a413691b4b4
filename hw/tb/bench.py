"""The clock domain of a testbench: when things are driven, and the one place where they are sampled."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError, Scoreboard

PATIENCE = 10_000
"""Cycles after which a wait is given up."""

QUIET = 32
"""Cycles to watch for what nobody expects, after all that was expected has come."""


class Agent(Protocol):
    """What takes part in every cycle of a bench."""

    def drive(self) -> None:
        """Set the inputs of the design for the cycle that has just begun."""

    def sample(self) -> None:
        """Read the settled signals of the cycle; what is seen here is what the next clock edge acts on."""

    def reset(self) -> None:
        """Forget everything under way: the design is in reset from this cycle on."""


AnyAgent = TypeVar("AnyAgent", bound=Agent)


class Bench:
    """A design under test with its clock, its agents and its scoreboards.

    A cycle runs from one rising edge to the next. After the edge all agents drive; once the signals have settled
    (ReadOnly) all agents sample; nothing else reads or writes the design. One task does this for all of them, so a
    cycle costs two wake-ups whatever the number of agents, and their order is that in which they were added.

    Use it as `async with`: on entry the clock starts and the design is reset; on exit, without an exception, the
    scoreboards must empty within PATIENCE cycles and are finished. So no test can forget to check.
    """

    def __init__(self, dut: Any):
        context = json.loads(Path(os.environ["KVNODE_BENCH"]).read_text())
        self.dut = dut
        self.cycle = 0
        self.in_reset = False
        self.settings: dict[str, Any] = context["settings"]
        self.seed: int = context["seed"]
        self._ports = context["ports"]
        self._agents: list[Agent] = []
        self._scoreboards: list[Scoreboard] = []
        self._reset_cycles = 0

    def rng(self, name: str) -> Random:
        """Return a random generator of its own for `name`: adding an agent does not disturb the others."""
        return Random(f"{self.seed}/{name}")

    def codec(self, port: str) -> Codec:
        """Return what packs and unpacks the values of a port."""
        return Codec(self._ports[port]["shape"])

    def add(self, agent: AnyAgent) -> AnyAgent:
        """Let `agent` take part from the next cycle on."""
        self._agents.append(agent)
        return agent

    def add_scoreboard(self, scoreboard: Scoreboard) -> Scoreboard:
        """Let leaving the bench wait for `scoreboard` and finish it."""
        self._scoreboards.append(scoreboard)
        return scoreboard

    async def __aenter__(self) -> Self:
        Clock(self.dut.clk, 1, "ns").start()
        self._reset_cycles = 2
        cocotb.start_soon(self._run())
        await self.until(lambda: self.cycle >= 2 and not self.in_reset)
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error:
            return
        await self.until(lambda: not any(board.outstanding for board in self._scoreboards))
        await self.cycles(QUIET)
        if not self._scoreboards:
            raise CheckError("the bench has no scoreboard: nothing was compared")
        for board in self._scoreboards:
            board.finish()

    async def reset(self, cycles: int = 1) -> None:
        """Hold the design in reset for `cycles` cycles; agents and scoreboards forget what was under way."""
        self._reset_cycles = cycles
        end = self.cycle + cycles
        await self.until(lambda: self.cycle > end and not self.in_reset)

    async def cycles(self, count: int) -> None:
        """Wait for `count` cycles."""
        end = self.cycle + count
        await self.until(lambda: self.cycle >= end, within=count + 1)

    async def until(self, condition: Callable[[], bool], within: int = PATIENCE) -> None:
        """Wait until `condition` holds at the end of a cycle. Raises CheckError after `within` cycles."""
        end = self.cycle + within
        while not condition():
            if self.cycle > end:
                owed = ", ".join(f"{board.name}: {board.outstanding}" for board in self._scoreboards)
                raise CheckError(f"gave up waiting after {within} cycles; outstanding: {owed or 'nothing'}")
            await RisingEdge(self.dut.clk)

    async def _run(self) -> None:
        edge, settled = RisingEdge(self.dut.clk), ReadOnly()
        while True:
            await edge
            self._drive_reset()
            for agent in self._agents:
                agent.drive()
            await settled
            for agent in self._agents:
                agent.sample()
            self.cycle += 1

    def _drive_reset(self) -> None:
        """Begin, continue or end reset."""
        wanted = self._reset_cycles > 0
        if wanted:
            self._reset_cycles -= 1
        if wanted and not self.in_reset:
            for agent in self._agents:
                agent.reset()
            for board in self._scoreboards:
                board.reset()
        self.in_reset = wanted
        self.dut.rst.value = wanted
