"""What every command may be refused for, and which refusal comes first."""

from dataclasses import fields, replace

import pytest
from specbench import A_FAR, A_TOO, A, B, Bench, block_bytes, moving, seal

from hw.params import commands as c
from hw.params.commands import Binding, Command, Completion
from hw.params.orderlog import Taken
from hw.params.protocol import REGISTERS, Handle, LookupMode, ModelState, Opcode, PinId, RingId, SessionId, Status

NOWHERE = RingId(9, 9)
NO_HANDLE = Handle(0, 0, 0, 0, 0)
NO_PIN = PinId(0, 0)
NO_SESSION = SessionId(0, 0)
GOOD: dict[Opcode, Command] = {
    Opcode.LOOKUP: c.Lookup(0, [1]),
    Opcode.ALLOC: c.Alloc(0, 1, 1, NO_SESSION),
    Opcode.WRITE: c.Write(NO_HANDLE, 0, b"x"),
    Opcode.SEAL: c.Seal(NO_HANDLE, 1, 0),
    Opcode.ABORT: c.Abort(NO_HANDLE),
    Opcode.READ: c.Read(NO_HANDLE, 0, 1),
    Opcode.UNPIN: c.Unpin(NO_PIN),
    Opcode.DROP: c.Drop(0, 1),
    Opcode.OPEN_SESSION: c.OpenSession(),
    Opcode.CLOSE_SESSION: c.CloseSession(NO_SESSION),
    Opcode.MIGRATE: c.Migrate(NO_SESSION),
    Opcode.ANSWER_FENCE: c.AnswerFence(NO_SESSION, 0),
    Opcode.BIND: c.Bind(A, 0),
    Opcode.SET_PARTITION: c.SetPartition(0, quota=4),
    Opcode.DROP_PARTITION: c.DropPartition(0),
    Opcode.SET_MODEL: c.SetModel(0, ModelState.LIVE),
    Opcode.RETIRE: c.Retire(1),
    Opcode.SET_EPOCH: c.SetEpoch(1),
}
"""Well formed, whatever else."""
BAD: list[Command] = [
    c.Lookup(0, []),
    c.Lookup(0, [1] * 5),
    c.Lookup(2, [1]),
    c.Lookup(0, [1, 1 << 128]),
    c.Alloc(2, 1, 1, NO_SESSION),
    c.Alloc(0, -1, 1, NO_SESSION),
    c.Alloc(0, 1, 0, NO_SESSION),
    c.Alloc(0, 1, 1, SessionId(2, 0)),
    c.Write(NO_HANDLE._replace(frame=4), 0, b"x"),
    c.Write(NO_HANDLE._replace(node=1), 0, b"x"),
    c.Write(NO_HANDLE._replace(slice=1), 0, b"x"),
    c.Write(NO_HANDLE, 0, b""),
    c.Seal(NO_HANDLE, 0, 0),
    c.Seal(NO_HANDLE, 1, 1 << 32),
    c.Abort(NO_HANDLE._replace(generation=1 << 32)),
    c.Read(NO_HANDLE, 0, 0),
    c.Read(NO_HANDLE, 1 << 32, 1),
    c.Unpin(PinId(2, 0)),
    c.Unpin(PinId(-1, 0)),
    c.Drop(0, 1 << 128),
    c.CloseSession(SessionId(-1, 0)),
    c.Migrate(SessionId(2, 0)),
    c.AnswerFence(NO_SESSION, 1 << 32),
    c.Bind(NOWHERE, 0),
    c.Bind(REGISTERS, 0),
    c.Bind(A, 2),
    c.SetPartition(2),
    c.SetPartition(0, pool=1),
    c.SetPartition(0, read_mask=4),
    c.DropPartition(2),
    c.SetModel(0, ModelState.RETIRED),
    c.SetModel(2, ModelState.LIVE),
    c.Retire(2),
    c.SetEpoch(0),
    c.SetEpoch(1 << 64),
]
OUT_OF_TYPE: dict[str, list[object]] = {
    "keys": [7, None, "12", ["1"], [1.0], [True], {1}],
    "mode": [0, "run", None],
    "pin": [0, 1, None, "yes", SessionId(0, 0), PinId("0", 0), PinId(0, -1), PinId(0, 1 << 48), PinId(0, 0.0)],
    "handle": [0, None, tuple(NO_HANDLE), NO_HANDLE._replace(frame="0"), NO_HANDLE._replace(frame=[])],
    "session": [0, None, (0, 0), NO_PIN, SessionId(0.0, 0), SessionId("0", 0), SessionId(0, 1 << 48), SessionId(0, "")],
    "ring": [0, None, (0, 0), [0, 0], RingId([], 0), RingId(0, 0.0), RingId(-1, 0)],
    "to": ["0", 0.0, None, True, -1, 1 << 40, "none"],
    "data": [None, 7, "x", [1], memoryview(b"abcd").cast("I")],
    "state": [2, 2.0, "LIVE", None, LookupMode.RUN],
    **{name: [0, 1, None, "no"] for name in ("park", "public")},
    **{
        name: ["0", 0.5, 1.0, None, True, -1, [], b"1"]
        for name in (
            "model",
            "key",
            "length",
            "segment",
            "crc",
            "count",
            "writes",
            "partition",
            "pool",
            "quota",
            "guarantee",
            "read_mask",
            "epoch",
        )
    },
}
"""Values that a field of this name can never have, the one of ``pin`` in either meaning."""
MISTYPED = [
    replace(command, **{f.name: value})
    for command in GOOD.values()
    for f in fields(command)
    for value in OUT_OF_TYPE[f.name]
    if not (isinstance(command, c.Lookup) and value is True)
]
TENANTS = [opcode for opcode in Opcode if not opcode.administrative]


@pytest.mark.parametrize("command", BAD, ids=str)
@pytest.mark.parametrize("configured", [True, False], ids=["in service", "before the epoch"])
def test_what_is_malformed_is_invalid_whoever_sends_it_and_whenever(command: Command, configured: bool) -> None:
    bench = Bench(configured=configured)
    if configured:
        bench.lose(A)
    for ring in (A, B, REGISTERS):
        assert bench.do(ring, command).status is Status.INVALID


def test_what_is_not_of_its_type_is_invalid_and_no_more() -> None:
    bench = Bench()
    for tag, command in enumerate(MISTYPED, start=1000):
        for ring in (A, REGISTERS):
            (answer,) = bench.execute(Taken(ring, tag, command))
            assert isinstance(answer, Completion)
            assert answer.status is Status.INVALID, command


@pytest.mark.parametrize("opcode", Opcode)
def test_what_is_well_formed_is_not_invalid(opcode: Opcode) -> None:
    for ring in (A, REGISTERS):
        assert Bench().do(ring, GOOD[opcode]).status is not Status.INVALID


def test_any_bytes_are_data() -> None:
    bench = Bench()
    handle = bench.alloc(A, bench.open(), 1)
    data = bytearray(b"x" * 100)
    bench.must(A, c.Write(handle, 0, memoryview(data)))
    bench.must(A, seal(handle, bytes(data)))
    assert bench.read(A, handle).data == data


@pytest.mark.parametrize(
    "opcode", [o for o in Opcode if o not in (Opcode.SET_EPOCH, Opcode.DROP_PARTITION, Opcode.BIND)]
)
def test_no_command_is_taken_before_an_epoch_is_set(opcode: Opcode) -> None:
    for ring in (A, REGISTERS):
        assert Bench(configured=False).do(ring, GOOD[opcode]).status is Status.UNAVAILABLE


@pytest.mark.parametrize("opcode", Opcode)
@pytest.mark.parametrize("administrative", [False, True])
def test_a_lost_ring_gets_unavailable_whatever_it_asks(opcode: Opcode, administrative: bool) -> None:
    bench = Bench()
    if administrative:
        bench.must(REGISTERS, c.Bind(A, Binding.ADMINISTRATIVE))
    bench.lose(A)
    assert bench.do(A, GOOD[opcode]).status is Status.UNAVAILABLE


@pytest.mark.parametrize("opcode", Opcode)
def test_an_unbound_ring_has_no_right_to_anything(opcode: Opcode) -> None:
    bench = Bench()
    bench.must(REGISTERS, c.Bind(A, Binding.NONE))
    hidden = Status.MISS if opcode is Opcode.LOOKUP else Status.DENIED
    assert bench.do(A, GOOD[opcode]).status is hidden


@pytest.mark.parametrize("binding", Binding)
@pytest.mark.parametrize("mode", LookupMode)
def test_a_ring_without_a_partition_is_told_what_an_empty_one_is(mode: LookupMode, binding: Binding) -> None:
    bench = Bench()
    lookup = c.Lookup(0, [1, 2, 3], mode, pin=True)
    empty = bench.do(A, lookup)
    bench.must(REGISTERS, c.Bind(A, binding))
    told = bench.do(A, lookup)
    assert replace(told, tag=empty.tag) == empty


@pytest.mark.parametrize("opcode", [opcode for opcode in Opcode if opcode.administrative])
def test_tenants_do_not_administer(opcode: Opcode) -> None:
    assert Bench().do(A, GOOD[opcode]).status is Status.DENIED


@pytest.mark.parametrize("opcode", TENANTS)
def test_administrators_are_no_tenants(opcode: Opcode) -> None:
    hidden = Status.MISS if opcode is Opcode.LOOKUP else Status.DENIED
    assert Bench().do(REGISTERS, GOOD[opcode]).status is hidden


def test_an_epoch_is_set_once_a_life() -> None:
    assert Bench().do(REGISTERS, c.SetEpoch(5)).status is Status.DENIED


# Where several refusals apply.


def test_unavailable_comes_before_denied() -> None:
    bench = Bench()
    handle = bench.alloc(B, bench.open(B), 1)
    bench.lose(A)
    assert bench.do(A, c.Abort(handle)).status is Status.UNAVAILABLE


def test_denied_comes_before_stale() -> None:
    bench = Bench()
    handle = bench.store(A, bench.open(A), 1)
    bench.must(REGISTERS, c.DropPartition(0))
    assert bench.do(B, c.Read(handle, 0, 1)).status is Status.DENIED
    assert bench.do(B, c.Abort(handle)).status is Status.DENIED
    assert bench.do(A, c.Read(handle, 0, 1)).status is Status.STALE


def test_denied_comes_before_retired_and_range() -> None:
    bench = Bench()
    session = bench.open(A)
    bench.must(REGISTERS, c.Retire(0))
    assert bench.do(B, c.Alloc(0, 1, 4097, session)).status is Status.DENIED


def test_stale_comes_before_retired_and_retired_before_range() -> None:
    bench = Bench()
    session = bench.open()
    bench.must(REGISTERS, c.Retire(0))
    assert bench.do(A, c.Alloc(0, 1, 4097, session)).status is Status.RETIRED
    bench.must(A, c.CloseSession(session))
    assert bench.do(A, c.Alloc(0, 1, 4097, session)).status is Status.STALE


def test_range_comes_before_the_rest() -> None:
    bench = Bench()
    session, handle = moving(bench)
    assert bench.do(A_FAR, c.Alloc(0, 2, 4097, session)).status is Status.RANGE
    assert bench.do(A_FAR, c.Alloc(0, 2, 4096, session)).status is Status.PENDING
    assert bench.do(A, c.Alloc(0, 1, 4097, session)).status is Status.RANGE, "not PENDING for the key"
    assert bench.do(A_TOO, c.Read(handle, 0, 3)).status is Status.RANGE, "not PENDING for the seal"
    assert bench.do(A_FAR, c.Write(handle, 2, b"x")).status is Status.RANGE, "not PENDING for the fence"
    assert bench.do(A_FAR, c.Write(handle, 0, b"x")).status is Status.PENDING, "not WRITE_ONCE"
    assert bench.do(A_FAR, c.AnswerFence(session, 0)).status is Status.RANGE
    assert bench.do(A_FAR, c.AnswerFence(session, 1)).status is Status.PENDING
    bench.must(A, seal(handle, block_bytes(1)))
    assert bench.do(A, c.Write(handle, 1, b"x")).status is Status.RANGE
    assert bench.do(A, c.Write(handle, 0, b"x")).status is Status.WRITE_ONCE


def test_unavailable_scope_comes_before_denied_session() -> None:
    bench = Bench()
    session = bench.open(A)
    bench.store(A, session, 1)
    for _ in range(4):
        bench.must(REGISTERS, c.DropPartition(0))
    assert bench.core.partitions[0].scope.closed
    assert bench.do(A_TOO, c.Alloc(0, 9, 1, session)).status is Status.UNAVAILABLE
