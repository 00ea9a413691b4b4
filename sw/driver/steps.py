"""What takes more than one command, as steps: each yields a command and where its data goes, and gets the completion.

Clients run them, waiting in their own way. Arguments are judged before the first step.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

import google_crc32c
import numpy as np
import numpy.typing as npt

from hw.params import commands as c
from hw.params.commands import Command, Completion
from hw.params.errors import InputError
from hw.params.params import Params
from hw.params.protocol import EngineOpcode, Handle, Opcode, SessionId, Status
from hw.params.tasks import Flush
from hw.params.tasks import Put as PutTask
from sw.driver.arguments import is_number
from sw.driver.errors import BufferMismatch, CommandFailed

Buffer = npt.NDArray | bytes | bytearray | memoryview
T = TypeVar("T")
Steps = Generator[tuple[Command, memoryview | None], Completion, T]


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


def opened(ring: object, result: Completion) -> SessionId:
    """The session that was opened; CommandFailed if there is none."""
    if result.session is None:
        raise CommandFailed(f"open a session on {ring}", result.status)
    return result.session


def put(session: SessionId, model: int, key: int, data: Buffer, params: Params) -> Steps[Put]:
    """Store a block: by a PUT where the requester has a write-back buffer, else by its commands one after the other."""
    view = as_bytes(data)
    if not params.requester.slots:
        return (yield from _put_commands(session, model, key, view))
    result = yield PutTask(model, key, view, session), None
    return Put(Status.GRANTED if result.status is Status.OK else result.status, result.handle)


def _put_commands(session: SessionId, model: int, key: int, view: memoryview) -> Steps[Put]:
    """ALLOC, WRITE, SEAL, and ABORT if anything fails in between or the caller gives up."""
    crc = crc32c(view)
    granted = yield c.Alloc(model, key, view.nbytes, session), None
    if granted.status is not Status.GRANTED or granted.handle is None:
        return Put(granted.status, granted.handle)
    try:
        for command in (c.Write(granted.handle, 0, view), c.Seal(granted.handle, view.nbytes, crc)):
            status = (yield command, None).status
            if status is not Status.OK:
                yield c.Abort(granted.handle), None
                return Put(status, None)
    except GivenUp:
        yield c.Abort(granted.handle), None
        raise
    return Put(Status.GRANTED, granted.handle)


def put_task(session: SessionId, model: int, key: int, data: Buffer, params: Params) -> PutTask:
    """What asks a write-back buffer to store a block."""
    _check_write_back(params, "PUT")
    return PutTask(model, key, as_bytes(data), session)


def flush_task(session: SessionId | None, params: Params) -> Flush:
    """What asks it to tell when it has."""
    _check_write_back(params, "FLUSH")
    return Flush(session)


def _check_write_back(params: Params, what: str) -> None:
    """InputError unless requesters have a write-back buffer."""
    if not params.requester.slots:
        raise InputError(f"{what}: requester.slots = 0, expected a requester with a write-back buffer")


def given_back(opcode: Opcode | EngineOpcode, completion: Completion) -> list[Command]:
    """The commands that return what a command has given to a caller who does not wait for it any more."""
    back: list[Command] = [c.Unpin(pin) for pin in completion.pins if pin is not None]
    if opcode is Opcode.OPEN_SESSION and completion.session is not None:
        back.append(c.CloseSession(completion.session))
    if opcode is Opcode.ALLOC and completion.status is Status.GRANTED and completion.handle is not None:
        back.append(c.Abort(completion.handle))
    return back


class GivenUp(Exception):
    """Thrown into steps whose caller waits no longer; the commands that they yield from then on are sent, no more."""


def _check_size(size: int, params: Params) -> None:
    """BufferMismatch for more bytes than any block has."""
    if size > max(pool.frame_bytes for pool in params.pools):
        raise BufferMismatch(f"the block has not {size} bytes, expected a buffer as long as the block")


def get(handle: Handle, out: Buffer | None, length: int | None, park: bool, params: Params) -> Steps[Buffer]:
    """Read a whole block; see ``Client.get``."""
    if (out is None) == (length is None):
        raise BufferMismatch("expected either a buffer to read into, or the length of a new one")
    if out is None:
        if not is_number(length) or length <= 0:
            raise BufferMismatch(f"length = {length!r}, expected the bytes of the block")
        _check_size(length, params)
        out = np.empty(length, np.uint8)
    view = as_bytes(out, writable=True)
    _check_size(view.nbytes, params)
    result = yield c.Read(handle, 0, params.segments(view.nbytes), park), view
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
