"""cocotb tests of `hw.rtl.node.slice`."""

from collections import Counter
from typing import Any

import cocotb

from hw.tb.bench import PATIENCE, Bench
from hw.tb.core.settings import params_of
from hw.tb.data.memory import OKAY, SLVERR, Behaviour, Contents, MemoryChannel
from hw.tb.pace import Pace, always, bursts, randomly
from hw.tb.scoreboard import CheckError, Scoreboard
from hw.tb.slice.agents import LinkEnd, RegisterMaster
from hw.tb.slice.orders import order
from hw.tb.slice.world import World
from hw.tb.stream import Sink
from pymodel.stimulus.traffic import Fault

UNDER_WAY = 6
"""Flits queued at a port before the traffic waits: more would only make the order stiffer."""

SETTLED = 600
"""Cycles without anything to do after which the hands of the core have found all there is."""


class SliceBench(Bench):
    """A slice with requesters at its ports, an administrator, and memory."""

    def __init__(self, dut: Any, *, idle: Pace = always, backpressure: Pace = always, memory: Behaviour | None = None):
        super().__init__(dut)
        self.params = params_of(self.settings)
        self.random = self.rng("pace")
        self.behaviour = memory or Behaviour()
        self.behaviour.write_response = self._write_response
        self.behaviour.spoil = self._spoil
        self.world = World(self.params, self.seed, happen=self._happen)
        self.faults = {Fault.WRITE_FAILED: 0, Fault.READ_DAMAGED: 0}
        self.log = Sink(self, "log")
        self.log.monitor.listeners.append(self.world.logged)
        self.links = [LinkEnd(self, self.params, port, idle, backpressure) for port in range(self.params.tables.ports)]
        for link in self.links:
            link.listeners.append(self.world.received)
        for alone in (dut.number, dut.renewed, dut.heard, dut.lose):
            alone.value = 0
        self.master = RegisterMaster(self)
        self._ended = False
        self._status: Any = None
        size = self.params.memory
        self.contents = [Contents(size.beat_bytes, size.segment_bytes) for _ in range(size.channels)]
        for i, contents in enumerate(self.contents):
            MemoryChannel(self, f"memory__{i}", i, contents, self.behaviour)
        self.finished = self.add_scoreboard(Scoreboard("world"))

    def _happen(self, fault: Fault) -> None:
        self.faults[fault] += 1

    def _write_response(self, channel: int, address: int) -> int:
        if not self.faults[Fault.WRITE_FAILED]:
            return OKAY
        self.faults[Fault.WRITE_FAILED] -= 1
        return SLVERR

    def _spoil(self, channel: int, address: int, beat: int, data: bytes, crc: int) -> tuple[bytes, int]:
        if self.faults[Fault.READ_DAMAGED]:
            self.faults[Fault.READ_DAMAGED] -= 1
            data = bytes([data[0] ^ 1 << self.random.randrange(8)]) + data[1:]
        return data, crc

    def _administer(self) -> None:
        """Let the administrator go on, if it has anything to do."""
        if self.master.busy:
            return
        if self._ended:
            if self._status is None and not self.world.decided:
                return
            self.world.ordered(self._status)
            self._ended = False
        command = self.world.order()
        if command is not None:
            self.master.begin(order(command), self._end_of_order)

    def _end_of_order(self, status: Any) -> None:
        self._ended, self._status = True, status

    async def step(self) -> None:
        """One cycle."""
        await self.cycles(1)
        self._administer()
        self.world.compare_memory(lambda channel, *place: self.contents[channel].segment(*place))

    async def run(self, moves: int) -> None:
        """So many moves of the traffic, or more until a READ has brought bytes, and then all that is left."""
        self.finished.expect("finished")
        for move in range(10 * moves):
            if move >= moves and self.world.compared:
                break
            for port, channel, flits in self.world.ask():
                self.links[port].send(channel, flits)
            waited = 0
            while any(link.pending > UNDER_WAY for link in self.links):
                await self.step()
                waited += 1
                if waited > PATIENCE:
                    raise CheckError("the slice takes no more flits")
            for _ in range(self.random.choice([0, 1, 4, 20])):
                await self.step()
        left = PATIENCE
        while (self.world.busy or self._ended) and left:
            await self.step()
            left -= 1
        await self.cycles(SETTLED)
        self.world.finish()
        self.finished.observe("finished")


COMPARED: Counter[tuple[str, str]] = Counter()
"""Bytes of READs that each run of `random_commands` has compared: by chance, one may see none."""

PACES: dict[str, Pace] = {"always": always, "bursts": bursts(20, 20)}
MEMORIES: dict[str, Behaviour] = {
    "quick": Behaviour(latency=2),
    "late": Behaviour(latency=40, jitter=20, reorder=True, interleave=True, answer_pace=randomly(0.7)),
}


@cocotb.test()
@cocotb.parametrize(pace=["always", "bursts"], memory=["quick", "late"])
async def random_commands(dut: Any, pace: str, memory: str) -> None:
    """Traffic of all rings: every status, placement and byte is the specification's."""
    bench = SliceBench(dut, idle=PACES[pace], backpressure=PACES[pace], memory=MEMORIES[memory])
    async with bench:
        await bench.run(bench.settings["moves"])
    COMPARED[pace, memory] = bench.world.compared


@cocotb.test()
async def some_bytes_were_compared(dut: Any) -> None:
    """Of all runs of random commands that came before this."""
    if COMPARED and not COMPARED.total():
        raise CheckError(f"no bytes were compared in {len(COMPARED)} runs")
