"""Coroutines and threads on one device, and what is counted of them."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from threading import Event, Thread
from typing import Any
from weakref import ref

import pytest
from driverbench import Connect, Rig, store

from hw.params import commands as c
from hw.params.commands import Command, Completion, Invalidate
from hw.params.protocol import Opcode, PinId, RingId, Status
from hw.tb.mutate import mutate
from sw.driver import AsyncClient, BufferMismatch, CommandFailed, Device, DeviceError, aio, steps
from sw.driver.client import as_bytes, crc32c

DATA = b"kv" * 300


def client(rig: Rig, *, far: bool = False) -> AsyncClient:
    return AsyncClient(rig.device, (rig.far if far else rig.one).ring)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


# Coroutines.


def test_a_day_of_coroutines(rig: Rig) -> None:
    async def day() -> None:
        one, far = client(rig), client(rig, far=True)
        async with one.session() as session:
            puts = await asyncio.gather(*(one.put(session, 0, key, bytes([key]) * 600) for key in range(1, 5)))
        assert all(put.stored for put in puts)
        async with far.pinned(0, [1, 2, 3, 4]) as found:
            assert found.count == 4
            blocks = await asyncio.gather(*(far.get(handle, length=600) for handle in found.handles if handle))
            assert [bytes(block) for block in blocks] == [bytes([key]) * 600 for key in range(1, 5)]
            assert rig.counters()["pins_used"] == 4
        assert rig.counters()["pins_used"] == 0
        assert await one.drop(0, 1) is Status.OK
        assert (await far.lookup(0, [1])).status is Status.MISS
        assert await one.unpin(found.pins[0]) is Status.STALE  # type: ignore[arg-type]

    run(day())


@pytest.mark.parks
def test_a_coroutine_may_wait_for_what_another_one_stores(rig: Rig) -> None:
    async def writes(handle: Any, session: Any) -> None:
        one = client(rig)
        await one.run(c.Write(handle, 0, DATA))
        await one.run(c.Seal(handle, len(DATA), crc32c(as_bytes(DATA))))

    async def both() -> None:
        one, far = client(rig), client(rig, far=True)
        session = await one.open()
        handle = (await one.run(c.Alloc(0, 1, len(DATA), session))).handle
        assert handle is not None
        got, _ = await asyncio.gather(far.get(handle, length=len(DATA), park=True), writes(handle, session))
        assert bytes(got) == DATA

    run(both())


def test_errors_of_coroutines_are_those_of_the_client(rig: Rig) -> None:
    async def wrong() -> None:
        one, handle = client(rig), store(rig.one, 1)
        with pytest.raises(BufferMismatch, match="as long as the block"):
            await one.get(handle, length=601)
        with pytest.raises(BufferMismatch, match="either a buffer"):
            await one.get(handle)
        await one.drop(0, 1)
        with pytest.raises(CommandFailed, match="STALE"):
            await one.get(handle, length=600)
        for _ in range(4):
            await one.open()
        with pytest.raises(CommandFailed, match="open a session on RingId"):
            await one.open()

    run(wrong())


class Stopped(AsyncClient):
    """Its WRITEs are never sent."""

    reached: asyncio.Event

    async def run(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Completion:
        if isinstance(command, c.Write):
            self.reached.set()
            await asyncio.Event().wait()
        return await super().run(command, into, root=root)


async def cancelled_put(rig: Rig) -> Status:
    """How the key of a put is seen that was cancelled at its WRITE."""
    one = Stopped(rig.device, rig.one.ring)
    one.reached = asyncio.Event()
    session = await one.open()
    task = asyncio.create_task(one.put(session, 0, 1, DATA))
    await one.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return (await one.lookup(0, [1])).status


def test_a_put_that_is_cancelled_leaves_nothing(rig: Rig) -> None:
    assert asyncio.run(cancelled_put(rig)) is Status.MISS
    assert rig.counters()["frames_writing"] == 0


GIVING: dict[str, Callable[[AsyncClient], Coroutine[Any, Any, Any]]] = {
    "pins": lambda one: one.lookup(0, [1], pin=True),
    "a block of pins": lambda one: one.pinned(0, [1]).__aenter__(),
    "a session": lambda one: one.open(),
    "a grant": lambda one: one.run(c.Alloc(0, 2, 600, one.own)),  # type: ignore[attr-defined]
}


async def cancelled_gifts(rig: Rig, gift: str, *, answered: bool) -> tuple[int, ...]:
    """What is in use after a call was cancelled, before or after its command has ended, and what was so before."""
    used = lambda: [rig.counters()[name] for name in ("pins_used", "sessions_used", "frames_writing")]  # noqa: E731
    one = client(rig)
    one.own = await one.open()  # type: ignore[attr-defined]
    before = used()
    task = asyncio.create_task(GIVING[gift](one))
    await asyncio.sleep(0)
    if answered:
        rig.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await one.lookup(0, [9])
    rig.settle()
    return tuple(now - then for now, then in zip(used(), before, strict=True))


@pytest.mark.parametrize("gift", GIVING)
@pytest.mark.parametrize("answered", [False, True])
def test_what_a_cancelled_call_is_given_is_returned(rig: Rig, gift: str, answered: bool) -> None:
    store(rig.one, 1)
    assert asyncio.run(cancelled_gifts(rig, gift, answered=answered)) == (0, 0, 0)


def test_a_cancelled_call_ends_although_nobody_else_waits(rig: Rig) -> None:
    async def alone() -> None:
        task = asyncio.create_task(client(rig).lookup(0, [1], pin=True))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        while rig.device.completed[Opcode.LOOKUP, Status.HIT] == 0:
            await asyncio.sleep(0)

    store(rig.one, 1)
    run(alone())
    rig.settle()
    assert rig.counters()["pins_used"] == 0


def test_an_error_reaches_everybody_who_still_waits(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = Event()

    def step() -> None:
        cancelled.wait()
        raise DeviceError("gone")

    async def wait() -> None:
        tasks = [asyncio.create_task(client(rig).lookup(0, [key])) for key in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        cancelled.set()
        for task in tasks[1:]:
            with pytest.raises(DeviceError, match="gone"):
                await task

    with monkeypatch.context() as patch:
        patch.setattr(rig.device, "step", step)
        run(wait())


def test_a_device_that_coroutines_have_used_can_go(connect: Connect) -> None:
    rig = Rig(Device(connect()))
    run(client(rig).open())  # type: ignore[arg-type]
    gone = ref(rig.device)
    del rig
    gc.collect()
    assert gone() is None


def test_a_device_that_answers_nothing_does_not_hang_coroutines(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> None:
        with pytest.raises(DeviceError, match="nothing to do, but a command has not ended"):
            await client(rig).lookup(0, [1])

    with monkeypatch.context() as patch:
        patch.setattr(rig.device.transport, "step", lambda: None)
        run(nothing())


def test_event_loops_may_follow_one_another(rig: Rig) -> None:
    async def look() -> None:
        assert (await client(rig).lookup(0, [1])).status is Status.MISS

    for _ in range(3):
        run(look())


# Threads.


def stores(rig: Rig, ring: Any, keys: range, failed: list[BaseException]) -> None:
    """Store and read back, in this thread."""
    try:
        for key in keys:
            data = key.to_bytes(2, "little") * 300
            handle = store(ring, key, data)
            assert bytes(ring.get(handle, length=600)) == data
            rig.device.write_field("SCRATCH", "value", key)
            assert ring.drop(0, key) is Status.OK
    except BaseException as error:
        failed.append(error)


def test_threads_may_share_a_device_and_a_ring(rig: Rig) -> None:
    failed: list[BaseException] = []
    clients = [rig.one, rig.one, rig.far]
    threads = [
        Thread(target=stores, args=(rig, each, range(100 * number, 100 * number + 15), failed))
        for number, each in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rig.device.completed[Opcode.SEAL, Status.OK] == 45
    assert rig.counters()["sessions_used"] == rig.counters()["frames_sealed"] == 0


def sent_before_bound(rig: Rig) -> set[Opcode]:
    """What is sent between reset and the last BIND of a ring that a thread and a listener want to use too."""
    device, sent, threads = rig.device, list[Opcode | None](), list[Thread]()
    submit, reset, administer = device.transport.submit, device.reset, device.administer

    def submits(ring: RingId, tag: int, command: Command, into: memoryview | None = None, *, slice_: int = 0) -> None:
        sent.append(command.opcode)
        submit(ring, tag, command, into, slice_=slice_)

    def resets(ring: RingId) -> None:
        reset(ring)
        device._arrived.append(Invalidate(ring.port, 3, None))
        sent.clear()
        threads.append(Thread(target=rig.one.lookup, args=(0, [1])))
        threads[0].start()
        threads[0].join(0.05)  # a thread that can send something has done so by then

    def administers(command: Command, *allowed: Status) -> Status:
        status = administer(command, *allowed)
        threads[0].join(0.05)
        sent.append(None)
        return status

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device.transport, "submit", submits)
        patch.setattr(device, "reset", resets)
        patch.setattr(device, "administer", administers)
        device.listen(lambda message: sent.append(rig.one.submit(c.Unpin(PinId(0, 0))).opcode))
        rig.one.submit(c.Lookup(0, [1]))
        device.bind(rig.one.ring, 0)
        threads[0].join()
        last = len(sent) - 1 - sent[::-1].index(None)
        assert {Opcode.LOOKUP, Opcode.UNPIN} <= {*sent}, "both had something to send"
    return {opcode for opcode in sent[:last] if opcode is not None}


def test_nothing_else_is_sent_while_a_ring_is_bound(rig: Rig) -> None:
    store(rig.one, 1)
    assert sent_before_bound(rig) == {Opcode.BIND}


# What is counted.


def test_statistics_tell_bytes_and_latencies(rig: Rig) -> None:
    handle = store(rig.one, 1, DATA)
    rig.one.get(handle, length=600)
    rig.one.run(c.Write(handle, 0, DATA))
    statistics = rig.device.statistics
    assert (statistics.bytes_written, statistics.bytes_read) == (600, 600)
    assert statistics.completed[Opcode.WRITE, Status.WRITE_ONCE] == 1
    if rig.device.transport.clock is None:
        assert statistics.latency == statistics.longest == {}
    else:
        assert statistics.latency.keys() == {opcode for opcode, _ in statistics.completed}
        assert 0 < statistics.longest[Opcode.WRITE] < statistics.latency[Opcode.WRITE]


# What these tests can find.


def test_a_put_that_forgets_to_abort_is_found(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    careless = mutate(steps._put_commands, "    except GivenUp:", "    except ZeroDivisionError:")
    monkeypatch.setattr(steps, "_put_commands", careless)
    assert asyncio.run(cancelled_put(rig)) is Status.PENDING


@pytest.mark.one_slice
@pytest.mark.parametrize(("gift", "left"), [("pins", (1, 0, 0)), ("a session", (0, 1, 0)), ("a grant", (0, 0, 1))])
def test_a_call_that_returns_nothing_is_found(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, gift: str, left: tuple[int, ...]
) -> None:
    monkeypatch.setattr(steps, "given_back", lambda opcode, completion: [])
    store(rig.one, 1)
    assert asyncio.run(cancelled_gifts(rig, gift, answered=False)) == left


@pytest.mark.parametrize(
    ("good", "bad", "found"),
    [("self._lock, self._hushed()", "self._hushed()", Opcode.LOOKUP), (", self._hushed()", "", Opcode.UNPIN)],
)
def test_a_bind_that_others_come_between_is_found(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, good: str, bad: str, found: Opcode
) -> None:
    monkeypatch.setattr(Device, "bind", mutate(Device.bind, good, bad))
    store(rig.one, 1)
    assert found in sent_before_bound(rig)


def test_a_pump_that_completes_nothing_is_found(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        aio, "Pump", mutate(aio.Pump, "future.set_result(ticket.completion)", "still.append((ticket, future))")
    )

    async def look() -> None:
        with pytest.raises(DeviceError):
            await client(rig).lookup(0, [1])

    run(look())
