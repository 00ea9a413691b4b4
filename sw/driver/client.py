"""What an engine calls: look blocks up, put them, get them, on one ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from hw.params import commands as c
from hw.params.commands import Command, Completion, LookupMode
from hw.params.protocol import Handle, PinId, RingId, SessionId, Status
from sw.driver import steps
from sw.driver.arguments import ring_of
from sw.driver.device import Device, Ticket
from sw.driver.steps import Buffer, Put, Steps, as_bytes, crc32c

__all__ = ["Buffer", "Client", "Put", "as_bytes", "crc32c"]

T = TypeVar("T")


class Client:
    """One ring of a device, bound to a partition. Several threads may use it: each call is safe, calls of several
    threads mix command by command.

    ``timeout``: how long its commands may take, as in ``Device.set_timeout``; otherwise that of the device.

    Statuses are answers, not errors: only ``get`` and ``open`` raise CommandFailed, because they have nothing to
    return without success. Arguments of another type raise InputError, and nothing is sent.

    ``root``, on a node of several slices with ``node.home`` = root: the key of the first block of the chain that a
    block, or the leading run of keys, belongs to. A session is one of a chain, and puts blocks of this alone.
    """

    def __init__(self, device: Device, ring: RingId, *, timeout: float | None = None) -> None:
        self.device = device
        self.ring = ring_of(ring, device.rings)
        if timeout is not None:
            device.set_timeout(timeout, self.ring)

    def submit(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Ticket:
        """Send a command without waiting; ``device.progress`` completes the ticket."""
        return self.device.submit(self.ring, command, into, root=root)

    def run(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Completion:
        """Send a command and wait for its completion."""
        return self.device.wait(self.submit(command, into, root=root))

    def _all(self, steps: Steps[T]) -> T:
        """Run steps to their end."""
        try:
            step = next(steps)
            while True:
                step = steps.send(self.run(*step))
        except StopIteration as end:
            result: T = end.value
            return result

    def lookup(
        self,
        model: int,
        keys: Sequence[int],
        *,
        mode: LookupMode = LookupMode.RUN,
        pin: bool = False,
        root: int | None = None,
    ) -> Completion:
        """Which of ``keys`` (128-bit integers) may be read; with ``pin``, each HIT is held until ``unpin``."""
        return self.run(c.Lookup(model, keys, mode, pin), root=root)

    def unpin(self, pin: PinId) -> Status:
        """Return a pin."""
        return self.run(c.Unpin(pin)).status

    @contextmanager
    def pinned(self, model: int, keys: Sequence[int], *, root: int | None = None) -> Iterator[Completion]:
        """Hold the leading run of ``keys`` that hit, for the length of a ``with`` block."""
        result = self.lookup(model, keys, pin=True, root=root)
        try:
            yield result
        finally:
            for ticket in [self.submit(c.Unpin(pin)) for pin in result.pins if pin is not None]:
                self.device.wait(ticket)

    def open(self, *, root: int | None = None) -> SessionId:
        """Open a session."""
        return steps.opened(self.ring, self.run(c.OpenSession(), root=root))

    @contextmanager
    def session(self, *, root: int | None = None) -> Iterator[SessionId]:
        """A session for the length of a ``with`` block; what it has not sealed by then is gone."""
        session = self.open(root=root)
        try:
            yield session
        finally:
            self.run(c.CloseSession(session))

    def put(self, session: SessionId, model: int, key: int, data: Buffer) -> Put:
        """Store a block, all or nothing: ALLOC, WRITE, SEAL. ``data`` is read in place, any shape and type.

        Where the requester has a write-back buffer (``requester.slots``) one PUT does it all, and nothing is read of a
        block that exists. Else bytes that change after the call has begun fail the SEAL with CRC.
        """
        return self._all(steps.put(session, model, key, data, self.device.params))

    def write_back(self, session: SessionId, model: int, key: int, data: Buffer) -> Ticket:
        """Start to store a block, by a PUT: ``data`` has to stay as it is until the ticket is completed, OK or EXISTS
        if the block can be read. InputError where the requester has no write-back buffer."""
        return self.submit(steps.put_task(session, model, key, data, self.device.params))

    def flush(self, session: SessionId | None = None) -> Status:
        """Wait until every PUT of the ring, or of a session of it, has ended that was submitted before, OK or not.

        InputError where the requester has no write-back buffer.
        """
        return self.run(steps.flush_task(session, self.device.params)).status

    def read(self, handle: Handle, into: Buffer, *, park: bool = False) -> Ticket:
        """Start to read a block that is as long as ``into``."""
        view = as_bytes(into, writable=True)
        return self.submit(c.Read(handle, 0, self.device.params.segments(view.nbytes), park), view)

    def get(
        self, handle: Handle, out: Buffer | None = None, *, length: int | None = None, park: bool = False
    ) -> Buffer:
        """Read a whole block into ``out``, in place, or into a new array of ``length`` bytes.

        Raises CommandFailed for any status but OK, BufferMismatch when the block is not as long as the buffer. No
        handle tells how long its block is: a buffer that ends with one of its segments gets the block's beginning.
        What is in the buffer after an exception means nothing.
        """
        return self._all(steps.get(handle, out, length, park, self.device.params))

    def drop(self, model: int, key: int, *, root: int | None = None) -> Status:
        """Make a block of the own partition unreachable."""
        return self.run(c.Drop(model, key), root=root).status
