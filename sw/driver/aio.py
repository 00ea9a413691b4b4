"""The client for asyncio: the methods of ``Client`` as coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar
from weakref import WeakKeyDictionary

from hw.params import commands as c
from hw.params.commands import Command, Completion, LookupMode
from hw.params.protocol import EngineOpcode, Handle, Opcode, PinId, RingId, SessionId, Status
from sw.driver import steps
from sw.driver.client import Client
from sw.driver.device import Device, Ticket
from sw.driver.errors import DeviceError
from sw.driver.steps import Buffer, GivenUp, Put, Steps

T = TypeVar("T")


class Pump:
    """Lets a device work, in a thread, while coroutines wait for completions: one task for all of them.

    It keeps the device only while it works: until all that was waited for has ended, also for callers that are gone.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Ticket, asyncio.Future[Completion]]] = []
        self._task: asyncio.Task[None] | None = None

    async def wait(self, device: Device, ticket: Ticket) -> Completion:
        """The completion of a command, once it has ended."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((ticket, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(device))
        return await future

    async def _run(self, device: Device) -> None:
        try:
            while self._settle():
                if await asyncio.to_thread(device.step) is None and self._settle():
                    raise DeviceError("the device has nothing to do, but a command has not ended")
        except Exception as error:
            for _, future in self._waiting:
                if not future.done():
                    future.set_exception(error)
            self._waiting.clear()

    def _settle(self) -> bool:
        """Complete the futures of what has ended; whether anything is left, of callers that wait no longer too."""
        still = []
        for ticket, future in self._waiting:
            if ticket.completion is None:
                still.append((ticket, future))
            elif not future.done():
                future.set_result(ticket.completion)
        self._waiting = still
        return bool(still)


_PUMPS: WeakKeyDictionary[Device, Pump] = WeakKeyDictionary()
"""The pump of each device."""


class AsyncClient:
    """One ring of a device, as ``Client``, in one event loop. Coroutines and synchronous clients may share a device.

    A call that is cancelled leaves its command to end by itself, and a ``put`` sends ABORT behind it: its buffer is in
    use until a later command of the ring has ended. A ``put`` that is a PUT of a write-back buffer goes on: until a
    ``flush`` has ended. What a cancelled command gives, pins, a session or a grant, is
    returned when it has ended; if the event loop ends before, while somebody lets the device work the next time.
    """

    def __init__(self, device: Device, ring: RingId, *, timeout: float | None = None) -> None:
        self._client = Client(device, ring, timeout=timeout)
        self._pump = _PUMPS.setdefault(device, Pump())
        self.device = device
        self.ring = self._client.ring

    async def run(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Completion:
        """Send a command and wait for its completion."""
        ticket = self._client.submit(command, into, root=root)
        try:
            return await self._wait(ticket)
        except asyncio.CancelledError:
            with suppress(DeviceError):  # closed: nothing is left to be returned
                self.device.follow_up(ticket, lambda completion: self._give_back(ticket.opcode, completion))
            raise

    async def _wait(self, ticket: Ticket) -> Completion:
        return await self._pump.wait(self.device, ticket)

    def _give_back(self, opcode: Opcode | EngineOpcode, completion: Completion) -> None:
        for command in steps.given_back(opcode, completion):
            self._client.submit(command)

    async def _all(self, steps: Steps[T]) -> T:
        """Run steps to their end; if cancelled, send what they still want sent."""
        try:
            step = next(steps)
            while True:
                try:
                    completion = await self.run(*step)
                except asyncio.CancelledError:
                    with suppress(GivenUp, DeviceError):
                        self._client.submit(*steps.throw(GivenUp()))
                    raise
                step = steps.send(completion)
        except StopIteration as end:
            result: T = end.value
            return result

    async def lookup(
        self,
        model: int,
        keys: Sequence[int],
        *,
        mode: LookupMode = LookupMode.RUN,
        pin: bool = False,
        root: int | None = None,
    ) -> Completion:
        """As ``Client.lookup``."""
        return await self.run(c.Lookup(model, keys, mode, pin), root=root)

    async def unpin(self, pin: PinId) -> Status:
        """Return a pin."""
        return (await self.run(c.Unpin(pin))).status

    @asynccontextmanager
    async def pinned(self, model: int, keys: Sequence[int], *, root: int | None = None) -> AsyncIterator[Completion]:
        """Hold the leading run of ``keys`` that hit, for the length of an ``async with`` block."""
        result = await self.lookup(model, keys, pin=True, root=root)
        try:
            yield result
        finally:
            tickets = [self._client.submit(c.Unpin(pin)) for pin in result.pins if pin is not None]
            await asyncio.gather(*map(self._wait, tickets))

    async def open(self, *, root: int | None = None) -> SessionId:
        """Open a session; CommandFailed if there is none."""
        return steps.opened(self.ring, await self.run(c.OpenSession(), root=root))

    @asynccontextmanager
    async def session(self, *, root: int | None = None) -> AsyncIterator[SessionId]:
        """A session for the length of an ``async with`` block; what it has not sealed by then is gone."""
        session = await self.open(root=root)
        try:
            yield session
        finally:
            await self.run(c.CloseSession(session))

    async def put(self, session: SessionId, model: int, key: int, data: Buffer) -> Put:
        """As ``Client.put``."""
        return await self._all(steps.put(session, model, key, data, self.device.params))

    async def flush(self, session: SessionId | None = None) -> Status:
        """As ``Client.flush``."""
        return (await self.run(steps.flush_task(session, self.device.params))).status

    async def get(
        self, handle: Handle, out: Buffer | None = None, *, length: int | None = None, park: bool = False
    ) -> Buffer:
        """As ``Client.get``."""
        return await self._all(steps.get(handle, out, length, park, self.device.params))

    async def drop(self, model: int, key: int, *, root: int | None = None) -> Status:
        """Make a block of the own partition unreachable."""
        return (await self.run(c.Drop(model, key), root=root)).status
