"""A slice as the administrator sees it: discovery, epoch, partitions, models, rings, resets."""

import difflib
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import active_count
from time import sleep
from typing import Self

from hw.params import commands as c
from hw.params.commands import Binding, Command, Completion, Fence, Message
from hw.params.errors import InputError
from hw.params.protocol import EPOCH_BITS, REGISTERS, ModelState, Opcode, RingId, Status
from hw.rdl import Field, Kind, Register, register_map
from sw.driver.arguments import check_command, check_destination, check_name, is_number, ring_of
from sw.driver.discovery import discover
from sw.driver.errors import CommandFailed, DeviceError, RegisterError
from sw.driver.gate import Gate
from sw.driver.lives import LIVES, mark, marked, outlived
from sw.driver.statistics import Statistics
from sw.driver.tags import Tags
from sw.driver.transport import Arrival, Transport


def _give_way() -> None:
    """Let another thread have the lock, if there is one: `sleep` costs more than many a command."""
    if active_count() > 1:
        sleep(0)


NO_TAG = -1
"""In completions of commands that the device has not been given."""

_START = register_map()["CONTROL"].field("start").mask


class Ticket:
    """A command under way; ``completion`` is None until it has ended. ``size``: bytes that it writes.

    ``life``: of the device, when it was sent. ``then`` is called with the completion when nobody else will look at it;
    see ``Device.follow_up``.
    """

    __slots__ = ("begun", "completion", "life", "opcode", "size", "then")

    def __init__(self, command: Command, begun: float | None, life: int) -> None:
        self.opcode = command.opcode
        self.size = len(command.data) if isinstance(command, c.Write) else 0
        self.begun = begun
        self.life = life
        self.completion: Completion | None = None
        self.then: Callable[[Completion], None] | None = None


class Device:
    """Found by its identity and capability registers; DeviceError when it is not the one that was expected.

    Routes completions to tickets and messages to listeners, and keeps ``statistics``. A context manager that closes its
    transport. ``timeout``: how long commands may take, as in ``Transport.set_timeout``.

    A pin or session that it gave out before its last ``start``, or that another ``Device`` did, is STALE and does not
    reach it.

    Several threads may use it and its clients: one lock is held around every access to the transport. A thread that
    waits lets go of it from time to time, so that others can send what it waits for. Listeners are called with the lock
    held, in whichever thread finds the message: they may send commands and wait for them, but not wait for other
    threads.
    """

    def __init__(self, transport: Transport, *, timeout: float | None = None) -> None:
        self.transport = transport
        self.params = transport.params
        self.statistics = Statistics()
        self._lock = Gate()
        self._registers = register_map()
        self._tickets: dict[tuple[RingId, int], Ticket] = {}
        self._arrived: deque[Arrival] = deque()
        self._kept: list[Message] | None = None
        self._listeners: list[Callable[[Message], None]] = []
        self._administrative = {REGISTERS}
        """Whose BIND is not DENIED, as far as bound by this driver: a ring that somebody has left is not in service."""
        self._life = next(LIVES)
        self._epochs: set[int] = set()
        tables = self.params.tables
        self.rings = [RingId(port, ring) for port in range(tables.ports) for ring in range(tables.rings_per_port)]
        self._tags = {ring: Tags(ring) for ring in (REGISTERS, *self.rings)}
        self.patience = 1000 + 2 * self.params.frames
        """How often to ask for what the device is still about, before that is an error: an answer takes a cycle or
        more, and the device goes through its tables at an entry a cycle."""
        if timeout is not None:
            self.set_timeout(timeout)
        discover(self._registers, self.params, self.read)

    @property
    def completed(self) -> Counter[tuple[Opcode, Status]]:
        """Completions by opcode and status."""
        return self.statistics.completed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what the transport holds. The slice stays as it is.

        Whoever waits gets DeviceError, and so does every call that needs the device from then on.
        """
        self._lock.shut(self._release)

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._lock.closed

    def _release(self) -> None:
        self._arrived.clear()
        self.transport.close()

    def set_timeout(self, timeout: float, ring: RingId | None = None) -> None:
        """How long commands, or those of one ring, may take; see ``Transport.set_timeout``."""
        ring = None if ring is None else ring_of(ring, self.rings)
        with self._lock:
            self.transport.set_timeout(timeout, ring)

    def counters(self) -> dict[str, int]:
        """The device's COUNTERS and LEVELS (``hw.params.registers``): all of them, also what is 0."""
        with self._lock:
            return self.transport.counters()

    # Registers, by name.

    def _register(self, name: str) -> Register:
        check_name(name, "the name of a register")
        if name not in self._registers:
            near = difflib.get_close_matches(name, self._registers, n=1, cutoff=0.0)[0]
            raise RegisterError(f"register {name}: there is none, did you mean {near}?")
        return self._registers[name]

    def _field(self, register: str, name: str) -> Field:
        known = {f.name: f for f in self._register(register).fields}
        check_name(name, "the name of a field")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise RegisterError(f"register {register}: has no field {name}, did you mean {near}?")
        return known[name]

    def read(self, register: str) -> int:
        """The value of a register."""
        with self._lock:
            return self.transport.read_register(self._register(register).offset)

    def write(self, register: str, value: int) -> None:
        """Write a register; RegisterError for what the register map does not allow."""
        with self._lock:
            begins = (
                register == "CONTROL"
                and is_number(value)
                and value & _START
                and not self.read_field("STATUS", "started")
            )
            self.transport.write_register(self._register(register).offset, value)
            if begins:
                self._life = next(LIVES)
                self._administrative = {REGISTERS}

    def read_field(self, register: str, field: str) -> int:
        """The value of one field of a register."""
        f = self._field(register, field)
        return (self.read(register) & f.mask) >> f.low

    def write_field(self, register: str, field: str, value: int) -> None:
        """Write one field of a register: the others keep what they store, no other pulse is given, no event cleared."""
        f = self._field(register, field)
        if not is_number(value) or not 0 <= value < 1 << f.width:
            raise RegisterError(f"register {register}: {field} = {value!r}, expected a number of {f.width} bits")
        others = (other for other in self._register(register).fields if other != f)
        kept = sum(other.mask for other in others if other.kind in (Kind.STORED, Kind.WINDOW))
        with self._lock:
            self.write(register, (self.read(register) & kept if kept else 0) | value << f.low)

    def _becomes(self, register: str, field: str) -> bool:
        """Whether a field is set within ``patience`` reads; the device goes on meanwhile."""
        return any(self.read_field(register, field) for _ in range(self.patience))

    def start(self, epoch: int | None = None) -> None:
        """Restart the slice and take a fresh epoch into use: all state from before is gone.

        Handles, pins and sessions from before are STALE. Other threads wait meanwhile. InputError for an epoch that is
        none, that the slice is in, or that this device has started before: its handles would mean something again.
        """
        epoch = secrets.randbits(63) + 1 if epoch is None else epoch
        if not is_number(epoch) or not 0 < epoch < 1 << EPOCH_BITS:
            raise InputError(f"epoch = {epoch!r}, expected a number from 1 to 2**{EPOCH_BITS} - 1")
        with self._lock:
            if epoch in self._epochs or epoch == self._epoch():
                raise InputError(f"epoch = {epoch}, expected one that the slice has not had yet")
            self.write_field("CONTROL", "restart", 1)
            if not self._becomes("STATUS", "ready"):
                raise DeviceError(f"the slice was not ready {self.patience:,} reads of STATUS after its restart")
            self._settle()
            self.write_field("EPOCH_LOW", "low", epoch & 0xFFFFFFFF)
            self.write_field("EPOCH_HIGH", "high", epoch >> 32)
            self._epochs.add(epoch)
            self.write_field("CONTROL", "start", 1)
            if not self._becomes("STATUS", "started"):
                raise DeviceError(f"epoch {epoch:#x} was not taken within {self.patience:,} reads of STATUS")

    def _epoch(self) -> int | None:
        """The epoch that the slice is in; None while it has not been started."""
        started = self.read_field("STATUS", "started")
        return self.read("EPOCH_HIGH") << 32 | self.read("EPOCH_LOW") if started else None

    def _settle(self) -> None:
        """Let all commands end, so that none of them is taken in the next epoch."""
        while self._tickets and self.progress():
            continue

    # Commands.

    def submit(self, ring: RingId, command: Command, into: memoryview | None = None) -> Ticket:
        """Send a command; its ticket is completed by ``progress``, that of BIND already when this returns.

        BIND comes alone: other threads wait, messages are kept back until it has ended, and a ring with commands under
        way is reset before it changes hands, so that none of them is taken under the new binding.

        InputError for a ring that the slice has not, for fields of other types than the command's, and while all tags
        of the ring are taken; of values the device judges.
        """
        ring = ring_of(ring, self._tags)
        check_command(command)
        if into is not None:
            check_destination(into)
        with self._lock:
            return self._change_hands(ring, command) if isinstance(command, c.Bind) else self._send(ring, command, into)

    def _send(self, ring: RingId, command: Command, into: memoryview | None = None) -> Ticket:
        ticket = Ticket(command, self.transport.clock, self._life)
        if outlived(command, self._life):
            self._end(ticket, Completion(ring, NO_TAG, Status.STALE))
            return ticket
        tag = self._tags[ring].take()
        try:
            self.transport.submit(ring, tag, command, into)
        except Exception:  # whatever it is goes on to the caller; the tag must not be lost with it
            self._tags[ring].free(tag)
            raise
        self._tickets[ring, tag] = ticket
        return ticket

    def _change_hands(self, ring: RingId, command: c.Bind) -> Ticket:
        """BIND, and its end: nothing of the ring that changes hands is left under way, and nothing is sent meanwhile.

        A tenant's BIND, which is DENIED, resets nothing.
        """
        with self._hushed():
            others = ring in self._administrative and ring != command.ring
            if others and any(under_way == command.ring for under_way, _ in self._tickets):
                self.reset(command.ring)
            ticket = self._send(ring, command)
            if self.wait(ticket).status is Status.OK:
                self._administrative.discard(command.ring)
                if command.to is Binding.ADMINISTRATIVE:
                    self._administrative.add(command.ring)
        return ticket

    def progress(self) -> bool:
        """Let the device work until something has arrived; False when nothing is outstanding."""
        while (arrived := self.step()) is False:
            _give_way()
        return bool(arrived)

    def step(self) -> bool | None:
        """``progress``, but for a while only: False if nothing has arrived, None if nothing is outstanding."""
        with self._lock:
            if not self._arrived:
                arrived = self.transport.step()
                if arrived is None:
                    return None
                self._arrived.extend(arrived)
            found = bool(self._arrived)
            while self._arrived:
                self._route(self._arrived.popleft())
            return found

    def _route(self, arrival: Arrival) -> None:
        if isinstance(arrival, Message) and self._kept is not None:
            self._kept.append(arrival)
            return
        if isinstance(arrival, Message):
            if isinstance(arrival, Fence):
                arrival = marked(arrival, self._life)
            for listener in self._listeners:
                listener(arrival)
            return
        ticket = self._tickets.pop((arrival.ring, arrival.tag), None)
        if ticket is None:
            raise DeviceError(f"tag {arrival.tag} of {arrival.ring} has ended, but no such command is outstanding")
        self._tags[arrival.ring].free(arrival.tag)
        mark(arrival, ticket.life)
        self._end(ticket, arrival)

    def _end(self, ticket: Ticket, completion: Completion) -> None:
        ticket.completion = completion
        now = self.transport.clock
        latency = None if now is None or ticket.begun is None else now - ticket.begun
        self.statistics.count(ticket.opcode, completion, ticket.size, latency)
        if ticket.then is not None:
            ticket.then(completion)

    def wait(self, ticket: Ticket) -> Completion:
        """The completion of a command, once it has ended."""
        if not isinstance(ticket, Ticket):
            raise InputError(f"{type(ticket).__name__} cannot be waited for, expected a Ticket")
        while ticket.completion is None:
            with self._lock:
                if ticket.completion is None and self.step() is None:
                    raise DeviceError("the device has nothing to do, but a command has not ended")
            _give_way()
        return ticket.completion

    def follow_up(self, ticket: Ticket, then: Callable[[Completion], None]) -> None:
        """Call ``then`` when a command has ended, at once if it has; as a listener it may send commands."""
        with self._lock:
            if ticket.completion is None:
                ticket.then = then
            else:
                then(ticket.completion)

    def listen(self, listener: Callable[[Message], None]) -> None:
        """Call ``listener`` with each message to any port; it may send commands, and wait for them."""
        with self._lock:
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
        """Bind a ring to a partition; what it held before is released first.

        A ring with commands under way is reset, as by any BIND; see ``submit``. Other threads wait, and messages reach
        listeners when the ring is bound.
        """
        with self._lock, self._hushed():
            asked = 0
            while self.administer(c.Bind(ring, to), Status.PENDING) is Status.PENDING:
                asked = 0 if self.step() else asked + 1
                if asked == self.patience:
                    raise DeviceError(f"{ring} cannot be bound: PENDING {asked:,} times, and nothing else has ended")

    @contextmanager
    def _hushed(self) -> Iterator[None]:
        """Keep messages back until the end, of the outermost of such blocks."""
        if self._kept is not None:
            yield
            return
        kept: list[Message] = []
        self._kept = kept
        try:
            yield
        finally:
            self._kept = None
            for message in kept:
                self._route(message)

    def reset(self, ring: RingId) -> None:
        """Release what a ring holds and end its commands UNAVAILABLE; it is used again after ``bind``."""
        ring = ring_of(ring, self.rings)
        with self._lock:
            self._administrative.discard(ring)
            self.transport.lose(ring)

    def lose_port(self, port: int) -> None:
        """Reset every ring of a port, as the loss of its link does."""
        if not is_number(port) or not 0 <= port < self.params.tables.ports:
            raise InputError(f"port = {port!r}, expected a number from 0 to {self.params.tables.ports - 1}")
        for ring in self.rings:
            if ring.port == port:
                self.reset(ring)
