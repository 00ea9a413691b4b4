"""The world around a slice that is compiled: many cycles a call."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import NamedTuple

from hw.params.commands import Command
from hw.params.params import Params
from hw.params.protocol import FrameState, Status
from hw.params.registers import COUNTERS, LEVELS
from hw.rtl.emit import Emission, describe
from hw.rtl.node.layouts import log_layout
from hw.tb.core.world import Moves
from hw.tb.harness import Harness, Links, Memory
from hw.tb.harness.simulation import Simulation, records
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError
from hw.tb.slice.bounds import cycles_to_nothing, cycles_to_rest
from hw.tb.slice.latency import Surroundings, bounds, in_turns
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

QUIET = 60
"""Cycles in which the log stays empty, when what was logged is in the registers and nothing more comes."""


STEP = 10
"""Cycles of a call while a port is being lost, which is measured."""

SLACK = 1_000
"""Cycles that an order of the administrator may take, after which it is seen that a port has been lost."""


class Loss(NamedTuple):
    """What the loss of a port took: cycles of silence, then to its being at rest, then until nothing was left."""

    silent: int
    rest: int
    left: int


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

    - `world`: what is sent, and what is expected: the seed's traffic, other traffic, or a script.
    - `stocks`: how often what is in use was compared after a loss.
    - `limits`: how long each part of a command's life may take.
    - `harness`: the slice, or a view of it; `number` is that in its node. Its order log is always taken: an answer
      never comes before its entry.
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
        harness: Harness | None = None,
        number: int = 0,
    ) -> None:
        self.harness = harness or Harness(params, seed=seed, memory=memory, links=links, emission=emission)
        self.world = World(params, seed, script=script, happen=self._happen, number=number)
        self.world.around = Surroundings.of(params, self.harness.memory, self.harness.links)
        self.limits = bounds(params, self.world.around)
        self._params = params
        self._log = Codec(describe(log_layout()))
        self._turn = self.stocks = 0
        self._patience, self._settled, self._quiet = (in_turns(params, each) for each in (PATIENCE, SETTLED, QUIET))
        self._silent: set[int] = set()
        self._random = Random(seed)

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
        for done in self.steps(commands):
            progress(done)

    def steps(self, commands: int) -> Iterator[int]:
        """The same, in between with a word of how many have been sent."""
        world = self.world
        self._await_ready()
        asked = waited = 0
        while world.commands < commands and not world.traffic.over:
            self._ask()
            self._run(CYCLES)
            waited = waited + CYCLES if world.commands == asked else 0
            if waited > self._patience:
                raise CheckError(f"the slice has taken nothing for {waited:,} cycles")
            asked = world.commands
            yield min(asked, commands)
        self._finish()

    def lose_ports(self, moments: int) -> list[Loss]:
        """At so many random moments a requester falls silent; its port is lost, its link reset. Raises CheckError."""
        self._await_ready()
        losses = []
        for _ in range(moments):
            self._run(2 * self._params.link.heartbeat_cycles)  # a port at which nobody was yet is not lost
            for _ in range(self._random.choice([1, 4, 16, 40])):
                self._ask()
                self._run(self._random.randint(1, CYCLES))
            port = self._random.randrange(self._params.tables.ports)
            self._await_middle(port)
            losses.append(self._lose(port))
        self._finish()
        return losses

    def _await_middle(self, port: int) -> None:
        """Mostly wait for a moment at which a requester sends, or gets the data of a READ; not for long."""
        moments: list[Callable[[], bool]] = [
            lambda: True,
            lambda: self.harness.pending(port) > 0,
            lambda: self.world.torn_at(port) > 0,
        ]
        met = self._random.choice(moments)
        for _ in range(SLACK):
            if met():
                return
            self._ask()
            self._run(1)

    def _lose(self, port: int) -> Loss:
        """A requester falls silent, in the middle of whatever it does; the others go on."""
        harness, params = self.harness, self._params
        self._silent.add(port)
        harness.fall_silent(port)
        self.world.latencies.fall_silent(port)
        fell_silent = harness.cycle
        self._until(lambda: harness.down(port), params.link.silence_cycles, "is not lost")
        lost = harness.turned(port)
        harness.renew(port)
        self._until(lambda: not harness.down(port), cycles_to_rest(params), "is not at rest")
        rest = harness.turned(port)
        self._silent.remove(port)
        self.world.cycle = harness.cycle
        self.world.lose_port(port)
        self._until(lambda: not self.world.left(port), cycles_to_nothing(params), "has left something")
        loss = Loss(lost - fell_silent, rest - lost, harness.cycle - rest)
        if loss.rest > cycles_to_rest(params):
            raise CheckError(f"port {port} came to rest after {loss.rest:,} cycles")
        return loss

    def _until(self, done: Callable[[], bool], limit: int, what: str) -> None:
        """Go on until something is the case, after so many cycles at the latest."""
        begin = self.harness.cycle
        while not done():
            if self.harness.cycle - begin > limit + SLACK:
                raise CheckError(f"after {self.harness.cycle - begin:,} cycles a port {what}")
            self._ask()
            self._run(STEP)

    def _finish(self) -> None:
        """Wait for the ends of all commands, and compare what is left."""
        world = self.world
        left = self._patience
        while world.busy and left > 0:
            self._run(CYCLES)
            left -= CYCLES
        self._run(self._settled)
        world.finish()
        world.latencies.check(self.limits)
        if self.world.aftermath.pending:
            raise CheckError("something of a lost ring is left")
        self._compare(self._read([*COUNTERS, *LEVELS]))

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
            ports = [port for port in range(self._params.tables.ports) if port not in self._silent]
            if sum(self.harness.pending(port) for port in ports) > UNDER_WAY:
                return
            self.world.cycle = self.harness.cycle
            for port, channel, flits in self.world.ask():
                if port in self._silent:
                    continue
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
        if self.world.aftermath.settle():
            self._take_stock()

    def _take_stock(self) -> None:
        """Let the slice come to rest, and compare what it has in use with the specification, which counts again."""
        for _ in range(self._patience // self._quiet):
            self.harness.run(self._quiet)
            if self._hear():
                continue
            found = self._read(LEVELS)
            self.harness.run(self._quiet)
            if not self._hear():
                self._compare(found)
                self.world.follower.slice.monitor.audit()
                self.stocks += 1
                return
        raise CheckError(f"no rest in {self._patience:,} cycles after the loss of a ring")

    def _order(self, command: Command) -> None:
        """Do what the administrator wants, and wait until the log has it."""
        status = administer(self.harness, command)
        waited = 0
        while not self.world.decided and waited < self._patience:
            self._hear()
            self.harness.run(1)
            waited += 1
        self.world.ordered(status)

    def _hear(self) -> int:
        """What the slice has said: first the log, then the answers. Returns how many entries the log had."""
        world, harness, entries = self.world, self.harness, 0
        for world.cycle, entry in records(harness.log(), harness.log_bytes):
            world.logged(self._log.unpack(entry))
            entries += 1
        world.compare_memory(harness.memory_bytes)
        for port in range(self._params.tables.ports):
            for world.cycle, flit in records(harness.received(port), harness.flit_bytes):
                world.received(port, flit)
        return entries

    def _read(self, statistics: Collection[str]) -> dict[str, int]:
        """What the registers of some statistics read."""
        registers = [each for each in REGISTER_MAP.values() if each.statistic in statistics]
        return {str(each.statistic): self.harness.read_register(each.offset)[0] for each in registers}

    def _compare(self, found: dict[str, int]) -> None:
        """What the registers count is what the specification counts, and what ports refused by themselves."""
        core = self.world.follower.slice.core
        states = Counter(frame.state for frame in core.frames)
        expected = {
            **core.counters,
            **{f"frames_{state.name.lower()}": states[state] for state in FrameState},
            "pins_used": sum(len(ring.pins) for ring in core.rings.values()),
            "sessions_used": len(core.sessions),
            "parked_used": len(core.parked),
        }
        expected["status_unavailable"] += self.world.expired
        unheard = {"status_unavailable": self.world.forgotten}  # a port may have refused some before it was lost
        for name, count in found.items():
            if not 0 <= count - expected[name] <= unheard.get(name, 0):
                raise CheckError(f"the register of {name} reads {count}, expected {expected[name]}")
