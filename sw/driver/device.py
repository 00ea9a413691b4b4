"""A slice as the administrator sees it: discovery, epoch, partitions, models, rings, resets."""

import secrets
from collections import Counter
from collections.abc import Callable
from itertools import count

from hw.params import commands as c
from hw.params.commands import Binding, Command, Completion, Message
from hw.params.protocol import REGISTERS, ModelState, Opcode, RingId, Status
from hw.rdl import register_map
from sw.driver.errors import CommandFailed, DeviceError
from sw.driver.transport import Transport


class Ticket:
    """A command under way; ``completion`` is None until it has ended."""

    __slots__ = ("completion", "opcode")

    def __init__(self, opcode: Opcode) -> None:
        self.opcode = opcode
        self.completion: Completion | None = None


class Device:
    """Found by its identity and capability registers; DeviceError when it is not the one that was expected.

    Routes completions to tickets and messages to listeners; ``completed`` counts completions by opcode and status.
    Not thread-safe.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.params = transport.params
        self._registers = register_map()
        self._tickets: dict[tuple[RingId, int], Ticket] = {}
        self._tags = count()
        self._listeners: list[Callable[[Message], None]] = []
        self._bound: set[RingId] = set()
        self.completed: Counter[tuple[Opcode, Status]] = Counter()
        self._discover()

    def _discover(self) -> None:
        for register in self._registers.values():
            if not register.constant:
                continue
            found, expected = self.read(register.name), register.reset(self.params)
            if found != expected:
                raise DeviceError(
                    f"register {register.name} reads {found:#x}, expected {expected:#x}:"
                    " the device was built for other parameters, or is none of ours"
                )

    # Registers, by name.

    def read(self, register: str) -> int:
        """The value of a register."""
        return self.transport.read_register(self._registers[register].offset)

    def write(self, register: str, value: int) -> None:
        """Write a register; RegisterError for what the register map does not allow."""
        self.transport.write_register(self._registers[register].offset, value)

    def start(self, epoch: int | None = None) -> None:
        """Restart the slice and take a fresh epoch into use: all state from before is gone, its handles are STALE."""
        epoch = secrets.randbits(63) + 1 if epoch is None else epoch
        self.write("CONTROL", 2)
        self._bound.clear()
        self.write("EPOCH_LOW", epoch & 0xFFFFFFFF)
        self.write("EPOCH_HIGH", epoch >> 32)
        self.write("CONTROL", 1)
        if not self.read("STATUS") & 2:
            raise DeviceError(f"epoch {epoch:#x} was not taken, expected a number from 1 to 2**64 - 1")

    # Commands.

    def submit(self, ring: RingId, command: Command, into: memoryview | None = None) -> Ticket:
        """Send a command; its ticket is completed by ``progress``."""
        ticket = Ticket(command.opcode)
        tag = next(self._tags)
        self._tickets[ring, tag] = ticket
        self.transport.submit(ring, tag, command, into)
        return ticket

    def progress(self) -> bool:
        """Let the device work until something has arrived; False when nothing is outstanding."""
        arrived = self.transport.poll()
        for arrival in arrived:
            if isinstance(arrival, Completion):
                ticket = self._tickets.pop((arrival.ring, arrival.tag))
                ticket.completion = arrival
                self.completed[ticket.opcode, arrival.status] += 1
            else:
                for listener in self._listeners:
                    listener(arrival)
        return bool(arrived)

    def wait(self, ticket: Ticket) -> Completion:
        """The completion of a command, once it has ended."""
        while ticket.completion is None:
            if not self.progress():
                raise DeviceError("the device has nothing to do, but a command has not ended")
        return ticket.completion

    def listen(self, listener: Callable[[Message], None]) -> None:
        """Call ``listener`` with each message to any port."""
        self._listeners.append(listener)

    # Administration.

    def administer(self, command: Command, *allowed: Status) -> Status:
        """Run an administrative command; CommandFailed unless it ends OK or with a status that is allowed for."""
        status = self.wait(self.submit(REGISTERS, command)).status
        if status not in (Status.OK, *allowed):
            raise CommandFailed(str(command), status)
        return status

    def set_partition(
        self,
        partition: int,
        *,
        pool: int = 0,
        quota: int,
        guarantee: int = 0,
        public: bool = False,
        read_mask: int = 0,
    ) -> None:
        """Configure a partition; quota and guarantee in frames."""
        self.administer(c.SetPartition(partition, pool, quota, guarantee, public, read_mask))

    def drop_partition(self, partition: int) -> None:
        """Make all blocks of a partition unreachable."""
        self.administer(c.DropPartition(partition))

    def set_model(self, model: int, state: ModelState) -> None:
        """Make a model LIVE or READ_ONLY, or retire it with all its blocks."""
        self.administer(c.Retire(model) if state is ModelState.RETIRED else c.SetModel(model, state))

    def bind(self, ring: RingId, to: int | Binding) -> None:
        """Bind a ring to a partition; what it held before is released first."""
        while self.administer(c.Bind(ring, to), Status.PENDING) is Status.PENDING:
            self.progress()
        self._bound.discard(ring)
        if to is not Binding.NONE:
            self._bound.add(ring)

    def lose_port(self, port: int) -> None:
        """Reset every bound ring of a port, as the loss of its link does."""
        for ring in sorted(self._bound):
            if ring.port == port:
                self.transport.lose(ring)
