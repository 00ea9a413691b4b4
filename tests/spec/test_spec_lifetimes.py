"""What dies together, what waits, and what is left behind: scopes, parked reads, lost rings, restarts."""

import pytest
from specbench import A_FAR, A_TOO, EPOCH, SEGMENT, A, B, Bench, block_bytes, moving, seal, tiny

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Binding, Completion
from hw.params.orderlog import Hand, Step, Taken, Timer
from hw.params.protocol import REGISTERS, FrameState, Handle, LookupMode, ModelState, RingId, Status
from pymodel.spec import IllegalOperation

# Scopes


def dropped_until_closed(bench: Bench) -> None:
    """Partition 0 dies so often that its stamps run out, while one dead block is still there."""
    bench.store(A, bench.open(), 1)
    for _ in range(1 << bench.params.tables.stamp_bits):
        assert not bench.core.partitions[0].scope.closed
        bench.must(REGISTERS, c.DropPartition(0))


def test_a_scope_whose_stamps_run_out_is_closed_until_the_sweep_has_passed() -> None:
    bench = Bench()
    dropped_until_closed(bench)
    session = bench.open()
    for command in (c.Lookup(0, [1]), c.Alloc(0, 1, 1, session), c.Drop(0, 1)):
        assert bench.do(A, command).status is Status.UNAVAILABLE
    assert bench.look(B, 1) is Status.MISS, "the other partition goes on"
    bench.must(REGISTERS, c.DropPartition(0))
    bench.execute(Step(Hand.FRAMES, 0))
    assert bench.look(A, 1) is Status.MISS
    bench.alloc(A, session, 1)


def test_bumps_without_dead_entries_use_no_stamps_up() -> None:
    bench = Bench()
    session = bench.open()
    for _ in range(20):
        bench.store(A, session, 1)
        bench.must(REGISTERS, c.DropPartition(0))
        assert not bench.core.partitions[0].scope.closed
        bench.settle()


def test_a_closed_model_is_closed_for_all_partitions_and_for_no_other_model() -> None:
    bench = Bench()
    session = bench.open(A)
    bench.store(A, session, 1)
    for _ in range(4):
        bench.must(REGISTERS, c.Retire(0))
    bench.must(REGISTERS, c.SetModel(0, ModelState.LIVE))
    assert bench.look(B, 1) is Status.UNAVAILABLE
    bench.store(A, session, 1, model=1)
    bench.settle()
    assert bench.look(B, 1) is Status.MISS


def test_a_dead_generation_never_comes_back_however_often_its_scope_dies() -> None:
    bench = Bench()
    session = bench.open()
    handle = bench.store(A, session, 1)
    for _ in range(9):
        bench.must(REGISTERS, c.DropPartition(0))
        assert bench.do(A, c.Read(handle, 0, 1)).status is Status.STALE
        assert bench.look(A, 1) in (Status.MISS, Status.UNAVAILABLE)


def test_pins_can_be_returned_while_their_partition_is_closed() -> None:
    bench = Bench()
    bench.store(A, bench.open(), 1)
    pin = bench.pin(A, 1)
    for _ in range(4):
        bench.must(REGISTERS, c.DropPartition(0))
    assert bench.core.partitions[0].scope.closed
    bench.must(A, c.Unpin(pin))


def test_an_alloc_rewrites_the_entry_of_a_dead_block_and_the_old_frame_drains() -> None:
    bench = Bench()
    session = bench.open()
    old = bench.store(A, session, 1)
    place = bench.core.cam.where(bench.core.frames[0].tag)
    bench.must(REGISTERS, c.DropPartition(0))
    new = bench.alloc(A, session, 1)
    assert new.frame != old.frame
    assert bench.core.frames[old.frame].state is FrameState.DRAINING
    assert bench.core.cam.where(bench.core.frames[new.frame].tag) == place


def test_the_victim_may_be_the_dead_block_of_the_same_key() -> None:
    bench = Bench()
    bench.must(REGISTERS, c.SetPartition(0, quota=1))
    session = bench.open()
    old = bench.store(A, session, 1)
    bench.must(REGISTERS, c.DropPartition(0))
    new = bench.alloc(A, session, 1)
    assert (new.frame, new.generation) == (old.frame, old.generation + 1)


def test_a_seal_that_waits_when_its_scope_dies_ends_stale() -> None:
    bench = Bench()
    handle = bench.alloc(A, bench.open(), 1)
    bench.ask(A, c.Write(handle, 0, block_bytes(1)))
    tag = bench.ask(A, seal(handle, block_bytes(1)))
    bench.must(REGISTERS, c.DropPartition(0))
    bench.execute(log.Landed(0, 1))
    bench.execute(log.Sealed(0))
    assert bench.answered(A, tag).status is Status.STALE
    assert bench.look(A, 1) is Status.MISS


@pytest.mark.parametrize("death", ["drop", "abort", "close", "retire", "in place"])
def test_whatever_kills_a_sealing_block_its_seal_ends_stale(death: str) -> None:
    bench = Bench()
    session = bench.open()
    handle = bench.alloc(A, session, 1)
    bench.ask(A, c.Write(handle, 0, block_bytes(1)))
    tag = bench.ask(A, seal(handle, block_bytes(1)))
    if death == "drop":
        bench.must(A_TOO, c.Drop(0, 1))
    elif death == "abort":
        bench.must(A, c.Abort(handle))
    elif death == "close":
        bench.must(A, c.CloseSession(session))
    elif death == "retire":
        bench.must(REGISTERS, c.Retire(0))
    else:
        bench.must(REGISTERS, c.DropPartition(0))
        bench.alloc(A, session, 1)
    bench.settle()
    assert bench.answered(A, tag).status is Status.STALE
    assert bench.core.frames[handle.frame].state is FrameState.FREE


def test_a_read_accepted_before_a_bump_finishes() -> None:
    bench = Bench()
    handle = bench.store(A, bench.open(), 1)
    tag = bench.ask(A, c.Read(handle, 0, 1))
    bench.must(REGISTERS, c.DropPartition(0))
    bench.execute(Step(Hand.FRAMES, 0))
    assert [*bench.slice.possible()] == [log.ReadDone(A, tag)], "the frame is held"
    bench.settle()
    assert bench.answered(A, tag).data == block_bytes(1)


def test_a_pinned_dead_frame_drains_only_when_its_pin_is_returned() -> None:
    bench = Bench()
    bench.store(B, bench.open(B), 1)
    pin = bench.pin(A, 1)
    bench.must(REGISTERS, c.DropPartition(1))
    bench.settle()
    assert bench.core.frames[0].state is FrameState.DRAINING
    assert bench.core.partitions[1].used == 1, "DRAINING counts"
    bench.must(A, c.Unpin(pin))
    bench.settle()
    assert bench.core.frames[0].state is FrameState.FREE


def test_a_frame_whose_generations_are_used_up_leaves_service_until_restart() -> None:
    bench = Bench(tiny(generation_bits=2))
    session = bench.open()
    for use in range(12):
        bench.must(A, c.Abort(bench.alloc(A, session, use)))
        bench.settle()
    assert [frame.state for frame in bench.core.frames] == [FrameState.QUARANTINED] * 4
    assert bench.do(A, c.Alloc(0, 1, 1, session)).status is Status.NO_SPACE
    bench.execute(log.Restarted())
    bench.configure()
    bench.alloc(A, bench.open(), 1)


def test_a_saturated_block_is_read_but_never_evicted() -> None:
    bench = Bench(tiny(generation_bits=2))
    session = bench.open()
    for key in range(3 * 4):
        bench.store(A, session, key)
    assert [frame.generation for frame in bench.core.frames] == [3] * 4
    assert bench.do(A, c.Alloc(0, 99, 1, session)).status is Status.QUOTA
    assert [bench.look(A, key) for key in range(8, 12)] == [Status.HIT] * 4


# Invalidations and events


def test_ports_are_told_what_died_and_what_was_stored() -> None:
    bench = Bench()
    bench.heard.clear()
    handle = bench.store(B, bench.open(B), 1)
    bench.must(REGISTERS, c.DropPartition(0))
    bench.must(REGISTERS, c.Retire(1))
    told = [message for message in bench.heard if not isinstance(message, Completion)]
    assert told == [
        c.Event(0, c.Fate.STORED, partition=1, model=0, key=1, handle=handle),
        c.Event(1, c.Fate.STORED, partition=1, model=0, key=1, handle=handle),
        c.Invalidate(0, partition=0),
        c.Invalidate(1, partition=0),
        c.Invalidate(0, model=1),
        c.Invalidate(1, model=1),
    ]


def test_ports_are_told_of_a_block_that_goes_alone_and_not_again_of_one_that_died_with_its_scope() -> None:
    bench = Bench()
    session = bench.open()
    for key in (1, 2, 3):
        bench.store(A, session, key)
    poisoned = bench.core.handle(bench.core.frames[1])
    bench.heard.clear()
    bench.must(A_TOO, c.Drop(0, 1))
    bench.execute(log.ReadDone(A, bench.ask(A, c.Read(poisoned, 0, 1)), ok=False))
    bench.must(REGISTERS, c.DropPartition(0))
    bench.settle()
    gone = [(m.port, m.key) for m in bench.heard if isinstance(m, c.Event) and not m.stored]
    assert gone == [(0, 1), (1, 1), (0, 2), (1, 2)]


# Parked reads


def parked(bench: Bench) -> tuple[int, Handle]:
    """A READ of A_FAR, parked on a block that A writes."""
    handle = bench.alloc(A, bench.open(), 1, 2 * SEGMENT)
    bench.must(A, c.Write(handle, 0, block_bytes(1)))
    tag = bench.ask(A_FAR, c.Read(handle, 0, 1, park=True))
    bench.settle()
    assert bench.answer(A_FAR, tag) is None
    return tag, handle


def test_seal_wakes_a_parked_read() -> None:
    bench = Bench()
    tag, handle = parked(bench)
    bench.must(A, seal(handle, block_bytes(1)))
    bench.settle()
    assert bench.answered(A_FAR, tag).data == block_bytes(1)


def test_a_parked_read_beyond_the_sealed_end_is_out_of_range() -> None:
    bench = Bench()
    _, handle = parked(bench)
    tag = bench.ask(A_FAR, c.Read(handle, 0, 2, park=True))
    bench.must(A, seal(handle, block_bytes(1)))
    bench.settle()
    assert bench.answered(A_FAR, tag).status is Status.RANGE


def test_abort_answers_a_parked_read_stale_even_when_the_key_is_written_again() -> None:
    bench = Bench()
    tag, handle = parked(bench)
    bench.must(A, c.Abort(handle))
    bench.execute(log.Drained(handle.frame))
    other = bench.open(A_TOO)
    while bench.alloc(A_TOO, other, 1).frame != handle.frame:
        bench.must(A_TOO, c.Drop(0, 1))
    bench.settle()
    assert bench.answered(A_FAR, tag).status is Status.STALE


def test_the_timer_of_a_parked_read_only_answers_pending() -> None:
    bench = Bench()
    tag, _ = parked(bench)
    bench.execute(log.Expired(Timer.PARKED_READ, 0))
    assert bench.answered(A_FAR, tag).status is Status.PENDING
    assert bench.look(A, 1) is Status.PENDING, "nothing became readable, nothing died"


def test_a_full_parking_table_answers_pending() -> None:
    bench = Bench()
    _, handle = parked(bench)
    bench.ask(A_TOO, c.Read(handle, 0, 1, park=True))
    assert bench.do(A_FAR, c.Read(handle, 0, 1, park=True)).status is Status.PENDING


def test_loss_of_the_readers_ring_cancels_its_parked_read() -> None:
    bench = Bench()
    tag, _ = parked(bench)
    bench.lose(A_FAR)
    bench.settle()
    assert bench.answered(A_FAR, tag).status is Status.UNAVAILABLE


def test_loss_of_the_writers_ring_answers_a_parked_read_stale() -> None:
    bench = Bench()
    tag, _ = parked(bench)
    bench.lose(A)
    bench.settle()
    assert bench.answered(A_FAR, tag).status is Status.STALE


def test_a_parked_read_loses_the_right_to_read_before_it_starts() -> None:
    bench = Bench()
    tag, handle = parked(bench)
    bench.lose(A_FAR)
    bench.settle()
    bench.must(REGISTERS, c.Bind(A_FAR, 1))
    assert bench.answered(A_FAR, tag).status is Status.UNAVAILABLE
    assert bench.do(A_FAR, c.Read(handle, 0, 1, park=True)).status is Status.DENIED


def test_parking_slots_do_not_wear_out() -> None:
    bench = Bench()
    _, handle = parked(bench)
    for _ in range(40):
        tag = bench.ask(A_TOO, c.Read(handle, 0, 1, park=True))
        bench.execute(log.Expired(Timer.PARKED_READ, 1))
        assert bench.answered(A_TOO, tag).status is Status.PENDING


# Loss and rebinding


def test_a_lost_ring_leaves_nothing_written_pinned_or_parked() -> None:
    bench = Bench()
    session = bench.open(A)
    bench.store(A, session, 1)
    bench.pin(A, 1)
    writing = bench.alloc(A, session, 2)
    waiting = bench.alloc(A_TOO, bench.open(A_TOO), 3)
    bench.ask(A, c.Write(writing, 0, block_bytes(1)))
    tags = [bench.ask(A, seal(writing, block_bytes(1))), bench.ask(A, c.Read(waiting, 0, 1, park=True))]
    bench.lose(A)
    assert bench.look(A_TOO, 2) is Status.MISS, "at once"
    assert bench.look(A_TOO, 1) is Status.HIT, "what was sealed stays"
    assert bench.do(REGISTERS, c.Bind(A, 1)).status is Status.PENDING, "while anything is left of it"
    bench.settle()
    assert [bench.answered(A, tag).status for tag in tags] == [Status.UNAVAILABLE] * 2
    bench.must(REGISTERS, c.Bind(A, 1))
    assert bench.core.frames[0].pins == 0


def test_a_dead_writer_blocks_no_key() -> None:
    bench = Bench()
    bench.alloc(A, bench.open(A), 1)
    bench.lose(A)
    assert bench.do(A_TOO, c.Alloc(0, 1, 1, bench.open(A_TOO))).status is Status.GRANTED


@pytest.mark.parametrize("left", ["pin", "session", "read", "lookup"])
def test_a_ring_changes_hands_only_when_nothing_of_it_is_left(left: str) -> None:
    bench = Bench()
    handle = bench.store(A_TOO, bench.open(A_TOO), 1)
    if left == "pin":
        bench.pin(A, 1)
    elif left == "session":
        bench.open(A)
    elif left == "read":
        bench.ask(A, c.Read(handle, 0, 1))
    else:
        bench.execute(Taken(A, 1000, c.Lookup(0, [1, 1])))
    assert bench.do(REGISTERS, c.Bind(A, 1)).status is Status.PENDING
    assert bench.do(REGISTERS, c.Bind(A, 1)).status is Status.PENDING
    assert bench.do(A, c.OpenSession()).status is Status.UNAVAILABLE, "it is lost until then"
    if left == "lookup":
        (cut,) = bench.execute(Taken(A, 1000, c.Lookup(0, [1, 1]), item=1))
        assert isinstance(cut, Completion) and cut.status is Status.UNAVAILABLE
    bench.settle()
    bench.must(REGISTERS, c.Bind(A, 1))
    assert bench.do(A, c.Read(handle, 0, 1)).status is Status.DENIED


def test_the_slot_that_has_been_free_longest_is_taken() -> None:
    bench = Bench(tiny(sessions=3))
    first, second = bench.open(), bench.open()
    bench.must(A, c.CloseSession(first))
    assert bench.open().slot == 2
    bench.must(A, c.CloseSession(second))
    assert [bench.open().slot for _ in range(2)] == [0, 1]


def test_identifiers_of_the_former_holder_of_a_ring_are_stale() -> None:
    bench = Bench()
    session = bench.open(A)
    bench.store(A, session, 1)
    pin = bench.pin(A, 1)
    bench.lose(A)
    bench.settle()
    bench.must(REGISTERS, c.Bind(A, 0))
    bench.pin(A, 1)
    bench.pin(A, 1)
    assert bench.do(A, c.Unpin(pin)).status is Status.STALE
    bench.open(A)
    bench.open(A)
    assert bench.do(A, c.CloseSession(session)).status is Status.STALE


def test_a_ring_that_held_a_session_once_has_no_right_to_it_in_another_partition() -> None:
    bench = Bench()
    session, _ = moving(bench)
    bench.must(A, c.AnswerFence(session, 1))
    bench.settle()
    bench.must(REGISTERS, c.Bind(A, 1))
    assert bench.do(A, c.CloseSession(session)).status is Status.DENIED


def test_an_administrative_ring_that_binds_itself_is_lost() -> None:
    bench = Bench()
    bench.must(REGISTERS, c.Bind(A, Binding.ADMINISTRATIVE))
    assert bench.do(A, c.Bind(A, 0)).status is Status.UNAVAILABLE
    bench.must(REGISTERS, c.Bind(A, 0))


def test_poison_found_by_a_lost_ring_ends_the_block_for_all() -> None:
    bench = Bench()
    handle = bench.store(A_TOO, bench.open(A_TOO), 1)
    tag = bench.ask(A, c.Read(handle, 0, 1))
    bench.lose(A)
    bench.execute(log.ReadDone(A, tag, ok=False))
    assert bench.answered(A, tag).status is Status.UNAVAILABLE
    assert bench.look(A_TOO, 1) is Status.MISS


def test_poison_of_a_pinned_block_keeps_its_frame() -> None:
    bench = Bench()
    handle = bench.store(A, bench.open(), 1)
    pin = bench.pin(A_TOO, 1)
    both = [bench.ask(A, c.Read(handle, 0, 1)), bench.ask(A_TOO, c.Read(handle, 0, 1))]
    bench.execute(log.ReadDone(A, both[0], ok=False))
    bench.settle()
    assert bench.answered(A_TOO, both[1]).data == block_bytes(1)
    assert bench.core.frames[0].state is FrameState.DRAINING
    bench.must(A_TOO, c.Unpin(pin))
    bench.settle()
    assert bench.core.frames[0].state is FrameState.FREE


# Restart


def test_a_restart_answers_all_that_is_outstanding_and_forgets_everything() -> None:
    bench = Bench()
    tag, handle = parked(bench)
    bench.execute(Taken(A, 1000, c.Lookup(0, [7, 8], LookupMode.BITMAP)))
    (*ended,) = bench.execute(log.Restarted())
    assert {(o.ring, o.tag, o.status) for o in ended if isinstance(o, Completion)} == {
        (A_FAR, tag, Status.UNAVAILABLE),
        (A, 1000, Status.UNAVAILABLE),
    }
    assert bench.do(A, c.OpenSession()).status is Status.UNAVAILABLE
    bench.must(REGISTERS, c.SetEpoch(EPOCH + 1))
    assert bench.do(A, c.OpenSession()).status is Status.DENIED, "no ring is bound"
    bench.must(REGISTERS, c.SetPartition(0, quota=4))
    bench.must(REGISTERS, c.SetModel(0, ModelState.LIVE))
    bench.must(REGISTERS, c.Bind(A, 0))
    new = bench.alloc(A, bench.open(), 1)
    assert new._replace(epoch=EPOCH) == handle, "the same frame and generation"
    assert bench.do(A, c.Abort(handle)).status is Status.STALE, "in another epoch"
    with pytest.raises(IllegalOperation, match="not next"):
        bench.execute(Taken(A, 1000, c.Lookup(0, [7, 8], LookupMode.BITMAP), item=1))


def test_registers_are_never_lost() -> None:
    bench = Bench()
    with pytest.raises(IllegalOperation, match="registers"):
        bench.execute(log.Lost(REGISTERS))
    with pytest.raises(IllegalOperation, match="no ring"):
        bench.execute(log.Lost(RingId(7, 7)))
