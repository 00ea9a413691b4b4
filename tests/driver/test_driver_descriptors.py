"""What requesters do with descriptors that no driver writes, and with rings out of service: the same on every bus."""

from collections.abc import Iterator

import numpy as np
import pytest
from driverbench import BUSES, FRAME, PARAMS, SEGMENT, Rig, store

from hw.params import commands as c
from hw.params.commands import Event
from hw.params.protocol import KEY_BYTES, REGISTERS, Opcode, PinId, Status
from hw.params.records import ALIGNMENT, COMPLETION, DESCRIPTOR, GIVEN, PIN, SCATTERED
from hw.tb.mutate import mutate
from sw.driver import Device
from sw.driver.transport import MessagesLost, MmioTransport
from sw.driver.transport.loopback import bus as loopback
from sw.driver.transport.loopback.requester import Requester

PAGE = 4096
KEYS = 8


class Raw(Rig):
    """A device whose first ring is written by hand; ``data`` is where the descriptors' memory is, a page."""

    def __init__(self, name: str) -> None:
        self.bus = BUSES[name](PARAMS, 0)
        self.transport = MmioTransport(PARAMS, self.bus, interrupts=False)
        super().__init__(Device(self.transport))
        self.pair = self.transport._lanes[self.one.ring].pair
        self.view = np.zeros(PAGE, np.uint8).data
        self.data = self.bus.map(0, self.view, writable=True)

    def ended(self, **fields: int) -> dict[str, int]:
        """The completion of a descriptor."""
        slot = self.pair.take()
        self.pair.push(slot, DESCRIPTOR.pack(**fields, tag=slot))
        while not (found := [*self.pair.pull()]):
            self.bus.wait()
        return found[0]

    def seen(self) -> int:
        """How many commands the node has ended."""
        return sum(count for name, count in self.counters().items() if name.startswith("status_"))

    def refused(self) -> int:
        """How many commands the requester has refused."""
        return self.transport._units[0].read("COUNT_REFUSED")


@pytest.fixture(params=BUSES)
def raw(request: pytest.FixtureRequest) -> Iterator[Raw]:
    raw = Raw(request.param)
    yield raw
    raw.device.close()


BAD: dict[str, tuple[Opcode, dict[str, int], Status, bool]] = {
    "keys that are not aligned": (Opcode.LOOKUP, {"count": 1, "data": 64}, Status.INVALID, True),
    "results that are not aligned": (Opcode.LOOKUP, {"count": 1, "results": 32}, Status.INVALID, True),
    "too many keys": (Opcode.LOOKUP, {"count": KEYS + 1}, Status.INVALID, True),
    "no keys": (Opcode.LOOKUP, {"count": 0}, Status.INVALID, False),
    "data of a WRITE that is not aligned": (Opcode.WRITE, {"length": 1, "data": SEGMENT // 2}, Status.INVALID, True),
    "a WRITE longer than any frame": (Opcode.WRITE, {"length": FRAME + 1}, Status.RANGE, True),
    "a WRITE too long, and not aligned": (Opcode.WRITE, {"length": FRAME + 1, "data": 1}, Status.INVALID, True),
    "a WRITE of nothing": (Opcode.WRITE, {"length": 0}, Status.INVALID, False),
    "data of a READ that is not aligned": (Opcode.READ, {"count": 1, "data": SEGMENT // 2}, Status.INVALID, True),
    "pages that are too small": (Opcode.READ, {"count": 1, "flags": SCATTERED, "page_shift": 8}, Status.INVALID, True),
    "pages that are too large": (Opcode.READ, {"count": 1, "flags": SCATTERED, "page_shift": 32}, Status.INVALID, True),
    "a list that is not aligned": (
        Opcode.WRITE,
        {"length": 1, "flags": SCATTERED, "page_shift": 12, "data": 64},
        Status.INVALID,
        True,
    ),
    "a READ of nothing": (Opcode.READ, {"count": 0}, Status.INVALID, False),
}


def judged(raw: Raw) -> dict[str, tuple[Status, bool, bool]]:
    """How each descriptor of the table ends, whether the requester has refused it, and whether the node saw it."""
    handle = raw.far.run(c.Alloc(0, 9, 600, raw.far.open())).handle
    assert handle is not None
    found = {}
    for name, (opcode, fields, _, _) in BAD.items():
        refused, seen = raw.refused(), raw.seen()
        places = {place: raw.data + fields.get(place, 0) for place in ("data", "results")}
        subject = {} if opcode is Opcode.LOOKUP else {"subject": handle.pack()}
        end = raw.ended(opcode=opcode, **fields | places | subject)
        assert (end["count"], end["items"]) == (0, 0)
        found[name] = Status(end["status"]), raw.refused() == refused + 1, raw.seen() != seen
    return found


def test_descriptors_that_are_wrong_end_where_that_can_be_seen(raw: Raw) -> None:
    assert judged(raw) == {name: (status, refused, not refused) for name, (_, _, status, refused) in BAD.items()}


def cut(raw: Raw, readable: int) -> tuple[Status, int, list[Status]]:
    """Status, count and results of a LOOKUP with pins, of whose keys memory gives some; each pin is there."""
    store(raw.far, 0)
    store(raw.far, 2)
    keys = b"".join(key.to_bytes(KEY_BYTES, "little") for key in range(max(readable, 1)))
    data = raw.bus.map(0, np.frombuffer(keys, np.uint8).data, writable=False) + (0 if readable else ALIGNMENT)
    end = raw.ended(opcode=Opcode.LOOKUP, count=KEYS, data=data, results=raw.data, flags=PIN)
    size = COMPLETION.size
    results = [COMPLETION.unpack(raw.view[at * size : (at + 1) * size]) for at in range(end["items"])]
    pins = [PinId.unpack(result["slot"]) for result in results if result["flags"] & GIVEN]
    assert raw.counters()["pins_used"] == len(pins) == end["count"]
    assert [raw.one.unpin(pin) for pin in pins] == [Status.OK] * len(pins)
    return Status(end["status"]), end["count"], [Status(result["status"]) for result in results]


@pytest.mark.parametrize("readable", [0, 1, 3, KEYS])
def test_a_lookup_whose_keys_memory_refuses_is_cut_before_them(raw: Raw, readable: int) -> None:
    status, count, results = cut(raw, readable)
    assert (status is Status.INVALID) == (readable < KEYS)
    assert results == [Status.HIT, Status.MISS, Status.HIT, *[Status.MISS] * KEYS][:readable]
    assert count == results.count(Status.HIT)


def appended(raw: Raw) -> int:
    """What a WRITE whose second segment memory refuses has appended, as it says."""
    handle = raw.one.run(c.Alloc(0, 9, 2 * SEGMENT, raw.one.open())).handle
    assert handle is not None
    data = raw.data + PAGE - SEGMENT
    end = raw.ended(opcode=Opcode.WRITE, length=2 * SEGMENT, data=data, subject=handle.pack())
    assert end["status"] == Status.INVALID
    assert raw.one.run(c.Write(handle, 1, b"x")).status is Status.WRITE_ONCE, "zeros are there"
    return end["count"]


def test_a_write_of_data_that_memory_refuses_says_what_it_has_appended(raw: Raw) -> None:
    assert appended(raw) == 2


# Rings out of service.


def loses_bound_ring(raw: Raw) -> Status:
    """How a command ends on a ring that was lost while it was disabled, but bound."""
    raw.pair.disable()
    while raw.pair.active or raw.pair.losing:
        raw.bus.wait()
    assert raw.device.wait(raw.device.submit(REGISTERS, c.Bind(raw.one.ring, 0))).status is Status.OK
    unit = raw.transport._units[0]
    unit.put(unit.word({raw.pair.name + "CONTROL.lose": 1}))
    while raw.pair.losing:
        raw.bus.wait()
    raw.pair.enable()
    return raw.one.drop(0, 5)


def test_a_disabled_ring_can_be_lost(raw: Raw) -> None:
    assert loses_bound_ring(raw) is Status.UNAVAILABLE


def messages_after_enable(raw: Raw) -> set[type]:
    """What port 0 hears of a block that was stored after the event ring was enabled, and another before."""
    ring = raw.transport._events[0]
    ring.disable()
    store(raw.far, 1)
    while ring.active:
        raw.bus.wait()
    ring.enable()
    raw.heard.clear()
    store(raw.far, 2)
    raw.settle()
    return {type(message) for message in raw.heard if message.port == 0}


def test_what_was_lost_before_the_event_ring_was_enabled_is_forgotten(raw: Raw) -> None:
    assert messages_after_enable(raw) == {Event}


# What these tests can find.

MUTANTS = {
    "a LOOKUP of no keys is refused": ('fields["count"] <= self', '0 < fields["count"] <= self'),
    "a WRITE of nothing is refused": (
        "if not good:",
        'if not good or (opcode == Opcode.WRITE and not fields["length"]):',
    ),
    "keys are all or none": ("return keys, True", "return b'', True"),
    "a WRITE of bad data has done nothing": ('Opcode.WRITE: ("count",)', "Opcode.WRITE: ()"),
    "a loss needs a ring in service": (
        "        self._lose(self._ring(queue))\n\n    def _stop",
        "        queue.enabled and self._lose(self._ring(queue))\n\n    def _stop",
    ),
    "a loss of messages is never forgotten": ("events.failed = self._lost = False", "events.failed = False"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_descriptors_find_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(loopback, "Requester", mutate(Requester, *MUTANTS[name]))
    wanted = {key: (status, refused, not refused) for key, (_, _, status, refused) in BAD.items()}
    found = [
        judged(Raw("loopback")) != wanted,
        cut(Raw("loopback"), 3)[2] == [],
        appended(Raw("loopback")) != 2,
        loses_bound_ring(Raw("loopback")) is not Status.UNAVAILABLE,
        MessagesLost in messages_after_enable(Raw("loopback")),
    ]
    assert found.count(True) == 1
