"""Rings: full ones, failed ones, those that nobody answers or that somebody has left behind."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from driverbench import PARAMS, SEGMENT, Rig, store

from hw.params import InputError
from hw.params import commands as c
from hw.params.commands import Binding, Message
from hw.params.protocol import LookupMode, RingId, Status
from hw.params.records import COMPLETION, EVENT, Record
from hw.tb.mutate import mutate
from sw.driver import Client, CommandFailed, Device, DeviceError, RegisterError
from sw.driver.client import as_bytes, crc32c
from sw.driver.transport import MmioTransport, flights, mmio, rings
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.loopback import bus as loopback
from sw.driver.transport.loopback.requester import Requester
from sw.driver.transport.mmio import MessagesLost, RingFailed

DATA = bytes(range(250)) * 4

plain = Record.pack


class Ringed(Rig):
    """A device whose bus can be looked into. In the end nothing is mapped but rings."""

    def __init__(self, bus: LoopbackBus | None = None, **options: Any) -> None:
        self.bus = LoopbackBus(PARAMS) if bus is None else bus
        super().__init__(Device(MmioTransport(PARAMS, self.bus, **options)))

    def memory(self, client: Client) -> list[int]:
        """Addresses of the queue pair of a client's ring: descriptors, completions, keys of the first slot, results."""
        pair = self.device.transport._lanes[client.ring].pair  # type: ignore[attr-defined]
        return [pair.memory.address, pair.memory.address + pair._completions, pair.keys(0)[0], pair.results(0)[0]]

    def mapped(self) -> list[int]:
        """How many mappings each port has."""
        return [requester.memory.mapped for requester in self.bus.requesters]

    def failures(self) -> list[RingFailed]:
        """What listeners have heard of failed rings."""
        return [message for message in self.heard if isinstance(message, RingFailed)]


@pytest.fixture
def ringed() -> Iterator[Ringed]:
    ringed = Ringed(entries=4)
    mapped = ringed.mapped()
    yield ringed
    ringed.settle()
    assert ringed.mapped() == mapped


def breaks(ringed: Ringed, client: Client, address: int) -> None:
    """Memory fails at an address of the client's port."""
    ringed.bus.requesters[client.ring.port].memory.broken.add(address)


def mend(ringed: Ringed) -> None:
    """Memory is good again."""
    for requester in ringed.bus.requesters:
        requester.memory.broken.clear()


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


@pytest.mark.parametrize("register", ["RING0_TAIL", "RING0_HEAD", "RING0_CONTROL"])
def test_a_doorbell_that_is_refused_fails_its_ring_and_nobody_else(
    ringed: Ringed, monkeypatch: pytest.MonkeyPatch, register: str
) -> None:
    handle, honest = store(ringed.one, 1, DATA), ringed.bus.write
    refused = {ringed.bus._maps[1][name].offset for name in (register, "RING0_CONTROL")}

    def write(unit: int, offset: int, value: int) -> None:
        if unit == 1 and offset in refused:
            raise RegisterError("the link is down")
        honest(unit, offset, value)

    with monkeypatch.context() as patch:
        patch.setattr(ringed.bus, "write", write)
        tickets = [ringed.one.read(handle, bytearray(1000)) for _ in range(6)]
        if register == "RING0_CONTROL":
            ringed.device.reset(ringed.one.ring)
        statuses = [ringed.device.wait(ticket).status for ticket in tickets]
        assert statuses[-1] is Status.UNAVAILABLE and ({*statuses} == {Status.UNAVAILABLE}) == (
            register != "RING0_HEAD"
        )
        assert bytes(ringed.far.get(handle, length=1000)) == DATA, "others go on"
        with pytest.raises(CommandFailed, match="UNAVAILABLE"):
            ringed.device.bind(ringed.one.ring, 0)
    (failed,) = ringed.failures()
    assert failed.ring == ringed.one.ring and failed.why.endswith("was refused: the link is down")
    ringed.device.bind(ringed.one.ring, 0)
    assert bytes(ringed.one.get(handle, length=1000)) == DATA


# Memory that fails.

FAILING: dict[str, Callable[[Ringed], int]] = {
    "descriptor": lambda ringed: ringed.memory(ringed.one)[0],
    "completion": lambda ringed: ringed.memory(ringed.one)[1],
    "results": lambda ringed: ringed.memory(ringed.one)[3],
}


@pytest.mark.parametrize("what", FAILING)
def test_a_ring_whose_memory_fails_ends_its_commands_and_comes_back_with_bind(ringed: Ringed, what: str) -> None:
    handle = store(ringed.one, 1, DATA)
    ringed.device.reset(ringed.one.ring)
    ringed.device.bind(ringed.one.ring, 0)
    for address in range(FAILING[what](ringed), FAILING[what](ringed) + 4 * 64, 32):
        breaks(ringed, ringed.one, address)
    if what == "results":
        for slot in range(4):
            breaks(ringed, ringed.one, ringed.memory(ringed.one)[3] + slot * (128 + 256))
    tickets = [ringed.one.submit(c.Lookup(0, [1])) for _ in range(6)]
    assert {ringed.device.wait(ticket).status for ticket in tickets} == {Status.UNAVAILABLE}
    (failed,) = ringed.failures()
    assert (failed.ring, failed.port) == (ringed.one.ring, 0) and "memory has failed" in failed.why
    assert ringed.one.lookup(0, [1]).status is Status.UNAVAILABLE, "and until it is bound"
    assert bytes(ringed.far.get(handle, length=1000)) == DATA, "others go on"
    mend(ringed)
    ringed.device.bind(ringed.one.ring, 0)
    assert bytes(ringed.one.get(handle, length=1000)) == DATA


def test_a_doorbell_beyond_the_ring_fails_it(ringed: Ringed) -> None:
    unit = ringed.device.transport._units[0]  # type: ignore[attr-defined]
    waiting = ringed.one.submit(c.Lookup(0, [1]))
    unit.write("RING0_TAIL", 4)
    assert ringed.device.wait(waiting).status is Status.UNAVAILABLE
    assert [failed.ring for failed in ringed.failures()] == [ringed.one.ring]
    ringed.device.bind(ringed.one.ring, 0)
    store(ringed.one, 1)


@pytest.mark.parametrize("wrong", [{"status": 99}, {"tag": 3}, {"items": 9}, {"result": 77}])
def test_a_completion_that_is_none_fails_its_ring(
    ringed: Ringed, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, int]
) -> None:
    handle, honest = store(ringed.one, 1, DATA), COMPLETION.pack

    def pack(self: Record, **values: int) -> bytes:
        is_result = values.get("tag") is None
        if "result" in wrong:
            return honest(**values | {"status": wrong["result"]} if is_result else values)
        return honest(**values if is_result else values | wrong)

    with monkeypatch.context() as patch:
        patch.setattr(Record, "pack", lambda self, **values: (pack if self is COMPLETION else plain)(self, **values))
        assert ringed.one.lookup(0, [1]).status is Status.UNAVAILABLE
    assert [failed.why for failed in ringed.failures()] == ["the device has written a completion that is none"]
    ringed.device.bind(ringed.one.ring, 0)
    assert bytes(ringed.one.get(handle, length=1000)) == DATA


@pytest.mark.parametrize("wrong", [{"kind": 9}, {"fate": 9}])
def test_a_message_that_is_none_counts_as_lost(
    ringed: Ringed, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, int]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Record, "pack", lambda self, **values: plain(self, **values | (wrong if self is EVENT else {})))
        store(ringed.one, 1)
    assert ringed.heard == [MessagesLost(0), MessagesLost(1)]


@pytest.mark.parametrize("kind", ["write", "read", "keys"])
def test_data_that_memory_refuses_ends_its_command_invalid(ringed: Ringed, kind: str) -> None:
    handle, session = store(ringed.one, 1, DATA), ringed.one.open()
    ringed.bus.requesters[0].memory.broken.add(ringed.bus.requesters[0].memory._next)
    if kind == "keys":
        mend(ringed)
        for slot in range(4):
            breaks(ringed, ringed.one, ringed.memory(ringed.one)[2] + slot * (128 + 256))
        assert ringed.one.lookup(0, [1]).status is Status.INVALID
    elif kind == "write":
        assert ringed.one.put(session, 0, 2, DATA).status is Status.INVALID
    else:
        assert ringed.one.run(c.Read(handle, 0, 2)).status is Status.INVALID
    mend(ringed)
    assert ringed.one.lookup(0, [2]).status is Status.MISS
    assert bytes(ringed.one.get(handle, length=1000)) == DATA
    assert ringed.failures() == []


# Messages.


def test_messages_that_find_no_room_are_lost_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmio, "EVENTS", 2)
    ringed = Ringed()
    for key in range(4):
        store(ringed.one, key)
    ringed.heard.clear()
    for key in range(4):
        ringed.one.submit(c.Drop(0, key))
    for _ in range(20):
        ringed.bus.wait()
    ringed.settle()
    store(ringed.one, 7)
    told = [message for message in ringed.heard if message.port == 0]
    assert [type(message).__name__ for message in told] == ["Event", "MessagesLost", "Event"]


def test_an_event_ring_that_fails_loses_messages_and_comes_back(ringed: Ringed) -> None:
    ring = ringed.device.transport._events[0]  # type: ignore[attr-defined]
    for at in range(0, 64 * 64, 64):
        breaks(ringed, ringed.one, ring.memory.address + at)
    store(ringed.one, 1)
    assert MessagesLost(0) in ringed.heard
    mend(ringed)
    ringed.heard.clear()
    ringed.settle()
    store(ringed.one, 2)
    assert MessagesLost(1) not in ringed.heard
    assert {type(message).__name__ for message in ringed.heard if message.port == 0} >= {"Event"}


# Nobody answers.


def test_commands_that_nobody_answers_end_unavailable_and_come_back_to_nobody(ringed: Ringed) -> None:
    handle = store(ringed.one, 1, DATA)
    ringed.device.transport.set_timeout(5000)
    ringed.bus.deaf = True
    out = bytearray(b"\xaa" * 1000)
    tickets = [ringed.one.read(handle, out), *(ringed.one.submit(c.Lookup(0, [1])) for _ in range(9))]
    assert {ringed.device.wait(ticket).status for ticket in tickets} == {Status.UNAVAILABLE}
    (failed,) = ringed.failures()
    assert failed.why == "READ had no answer in 5,000 cycles"
    assert ringed.one.lookup(0, [1]).status is Status.UNAVAILABLE
    ringed.bus.deaf = False
    ringed.settle()
    assert out == b"\xaa" * 1000, "what comes late reaches nobody"
    ringed.device.bind(ringed.one.ring, 0)
    assert bytes(ringed.one.get(handle, length=1000)) == DATA


def hangs(ringed: Ringed, how: str) -> set[Status]:
    """How the commands of a ring that hangs have ended, after another was busy for a while."""
    store(ringed.one, 1)
    ringed.device.transport.set_timeout(5000 if how == "late" else 1e9)
    requester, answer = ringed.bus.requesters[0], ringed.bus.requesters[0].answer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requester, "answer", lambda end: None if end.ring == ringed.one.ring else answer(end))
        tickets = [ringed.one.submit(c.Lookup(0, [1])) for _ in range(6)]
        if how == "failed":
            ringed.device.transport._units[0].write("RING0_TAIL", 4)  # type: ignore[attr-defined]
        for _ in range(2 * mmio.LOOK):
            busy = ringed.two.submit(c.Lookup(0, [1]))
            ringed.bus.wait()
            ringed.bus.wait()
            assert ringed.device.step() and busy.completion is not None, "it never has to wait"
    return {ticket.completion.status for ticket in tickets if ticket.completion is not None}


@pytest.mark.parametrize("how", ["late", "failed"])
def test_a_ring_that_hangs_ends_while_another_is_busy(ringed: Ringed, how: str) -> None:
    assert hangs(ringed, how) == {Status.UNAVAILABLE}
    assert [failed.ring for failed in ringed.failures()] == [ringed.one.ring]


@pytest.mark.parametrize(
    ("how", "good"), [("late", "        self._end_late()"), ("failed", "            self._look()")]
)
def test_a_transport_that_looks_when_nothing_comes_only_is_found(
    ringed: Ringed, monkeypatch: pytest.MonkeyPatch, how: str, good: str
) -> None:
    bad = "    " * good.count("    ") + "pass"
    monkeypatch.setattr(MmioTransport, "step", mutate(MmioTransport.step, good[4:], bad[4:]))
    assert hangs(ringed, how) == set()
    ringed.bus.requesters[0]._contexts.clear()
    ringed.device.close()


def test_a_ring_that_the_device_never_lets_go_stays_out_of_service(ringed: Ringed) -> None:
    store(ringed.one, 1, DATA)
    transport = ringed.device.transport
    transport.set_timeout(5000)
    ticket = ringed.one.submit(c.Lookup(0, [1]))
    ringed.bus.requesters[0].fetch()
    ringed.bus.deaf = True
    assert ringed.device.wait(ticket).status is Status.UNAVAILABLE
    ringed.device.reset(ringed.one.ring)
    assert ringed.one.lookup(0, [1]).status is Status.UNAVAILABLE
    ringed.bus.deaf = False
    ringed.device.bind(ringed.one.ring, 0)
    assert ringed.one.lookup(0, [1]).status is Status.HIT


def test_a_ring_that_the_device_never_lets_go_cannot_be_bound(ringed: Ringed) -> None:
    handle = store(ringed.one, 1, DATA)
    ringed.device.transport.set_timeout(5000)
    ticket = ringed.one.submit(c.Lookup(0, [1]))
    ringed.bus.requesters[0].fetch()
    ringed.bus.deaf = True
    assert ringed.device.wait(ticket).status is Status.UNAVAILABLE
    for to in (0, Binding.NONE):
        with pytest.raises(CommandFailed, match="UNAVAILABLE"):
            ringed.device.bind(ringed.one.ring, to)
    ringed.bus.deaf = False
    assert ringed.one.lookup(0, [1]).status is Status.UNAVAILABLE, "nothing was bound that could be used"
    ringed.device.bind(ringed.one.ring, 0)
    assert bytes(ringed.one.get(handle, length=1000)) == DATA


def test_a_loss_that_nobody_answers_ends_in_time(ringed: Ringed) -> None:
    ringed.device.transport.set_timeout(5000)
    ticket = ringed.one.submit(c.Lookup(0, [1]))
    ringed.bus.deaf = True
    ringed.device.lose_port(0)
    assert ringed.device.wait(ticket).status is Status.UNAVAILABLE
    ringed.bus.deaf = False
    ringed.device.bind(ringed.one.ring, 0)


def test_a_ring_is_bound_only_when_the_node_knows_of_its_loss(ringed: Ringed) -> None:
    store(ringed.one, 1)
    registers, honest = ringed.bus.requesters[0].registers, ringed.bus.wait
    registers.set("RING0_STATUS.losing", 1)
    waits = iter(range(3))

    def wait() -> bool:
        if next(waits, None) is None:
            registers.set("RING0_STATUS.losing", 0)
        return honest()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ringed.bus, "wait", wait)
        ringed.device.reset(ringed.one.ring)
    assert registers.get("RING0_STATUS.losing") == 0 and ringed.failures() == []
    registers.set("RING0_STATUS.losing", 1)
    ringed.device.transport.set_timeout(5000)
    ringed.device.reset(ringed.one.ring)
    ringed.settle()
    assert [failed.why for failed in ringed.failures()] == ["its loss does not reach the node"]
    assert ringed.one.lookup(0, [1]).status is Status.UNAVAILABLE
    registers.set("RING0_STATUS.losing", 0)
    ringed.device.bind(ringed.one.ring, 0)
    assert ringed.one.lookup(0, [1]).status is Status.HIT


def test_whoever_follows_the_device_is_told_which_command_is_in_which_slot(ringed: Ringed) -> None:
    told: list[tuple[int | None, RingId, int, int]] = []
    ringed.device.transport.filled = lambda *each: told.append(each)  # type: ignore[attr-defined]
    for _ in range(9):
        ringed.one.lookup(0, [1])
    assert {ring for _, ring, _, _ in told} == {ringed.one.ring} and len({tag for *_, tag in told}) == 9
    assert {slot for _, _, slot, _ in told} <= set(range(4))
    assert [cycle for cycle, *_ in told] == sorted({cycle for cycle, *_ in told if cycle is not None})


def test_a_device_restarted_with_commands_in_flight_that_it_never_answers_is_in_service_again(ringed: Ringed) -> None:
    ringed.device.transport.set_timeout(5000)
    tickets = [client.submit(c.Lookup(0, [1])) for client in (ringed.one, ringed.far) for _ in range(6)]
    ringed.bus.deaf = True
    ringed.device.start()
    assert {ringed.device.wait(ticket).status for ticket in tickets} == {Status.UNAVAILABLE}
    ringed.bus.deaf = False
    ringed.configure()
    store(ringed.one, 1)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_a_time(ringed: Ringed, timeout: float) -> None:
    with pytest.raises(InputError, match="expected more than 0 cycles or seconds"):
        ringed.device.transport.set_timeout(timeout)


def test_without_a_clock_a_timeout_is_in_seconds(ringed: Ringed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopbackBus, "cycle", None)
    ringed.device.transport.set_timeout(0.001)
    ringed.bus.deaf = True
    assert ringed.one.lookup(0, [1]).status is Status.UNAVAILABLE
    assert ringed.failures()[0].why == "LOOKUP had no answer in 0.001 seconds"


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
    assert again.transport.counters()["pins_used"] == 0
    assert again.transport.counters()["sessions_used"] == 0
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
