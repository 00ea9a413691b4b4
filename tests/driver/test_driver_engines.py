"""Blocks that are stored by the write-back buffers of requesters: on every transport, and as by plain commands."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from driverbench import FRAME, PARAMS, SEGMENT, Rig, mmio, of_two, scattered, verilator

from hw.params import InputError, Params
from hw.params import commands as c
from hw.params.protocol import ModelState, SessionId, Status
from hw.params.sections import RequesterParams
from hw.params.tasks import Flush, Put
from hw.tb.mutate import mutate
from sw.driver import AsyncClient, Device, SpecificationTransport, Transport
from sw.driver.transport import engines
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.loopback import requester as loopback
from sw.driver.transport.mmio import MmioTransport

ENGINES = of_two(replace(PARAMS, requester=RequesterParams(commands=16, slots=4)))
"""As in ``configs/engines.toml``: one system is compiled for both."""

WAYS: dict[str, Callable[[Params, int], Transport]] = {
    "specification": SpecificationTransport,
    "rings": mmio,
    "scattered": scattered,
    "rtl": verilator,
}
DATA = bytes(range(250)) * 4


@pytest.fixture(params=[*(way for way in WAYS if way != "rtl"), pytest.param("rtl", marks=pytest.mark.nightly)])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Two slices in service. In the end nothing waits or is half stored, and the frames add up."""
    rig = Rig(Device(WAYS[request.param](ENGINES, 0)))
    yield rig
    rig.settle()
    counters = rig.counters()
    frames = {name: count for name, count in counters.items() if name.startswith("frames_")}
    assert sum(frames.values()) == 2 * ENGINES.frames
    assert frames["frames_writing"] == frames["frames_draining"] == 0
    rig.device.close()


def data_of(key: int, length: int = 1000) -> bytes:
    """The bytes of a block: others for each key."""
    return bytes(key + i & 0xFF for i in range(length))


def test_a_block_that_was_put_is_read_and_put_again_exists(rig: Rig) -> None:
    lengths = (1, SEGMENT, SEGMENT + 1, FRAME)
    with rig.one.session() as session:
        for key, length in enumerate(lengths):
            put = rig.one.put(session, 0, key, data_of(key, length))
            again = rig.one.put(session, 0, key, data_of(key, length))
            assert (put.status, again.status) == (Status.GRANTED, Status.EXISTS) and put.handle == again.handle
            assert put.handle is not None
            assert bytes(rig.far.get(put.handle, length=length)) == data_of(key, length)
    assert rig.device.statistics.bytes_written == sum(lengths)


def test_more_puts_than_a_requester_takes_are_all_done_when_they_are_flushed(rig: Rig) -> None:
    many = 2 * ENGINES.requester.commands
    keys = [1 + at % 6 for at in range(many)]
    buffers = [bytearray(data_of(key)) for key in keys]
    with rig.one.session() as session:
        tickets = [rig.one.write_back(session, 0, key, its) for key, its in zip(keys, buffers, strict=True)]
        assert rig.one.flush() is Status.OK
        ends = [ticket.completion for ticket in tickets]
        assert {end.status if end else None for end in ends} <= {Status.OK, Status.EXISTS, Status.PENDING}
        assert sum(end is not None and end.status is Status.OK for end in ends) == 6
    for buffer in buffers:
        buffer[:] = bytes(len(buffer))
    with rig.one.pinned(0, range(1, 7)) as found:
        assert found.count == 6
        for key, handle in zip(range(1, 7), found.handles, strict=True):
            assert handle is not None and bytes(rig.one.get(handle, length=1000)) == data_of(key)


def test_a_flush_is_of_one_session_if_it_says_so(rig: Rig) -> None:
    with rig.one.session() as one, rig.one.session() as other:
        first = [rig.one.write_back(one, 0, key, data_of(key)) for key in (1, 2, 3)]
        second = rig.one.write_back(other, 0, 4, data_of(4))
        assert rig.one.flush(one) is Status.OK
        assert all(ticket.completion is not None for ticket in first)
        assert rig.device.wait(second).status is rig.one.flush(other) is Status.OK
        assert rig.two.flush() is Status.OK


def closed(rig: Rig, session: SessionId) -> None:
    rig.one.run(c.CloseSession(session))


def retired(rig: Rig, _: SessionId) -> None:
    rig.device.set_model(0, ModelState.RETIRED)


def read_only(rig: Rig, _: SessionId) -> None:
    rig.device.set_model(0, ModelState.READ_ONLY)


def at_quota(rig: Rig, _: SessionId) -> None:
    rig.device.set_partition(0, quota=0)


def lost(rig: Rig, _: SessionId) -> None:
    rig.device.reset(rig.one.ring)


def writing(rig: Rig, session: SessionId) -> None:
    rig.one.run(c.Alloc(0, 7, 10, session))


BEFORE = {
    closed: Status.STALE,
    retired: Status.RETIRED,
    read_only: Status.RETIRED,
    at_quota: Status.QUOTA,
    lost: Status.UNAVAILABLE,
    writing: Status.PENDING,
}


@pytest.mark.parametrize("before", BEFORE)
def test_a_put_ends_as_its_commands_would(rig: Rig, before: Callable[[Rig, SessionId], None]) -> None:
    plain = Rig(Device(SpecificationTransport(replace(ENGINES, requester=PARAMS.requester))))
    for each in (rig, plain):
        session = each.one.open()
        before(each, session)
        assert each.one.put(session, 0, 7, DATA).status is BEFORE[before]
        each.one.run(c.CloseSession(session))


def test_what_is_no_block_is_refused(rig: Rig) -> None:
    with rig.one.session() as session:
        ends = [
            rig.one.run(put).status
            for put in (Put(0, 1, b"", session), Put(0, 1 << 128, DATA, session), Put(1 << 16, 1, DATA, session))
        ]
        assert ends == [Status.INVALID] * 3
        assert rig.one.put(session, 0, 1, bytes(FRAME + 1)).status is Status.RANGE
    for wrong in (Put(0, "key", DATA, session), Flush(3)):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"^(PUT: key is str, expected int|FLUSH: session is int, expected .*)$"):
            rig.one.submit(wrong)


def test_puts_of_a_ring_that_is_lost_end_and_leave_nothing(rig: Rig) -> None:
    session = rig.one.open()
    tickets = [rig.one.write_back(session, 0, key, data_of(key)) for key in range(1, 7)]
    rig.device.reset(rig.one.ring)
    rig.settle()
    ends = [ticket.completion.status for ticket in tickets if ticket.completion is not None]
    assert len(ends) == 6 and set(ends) <= {Status.OK, Status.UNAVAILABLE, Status.STALE}
    rig.device.bind(rig.one.ring, 0)
    with rig.one.session() as again:
        assert rig.one.put(again, 0, 9, data_of(9)).stored and rig.one.flush() is Status.OK


def test_coroutines_put_and_flush(rig: Rig) -> None:
    async def several() -> list[Status]:
        client = AsyncClient(rig.device, rig.one.ring)
        async with client.session() as session:
            given_up = asyncio.create_task(client.put(session, 0, 9, DATA))
            puts = [asyncio.create_task(client.put(session, 0, key, data_of(key))) for key in (1, 2, 3)]
            await asyncio.sleep(0)
            given_up.cancel()
            flushed = await client.flush()
            return [flushed, *(put.status for put in await asyncio.gather(*puts))]

    assert asyncio.run(several()) == [Status.OK, *[Status.GRANTED] * 3]


# Without engines.


@pytest.mark.parametrize("way", ["specification", "rings"])
def test_without_a_write_back_buffer_one_line_says_so(way: str) -> None:
    rig = Rig(Device(WAYS[way](PARAMS, 0)))
    with rig.one.session() as session:
        for call in (lambda: rig.one.write_back(session, 0, 1, DATA), rig.one.flush):
            with pytest.raises(InputError, match=r"^(PUT|FLUSH): requester.slots = 0, expected .* write-back buffer$"):
                call()
        assert rig.one.run(Put(0, 1, DATA, session)).status is rig.one.run(Flush()).status is Status.INVALID
        assert rig.one.put(session, 0, 1, DATA).stored
    rig.device.close()


# Memory, and what these tests can find.


class Watched(Rig):
    """A device on rings whose bus can be looked into."""

    def __init__(self) -> None:
        self.bus = LoopbackBus(ENGINES)
        super().__init__(Device(MmioTransport(ENGINES, self.bus)))


def kept(rig: Watched) -> bool:
    """Whether the source of a PUT is mapped until its end, and no longer."""
    with rig.one.session() as session:
        rings = rig.bus.mapped
        ticket = rig.one.write_back(session, 0, 1, DATA)
        during = rig.bus.mapped
        rig.device.wait(ticket)
        return (during, rig.bus.mapped) == (rings + 1, rings)


def refused(rig: Watched) -> bool:
    """Whether a PUT of bytes that memory refuses ends INVALID, with nothing half stored."""
    with rig.one.session() as session:
        ticket = rig.one.write_back(session, 0, 1, DATA)
        memory = rig.bus.requesters[0].memory
        memory.broken.add(max(memory._regions) + SEGMENT)
        status = rig.device.wait(ticket).status
        rig.settle()
        return status is Status.INVALID and rig.counters()["frames_free"] == 2 * ENGINES.frames


def flushed(rig: Watched) -> bool:
    """Whether a FLUSH ends behind the PUTs before it."""
    with rig.one.session() as session:
        puts = [rig.one.write_back(session, 0, key, data_of(key)) for key in range(1, 5)]
        return rig.one.flush() is Status.OK and all(put.completion for put in puts)


def waited(rig: Watched) -> bool:
    """Whether PUTs that a requester has no context for wait in the driver."""
    with rig.one.session() as session:
        puts = [rig.one.write_back(session, 0, 1, DATA) for _ in range(2 * ENGINES.requester.commands)]
        return {rig.device.wait(put).status for put in puts} <= {Status.OK, Status.EXISTS, Status.PENDING}


def summed(rig: Watched) -> bool:
    """Whether SEAL has the CRC32C of the bytes."""
    with rig.one.session() as session:
        return rig.one.put(session, 0, 1, DATA).stored


STORIES = (kept, refused, flushed, waited, summed)
MUTANTS: dict[str, tuple[str, str, str]] = {
    "a failed block is not given up": ("put_commands", "yield c.Abort(granted.handle)", "pass"),
    "refused bytes are sealed": ("put_commands", "if refused else", "if False else"),
    "a FLUSH waits for nothing": ("Engines", "if other.ring == ring", "if other.ring != ring"),
    "the CRC32C is of other bytes": ("put_commands", "value(bytes(put.data))", "value(bytes(put.data[1:]))"),
}


@pytest.mark.parametrize("story", STORIES)
def test_the_story_of_the_mutants_is_true(story: Callable[[Watched], bool]) -> None:
    assert story(Watched())


@pytest.mark.parametrize("name", MUTANTS)
def test_the_stories_find_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    attribute, good, bad = MUTANTS[name]
    mutant = mutate(getattr(engines, attribute), good, bad)
    monkeypatch.setattr(engines, attribute, mutant)
    if attribute == "Engines":
        monkeypatch.setattr(loopback, "Engines", mutant)
    assert not all(story(Watched()) for story in STORIES)


def test_a_driver_that_crowds_a_requester_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MmioTransport, "_crowded", lambda *_: False)
    assert not waited(Watched())
