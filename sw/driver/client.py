"""What an engine calls: look blocks up, put them, get them, on one ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import google_crc32c
import numpy as np
import numpy.typing as npt

from hw.params import commands as c
from hw.params.commands import Command, Completion, LookupMode
from hw.params.errors import InputError
from hw.params.protocol import Handle, PinId, RingId, SessionId, Status
from sw.driver.device import Device, Ticket
from sw.driver.errors import BufferMismatch, CommandFailed

Buffer = npt.NDArray | bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Put:
    """How a ``put`` ended. GRANTED and EXISTS are success: the block is sealed, under ``handle``."""

    status: Status
    handle: Handle | None

    @property
    def stored(self) -> bool:
        """Whether the block can be read now."""
        return self.status in (Status.GRANTED, Status.EXISTS)


def as_bytes(buffer: Buffer, *, writable: bool = False) -> memoryview:
    """The bytes of a buffer, in place. Raises BufferMismatch when that would take a copy."""
    if isinstance(buffer, np.ndarray):
        if not buffer.flags.c_contiguous:
            raise BufferMismatch(f"array of shape {buffer.shape} is not contiguous, expected C order without gaps")
        if buffer.dtype.hasobject:
            raise BufferMismatch(f"array of {buffer.dtype} holds references, expected plain values")
        view = np.asarray(buffer).reshape(-1).view(np.uint8).data
    elif isinstance(buffer, bytes | bytearray | memoryview):
        view = memoryview(buffer)
        if not view.c_contiguous:
            raise BufferMismatch("memoryview is not contiguous, expected C order without gaps")
        view = view.cast("B")
    else:
        raise BufferMismatch(f"{type(buffer).__name__} has no plain bytes, expected a NumPy array or bytes")
    if writable and view.readonly:
        raise BufferMismatch("buffer is read-only, expected one to read into")
    if view.nbytes == 0:
        raise BufferMismatch("buffer is empty, expected at least one byte")
    return view


def crc32c(view: memoryview) -> int:
    """CRC32C of a buffer, in place (the library takes no memoryview, but a read-only array)."""
    array = np.frombuffer(view, np.uint8)
    array.flags.writeable = False
    return google_crc32c.value(array)


class Client:
    """One ring of a device, bound to a partition. Not thread-safe.

    Statuses are answers, not errors: only ``get`` and ``open`` raise CommandFailed, because they have nothing to
    return without success. Arguments of another type raise InputError, and nothing is sent.
    """

    def __init__(self, device: Device, ring: RingId) -> None:
        if ring not in device.rings:
            raise InputError(f"there is no ring {ring}, expected one of device.rings")
        self.device = device
        self.ring = RingId(*ring)

    def submit(self, command: Command, into: memoryview | None = None) -> Ticket:
        """Send a command without waiting; ``device.progress`` completes the ticket."""
        return self.device.submit(self.ring, command, into)

    def run(self, command: Command, into: memoryview | None = None) -> Completion:
        """Send a command and wait for its completion."""
        return self.device.wait(self.submit(command, into))

    def lookup(
        self, model: int, keys: Sequence[int], *, mode: LookupMode = LookupMode.RUN, pin: bool = False
    ) -> Completion:
        """Which of ``keys`` (128-bit integers) may be read; with ``pin``, each HIT is held until ``unpin``."""
        return self.run(c.Lookup(model, keys, mode, pin))

    def unpin(self, pin: PinId) -> Status:
        """Return a pin."""
        return self.run(c.Unpin(pin)).status

    @contextmanager
    def pinned(self, model: int, keys: Sequence[int]) -> Iterator[Completion]:
        """Hold the leading run of ``keys`` that hit, for the length of a ``with`` block."""
        result = self.lookup(model, keys, pin=True)
        try:
            yield result
        finally:
            for ticket in [self.submit(c.Unpin(pin)) for pin in result.pins if pin is not None]:
                self.device.wait(ticket)

    def open(self) -> SessionId:
        """Open a session."""
        result = self.run(c.OpenSession())
        if result.session is None:
            raise CommandFailed(f"open a session on {self.ring}", result.status)
        return result.session

    @contextmanager
    def session(self) -> Iterator[SessionId]:
        """A session for the length of a ``with`` block; what it has not sealed by then is gone."""
        session = self.open()
        try:
            yield session
        finally:
            self.run(c.CloseSession(session))

    def put(self, session: SessionId, model: int, key: int, data: Buffer) -> Put:
        """Store a block, all or nothing: ALLOC, WRITE, SEAL. ``data`` is read in place, any shape and type.

        Bytes that change after the call has begun fail the SEAL with CRC.
        """
        view = as_bytes(data)
        crc = crc32c(view)
        granted = self.run(c.Alloc(model, key, view.nbytes, session))
        if granted.status is not Status.GRANTED or granted.handle is None:
            return Put(granted.status, granted.handle)
        for command in (c.Write(granted.handle, 0, view), c.Seal(granted.handle, view.nbytes, crc)):
            status = self.run(command).status
            if status is not Status.OK:
                self.run(c.Abort(granted.handle))
                return Put(status, None)
        return Put(Status.GRANTED, granted.handle)

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
        if (out is None) == (length is None):
            raise BufferMismatch("expected either a buffer to read into, or the length of a new one")
        if out is None:
            if not isinstance(length, int) or length <= 0:
                raise BufferMismatch(f"length = {length!r}, expected the bytes of the block")
            out = np.empty(length, np.uint8)
        view = as_bytes(out, writable=True)
        result = self.device.wait(self.read(handle, view, park=park))
        if result.status is Status.RANGE:
            raise BufferMismatch(f"the block has not {view.nbytes} bytes, expected a buffer as long as the block")
        if result.status is not Status.OK:
            raise CommandFailed(f"get {handle}", result.status)
        if result.length != view.nbytes:
            raise BufferMismatch(
                f"the segments that {view.nbytes} bytes need hold {result.length} bytes,"
                " expected a buffer as long as the block"
            )
        return out

    def drop(self, model: int, key: int) -> Status:
        """Make a block of the own partition unreachable."""
        return self.run(c.Drop(model, key)).status
