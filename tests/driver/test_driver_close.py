"""A closed device wakes those who wait, and is one error for everybody; what needs the device waits its turn."""

import asyncio
from collections.abc import Callable
from threading import Thread

import pytest
from driverbench import PARAMS, Rig, store

from hw.params import commands as c
from hw.params.protocol import ModelState
from hw.tb.mutate import mutate
from sw.driver import AsyncClient, Client, Device, DeviceError, SpecificationTransport
from sw.driver.gate import Gate

CLOSED = "^the device is closed, expected a new one on a new transport$"


def unwritten(rig: Rig) -> c.Read:
    """A READ that waits in the device, until its timer has run out, for a block that nobody writes."""
    handle = rig.one.run(c.Alloc(0, 8, 512, rig.one.open())).handle
    assert handle is not None
    return c.Read(handle, 0, 1, park=True)


def caught(errors: list[Exception], call: Callable[[], object]) -> Thread:
    """A thread that calls something, and what that raises."""

    def run() -> None:
        try:
            call()
        except Exception as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parks
def test_who_waits_is_woken(rig: Rig) -> None:
    read, errors = unwritten(rig), list[Exception]()
    ticket = rig.one.submit(read)

    def wait() -> None:
        rig.device.wait(ticket)
        while True:
            rig.one.run(read)

    threads = [caught(errors, wait) for _ in range(3)]
    rig.device.close()
    for thread in threads:
        thread.join()
    assert {type(error) for error in errors} == {DeviceError} and len(errors) == 3
    with pytest.raises(DeviceError, match=CLOSED):
        rig.one.run(read)


@pytest.mark.parks
def test_coroutines_that_wait_are_woken(rig: Rig) -> None:
    async def wait() -> None:
        one = AsyncClient(rig.device, rig.one.ring)
        session = await one.open()
        granted = (await one.run(c.Alloc(0, 8, 512, session))).handle
        assert granted is not None
        tasks = [asyncio.create_task(one.get(granted, length=512, park=True)) for _ in range(2)]
        await asyncio.sleep(0)
        rig.device.close()
        tasks[0].cancel()
        await asyncio.wait(tasks)
        assert tasks[0].cancelled()
        with pytest.raises(DeviceError, match=CLOSED):
            await tasks[1]

    asyncio.run(wait())


CALLS: dict[str, Callable[[Rig], object]] = {
    "lookup": lambda rig: rig.one.lookup(0, [1]),
    "submit": lambda rig: rig.one.submit(c.OpenSession()),
    "a session": lambda rig: rig.one.session().__enter__(),
    "step": lambda rig: rig.device.step(),
    "progress": lambda rig: rig.device.progress(),
    "read": lambda rig: rig.device.read("STATUS"),
    "write": lambda rig: rig.device.write("CONTROL", 2),
    "write_field": lambda rig: rig.device.write_field("EPOCH_LOW", "low", 1),
    "start": lambda rig: rig.device.start(),
    "bind": lambda rig: rig.device.bind(rig.one.ring, 0),
    "reset": lambda rig: rig.device.reset(rig.one.ring),
    "lose_port": lambda rig: rig.device.lose_port(0),
    "set_model": lambda rig: rig.device.set_model(0, ModelState.LIVE),
    "counters": lambda rig: rig.device.counters(),
    "set_timeout": lambda rig: rig.device.set_timeout(5),
    "listen": lambda rig: rig.device.listen(rig.heard.append),
    "a client with a timeout": lambda rig: Client(rig.device, rig.one.ring, timeout=5),
}


def test_every_call_after_that_is_one_error(rig: Rig) -> None:
    done = rig.one.submit(c.Lookup(0, [1]))
    rig.device.wait(done)
    assert not rig.device.closed
    for _ in range(2):
        rig.device.close()
        assert rig.device.closed
        for call in CALLS.values():
            with pytest.raises(DeviceError, match=CLOSED):
                call(rig)
    assert rig.device.wait(done) is done.completion, "what has ended can still be looked at"


def test_a_device_may_be_closed_while_threads_work(rig: Rig) -> None:
    def work(client: Client) -> None:
        key = client.ring.port * 1000
        while True:
            key += 1
            store(client, key)
            client.drop(0, key)

    errors: list[Exception] = []
    threads = [caught(errors, lambda client=client: work(client)) for client in (rig.one, rig.far)]  # type: ignore[misc]
    while len(rig.device.completed) < 8:
        pass
    rig.device.close()
    for thread in threads:
        thread.join()
    assert {type(error) for error in errors} == {DeviceError}


def test_a_listener_may_close_the_device(rig: Rig) -> None:
    rig.device.listen(lambda message: rig.device.close())
    with pytest.raises(DeviceError, match=CLOSED):
        rig.device.drop_partition(0)
        rig.device.progress()
        rig.device.progress()


LOCKED: dict[str, Callable[[Device], object]] = {
    "counters": lambda device: device.counters(),
    "set_timeout": lambda device: device.set_timeout(100_000),
    "close": lambda device: device.close(),
}


def waits_its_turn(device: Device, call: Callable[[Device], object]) -> bool:
    """Whether a call does nothing while another thread has the device."""
    with device._lock:
        thread = caught([], lambda: call(device))
        thread.join(0.2)
        waits = thread.is_alive()
    thread.join()
    return waits


@pytest.mark.parametrize("name", LOCKED)
def test_what_needs_the_device_waits_its_turn(rig: Rig, name: str) -> None:
    assert waits_its_turn(rig.device, LOCKED[name])


@pytest.mark.parametrize(("owner", "name"), [(Device, "counters"), (Device, "set_timeout"), (Gate, "shut")])
def test_what_takes_no_lock_is_found(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    monkeypatch.setattr(owner, name, mutate(getattr(owner, name), "with self._lock:", "if True:"))
    assert not waits_its_turn(Device(SpecificationTransport(PARAMS)), LOCKED["close" if owner is Gate else name])
