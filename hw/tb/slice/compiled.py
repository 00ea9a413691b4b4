"""The world around a slice that is compiled: many cycles a call."""

from collections import Counter
from collections.abc import Callable

from hw.params.commands import Command
from hw.params.params import Params
from hw.params.protocol import FrameState, Status
from hw.rtl.emit import Emission, describe
from hw.rtl.node.layouts import log_layout
from hw.tb.core.world import Moves
from hw.tb.harness import Harness, Links, Memory
from hw.tb.harness.simulation import STAMP_BYTES, Simulation
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError
from hw.tb.slice.orders import REGISTER_MAP, order
from hw.tb.slice.world import World
from pymodel.stimulus.traffic import Fault

CYCLES = 50
"""Cycles of a call; requesters hear of their answers between calls."""

ASKED = 8
"""Moves of the traffic between two calls, unless flits pile up."""

UNDER_WAY = 40
"""Flits that wait at the links while the traffic goes on."""

PATIENCE = 20_000
"""Cycles for whatever is left when the traffic has ended, and without a command that could be sent."""

SETTLED = 1_000
"""Cycles without anything to do after which the hands of the core have found all there is."""


def administer(harness: Simulation, command: Command) -> Status | None:
    """Have a command done by way of the registers; return its status, or None when registers tell none."""
    accesses, word = order(command), 0
    try:
        offset, value = next(accesses)
        while True:
            if value is None:
                word, response = harness.read_register(offset)
            else:
                response = harness.write_register(offset, value)
            if response:
                raise CheckError(f"registers: response {response} at {offset:#x}")
            offset, value = accesses.send(word)
    except StopIteration as end:
        status: Status | None = end.value
        return status


class CompiledWorld:
    """Traffic on a compiled slice, judged as it comes.

    - `world`: what is sent, and what is expected: the seed's traffic, or a script.
    - `harness`: the slice. Its order log is always taken: an answer never comes before its entry.
    """

    def __init__(
        self,
        params: Params,
        seed: int,
        *,
        memory: Memory | None = None,
        links: Links | None = None,
        emission: Emission | None = None,
        script: Moves | None = None,
    ) -> None:
        self.harness = Harness(params, seed=seed, memory=memory, links=links, emission=emission)
        self.world = World(params, seed, script=script, happen=self._happen)
        self._params = params
        self._log = Codec(describe(log_layout()))
        self._turn = 0

    def _happen(self, fault: Fault) -> None:
        """Memory fails once, on one channel after the other."""
        self._turn = (self._turn + 1) % self._params.memory.channels
        if fault is Fault.WRITE_FAILED:
            self.harness.fail_writes(self._turn, 1)
        elif fault is Fault.READ_DAMAGED:
            self.harness.spoil(self._turn, 1)

    def play(self, commands: int, progress: Callable[[int], None] = lambda done: None) -> None:
        """Send so many commands, and wait for their ends. Raises CheckError.

        What the traffic has to say may be over before.
        """
        world = self.world
        self._await_ready()
        asked = waited = 0
        while world.commands < commands and not world.traffic.over:
            self._ask()
            self._run(CYCLES)
            waited = waited + CYCLES if world.commands == asked else 0
            if waited > PATIENCE:
                raise CheckError(f"the slice has taken nothing for {waited:,} cycles")
            asked = world.commands
            progress(min(asked, commands))
        left = PATIENCE
        while world.busy and left > 0:
            self._run(CYCLES)
            left -= CYCLES
        self._run(SETTLED)
        world.finish()
        self._compare_registers()

    def _await_ready(self) -> None:
        """Let the tables be initialised, a row of the largest a cycle."""
        status = REGISTER_MAP["STATUS"]
        for _ in range(4):
            word, _ = self.harness.read_register(status.offset)
            if word & status.field("ready").mask:
                return
            self.harness.run(self._params.frames)
        raise CheckError(f"not ready after {self.harness.cycle:,} cycles")

    def _ask(self) -> None:
        for _ in range(ASKED):
            if sum(self.harness.pending(port) for port in range(self._params.tables.ports)) > UNDER_WAY:
                return
            for port, channel, flits in self.world.ask():
                size = self.harness.flit_bytes
                packed = b"".join(flit.to_bytes(size, "little") for flit in flits)
                self.harness.send(port, channel, packed)

    def _run(self, cycles: int) -> None:
        """Some cycles, and an order of the administrator, if there is one."""
        command = self.world.order()
        if command is not None:
            self._order(command)
        self.harness.run(cycles)
        self._hear()

    def _order(self, command: Command) -> None:
        """Do what the administrator wants, and wait until the log has it."""
        status = administer(self.harness, command)
        waited = 0
        while not self.world.decided and waited < PATIENCE:
            self._hear()
            self.harness.run(1)
            waited += 1
        self.world.ordered(status)

    def _hear(self) -> None:
        """What the slice has said: first the log, then the answers."""
        world, harness = self.world, self.harness
        for entry in _records(harness.log(), harness.log_bytes):
            world.logged(self._log.unpack(entry))
        world.compare_memory(harness.memory_bytes)
        for port in range(self._params.tables.ports):
            for flit in _records(harness.received(port), harness.flit_bytes):
                world.received(port, flit)

    def _compare_registers(self) -> None:
        """What the registers count is what the specification counts, and what ports refused by themselves."""
        core = self.world.follower.slice.core
        states = Counter(frame.state for frame in core.frames)
        expected = {
            **core.counters,
            **{f"frames_{state.name.lower()}": states[state] for state in FrameState},
            "pins_used": sum(len(ring.pins) for ring in core.rings.values()),
            "sessions_used": len(core.sessions),
        }
        expected["status_unavailable"] += self.world.expired
        for register in REGISTER_MAP.values():
            if register.statistic in expected:
                found, _ = self.harness.read_register(register.offset)
                if found != expected[register.statistic]:
                    raise CheckError(f"{register.name} reads {found}, expected {expected[register.statistic]}")


def _records(data: bytes, size: int) -> list[int]:
    """The payloads of stamped records."""
    step = STAMP_BYTES + size
    return [int.from_bytes(data[i + STAMP_BYTES : i + step], "little") for i in range(0, len(data), step)]
