"""A node as the administrator sees it: discovery, epoch, partitions, models, rings, resets."""

import difflib
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import active_count
from time import sleep
from typing import Self

from hw.params import commands as c
from hw.params.commands import Binding, Command, Completion, Fence, Message
from hw.params.errors import InputError
from hw.params.protocol import EPOCH_BITS, REGISTERS, EngineOpcode, ModelState, Opcode, RingId, Status
from hw.params.tasks import Put
from hw.rdl import Field, Kind, Register, register_map
from sw.driver.arguments import check_command, check_destination, check_name, is_number, ring_of
from sw.driver.discovery import discover
from sw.driver.errors import CommandFailed, DeviceError, RegisterError
from sw.driver.gate import Gate
from sw.driver.lives import LIVES, mark, marked, outlived
from sw.driver.routes import Part, Routes, joined
from sw.driver.statistics import Statistics
from sw.driver.steps import given_back
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

    ``life``: of the device, when it was sent; ``slice``: to which slice, if to one. ``then`` is called with the
    completion when nobody else will look at it; see ``Device.follow_up``.
    """

    __slots__ = ("begun", "completion", "life", "opcode", "size", "slice", "then")

    def __init__(self, command: Command, begun: float | None, life: int, slice_: int = 0) -> None:
        self.opcode = command.opcode
        self.size = len(command.data) if isinstance(command, c.Write | Put) else 0
        self.begun = begun
        self.life = life
        self.slice = slice_
        self.completion: Completion | None = None
        self.then: Callable[[Completion], None] | None = None


class Gathering:
    """The ticket of a command with several parts, and what these have answered so far."""

    __slots__ = ("command", "completions", "parts", "ticket")

    def __init__(self, ticket: Ticket, command: Command, parts: Sequence[Part]) -> None:
        self.ticket = ticket
        self.command = command
        self.parts = parts
        self.completions: dict[int, Completion] = {}


class Device:
    """Found by its identity and capability registers; DeviceError when it is not the one that was expected.

    Routes completions to tickets and messages to listeners, and keeps ``statistics``. A context manager that closes its
    transport. ``timeout``: how long commands may take, as in ``Transport.set_timeout``.

    A pin or session that it gave out before its last ``start``, or that another ``Device`` did, is STALE and does not
    reach it.

    Of several slices it makes one device: a command goes to the slices that it is about, as ``Routes`` says, and is one
    ticket, completed when all of them have answered. What a slice gave for nothing is returned ahead of all that is
    sent after the answer. ``statistics`` count what each slice was asked. Registers and counters are per slice.

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
        self._owed: list[tuple[RingId, Part]] = []
        self._kept: list[Message] | None = None
        self._listeners: list[Callable[[Message], None]] = []
        self._administrative = {REGISTERS}
        """Whose BIND is not DENIED, as far as bound by this driver: a ring that somebody has left is not in service."""
        self._life = next(LIVES)
        self._epochs: set[int] = set()
        tables = self.params.tables
        self.slices = range(self.params.node.slices)
        self._routes = Routes(self.params)
        self.rings = [RingId(port, ring) for port in range(tables.ports) for ring in range(tables.rings_per_port)]
        self._tags = {ring: Tags(ring) for ring in (REGISTERS, *self.rings)}
        self.patience = 1000 + 2 * self.params.frames
        """How often to ask for what the device is still about, before that is an error: an answer takes a cycle or
        more, and the device goes through its tables at an entry a cycle."""
        if timeout is not None:
            self.set_timeout(timeout)
        for slice_ in self.slices:
            discover(self._registers, self.params, partial(self.read, slice_=slice_), self._of(slice_))

    @property
    def completed(self) -> Counter[tuple[Opcode | EngineOpcode, Status]]:
        """Completions by opcode and status."""
        return self.statistics.completed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what the transport holds. The node stays as it is.

        Whoever waits gets DeviceError, and so does every call that needs the device from then on.
        """
        self._lock.shut(self._release)

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._lock.closed

    def _release(self) -> None:
        self._arrived.clear()
        self._owed.clear()
        self.transport.close()

    def set_timeout(self, timeout: float, ring: RingId | None = None) -> None:
        """How long commands, or those of one ring, may take; see ``Transport.set_timeout``."""
        ring = None if ring is None else ring_of(ring, self.rings)
        with self._lock:
            self.transport.set_timeout(timeout, ring)

    def counters(self, slice_: int | None = None) -> dict[str, int]:
        """The COUNTERS and LEVELS (``hw.params.registers``) of a slice, or of all together: also what is 0."""
        slices = self.slices if slice_ is None else [self._slice(slice_)]
        with self._lock:
            each = [self.transport.counters(at) for at in slices]
        return {name: sum(counters[name] for counters in each) for name in each[0]}

    def _slice(self, slice_: int) -> int:
        """The number of a slice, if there is such; InputError for another."""
        if not is_number(slice_) or slice_ not in self.slices:
            raise InputError(f"slice = {slice_!r}, expected a number from 0 to {self.slices[-1]}")
        return slice_

    def _of(self, slice_: int) -> str:
        """A slice in messages, if there are several."""
        return f" of slice {slice_}" if len(self.slices) > 1 else ""

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

    def read(self, register: str, slice_: int = 0) -> int:
        """The value of a register of a slice."""
        with self._lock:
            return self.transport.read_register(self._register(register).offset, self._slice(slice_))

    def write(self, register: str, value: int, slice_: int = 0) -> None:
        """Write a register; RegisterError for what the register map does not allow."""
        with self._lock:
            begins = (
                register == "CONTROL"
                and is_number(value)
                and value & _START
                and not self.read_field("STATUS", "started", slice_)
            )
            self.transport.write_register(self._register(register).offset, value, self._slice(slice_))
            if begins:
                self._life = next(LIVES)
                self._administrative = {REGISTERS}

    def read_field(self, register: str, field: str, slice_: int = 0) -> int:
        """The value of one field of a register."""
        f = self._field(register, field)
        return (self.read(register, slice_) & f.mask) >> f.low

    def write_field(self, register: str, field: str, value: int, slice_: int = 0) -> None:
        """Write one field of a register: the others keep what they store, no other pulse is given, no event cleared."""
        f = self._field(register, field)
        if not is_number(value) or not 0 <= value < 1 << f.width:
            raise RegisterError(f"register {register}: {field} = {value!r}, expected a number of {f.width} bits")
        others = (other for other in self._register(register).fields if other != f)
        kept = sum(other.mask for other in others if other.kind in (Kind.STORED, Kind.WINDOW))
        with self._lock:
            self.write(register, (self.read(register, slice_) & kept if kept else 0) | value << f.low, slice_)

    def _becomes(self, register: str, field: str, slice_: int) -> bool:
        """Whether a field is set within ``patience`` reads; the device goes on meanwhile."""
        return any(self.read_field(register, field, slice_) for _ in range(self.patience))

    def start(self, epoch: int | None = None, *, only: int | None = None) -> None:
        """Restart the node and take a fresh epoch into use: all state from before is gone.

        With ``only``, restart this slice alone. The others keep their sealed blocks; they lose all ports, with what was
        not sealed, sessions and pins. Partitions and models are to be set and rings to be bound again: at every slice,
        where these are as they were.

        Handles of what was restarted, pins and sessions from before are STALE. Other threads wait meanwhile. InputError
        for an epoch that is none, that a slice to restart is in, or that this device has started before: its handles
        would mean something again.
        """
        epoch = secrets.randbits(63) + 1 if epoch is None else epoch
        if not is_number(epoch) or not 0 < epoch < 1 << EPOCH_BITS:
            raise InputError(f"epoch = {epoch!r}, expected a number from 1 to 2**{EPOCH_BITS} - 1")
        slices = self.slices if only is None else [self._slice(only)]
        with self._lock:
            if epoch in self._epochs or any(epoch == self._epoch(at) for at in slices):
                raise InputError(f"epoch = {epoch}, expected one that the slice has not had yet")
            for at in slices:
                self.write_field("CONTROL", "restart", 1, at)
            for at in slices:
                if not self._becomes("STATUS", "ready", at):
                    raise DeviceError(
                        f"the slice was not ready {self.patience:,} reads of STATUS after its restart{self._of(at)}"
                    )
            self._settle()
            self._epochs.add(epoch)
            for at in slices:
                self.write_field("EPOCH_LOW", "low", epoch & 0xFFFFFFFF, at)
                self.write_field("EPOCH_HIGH", "high", epoch >> 32, at)
                self.write_field("CONTROL", "start", 1, at)
                if not self._becomes("STATUS", "started", at):
                    raise DeviceError(
                        f"epoch {epoch:#x} was not taken within {self.patience:,} reads of STATUS{self._of(at)}"
                    )

    def _epoch(self, slice_: int) -> int | None:
        """The epoch that a slice is in; None while it has not been started."""
        started = self.read_field("STATUS", "started", slice_)
        return self.read("EPOCH_HIGH", slice_) << 32 | self.read("EPOCH_LOW", slice_) if started else None

    def _settle(self) -> None:
        """Let all commands end, so that none of them is taken in the next epoch."""
        while self._tickets and self.progress():
            continue

    # Commands.

    def submit(
        self, ring: RingId, command: Command, into: memoryview | None = None, *, root: int | None = None
    ) -> Ticket:
        """Send a command; its ticket is completed by ``progress``, that of BIND already when this returns.

        ``root``: the key of the first block of the chain, for LOOKUP, DROP and OPEN_SESSION on a node of several slices
        where that decides (``node.home``).

        BIND comes alone: other threads wait, messages are kept back until it has ended, and a ring with commands under
        way is reset before it changes hands, so that none of them is taken under the new binding.

        InputError for a ring that the node has not, for fields of other types than the command's, for want of a root,
        for a session of other slices than the block's, and while all tags of the ring are taken; of values the device
        judges.
        """
        ring = ring_of(ring, self._tags)
        check_command(command)
        if into is not None:
            check_destination(into)
        if root is not None and not is_number(root):
            raise InputError(f"root = {root!r}, expected the key of a block")
        with self._lock:
            if isinstance(command, c.Bind):
                return self._change_hands(ring, command)
            return self._send(ring, command, into, root)

    def _send(self, ring: RingId, command: Command, into: memoryview | None = None, root: int | None = None) -> Ticket:
        if outlived(command, self._life):
            ticket = Ticket(command, self.transport.clock, self._life)
            self._end(ticket, Completion(ring, NO_TAG, Status.STALE))
            return ticket
        parts = self._routes.parts(command, root)
        return self._send_part(ring, parts[0], into) if len(parts) == 1 else self._send_parts(ring, command, parts)

    def _send_part(self, ring: RingId, part: Part, into: memoryview | None = None) -> Ticket:
        ticket = Ticket(part.command, self.transport.clock, self._life, part.slice)
        tag = self._tags[ring].take()
        try:
            self.transport.submit(ring, tag, part.command, into, slice_=part.slice)
        except Exception:  # whatever it is goes on to the caller; the tag must not be lost with it
            self._tags[ring].free(tag)
            raise
        self._tickets[ring, tag] = ticket
        return ticket

    def _send_parts(self, ring: RingId, command: Command, parts: Sequence[Part]) -> Ticket:
        """All of them, or none: what those that could be sent give goes back if another could not."""
        gathering = Gathering(Ticket(command, self.transport.clock, self._life), command, parts)
        sent: list[Ticket] = []
        try:
            for part in parts:
                sent.append(self._send_part(ring, part))
        except Exception:  # whatever it is goes on to the caller; what was given for nothing must go back
            for ticket in sent:
                ticket.then = partial(self._give_back, ring, ticket.opcode)
            raise
        for at, ticket in enumerate(sent):
            ticket.then = partial(self._gather, ring, gathering, at)
        return gathering.ticket

    def _give_back(self, ring: RingId, opcode: Opcode | EngineOpcode, completion: Completion) -> None:
        self._owe(ring, [part for back in given_back(opcode, completion) for part in self._routes.parts(back)])

    def _gather(self, ring: RingId, gathering: Gathering, at: int, completion: Completion) -> None:
        """Part number ``at`` has ended."""
        gathering.completions[at] = completion
        if len(gathering.completions) < len(gathering.parts):
            return
        completions = [completion for _, completion in sorted(gathering.completions.items())]
        joint = joined(gathering.command, gathering.parts, completions, gathering.ticket.life)
        self._owe(ring, joint.back)
        self._complete(gathering.ticket, joint.completion)

    def _owe(self, ring: RingId, parts: Iterable[Part]) -> None:
        """Send what nobody waits for, at once, or when the ring has a tag for it."""
        owed, self._owed = [*self._owed, *((ring, part) for part in parts)], []
        for each in owed:
            try:
                self._send_part(*each)
            except InputError:
                self._owed.append(each)

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
        mark(arrival, ticket.life, ticket.slice)
        self._end(ticket, arrival)
        if self._owed:
            self._owe(arrival.ring, ())

    def _end(self, ticket: Ticket, completion: Completion) -> None:
        now = self.transport.clock
        latency = None if now is None or ticket.begun is None else now - ticket.begun
        self.statistics.count(ticket.opcode, completion, ticket.size, latency)
        self._complete(ticket, completion)

    @staticmethod
    def _complete(ticket: Ticket, completion: Completion) -> None:
        ticket.completion = completion
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
