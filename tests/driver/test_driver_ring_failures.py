"""Rings that fail, or that nobody answers: their commands end, others go on, and they come back."""

from collections.abc import Callable

import pytest
from driverbench import store
from ringbench import DATA, Ringed

from hw.params import InputError
from hw.params import commands as c
from hw.params.commands import Binding
from hw.params.protocol import RingId, Status
from hw.params.records import COMPLETION, EVENT, Record
from hw.tb.mutate import mutate
from sw.driver import Client, CommandFailed, RegisterError
from sw.driver.transport import MmioTransport, mmio
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.mmio import MessagesLost

plain = Record.pack


def breaks(ringed: Ringed, client: Client, address: int) -> None:
    """Memory fails at an address of the client's port."""
    ringed.bus.requesters[client.ring.port].memory.broken.add(address)


def mend(ringed: Ringed) -> None:
    """Memory is good again."""
    for requester in ringed.bus.requesters:
        requester.memory.broken.clear()


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
