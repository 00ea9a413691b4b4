"""Threads that do anything at all on one device, while rings are lost: on every bus with requesters behind it."""

from typing import Any

import pytest
import stress
from driverbench import PARAMS, SEGMENT
from stress import Stress

from hw.params.protocol import Status
from hw.rtl.emit import emit
from hw.rtl.gpu import contexts, rings
from hw.rtl.system import System
from hw.tb.harness import Memory
from hw.tb.mutate import mutate
from sw.driver import Client, Device, DeviceError, steps
from sw.driver.transport import MmioTransport
from sw.driver.transport.flights import Flights
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.loopback import memory as loopback_memory
from sw.driver.transport.loopback.requester import Requester
from sw.driver.transport.rings import QueuePair
from sw.driver.transport.specified import SpecifiedSlice
from sw.driver.transport.verilator import VerilatorBus
from tests.everyday import everyday

EVERYDAY, NIGHTLY = 2_000, 100_000
"""Operations."""

USUAL = {
    *(("put", status) for status in (Status.GRANTED, Status.EXISTS, Status.STALE, Status.UNAVAILABLE)),
    *(("lookup", status) for status in (Status.OK, Status.HIT, Status.MISS, Status.UNAVAILABLE)),
    *(("get seen", status) for status in (Status.OK, Status.STALE, Status.DENIED)),
    *(("wrong", status) for status in (Status.STALE, Status.INVALID)),
    *((what, Status.OK) for what in ("get", "open", "close", "unpin")),
    ("get mismatch", Status.RANGE),
    ("open", Status.NO_SPACE),
}
"""What happens in every run that deserves the name."""

LATE = Memory(latency=40, jitter=30, reorder=True, interleave=True, answer_willing=0.7, data_willing=0.7)
SLOW = Memory(latency=40, jitter=30, data_willing=0.1)
QUICK: dict[str, Memory] = {}
BEHIND = {"memory": LATE, "host": LATE, "hbm": SLOW}
"""Memory that answers at once; late memory, with buffers that are filled long after rings could be."""

SHORT = {"entries": 8, "page_bytes": SEGMENT, "interrupts": False}


def play(stressed: Stress, operations: int) -> None:
    """So many operations, of all kinds that there are, and losses among them."""
    statuses = stressed.run(operations)
    print(*(f"{what} {status.name} {count:,}" for (what, status), count in statuses.most_common()), sep="; ")
    assert statuses.keys() >= USUAL, f"nothing was {USUAL - statuses.keys()}"
    assert stressed.lost > operations // 100
    stressed.device.close()


@pytest.mark.parametrize("options", [{}, SHORT], ids=["whole", "short"])
def test_threads_do_anything_while_rings_are_lost(options: dict[str, Any], seed: int) -> None:
    play(Stress(LoopbackBus(PARAMS, seed), seed, **options), EVERYDAY)


@pytest.mark.parametrize("memory", [QUICK, BEHIND], ids=["quick", "behind"])
def test_threads_do_anything_on_rtl_while_rings_are_lost(memory: dict[str, Memory], seed: int) -> None:
    play(Stress(VerilatorBus(PARAMS, seed=seed, **memory), seed), EVERYDAY)


@pytest.mark.nightly
def test_threads_do_anything_on_rtl_for_long(seed: int) -> None:
    play(Stress(VerilatorBus(PARAMS, seed=seed, **BEHIND), seed), NIGHTLY)


# What these tests can find.

LEAK = 'self._free.append(fields["tag"])'
STATUS = '{"status": completion.status'
MUTANTS: dict[str, tuple[Any, str, str, str, str]] = {
    "a get returns before its completion": (
        Client,
        "run",
        "return self.device.wait(self.submit(command, into, root=root))",
        "ticket = self.submit(command, into)\n"
        "    early = Completion(self.ring, 0, length=len(into)) if into else None\n"
        "    return early or self.device.wait(ticket)",
        "foreign block|torn|was never stored|was read into",
    ),
    "keys of two partitions are mixed": (
        Device,
        "bind",
        "c.Bind(ring, to)",
        "c.Bind(ring, 0)",
        "a foreign block|STALE, though",
    ),
    "data of other segments": (
        Requester,
        "_place",
        "self.memory.write(address, data[at : at + size])",
        "self.memory.write(address, data[:size])",
        "torn",
    ),
    "bytes beside a buffer": (
        loopback_memory.Memory,
        "write",
        "view[at : at + len(data)] = data",
        "view[at : at + len(data)] = data\n    if isinstance(view.obj, bytearray):\n        view.obj[0] = 0",
        "was written beside its buffer",
    ),
    "bytes after the completion": (
        loopback_memory.Memory,
        "unmap",
        "del self._regions[address]",
        "vars(self).setdefault('late', []).append(self._regions.pop(address))\n"
        "    view, writable = self.late[-12:][0]\n"
        "    if writable and len(self.late) > 12:\n"  # not before its thread has looked at what it read
        "        view[:1] = b'x'",
        "has changed after its READ had ended",
    ),
    "a block read as sealed that was not stored": (
        steps,
        "put",
        "return Put(Status.GRANTED, granted.handle)",
        "return Put(Status.NO_SPACE, None)",
        "whose stores ended otherwise",
    ),
    "handles without generations": (
        Client,
        "put",
        "return self._all(steps.put(session, model, key, data, self.device.params))",
        "put = self._all(steps.put(session, model, key, data, self.device.params))\n"
        "    return Put(put.status, put.handle and put.handle._replace(generation=1))",
        "was store",
    ),
    "a status that is none of the command's": (
        Requester,
        "answer",
        STATUS,
        '{"status": Status.CRC if self._uses[number] % 9 == 8 else completion.status',
        "ends CRC",
    ),
    "a ring that was not lost is UNAVAILABLE": (
        Requester,
        "answer",
        STATUS,
        '{"status": Status.UNAVAILABLE if self._uses[number] % 9 == 8 else completion.status',
        "was not lost",
    ),
    "a ring that was not lost has lost what it held": (
        Requester,
        "answer",
        STATUS,
        '{"status": Status.STALE if completion.status == Status.OK else completion.status',
        "STALE, though|ends STALE",
    ),
    "the node does not hear of a loss": (
        Requester,
        "_ring_lost",
        "self._lose(self._ring(queue))",
        "pass",
        "is lost, and yet",
    ),
    "a loss does not wait for the device": (
        MmioTransport,
        "lose",
        "while lane.flights or lane.waiting:",
        "self._end(lane, [*lane.flights.values()])\n    lane.flights.clear()\n    while False:",
        "has written a completion that is none|was not lost",
    ),
    "buffers stay mapped": (Flights, "release", "in flight.mapped:", "in flight.mapped[1:]:", "mappings, expected"),
    "a tag is not given back": (
        Device,
        "_route",
        "self._tags[arrival.ring].free(arrival.tag)",
        "arrival.tag % 50 == 7 or self._tags[arrival.ring].free(arrival.tag)",
        r"tags of .* are not free",
    ),
    "a ticket is kept": (Device, "_route", "self._tickets.pop(", "self._tickets.get(", "no such command|Ticket"),
    "a slot is not given back": (QueuePair, "pull", LEAK, f'fields["tag"] == 1 or {LEAK}', "slots of"),
    "frames do not add up": (
        SpecifiedSlice,
        "counters",
        "states[state] for state",
        "states[state] + (state is FrameState.FREE) for state",
        "9 frames",
    ),
    "a requester does not let go": (
        Requester,
        "_settle",
        "len(queue.contexts)",
        "len(queue.contexts) + 1",
        "are outstanding",
    ),
}


@pytest.mark.parametrize(
    "name",
    everyday(
        MUTANTS,
        "keys of two partitions are mixed",
        "data of other segments",
        "a ticket is kept",
        "a slot is not given back",
    ),
)
def test_threads_find_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, attribute, good, bad, message = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutate(getattr(owner, attribute), good, bad))
    with pytest.raises((AssertionError, DeviceError), match=message):
        play(Stress(LoopbackBus(PARAMS), 0), EVERYDAY)


def test_a_run_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that never lets go of the lock."""
    monkeypatch.setattr(stress, "HANG", 0.5)
    kept = mutate(Device.bind, "with self._lock, self._hushed():", "self._lock.__enter__()\n    with self._hushed():")
    rig = Stress(LoopbackBus(PARAMS), 0)
    monkeypatch.setattr(Device, "bind", kept)
    with pytest.raises(AssertionError, match="no thread has done anything"):
        rig.run(EVERYDAY)


RTL_MUTANTS = {
    "the node is not told of a loss": (
        rings,
        "Ring",
        "settings.lose | self.failing",
        "self.failing",
        "is lost, and yet",
    ),
    "a command ends before its data is in memory": (
        contexts,
        "Waits",
        " & (bursts == 0)",
        "",
        "ends INVALID|results make no sense|a buffer has changed|torn|foreign block|was never stored",
    ),
}
"""Each takes a minute to compile."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", RTL_MUTANTS)
def test_threads_find_mutant_of_rtl(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module, known, good, bad, message = RTL_MUTANTS[name]
    monkeypatch.setattr(module, known, mutate(getattr(module, known), good, bad))
    bus = VerilatorBus(PARAMS, emission=emit(System(PARAMS), "system"), **BEHIND)
    with pytest.raises(AssertionError, match=message):
        play(Stress(bus, 0), EVERYDAY)
