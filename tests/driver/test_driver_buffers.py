"""Buffers: any shape and type, without a copy, and never half of something."""

from typing import Any

import numpy as np
import pytest
from driverbench import FRAME, SEGMENT, Rig, store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hw.params import commands as c
from hw.params.commands import Command, Completion
from hw.params.protocol import Status
from sw.driver import BufferMismatch, Client, CommandFailed, Ticket
from sw.driver.client import as_bytes

ARRAYS: dict[str, Any] = {
    "float16": np.arange(1000, dtype=np.float16),
    "uint8": np.arange(255, dtype=np.uint8),
    "bool": np.array([True, False, True]),
    "big-endian": np.arange(10, dtype=">f4"),
    "complex": np.arange(4, dtype=np.complex128).reshape(2, 2),
    "structured": np.zeros(7, dtype=[("scale", "f2"), ("code", "u1")]),
    "dates": np.array(["2026-01-01"], dtype="datetime64[s]"),
    "0-d": np.array(1.5),
    "4-d": np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5),
    "a slice of rows": np.arange(100, dtype=np.int32).reshape(10, 10)[2:5],
    "one column": np.asfortranarray(np.arange(9.0).reshape(9, 1)),
    "read-only": np.frombuffer(b"read-only", np.uint8),
    "a whole frame": np.arange(FRAME // 8),
    "whole segments": np.zeros(2 * SEGMENT, np.uint8),
}
PLAIN: dict[str, Any] = {
    "bytes": b"bytes",
    "bytearray": bytearray(700),
    "memoryview": memoryview(b"memoryview"),
    "memoryview of floats": np.arange(6.0).reshape(2, 3).data,
}


@pytest.mark.parametrize("name", [*ARRAYS, *PLAIN])
def test_what_was_put_is_got(rig: Rig, name: str) -> None:
    data = {**ARRAYS, **PLAIN}[name]
    wanted = bytes(memoryview(data).cast("B")) if name in PLAIN else data.tobytes()
    handle = store(rig.one, 1, data)
    assert bytes(rig.far.get(handle, length=len(wanted))) == wanted
    if isinstance(data, np.ndarray):
        out = np.empty_like(data)
        assert rig.far.get(handle, out) is out
        assert np.array_equal(out, data) and out.dtype == data.dtype
    else:
        into = bytearray(len(wanted))
        rig.far.get(handle, into)
        assert into == wanted


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=FRAME) | st.sampled_from([b"x" * n * SEGMENT for n in (1, 2, 8)]))
def test_any_bytes_come_back(rig: Rig, data: bytes) -> None:
    rig.one.drop(0, 1)
    assert bytes(rig.one.get(store(rig.one, 1, data), length=len(data))) == data


# No copies.


@pytest.mark.parametrize("name", ARRAYS)
def test_the_bytes_of_an_array_are_its_own_memory(name: str) -> None:
    array = ARRAYS[name]
    view = as_bytes(array)
    assert view.nbytes == array.nbytes and view.format == "B" and view.ndim == 1
    assert np.shares_memory(np.frombuffer(view, np.uint8), array)
    assert view.readonly != array.flags.writeable


class Witness(Client):
    """Remembers what is sent."""

    def __init__(self, client: Client) -> None:
        super().__init__(client.device, client.ring)
        self.sent: list[tuple[Command, memoryview | None]] = []

    def submit(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Ticket:
        self.sent.append((command, into))
        return super().submit(command, into, root=root)


def test_put_sends_the_array_and_get_reads_into_it(rig: Rig) -> None:
    witness, data = Witness(rig.one), np.arange(700, dtype=np.float16)
    handle = store(witness, 1, data)
    out = np.empty_like(data)
    witness.get(handle, out)
    (sent,) = [command.data for command, _ in witness.sent if isinstance(command, c.Write)]
    (into,) = [into for _, into in witness.sent if into is not None]
    assert np.shares_memory(np.frombuffer(sent, np.uint8), data)
    assert np.shares_memory(np.frombuffer(into, np.uint8), out)


class Hasty(Client):
    """Somebody writes to the buffer as soon as the put has sent its first command."""

    def __init__(self, client: Client, buffer: bytearray, when: type[Command]) -> None:
        super().__init__(client.device, client.ring)
        self._buffer = buffer
        self._when = when

    def run(self, command: Command, into: memoryview | None = None, *, root: int | None = None) -> Completion:
        if isinstance(command, self._when):
            self._buffer[700] ^= 1
        return super().run(command, into, root=root)


@pytest.mark.parametrize("when", [c.Alloc, c.Write])
def test_bytes_that_change_under_way_are_not_stored(rig: Rig, when: type[Command]) -> None:
    data = bytearray(1000)
    hasty = Hasty(rig.one, data, when)
    with hasty.session() as session:
        put = hasty.put(session, 0, 1, data)
        assert (put.status, put.handle, put.stored) == (Status.CRC, None, False)
        assert rig.far.lookup(0, [1]).status is Status.MISS
        assert rig.one.put(session, 0, 1, data).status is Status.GRANTED, "the key is free again"


def test_bytes_may_change_once_they_are_stored(rig: Rig) -> None:
    data = bytearray(b"a" * 1000)
    hasty = Hasty(rig.one, data, c.Seal)
    handle = store(hasty, 1, data)
    assert bytes(rig.one.get(handle, length=1000)) == b"a" * 1000


# What is refused before anything is sent.

FORTRAN = np.asfortranarray(np.ones((3, 4)))
REFUSED: dict[str, tuple[Any, str]] = {
    "Fortran order": (FORTRAN, "is not contiguous"),
    "every second": (np.arange(10)[::2], "is not contiguous"),
    "backwards": (np.arange(10)[::-1], "is not contiguous"),
    "one column of many": (np.ones((3, 4))[:, :1], "is not contiguous"),
    "repeated": (np.broadcast_to(np.float16(1), (3,)), "is not contiguous"),
    "memoryview with gaps": (memoryview(b"abcdef")[::2], "is not contiguous"),
    "memoryview in Fortran order": (FORTRAN.data, "is not contiguous"),
    "objects": (np.array([object()]), "holds references"),
    "empty array": (np.empty((3, 0)), "is empty"),
    "empty bytes": (bytearray(), "is empty"),
    "list": ([1, 2], "list has no plain bytes"),
    "text": ("text", "str has no plain bytes"),
    "scalar": (np.float16(1), "float16 has no plain bytes"),
    "nothing": (None, "NoneType has no plain bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_buffer_that_needs_a_copy_is_refused_in_one_line_and_nothing_is_sent(rig: Rig, name: str) -> None:
    buffer, message = REFUSED[name]
    handle = store(rig.one, 1)
    with rig.one.session() as session:
        before = rig.device.completed.total()
        with pytest.raises(BufferMismatch) as put:
            rig.one.put(session, 0, 2, buffer)
        with pytest.raises(BufferMismatch) as read:
            rig.one.read(handle, buffer)
        assert rig.device.completed.total() == before
    for caught in (put, read):
        assert message in str(caught.value) and str(caught.value).isprintable()
    assert rig.one.lookup(0, [2]).status is Status.MISS


@pytest.mark.parametrize("out", [b"x" * 600, ARRAYS["read-only"], memoryview(b"x" * 600)], ids=["b", "array", "view"])
def test_a_read_only_buffer_is_not_read_into(rig: Rig, out: Any) -> None:
    with pytest.raises(BufferMismatch, match="buffer is read-only, expected one to read into"):
        rig.one.get(store(rig.one, 1), out)


@pytest.mark.parametrize("length", [0, -1, "600", 600.0])
def test_a_length_is_a_number_of_bytes(rig: Rig, length: Any) -> None:
    with pytest.raises(BufferMismatch, match="expected the bytes of the block"):
        rig.one.get(store(rig.one, 1), length=length)


def test_get_takes_a_buffer_or_a_length(rig: Rig) -> None:
    handle = store(rig.one, 1)
    for out, length in ((None, None), (bytearray(600), 600)):
        with pytest.raises(BufferMismatch, match="either a buffer to read into, or the length"):
            rig.one.get(handle, out, length=length)


# Buffers that are not as long as the block.


@pytest.mark.parametrize("length", [1, 511, 513, 999, 1001, 1024, 1025, 4096, 5000])
def test_a_buffer_of_another_length_is_refused_and_nothing_is_written_beside_it(rig: Rig, length: int) -> None:
    handle = store(rig.one, 1, bytes(range(250)) * 4)
    around = bytearray(b"\xaa" * (length + 2000))
    with pytest.raises(BufferMismatch) as caught:
        rig.one.get(handle, memoryview(around)[1000 : 1000 + length])
    assert str(caught.value).isprintable() and "as long as the block" in str(caught.value)
    assert around[:1000] == around[1000 + length :] == b"\xaa" * 1000


def test_a_buffer_of_whole_segments_gets_the_beginning(rig: Rig) -> None:
    data = bytes(range(250)) * 4
    assert bytes(rig.one.get(store(rig.one, 1, data), length=SEGMENT)) == data[:SEGMENT]


def test_a_read_that_fails_leaves_its_buffer(rig: Rig) -> None:
    handle = store(rig.one, 1)
    rig.one.drop(0, 1)
    out = bytearray(b"\xaa" * 600)
    with pytest.raises(CommandFailed):
        rig.one.get(handle, out)
    assert out == b"\xaa" * 600
