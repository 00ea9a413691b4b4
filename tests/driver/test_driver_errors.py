"""Calls that cannot be right: one line, nothing sent, and the device goes on."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from driverbench import FRAME, PARAMS, Rig, store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hw.params import InputError
from hw.params import commands as c
from hw.params.commands import Binding, Command, Completion
from hw.params.protocol import (
    REGISTER_TAG,
    REGISTERS,
    TAG_BITS,
    Handle,
    LookupMode,
    ModelState,
    PinId,
    RingId,
    SessionId,
    Status,
)
from hw.params.tasks import Flush, Put
from hw.rdl import register_map
from hw.tb.mutate import mutate
from sw.driver import (
    BufferMismatch,
    Client,
    CommandFailed,
    Device,
    DeviceError,
    RegisterError,
    SpecificationTransport,
    Transport,
    arguments,
)
from sw.driver import device as device_module
from sw.driver.transport import Arrival, registers

NOWHERE = RingId(9, 9)
HANDLE = Handle(0, 0, 0, 1, 1)
SESSION = SessionId(0, 0)
LAST_TAG = (1 << TAG_BITS) - 1
"""Which the driver has not come to yet."""

WRONG_TYPES: dict[str, Callable[[Rig], object]] = {
    "get of a number": lambda rig: rig.one.get(3, length=5),  # type: ignore[arg-type]
    "get of nothing": lambda rig: rig.one.get(None, length=5),  # type: ignore[arg-type]
    "get of a bare tuple": lambda rig: rig.one.get((0, 0, 0, 0, 0), length=5),  # type: ignore[arg-type]
    "get of a pin": lambda rig: rig.one.get(PinId(0, 0), length=5),  # type: ignore[arg-type]
    "get of a handle of texts": lambda rig: rig.one.get(Handle("a", 0, 0, 0, 0), length=5),  # type: ignore[arg-type]
    "unpin of nothing": lambda rig: rig.one.unpin(None),  # type: ignore[arg-type]
    "unpin of a session": lambda rig: rig.one.unpin(SESSION),  # type: ignore[arg-type]
    "lookup of one key": lambda rig: rig.one.lookup(0, 5),  # type: ignore[arg-type]
    "lookup of a generator": lambda rig: rig.one.lookup(0, (key for key in [1])),  # type: ignore[arg-type]
    "lookup of an array": lambda rig: rig.one.lookup(0, np.array([1, 2])),  # type: ignore[arg-type]
    "lookup of a text": lambda rig: rig.one.lookup(0, ["a"]),  # type: ignore[list-item]
    "lookup of another integer": lambda rig: rig.one.lookup(0, [1, np.int64(2)]),  # type: ignore[list-item]
    "lookup in a named model": lambda rig: rig.one.lookup("llama", [1]),  # type: ignore[arg-type]
    "lookup in a mode of its own": lambda rig: rig.one.lookup(0, [1], mode=7),  # type: ignore[arg-type]
    "put without a session": lambda rig: rig.one.put(None, 0, 1, b"x"),  # type: ignore[arg-type]
    "put under a text": lambda rig: rig.one.put(SESSION, 0, "key", b"x"),  # type: ignore[arg-type]
    "drop of a text": lambda rig: rig.one.drop(0, "key"),  # type: ignore[arg-type]
    "write of floats": lambda rig: rig.one.run(c.Write(HANDLE, 0, np.ones(3).data)),
    "write of a number": lambda rig: rig.one.run(c.Write(HANDLE, 0, 5)),  # type: ignore[arg-type]
    "no command": lambda rig: rig.one.run("LOOKUP"),  # type: ignore[arg-type]
    "bind to a text": lambda rig: rig.device.bind(rig.one.ring, "partition 0"),  # type: ignore[arg-type]
    "bind of a bare tuple": lambda rig: rig.device.bind((0, 0), 0),  # type: ignore[arg-type]
    "a model set to a number": lambda rig: rig.device.administer(c.SetModel(0, 1)),  # type: ignore[arg-type]
    "a client on no ring": lambda rig: Client(rig.device, NOWHERE),
    "a client on the registers": lambda rig: Client(rig.device, REGISTERS),
    "a command of no ring": lambda rig: rig.device.submit(NOWHERE, c.OpenSession()),
    "a reset of no ring": lambda rig: rig.device.reset(NOWHERE),
    "a reset of the registers": lambda rig: rig.device.reset(REGISTERS),
}

ODD_ARGUMENTS: dict[str, Callable[[Rig], object]] = {
    "a reset of a list": lambda rig: rig.device.reset([0, 0]),  # type: ignore[arg-type]
    "a command of a list": lambda rig: rig.device.submit([0, 0], c.OpenSession()),  # type: ignore[arg-type]
    "a client on an array": lambda rig: Client(rig.device, np.zeros(2)),  # type: ignore[arg-type]
    "a client on a ring of floats": lambda rig: Client(rig.device, (0.0, 0.0)),  # type: ignore[arg-type]
    "a flag as a model": lambda rig: rig.one.lookup(True, [1]),
    "a flag among keys": lambda rig: rig.one.lookup(0, [1, True]),
    "a flag as a key": lambda rig: rig.one.drop(0, False),
    "a flag as a segment": lambda rig: rig.one.run(c.Read(HANDLE, False, 1)),
    "a flag in a handle": lambda rig: rig.one.run(c.Abort(HANDLE._replace(frame=True))),
    "a flag in a session": lambda rig: rig.one.run(c.CloseSession(SessionId(False, 0))),
    "a flag in a pin": lambda rig: rig.one.unpin(PinId(True, 0)),
    "a flag as a partition": lambda rig: rig.device.bind(rig.one.ring, True),
    "a flag in a ring": lambda rig: rig.device.bind(RingId(False, 0), 0),
    "a flag as a quota": lambda rig: rig.device.set_partition(0, quota=True),
    "a flag as a port": lambda rig: rig.device.lose_port(True),
    "a text as a port": lambda rig: rig.device.lose_port("0"),  # type: ignore[arg-type]
    "a text as an epoch": lambda rig: rig.device.start("7"),  # type: ignore[arg-type]
    "a float as an epoch": lambda rig: rig.device.start(1.5),  # type: ignore[arg-type]
    "another integer as an epoch": lambda rig: rig.device.start(np.int64(7)),  # type: ignore[arg-type]
    "a register by number": lambda rig: rig.device.read(0),  # type: ignore[arg-type]
    "a field by number": lambda rig: rig.device.write_field("EPOCH_LOW", 0, 1),  # type: ignore[arg-type]
    "another integer in a register": lambda rig: rig.device.write("EPOCH_LOW", np.int64(1)),  # type: ignore[arg-type]
    "a flag in a register": lambda rig: rig.device.write("CONTROL", True),
    "a text in a register": lambda rig: rig.device.write("CONTROL", "1"),  # type: ignore[arg-type]
    "a text in a field": lambda rig: rig.device.write_field("EPOCH_LOW", "low", "1"),  # type: ignore[arg-type]
    "a number to wait for": lambda rig: rig.device.wait(3),  # type: ignore[arg-type]
    "a text as a timeout": lambda rig: Client(rig.device, rig.one.ring, timeout="5"),  # type: ignore[arg-type]
    "a flag as a timeout": lambda rig: rig.device.set_timeout(True),
    "a time without end to count": lambda rig: rig.device.set_timeout(1 << 2000),
    "no timeout": lambda rig: rig.device.set_timeout(None),  # type: ignore[arg-type]
    "a timeout of no ring": lambda rig: rig.device.set_timeout(5, NOWHERE),
    "get of any length": lambda rig: rig.one.get(HANDLE, length=1 << 48),
    "get of a flag": lambda rig: rig.one.get(HANDLE, length=True),
    "get into more than a block has": lambda rig: rig.one.get(HANDLE, np.empty(FRAME + 1, np.uint8)),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_arguments_of_another_type_are_refused_in_one_line_and_nothing_is_sent(rig: Rig, name: str) -> None:
    handle = store(rig.one, 1)
    before = rig.device.completed.copy()
    with pytest.raises(InputError) as caught:
        WRONG_TYPES[name](rig)
    assert str(caught.value).isprintable() and "expected" in str(caught.value)
    rig.settle()
    assert rig.device.completed == before
    assert bytes(rig.one.get(handle, length=600)) == b"kv" * 300


def test_no_odd_argument_gets_past_the_door(rig: Rig) -> None:
    before = rig.device.completed.copy()
    for name, call in ODD_ARGUMENTS.items():
        with pytest.raises(InputError, match=r"^[ -~]*expected[ -~]*$"):
            call(rig)
        assert rig.device.completed == before, name
    store(rig.one, 1)


def test_what_is_in_a_sequence_is_named(rig: Rig) -> None:
    with pytest.raises(InputError, match="LOOKUP: keys is list of int, int64, expected Sequence of integers"):
        rig.one.lookup(0, [1, np.int64(2)])  # type: ignore[list-item]


def test_a_timeout_may_be_any_number_and_costs_no_slot(rig: Rig) -> None:
    for timeout in (np.uint8(200), np.float32(200)):
        hasty = Client(rig.device, rig.one.ring, timeout=timeout)  # type: ignore[arg-type]
        for _ in range(300):
            hasty.lookup(0, [1])
    rig.device.set_timeout(1_000_000, rig.one.ring)
    rig.device.bind(rig.one.ring, 0)
    store(rig.one, 1)


MUTANTS: dict[str, tuple[str, str, str, Callable[[Rig], object]]] = {
    "a field": (
        "check_command",
        "(bool in kinds or not isinstance(value, bool))",
        "True",
        ODD_ARGUMENTS["a flag as a model"],
    ),
    "part of a name": ("_are_numbers", "and kind is not bool", "", ODD_ARGUMENTS["a flag in a pin"]),
    "a number": ("is_number", "and not isinstance(value, bool)", "", ODD_ARGUMENTS["a flag in a register"]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_flag_that_passes_as_a_number_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    attribute, good, bad, call = MUTANTS[name]
    mutant = mutate(getattr(arguments, attribute), good, bad)
    for module in (arguments, device_module, registers):
        if hasattr(module, attribute):
            monkeypatch.setattr(module, attribute, mutant)
    call(Rig(Device(SpecificationTransport(PARAMS))))


DESTINATIONS: dict[str, Any] = {
    "bytes": b"read-only",
    "read-only view": memoryview(b"read-only"),
    "bytearray": bytearray(5),
    "view of floats": np.ones(3).data,
    "array": np.ones(3),
}


@pytest.mark.parametrize("name", DESTINATIONS)
def test_what_is_read_into_is_a_writable_row_of_bytes(rig: Rig, name: str) -> None:
    with pytest.raises(BufferMismatch, match="expected a writable memoryview of bytes"):
        rig.one.submit(c.Read(HANDLE, 0, 1), DESTINATIONS[name])


# Values that no device can take end INVALID.

INVALID: dict[str, Callable[[Rig], Status]] = {
    "a model out of range": lambda rig: rig.one.lookup(2, [1]).status,
    "a model below zero": lambda rig: rig.one.lookup(-1, [1]).status,
    "no keys": lambda rig: rig.one.lookup(0, []).status,
    "too many keys": lambda rig: rig.one.lookup(0, range(9)).status,
    "a key of 129 bits": lambda rig: rig.one.lookup(0, [1 << 128]).status,
    "put in a model out of range": lambda rig: rig.one.put(rig.one.open(), 2, 1, b"x").status,
    "put under a negative key": lambda rig: rig.one.put(rig.one.open(), 0, -1, b"x").status,
    "put in a session out of range": lambda rig: rig.one.put(SessionId(99, 0), 0, 1, b"x").status,
    "unpin out of range": lambda rig: rig.one.unpin(PinId(99, 0)),
    "drop in a model out of range": lambda rig: rig.one.drop(99, 1),
    "read from a segment of 17 bits": lambda rig: rig.one.run(c.Read(store(rig.one, 9), 1 << 16, 1)).status,
    "read of 65,536 segments": lambda rig: rig.one.run(c.Read(store(rig.one, 9), 0, 1 << 16)).status,
    "read from a segment of 33 bits": lambda rig: rig.one.run(c.Read(store(rig.one, 9), 1 << 32, 1)).status,
    "write to a segment of 17 bits": lambda rig: rig.one.run(c.Write(store(rig.one, 9), 1 << 16, b"x")).status,
    "a length of 33 bits": lambda rig: rig.one.run(c.Alloc(0, 9, 1 << 32, rig.one.open())).status,
    "read of nothing": lambda rig: rig.one.run(c.Read(HANDLE, 0, 0)).status,
    "a handle of another node": lambda rig: rig.one.run(c.Abort(HANDLE._replace(node=1))).status,
    "a frame out of range": lambda rig: rig.one.run(c.Abort(HANDLE._replace(frame=8))).status,
}


@pytest.mark.parametrize("name", INVALID)
def test_values_out_of_range_are_invalid(rig: Rig, name: str) -> None:
    assert INVALID[name](rig) is Status.INVALID
    store(rig.one, 1)


BEYOND: dict[str, Callable[[Rig], Status]] = {
    "read from a segment that no block has": lambda rig: rig.one.run(c.Read(store(rig.one, 9), 65_535, 1)).status,
    "read of 65,535 segments": lambda rig: rig.one.run(c.Read(store(rig.one, 9), 0, 65_535)).status,
    "write to a segment that no block has": lambda rig: rig.one.run(c.Write(store(rig.one, 9), 65_535, b"x")).status,
    "a block longer than a frame": lambda rig: rig.one.run(c.Alloc(0, 9, FRAME + 1, rig.one.open())).status,
    "put of more than a frame": lambda rig: rig.one.put(rig.one.open(), 0, 9, bytes(FRAME + 1)).status,
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_a_field_carries_and_no_block_has_is_beyond_the_range(rig: Rig, name: str) -> None:
    assert BEYOND[name](rig) is Status.RANGE


ADMINISTRATION: dict[str, tuple[Callable[[Rig], object], Status]] = {
    "bind to a partition out of range": (lambda rig: rig.device.bind(rig.one.ring, 4), Status.INVALID),
    "bind to a partition that is not configured": (lambda rig: rig.device.bind(rig.one.ring, 3), Status.INVALID),
    "bind of no ring": (lambda rig: rig.device.bind(NOWHERE, 0), Status.INVALID),
    "bind of the registers": (lambda rig: rig.device.bind(REGISTERS, 0), Status.INVALID),
    "a partition out of range": (lambda rig: rig.device.set_partition(4, quota=1), Status.INVALID),
    "a pool out of range": (lambda rig: rig.device.set_partition(0, pool=1, quota=1), Status.INVALID),
    "a quota beyond the pool": (lambda rig: rig.device.set_partition(0, quota=9), Status.RANGE),
    "a guarantee beyond the quota": (lambda rig: rig.device.set_partition(0, quota=1, guarantee=2), Status.RANGE),
    "a mask beyond the partitions": (lambda rig: rig.device.set_partition(0, quota=1, read_mask=16), Status.INVALID),
    "drop of a partition that is not configured": (lambda rig: rig.device.drop_partition(3), Status.INVALID),
    "a model out of range": (lambda rig: rig.device.set_model(2, ModelState.LIVE), Status.INVALID),
    "a second epoch": (lambda rig: rig.device.administer(c.SetEpoch(5)), Status.DENIED),
}


@pytest.mark.parametrize("name", ADMINISTRATION)
def test_what_the_administrator_may_not_do_fails_with_its_status_and_changes_nothing(rig: Rig, name: str) -> None:
    handle = store(rig.one, 1)
    act, status = ADMINISTRATION[name]
    with pytest.raises(CommandFailed) as caught:
        act(rig)
    assert caught.value.status is status
    assert f": {status.name}, {status.meaning}" in str(caught.value) and str(caught.value).isprintable()
    assert bytes(rig.one.get(handle, length=600)) == b"kv" * 300


@pytest.mark.one_slice
def test_a_tag_in_use_is_refused_and_the_read_that_has_it_goes_on(rig: Rig) -> None:
    handle, transport = store(rig.one, 1), rig.device.transport
    out, other = bytearray(600), bytearray(600)
    transport.submit(rig.one.ring, LAST_TAG, c.Read(handle, 0, 2), memoryview(out))
    with pytest.raises(InputError, match=f"tag {LAST_TAG} of .* is in use"):
        transport.submit(rig.one.ring, LAST_TAG, c.Read(handle, 0, 2), memoryview(other))
    transport.submit(rig.far.ring, LAST_TAG, c.Lookup(0, [1]))
    arrived: list[Arrival] = []
    while got := transport.poll():
        arrived += got
    ended = {arrival.ring: arrival.status for arrival in arrived if isinstance(arrival, Completion)}
    assert ended == {rig.one.ring: Status.OK, rig.far.ring: Status.HIT}
    assert out == b"kv" * 300 and other == bytes(600)


@pytest.mark.parametrize(
    ("ring", "tag"), [(RingId(0, 0), -1), (RingId(0, 0), 1 << TAG_BITS), (REGISTERS, REGISTER_TAG)]
)
def test_a_tag_that_is_none_is_refused(rig: Rig, ring: RingId, tag: int) -> None:
    with pytest.raises(InputError, match=f"tag = {tag}, expected a number from 0 to "):
        rig.device.transport.submit(ring, tag, c.DropPartition(0))
    assert rig.device.transport.poll() == []


@pytest.mark.one_slice
def test_tags_are_used_again_and_when_all_are_taken_the_driver_says_so(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    monkeypatch.setattr(rig.device.transport, "submit", lambda ring, tag, command, into, slice_: taken.append(tag))
    device = Device(rig.device.transport)
    tickets = [device.submit(rig.one.ring, c.OpenSession()) for _ in range(1 << TAG_BITS)]
    assert sorted(taken) == list(range(1 << TAG_BITS))
    with pytest.raises(InputError, match="has a command outstanding under each of its 65,536 tags"):
        device.submit(rig.one.ring, c.OpenSession())
    device.submit(rig.far.ring, c.OpenSession())
    monkeypatch.setattr(device.transport, "step", lambda: [Completion(rig.one.ring, 77)])
    assert device.wait(tickets[taken.index(77)]).status is Status.OK
    device.submit(rig.one.ring, c.OpenSession())
    assert taken[-1] == 77
    monkeypatch.undo()


# Devices that do not keep the contract.


def test_a_completion_that_nobody_waits_for_is_told(rig: Rig) -> None:
    rig.device.transport.submit(rig.one.ring, LAST_TAG, c.Lookup(0, [1]))
    with pytest.raises(DeviceError, match=f"tag {LAST_TAG} of .* has ended, but no such command is outstanding"):
        rig.settle()


def test_a_device_that_answers_nothing_does_not_hang_the_driver(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = rig.one.submit(c.Lookup(0, [1]))
    with monkeypatch.context() as patch:
        patch.setattr(rig.device.transport, "step", lambda: None)
        with pytest.raises(DeviceError, match="nothing to do, but a command has not ended"):
            rig.device.wait(ticket)
    assert rig.device.wait(ticket).status is Status.MISS


def test_a_device_that_takes_no_epoch_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = register_map()["STATUS"].field("ready").mask
    monkeypatch.setattr(rig.device.transport, "read_register", lambda offset, slice_: ready)
    with pytest.raises(DeviceError, match="epoch 0x5 was not taken within 1,016 reads of STATUS"):
        rig.device.start(5)


def test_a_device_that_is_never_ready_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.device.transport, "read_register", lambda offset, slice_: 0)
    with pytest.raises(DeviceError, match="not ready 1,016 reads of STATUS after its restart"):
        rig.device.start(5)


def test_a_device_that_takes_its_time_to_start_is_waited_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    status, honest = register_map()["STATUS"], rig.device.transport.read_register
    late = [0] * 5 + [status.field("ready").mask] * 5

    def read(offset: int, slice_: int) -> int:
        return late.pop(0) if offset == status.offset and late else honest(offset, slice_)

    monkeypatch.setattr(rig.device.transport, "read_register", read)
    rig.configure()
    assert late == []
    store(rig.one, 1)


@pytest.mark.patient
def test_a_ring_that_can_never_be_bound_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.device, "administer", lambda command, *allowed: Status.PENDING)
    with pytest.raises(DeviceError, match=r"RingId\(port=0, ring=0\) cannot be bound: PENDING 1,016 times"):
        rig.device.bind(rig.one.ring, 0)


def test_a_device_closes_its_transport_however_its_with_block_ends(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Transport] = []
    monkeypatch.setattr(rig.device.transport, "close", lambda: closed.append(rig.device.transport))
    with pytest.raises(KeyError), Device(rig.device.transport):
        raise KeyError
    assert closed == [rig.device.transport]


def test_errors_of_one_family_can_be_caught_together() -> None:
    assert issubclass(RegisterError, InputError) and issubclass(BufferMismatch, InputError)
    assert issubclass(InputError, ValueError)


def test_a_completion_is_shown_in_a_few_words(rig: Rig) -> None:
    store(rig.one, 1, bytes(4096))
    (handle,) = rig.one.lookup(0, [1]).handles
    assert handle is not None
    shown = repr(rig.one.run(c.Read(handle, 0, 8)))
    assert "OK" in shown and "count=8" in shown and "length=4096" in shown
    assert len(shown) < 120 and shown.isprintable()


# Any command at all.

INTEGERS = st.integers(-2, 9) | st.sampled_from([1 << 16, 1 << 32, 1 << 64, 1 << 128, -(1 << 200), True])
JUNK = st.none() | st.text(max_size=3) | st.floats() | st.just([]) | st.just(()) | st.just(object())
PARTS = INTEGERS | st.none()


def viewed(data: bytes) -> memoryview:
    """A view of bytes."""
    return memoryview(data)


BYTES: st.SearchStrategy[Any] = st.binary(max_size=1200)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "handle": st.builds(Handle, PARTS, PARTS, PARTS, PARTS, PARTS) | st.builds(Handle, *[st.integers(0, 1)] * 5),
    "session": st.builds(SessionId, PARTS, PARTS),
    "pin": st.booleans() | st.builds(PinId, PARTS, PARTS),
    "ring": st.builds(RingId, PARTS, PARTS),
    "keys": st.lists(INTEGERS | JUNK, max_size=10) | st.lists(INTEGERS, max_size=4),
    "data": BYTES | BYTES.map(viewed),
    "mode": st.sampled_from(LookupMode),
    "park": st.booleans(),
    "public": st.booleans(),
    "state": st.sampled_from(ModelState),
    "to": INTEGERS | st.sampled_from(Binding),
}
NAMES = sorted({kind.__name__ for kind in Command.__subclasses__()} - {"SetEpoch", "Task"})
KINDS: list[type[Command]] = [*(getattr(c, name) for name in NAMES), Put, Flush]


@st.composite
def commands(draw: st.DrawFn) -> Command:
    """A command with anything in its fields; now and then with what does not belong there."""
    kind: Any = draw(st.sampled_from(KINDS))
    junk = draw(st.integers(0, 9)) == 0
    values = {f.name: draw(JUNK if junk else VALUES.get(f.name, INTEGERS)) for f in fields(kind)}
    command: Command = kind(**values)
    return command


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([REGISTERS, RingId(0, 0), RingId(1, 1)]), commands()), max_size=8))
def test_any_command_is_refused_in_one_line_or_ends(rig: Rig, asked: list[tuple[RingId, Command]]) -> None:
    tickets = []
    for ring, command in asked:
        try:
            tickets.append(rig.device.submit(ring, command))
        except InputError as error:
            assert str(error).isprintable()
    assert all(isinstance(rig.device.wait(ticket).status, Status) for ticket in tickets)
    rig.configure()
    store(rig.one, 1)
