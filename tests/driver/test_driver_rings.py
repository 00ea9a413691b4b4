"""Rings: of any size, full ones, and those that somebody has left behind."""

from typing import Any

import pytest
from driverbench import PARAMS, SEGMENT, store
from ringbench import DATA, Ringed

from hw.params import InputError
from hw.params import commands as c
from hw.params.commands import Binding, Message
from hw.params.protocol import LookupMode, RingId, Status
from hw.tb.mutate import mutate
from sw.driver import Client, Device, DeviceError
from sw.driver.client import as_bytes, crc32c
from sw.driver.transport import MmioTransport, flights, mmio, rings
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.loopback import bus as loopback
from sw.driver.transport.loopback.requester import Requester
from sw.driver.transport.mmio import RingFailed

# Room.


def test_what_finds_a_ring_full_waits_and_is_not_lost(ringed: Ringed) -> None:
    for key in range(4):
        store(ringed.one, key, bytes([key]) * 600)
    before = ringed.device.completed.total()
    looks = [ringed.one.submit(c.Lookup(0, [key % 5, 9], LookupMode.BITMAP)) for key in range(50)]
    reads = [(bytearray(600), key % 4) for key in range(50)]
    handles = ringed.far.lookup(0, range(4)).handles
    tickets = [ringed.far.read(handles[key], out) for out, key in reads]  # type: ignore[arg-type]
    ringed.settle()
    assert [ticket.completion.count for ticket in looks if ticket.completion] == [1, 1, 1, 1, 0] * 10
    assert {ticket.completion.status for ticket in tickets if ticket.completion} == {Status.OK}
    assert all(out == bytes([key]) * 600 for out, key in reads)
    assert ringed.device.completed.total() - before == 101


@pytest.mark.parametrize("entries", [2, 4, 64])
@pytest.mark.parametrize("page_bytes", [None, SEGMENT, 2 * SEGMENT])
def test_rings_and_pages_of_any_size(entries: int, page_bytes: int | None) -> None:
    ringed = Ringed(entries=entries, page_bytes=page_bytes, interrupts=entries != 4)
    for length in (1, 511, 512, 513, 1024, 1300, 4096):
        data = (DATA * 5)[:length]
        ringed.one.drop(0, 1)
        handle = store(ringed.one, 1, data)
        around = bytearray(b"\xaa" * (length + 128))
        ringed.far.get(handle, memoryview(around)[64 : 64 + length])
        assert around == b"\xaa" * 64 + data + b"\xaa" * 64
        whole = ringed.far.run(c.Read(handle, 0, PARAMS.segments(length)))
        assert (whole.length, bytes(whole.data)) == (length, data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entries": 3}, "entries = 3, expected a power of two from 2 to 32768"),
        ({"entries": 1 << 16}, "entries = 65536, expected a power of two from 2 to 32768"),
        ({"entries": 4.0}, "entries = 4.0, expected a power of two from 2 to 32768"),
        ({"page_bytes": 256}, "page_bytes = 256, expected a power of two from 512 to 2147483648"),
        ({"page_bytes": 1000}, "page_bytes = 1000, expected a power of two from 512 to 2147483648"),
    ],
)
def test_sizes_that_there_are_none_of_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Ringed(**options)
    assert str(caught.value) == message


def test_a_buffer_that_cannot_be_mapped_is_refused_and_nothing_is_sent(
    ringed: Ringed, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, honest, mapped = store(ringed.one, 1, DATA), ringed.bus.map, ringed.mapped()

    def refuse(port: int, view: memoryview, *, writable: bool) -> int:
        raise InputError("memory cannot be mapped")

    monkeypatch.setattr(ringed.bus, "map", refuse)
    with pytest.raises(InputError, match="cannot be mapped"):
        ringed.one.get(handle, length=1000)
    monkeypatch.setattr(ringed.bus, "map", honest)
    assert ringed.mapped() == mapped
    assert bytes(ringed.one.get(handle, length=1000)) == DATA


def test_a_mapping_that_fails_in_any_way_costs_no_tag(ringed: Ringed, monkeypatch: pytest.MonkeyPatch) -> None:
    handle, (first, *_) = store(ringed.one, 1, DATA), ringed.mapped()

    def refuse(port: int, view: memoryview, *, writable: bool) -> int:
        raise OSError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(ringed.bus, "map", refuse)
        freed: list[int] = []
        patch.setattr(ringed.device._tags[ringed.one.ring], "free", freed.append)
        with pytest.raises(OSError, match="out of memory"):
            ringed.one.get(handle, length=1000)
        assert len(freed) == 1
    assert ringed.mapped()[0] == first and bytes(ringed.one.get(handle, length=1000)) == DATA


# A client was killed.


def leave(ringed: Ringed, how: str) -> None:
    """What somebody leaves behind."""
    ringed.one.lookup(0, [1], pin=True)
    ringed.one.open()
    if how == "commands in flight":
        for client in (ringed.one, ringed.two, ringed.far):
            for _ in range(9):
                client.submit(c.Lookup(0, [1], pin=True))
        ringed.bus.wait()
    elif how == "failed ring":
        ringed.device.transport._units[0].write("RING0_TAIL", 4)  # type: ignore[attr-defined]
    elif how == "messages":
        for key in range(2, 5):
            ringed.one.submit(c.Drop(0, key))
            ringed.bus.wait()


@pytest.mark.parametrize("how", ["idle", "commands in flight", "failed ring", "messages"])
def test_a_device_that_a_killed_client_has_left_comes_back(how: str) -> None:
    ringed = Ringed(entries=4)
    handle = store(ringed.one, 1, DATA)
    leave(ringed, how)
    again = Device(MmioTransport(PARAMS, ringed.bus, entries=8))
    again.bind(ringed.one.ring, 0)
    assert again.counters()["pins_used"] == 0
    assert again.counters()["sessions_used"] == 0
    assert bytes(Client(again, ringed.one.ring).get(handle, length=1000)) == DATA


def test_a_device_that_stays_in_use_is_told() -> None:
    ringed = Ringed(entries=4)
    mapped = ringed.mapped()
    ringed.one.submit(c.Lookup(0, [1]))
    ringed.bus.requesters[0].fetch()
    ringed.bus.deaf = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mmio, "CYCLES", 5000)
        with pytest.raises(DeviceError, match=r"RingId\(port=0, ring=0\) stays in use after it was disabled"):
            MmioTransport(PARAMS, ringed.bus)
    assert ringed.mapped() == mapped


@pytest.mark.parametrize("name", ["ID", "VERSION", "CAP_RINGS", "CAP_MEMORY", "CAP_COMMANDS"])
def test_a_requester_that_is_not_as_expected_ends_discovery(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    bus = LoopbackBus(PARAMS)
    honest, offset = bus.read, bus._maps[2][name].offset
    monkeypatch.setattr(bus, "read", lambda unit, at: honest(unit, at) ^ int((unit, at) == (2, offset)))
    with pytest.raises(DeviceError, match=f"register {name} of port 1 reads 0x.*, expected 0x"):
        MmioTransport(PARAMS, bus)


def test_a_closed_transport_leaves_its_rings_out_of_service(ringed: Ringed) -> None:
    ringed.one.lookup(0, [1])
    ringed.device.close()
    ringed.bus.wait()
    for port in range(2):
        for index in range(2):
            assert ringed.bus.requesters[port].registers.get(f"RING{index}_STATUS.active") == 0


def test_a_ring_that_is_enabled_too_early_starts_when_it_is_inactive() -> None:
    ringed = Ringed(entries=4)
    unit = ringed.device.transport._units[0]  # type: ignore[attr-defined]
    ringed.one.submit(c.Lookup(0, [1]))
    ringed.bus.requesters[0].fetch()
    for enable in (0, 1):
        unit.write("RING0_CONTROL", enable)
    assert (unit.get("RING0_STATUS.outstanding"), unit.read("RING0_TAIL")) == (1, 1)
    ringed.bus.wait()
    assert unit.happened(["inactive"]) == {"inactive"}
    assert (unit.get("RING0_STATUS.active"), unit.get("RING0_STATUS.outstanding"), unit.read("RING0_TAIL")) == (1, 0, 0)


# What these tests can find.


def story(ringed: Ringed) -> None:
    """Rounds of a small ring, with data, losses and messages."""
    for turn in range(8):
        handle = store(ringed.one, turn % 3, (DATA * 2)[: 900 + turn])
        out = bytearray(900 + turn)
        assert ringed.far.get(handle, out) == (DATA * 2)[: 900 + turn]
        looks = [ringed.one.submit(c.Lookup(0, [turn % 3, 9], LookupMode.BITMAP, True)) for _ in range(3)]
        found = [ringed.device.wait(look) for look in looks]
        assert all(each.statuses == [Status.HIT, Status.MISS] and each.handles == [handle, None] for each in found)
        pins = [pin for each in found for pin in each.pins if pin is not None]
        assert [ringed.one.unpin(pin) for pin in pins] == [Status.OK] * 3
        assert ringed.far.drop(0, turn % 3) is Status.OK
        ringed.device.reset(ringed.one.ring)
        ringed.device.bind(ringed.one.ring, Binding.NONE if turn == 3 else 0)
        ringed.device.bind(ringed.one.ring, 0)


def test_the_story_of_the_mutants_is_true() -> None:
    ringed = Ringed(entries=4, page_bytes=SEGMENT)
    mapped = ringed.mapped()
    story(ringed)
    assert ringed.mapped() == mapped and not any(isinstance(message, RingFailed) for message in ringed.heard)


MUTANTS: dict[str, tuple[Any, str, Any, str, str]] = {
    "phase never changes": (rings, "QueuePair", rings.QueuePair, "% 2 == 0", "% 2 < 2"),
    "head is not told": (
        rings,
        "QueuePair",
        rings.QueuePair,
        'self.name + "HEAD", self._head',
        'self.name + "HEAD", 0',
    ),
    "a slot is free too early": (
        rings,
        "QueuePair",
        rings.QueuePair,
        "        return self._free.pop()",
        "        return self._free[-1]",
    ),
    "buffers stay mapped": (flights, "Flights", flights.Flights, "in flight.mapped:", "in flight.mapped[1:]:"),
    "pages in another order": (
        flights,
        "Flights",
        flights.Flights,
        'np.array(flight.mapped, "<u8")',
        'np.array(flight.mapped[::-1], "<u8")',
    ),
    "the device tells no length": (loopback, "Requester", Requester, 'outcome["slot"] = completion.length', "pass"),
    "the device changes no phase": (
        loopback,
        "Requester",
        Requester,
        "PHASE * (queue.written // entries % 2 == 0)",
        "PHASE",
    ),
    "the device loses the count of keys": (
        loopback,
        "Requester",
        Requester,
        'outcome["items"] =',
        'outcome["count"] =',
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_story_of_rings_finds_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module, known, target, good, bad = MUTANTS[name]
    mutant = mutate(target, good, bad)
    for place in (module, mmio):
        if hasattr(place, known):
            monkeypatch.setattr(place, known, mutant)
    with pytest.raises((AssertionError, DeviceError, KeyError, InputError)):
        ringed = Ringed(entries=4, page_bytes=SEGMENT)
        ringed.device.transport.set_timeout(20_000)
        mapped = ringed.mapped()
        story(ringed)
        assert ringed.mapped() == mapped


def test_listeners_hear_the_transport_itself(ringed: Ringed) -> None:
    heard: list[Message] = []
    ringed.device.listen(heard.append)
    ringed.device.transport._units[0].write("RING1_TAIL", 9)  # type: ignore[attr-defined]
    ringed.settle()
    assert [message.ring for message in heard if isinstance(message, RingFailed)] == [RingId(0, 1)]
    handle = ringed.one.run(c.Alloc(0, 1, 1000, ringed.one.open())).handle
    assert handle is not None
    ringed.one.run(c.Write(handle, 0, DATA))
    assert ringed.one.run(c.Seal(handle, 1000, crc32c(as_bytes(DATA)))).status is Status.OK
