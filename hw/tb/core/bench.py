"""cocotb tests of `hw.rtl.node.core`."""

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

import cocotb

from hw.params.params import Params
from hw.params.toeplitz import diagonals
from hw.tb.bench import Bench
from hw.tb.core.operations import Fields
from hw.tb.core.rotation import Rotation
from hw.tb.core.settings import params_of
from hw.tb.core.world import World
from hw.tb.pace import Pace, always, bursts, randomly
from hw.tb.scoreboard import Scoreboard
from hw.tb.stream import Sink, Source, StreamMonitor

AHEAD = 2
"""Operations queued before the core takes them: more would only make the order stiffer."""

SETTLED = 1_000
"""Cycles without anything to offer after which the hands of the core have found all there is."""


class Rota:
    """Tells a core whose turn it is: his whose operation waits."""

    def __init__(self, bench: Bench, params: Params):
        self.coming: deque[Fields] = deque()
        self._rotation, self._bench = Rotation(params), bench
        self._codec = bench.codec("rota")
        self._offered = False
        self._monitor = StreamMonitor(bench, "operations")

    def pace(self, idle: Pace) -> Pace:
        """The pace of operations that are willing at this one."""

        def pace(rng: Random) -> Iterator[bool]:
            for willing in idle(rng):
                yield willing and self._offered

        return pace

    def drive(self) -> None:
        """Give the turn to whom the next operation is of."""
        if self._monitor.fired:
            self.coming.popleft()
        now = self._rotation.now(self.coming[0] if self.coming else None)
        self._offered = now.offered
        self._bench.dut.rota.value = self._codec.pack({"share": now.share, "left": now.left, "memory": 0, "ends": 0})

    def sample(self) -> None:
        """Nothing: the monitor has sampled."""

    def reset(self) -> None:
        """Nothing is under way."""
        self.coming.clear()


class CoreBench(Bench):
    """A core in its world."""

    def __init__(self, dut: Any, *, idle: Pace = always, backpressure: Pace = always):
        super().__init__(dut)
        params = params_of(self.settings)
        self.shares = params.shares
        self.random = self.rng("pace")
        self.world = World(params, self.seed, self.codec("operations__payload"))
        self.rota = self.add(Rota(self, params)) if params.strict else None
        self.source = Source(self, "operations", self.rota.pace(idle) if self.rota else idle)
        self.verdicts = Sink(self, "verdicts", backpressure)
        self.log = Sink(self, "log", backpressure)
        self.log.monitor.listeners.append(self.world.logged)
        self.verdicts.monitor.listeners.append(self.world.said)
        self.messages = StreamMonitor(self, "messages")
        self.messages.listeners.append(self.world.told)
        self.finished = self.add_scoreboard(Scoreboard("world"))
        dut.number.value = 0
        dut.diagonals.value = self.codec("diagonals").pack(diagonals(params))
        dut.may_resume.value = (1 << params.tables.ports) - 1

    def _offer(self) -> bool:
        """Queue more operations; whether there were any."""
        offered = False
        while self.source.pending < AHEAD:
            operations = self.world.offer()
            if not operations:
                break
            offered = True
            for operation in operations:
                self.source.send(operation)
                if self.rota:
                    self.rota.coming.append(operation)
        return offered

    async def run(self, moves: int) -> None:
        """So many moves of the traffic, and then all that is left."""
        self.finished.expect("finished")
        for _ in range(moves):
            self.world.ask()
            self._offer()
            await self.until(lambda: self.source.pending < AHEAD)
            if self.random.random() < 0.2:
                await self.cycles(self.random.randrange(40))
        while self._offer() or self.source.pending:
            await self.until(lambda: self.source.pending == 0)
            await self.cycles(SETTLED * (1 + self.shares if self.rota else 1))
        self.world.finish()
        self.finished.observe("finished")


PACES: dict[str, Pace] = {"always": always, "half": randomly(0.5), "bursts": bursts(20, 20)}


@cocotb.test()
@cocotb.parametrize(idle=["always", "bursts"], backpressure=["always", "half"])
async def random_operations(dut: Any, idle: str, backpressure: str) -> None:
    """Traffic of all rings: every status, frame, slot, generation and message is the specification's."""
    async with CoreBench(dut, idle=PACES[idle], backpressure=PACES[backpressure]) as bench:
        await bench.run(bench.settings["moves"])
