"""The order log: what it may not say, and that a rejected entry leaves no trace."""

from collections.abc import Callable

import pytest
from specbench import A_FAR, SEGMENT, A, Bench, block_bytes, moving, seal

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.orderlog import Hand, Operation, Step, Taken, Timer
from hw.params.protocol import REGISTERS, RingId, Status
from pymodel.spec import IllegalOperation

NOWHERE = RingId(7, 7)


def nothing(bench: Bench) -> None:
    """An idle slice."""


def written(bench: Bench) -> None:
    """One segment of two has been answered."""
    handle = bench.alloc(A, bench.open(), 1, 2 * SEGMENT)
    bench.ask(A, c.Write(handle, 0, block_bytes(2)))
    bench.execute(log.Landed(0, 1))


def sealing(bench: Bench) -> None:
    """A SEAL waits for the second segment."""
    written(bench)
    bench.ask(A, seal(bench.core.handle(bench.core.frames[0]), block_bytes(2)))


def stored(bench: Bench) -> None:
    """A sealed, pinned block."""
    bench.store(A, bench.open(), 1)
    bench.pin(A, 1)


def dropped(bench: Bench) -> None:
    """A pinned block that drains."""
    stored(bench)
    bench.must(A, c.Drop(0, 1))


def parked(bench: Bench) -> None:
    """A READ waits for a seal."""
    written(bench)
    bench.ask(A_FAR, c.Read(bench.core.handle(bench.core.frames[0]), 0, 1, park=True))


def fenced(bench: Bench) -> None:
    """A migration whose count has not landed."""
    session, _ = moving(bench)
    bench.ask(A, c.AnswerFence(session, 1))


def batch(bench: Bench) -> None:
    """One key of three has been looked up."""
    bench.execute(Taken(A, 500, LOOKUP))


LOOKUP = c.Lookup(0, [1, 2, 3], mode=c.LookupMode.BITMAP)
ILLEGAL: list[tuple[Callable[[Bench], None], Operation]] = [
    (nothing, log.Landed(0, 1)),
    (nothing, log.Landed(4, 1)),
    (nothing, log.Landed(-1, 1)),
    (written, log.Landed(0, 2)),
    (written, log.Landed(0, 0)),
    (written, log.Sealed(0)),
    (sealing, log.Sealed(0)),
    (stored, log.Sealed(0)),
    (nothing, log.ReadDone(A, 1)),
    (parked, log.ReadDone(A_FAR, 1)),
    (nothing, log.Drained(0)),
    (stored, log.Drained(0)),
    (dropped, log.Drained(0)),
    (nothing, log.Drained(9)),
    (nothing, log.Expired(Timer.PARKED_READ, 0)),
    (parked, log.Expired(Timer.PARKED_READ, 1)),
    (parked, log.Expired(Timer.PARKED_READ, 99)),
    (written, log.Expired(Timer.FENCE, 0)),
    (written, log.Fenced(0)),
    (fenced, log.Fenced(0)),
    (fenced, log.Fenced(7)),
    (nothing, log.Lost(NOWHERE)),
    (nothing, log.Lost(REGISTERS)),
    (stored, Step(Hand.FRAMES, 0)),
    (stored, Step(Hand.FRAMES, 4)),
    (stored, Step(Hand.SESSIONS, 0)),
    (stored, Step(Hand.SESSIONS, 1)),
    (stored, Step(Hand.SESSIONS, -1)),
    (stored, Step(Hand.PINS, 0, A)),
    (stored, Step(Hand.PINS, 0)),
    (stored, Step(Hand.PINS, 0, NOWHERE)),
    (parked, Step(Hand.PARKED, 0)),
    (parked, Step(Hand.PARKED, 1)),
    (nothing, Taken(NOWHERE, 1, c.OpenSession())),
    (nothing, Taken(A, 500, LOOKUP, item=1)),
    (batch, Taken(A, 500, LOOKUP)),
    (batch, Taken(A, 500, LOOKUP, item=2)),
    (batch, Taken(A, 500, c.Lookup(0, [1, 2, 4]), item=1)),
    (batch, Taken(A_FAR, 500, LOOKUP, item=1)),
    (batch, Taken(A, 500, c.OpenSession())),
]


@pytest.mark.parametrize(("story", "op"), ILLEGAL, ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_entry_that_is_not_legal_where_it_stands_is_rejected_without_a_trace(
    story: Callable[[Bench], None], op: Operation
) -> None:
    bench, untouched = Bench(), Bench()
    for each in (bench, untouched):
        story(each)
    with pytest.raises(IllegalOperation):
        bench.slice.execute(op)
    bench.slice.monitor.audit()
    for each in (bench, untouched):
        each.settle()
        each.execute(log.Lost(A))
        each.settle()
        each.store(A_FAR, each.open(A_FAR), 50)
    assert bench.heard == untouched.heard


def test_the_items_of_a_batch_come_in_order_with_anything_in_between() -> None:
    bench = Bench()
    batch(bench)
    bench.store(A_FAR, bench.open(A_FAR), 3)
    bench.execute(Taken(A, 500, LOOKUP, item=1))
    bench.execute(Taken(A, 500, LOOKUP, item=2))
    assert bench.answered(A, 500).statuses == [Status.MISS, Status.MISS, Status.HIT]


def test_a_write_that_is_refused_midway_has_appended_what_it_counts() -> None:
    bench = Bench()
    handle = bench.alloc(A, bench.open(), 1, 3 * SEGMENT)
    write = c.Write(handle, 0, block_bytes(3))
    bench.execute(Taken(A, 500, write))
    bench.execute(Taken(A, 500, write, item=1))
    bench.must(A_FAR, c.Drop(0, 1))
    bench.execute(Taken(A, 500, write, item=2))
    assert (bench.answered(A, 500).status, bench.answered(A, 500).count) == (Status.STALE, 2)
    with pytest.raises(IllegalOperation):
        bench.execute(Taken(A, 500, write, item=3))


def test_what_is_possible_is_legal_and_what_is_not_listed_is_no_progress() -> None:
    bench = Bench()
    session, handle = moving(bench)
    bench.ask(A, seal(handle, block_bytes(1)))
    bench.ask(A_FAR, c.Read(handle, 0, 1, park=True))
    bench.ask(A, c.AnswerFence(session, 1))
    assert [*bench.slice.possible()] == [log.Landed(0, 1)]
    bench.execute(log.Landed(0, 1))
    assert {*bench.slice.possible()} == {log.Sealed(0), log.Fenced(0)}
    bench.execute(log.Sealed(0))
    assert {*bench.slice.possible()} == {log.Fenced(0), Step(Hand.PARKED, 0)}
    bench.settle()
    assert not [*bench.slice.possible()]


def test_a_restart_is_always_legal() -> None:
    for story in (nothing, written, sealing, stored, dropped, parked, fenced, batch):
        bench = Bench()
        story(bench)
        bench.execute(log.Restarted())
        assert not bench.core.outstanding
