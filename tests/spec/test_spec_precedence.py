"""RANGE stands before PENDING and WRITE_ONCE: what can never be right is told first, to whoever may ask."""

from collections.abc import Callable
from typing import Any

import pytest
from specbench import A_FAR, A_TOO, SEGMENT, A, Bench, block_bytes, moving, seal, seed_bug

from hw.params import commands as c
from hw.params.protocol import Handle, Status
from pymodel.spec import blocks, sessions

FULL = b"x" * SEGMENT


def written(bench: Bench, segments: int, bound: int, short: int = 0) -> Handle:
    """A block of at most ``bound`` bytes, with so many segments accepted."""
    handle = bench.alloc(A, bench.open(), 1, bound)
    bench.must(A, c.Write(handle, 0, block_bytes(segments, short=short)))
    return handle


@pytest.mark.parametrize(
    ("segment", "data", "status"),
    [
        (0, FULL, Status.WRITE_ONCE),
        (1, FULL, Status.WRITE_ONCE),
        (1, FULL + b"x", Status.WRITE_ONCE),
        (3, FULL, Status.RANGE),
        (2, FULL, Status.RANGE),
        (2, b"x" * 101, Status.RANGE),
        (2, b"x" * 100, Status.OK),
    ],
    ids=lambda value: value.name if isinstance(value, Status) else None,
)
def test_a_write_is_write_once_below_accepted_and_out_of_range_beyond_it_or_the_length(
    segment: int, data: bytes, status: Status
) -> None:
    bench = Bench()
    handle = written(bench, 2, 2 * SEGMENT + 100)
    assert bench.do(A, c.Write(handle, segment, data)).status is status


@pytest.mark.parametrize("sealed", [False, True])
def test_a_write_below_accepted_that_leaves_the_block_is_out_of_range(sealed: bool) -> None:
    bench = Bench()
    data = block_bytes(2, short=12)
    handle = written(bench, 2, len(data), short=12)
    if sealed:
        bench.must(A, seal(handle, data))
    assert bench.do(A, c.Write(handle, 1, FULL)).status is Status.RANGE
    assert bench.do(A, c.Write(handle, 1, FULL[:-12])).status is Status.WRITE_ONCE
    assert bench.do(A, c.Write(handle, 0, FULL)).status is Status.WRITE_ONCE


def test_nothing_follows_a_short_segment() -> None:
    bench = Bench()
    handle = written(bench, 2, 4 * SEGMENT, short=1)
    assert bench.do(A, c.Write(handle, 2, b"x")).status is Status.RANGE
    assert bench.do(A, c.Write(handle, 1, b"x")).status is Status.WRITE_ONCE


def test_nothing_follows_while_a_seal_waits() -> None:
    bench = Bench()
    handle = bench.alloc(A, bench.open(), 1, 4 * SEGMENT)
    bench.ask(A, c.Write(handle, 0, block_bytes(1)))
    bench.ask(A, seal(handle, block_bytes(1)))
    assert bench.do(A, c.Write(handle, 1, FULL)).status is Status.RANGE


def test_the_new_ring_is_told_range_before_pending_and_pending_before_write_once() -> None:
    bench = Bench()
    _, handle = moving(bench)
    assert bench.do(A_FAR, c.Write(handle, 2, FULL)).status is Status.RANGE, "beyond accepted"
    assert bench.do(A_FAR, c.Write(handle, 1, FULL + b"x")).status is Status.PENDING, "its first segment fits"
    assert bench.do(A_FAR, c.Write(handle, 1, FULL)).status is Status.PENDING
    assert bench.do(A_FAR, c.Write(handle, 0, FULL)).status is Status.PENDING
    assert bench.do(A_TOO, c.Write(handle, 2, FULL)).status is Status.DENIED, "no right, so nothing else is told"


def test_the_new_ring_is_told_stale_before_range() -> None:
    bench = Bench()
    _, handle = moving(bench)
    bench.must(A, c.Drop(0, 1))
    assert bench.do(A_FAR, c.Write(handle, 9, FULL)).status is Status.STALE


def test_the_answer_to_a_fence_is_out_of_range_before_it_is_pending() -> None:
    bench = Bench()
    session, _ = moving(bench)
    assert bench.do(A_FAR, c.AnswerFence(session, 0)).status is Status.RANGE
    assert bench.do(A_FAR, c.AnswerFence(session, 1)).status is Status.PENDING
    assert bench.do(A_TOO, c.AnswerFence(session, 0)).status is Status.DENIED
    bench.must(A, c.AnswerFence(session, 1))


def test_no_count_is_out_of_range_where_nobody_has_asked() -> None:
    bench = Bench()
    session = bench.open()
    bench.must(A, c.Write(bench.alloc(A, session, 1), 0, FULL))
    assert bench.do(A, c.AnswerFence(session, 0)).status is Status.STALE


STAND_ASIDE = "require(verdict is Status.OK, verdict)"
MUTANTS: dict[str, tuple[Callable[..., Any], str, str, Callable[[], None]]] = {
    "a write waits for the fence first": (
        blocks.write,
        "ended = frame.length < frame.accepted * size",
        f"{STAND_ASIDE}; ended = frame.length < frame.accepted * size",
        test_the_new_ring_is_told_range_before_pending_and_pending_before_write_once,
    ),
    "a write is write once first": (
        blocks.write,
        "ended = frame.length < frame.accepted * size",
        "require(segment >= frame.accepted, Status.WRITE_ONCE); ended = frame.length < frame.accepted * size",
        lambda: test_a_write_below_accepted_that_leaves_the_block_is_out_of_range(False),
    ),
    "a short segment is followed": (
        blocks.write,
        "ended = frame.length < frame.accepted * size",
        "ended = False",
        test_nothing_follows_a_short_segment,
    ),
    "an answer waits for the fence first": (
        sessions.answer_fence,
        "fence = found(session.fence, Status.STALE)",
        f"fence = found(session.fence, Status.STALE); {STAND_ASIDE}",
        test_the_answer_to_a_fence_is_out_of_range_before_it_is_pending,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_guards_in_another_order_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, old, new, test = MUTANTS[name]
    seed_bug(monkeypatch, function, old, new)
    with pytest.raises(AssertionError, match="assert"):
        test()
