"""How commands end that name blocks, keys and pins."""

from scenarios import Scenarios
from specbench import A_FAR, A_TOO, EPOCH, SEGMENT, A, B, Bench, block_bytes, moving, seal

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Completion
from hw.params.protocol import REGISTERS, Handle, LookupMode, ModelState, Opcode, Status

BLOCKS = Scenarios()
ends = BLOCKS.ends


# LOOKUP


@ends(Opcode.LOOKUP, Status.HIT)
def a_run_of_sealed_blocks_hits(bench: Bench) -> Completion:
    session = bench.open()
    handles = [bench.store(A, session, key) for key in (1, 2)]
    result = bench.do(A_FAR, c.Lookup(0, [1, 2], pin=True))
    assert (result.count, result.handles, result.statuses) == (2, handles, [Status.HIT, Status.HIT])
    assert None not in result.pins
    return result


@ends(Opcode.LOOKUP, Status.MISS)
def a_run_stops_at_the_first_key_that_is_not_there(bench: Bench) -> Completion:
    bench.store(A, bench.open(), 1)
    result = bench.do(A, c.Lookup(0, [1, 2, 1]))
    assert (result.count, result.statuses) == (1, [Status.HIT, Status.MISS])
    assert result.handles[1] is None and result.pins == [None, None]
    return result


@ends(Opcode.LOOKUP, Status.PENDING)
def a_block_being_written_is_named_but_not_pinned(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    result = bench.do(A_TOO, c.Lookup(0, [1, 1], pin=True))
    assert (result.count, result.handles, result.pins) == (0, [handle], [None])
    return result


@ends(Opcode.LOOKUP, Status.OK)
def a_bitmap_answers_every_key(bench: Bench) -> Completion:
    session = bench.open()
    bench.store(A, session, 1)
    bench.alloc(A, session, 2)
    result = bench.do(A, c.Lookup(0, [3, 1, 2, 1], LookupMode.BITMAP))
    assert result.statuses == [Status.MISS, Status.HIT, Status.PENDING, Status.HIT]
    assert result.count == 2
    return result


@ends(Opcode.LOOKUP, Status.NO_SPACE)
def a_full_pin_table_cuts_a_lookup(bench: Bench) -> Completion:
    bench.store(A, bench.open(), 1)
    result = bench.do(A, c.Lookup(0, [1, 1, 1, 1], LookupMode.BITMAP, pin=True))
    assert (result.count, len(result.handles), len(result.pins)) == (2, 2, 2)
    return result


@ends(Opcode.LOOKUP, Status.INVALID)
def no_keys_at_all(bench: Bench) -> Completion:
    return bench.do(A, c.Lookup(0, []))


# ALLOC


@ends(Opcode.ALLOC, Status.GRANTED)
def a_missing_key_is_granted_the_oldest_free_frame(bench: Bench) -> Completion:
    result = bench.do(A, c.Alloc(0, 1, SEGMENT, bench.open()))
    assert result.handle == Handle(0, 0, 0, 1, EPOCH)
    return result


@ends(Opcode.ALLOC, Status.EXISTS)
def a_sealed_key_exists(bench: Bench) -> Completion:
    handle = bench.store(A, bench.open(), 1)
    result = bench.do(A_TOO, c.Alloc(0, 1, SEGMENT, bench.open(A_TOO)))
    assert result.handle == handle
    return result


@ends(Opcode.ALLOC, Status.PENDING)
def a_key_being_written_is_pending(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    result = bench.do(A_TOO, c.Alloc(0, 1, SEGMENT, bench.open(A_TOO)))
    assert result.handle == handle
    return result


@ends(Opcode.ALLOC, Status.NO_SPACE)
def a_pool_that_others_hold_has_no_space(bench: Bench) -> Completion:
    session = bench.open(A)
    for key in range(4):
        bench.alloc(A, session, key)
    return bench.do(B, c.Alloc(0, 9, SEGMENT, bench.open(B)))


@ends(Opcode.ALLOC, Status.QUOTA)
def a_partition_at_its_quota_with_nothing_to_evict(bench: Bench) -> Completion:
    bench.must(REGISTERS, c.SetPartition(0, quota=1))
    session = bench.open()
    bench.alloc(A, session, 1)
    result = bench.do(A, c.Alloc(0, 2, SEGMENT, session))
    assert bench.core.counters["status_quota"] == 1
    return result


@ends(Opcode.ALLOC, Status.RETIRED)
def a_rollout_takes_no_new_blocks_not_even_those_that_exist(bench: Bench) -> Completion:
    session = bench.open()
    bench.store(A, session, 1)
    bench.must(REGISTERS, c.SetModel(0, ModelState.READ_ONLY))
    assert bench.look(A, 1) is Status.HIT
    return bench.do(A, c.Alloc(0, 1, SEGMENT, session))


@ends(Opcode.ALLOC, Status.RANGE)
def no_block_is_longer_than_a_frame(bench: Bench) -> Completion:
    session = bench.open()
    bench.alloc(A, session, 1, 4096)
    return bench.do(A, c.Alloc(0, 2, 4097, session))


@ends(Opcode.ALLOC, Status.DENIED)
def a_session_is_of_one_ring(bench: Bench) -> Completion:
    return bench.do(A_TOO, c.Alloc(0, 1, SEGMENT, bench.open(A)))


@ends(Opcode.ALLOC, Status.STALE)
def a_session_that_was_closed_is_stale(bench: Bench) -> Completion:
    session = bench.open()
    bench.must(A, c.CloseSession(session))
    bench.open()
    return bench.do(A, c.Alloc(0, 1, SEGMENT, session))


# WRITE


@ends(Opcode.WRITE, Status.OK)
def segments_are_appended(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1, 4096)
    bench.must(A, c.Write(handle, 0, block_bytes(2)))
    result = bench.do(A, c.Write(handle, 2, memoryview(block_bytes(3, short=100))))
    assert result.count == 3
    return result


@ends(Opcode.WRITE, Status.WRITE_ONCE)
def what_was_accepted_is_not_written_again(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1, 4096)
    bench.must(A, c.Write(handle, 0, block_bytes(2)))
    return bench.do(A, c.Write(handle, 1, block_bytes(1)))


@ends(Opcode.WRITE, Status.RANGE)
def nothing_is_written_beyond_the_length(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1, SEGMENT + 10)
    result = bench.do(A, c.Write(handle, 0, block_bytes(3)))
    assert result.count == 1, "what fits is accepted, segment by segment"
    return result


@ends(Opcode.WRITE, Status.PENDING)
def the_new_ring_does_not_write_yet(bench: Bench) -> Completion:
    _, handle = moving(bench)
    return bench.do(A_FAR, c.Write(handle, 1, block_bytes(1)))


@ends(Opcode.WRITE, Status.DENIED)
def nobody_writes_in_a_foreign_block(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    return bench.do(A_TOO, c.Write(handle, 0, block_bytes(1)))


@ends(Opcode.WRITE, Status.STALE)
def an_aborted_block_is_stale(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    bench.must(A, c.Abort(handle))
    return bench.do(A, c.Write(handle, 0, block_bytes(1)))


# SEAL


@ends(Opcode.SEAL, Status.OK)
def a_seal_waits_for_memory_and_makes_the_block_visible(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    data = block_bytes(1)
    bench.ask(A, c.Write(handle, 0, data))
    tag = bench.ask(A, seal(handle, data))
    assert bench.answer(A, tag) is None
    bench.execute(log.Landed(0, 1))
    assert bench.answer(A, tag) is None and bench.look(A, 1) is Status.PENDING
    bench.execute(log.Sealed(0))
    assert bench.look(A, 1) is Status.HIT
    return bench.answered(A, tag)


@ends(Opcode.SEAL, Status.INCOMPLETE)
def the_length_must_be_what_was_accepted(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1, 4096)
    data = block_bytes(2)
    bench.must(A, c.Write(handle, 0, data[:SEGMENT]))
    result = bench.do(A, seal(handle, data))
    bench.must(A, c.Write(handle, 1, data[SEGMENT:]))
    bench.must(A, seal(handle, data))
    return result


@ends(Opcode.SEAL, Status.CRC)
def a_wrong_crc_ends_the_block(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    bench.must(A, c.Write(handle, 0, block_bytes(1)))
    result = bench.do(A, c.Seal(handle, SEGMENT, 0))
    assert bench.look(A, 1) is Status.MISS
    return result


@ends(Opcode.SEAL, Status.MEM_ERROR)
def a_segment_that_memory_failed_to_store_ends_the_block(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1, 4096)
    data = block_bytes(3)
    bench.ask(A, c.Write(handle, 0, data))
    bench.execute(log.Landed(0, 2, ok=False))
    bench.execute(log.Landed(0, 1))
    result = bench.do(A, seal(handle, data))
    assert bench.look(A, 1) is Status.MISS
    return result


@ends(Opcode.SEAL, Status.WRITE_ONCE)
def a_block_is_sealed_once(bench: Bench) -> Completion:
    handle = bench.store(A, bench.open(), 1)
    return bench.do(A, seal(handle, block_bytes(1)))


@ends(Opcode.SEAL, Status.PENDING)
def the_new_ring_does_not_seal_yet(bench: Bench) -> Completion:
    _, handle = moving(bench)
    return bench.do(A_FAR, seal(handle, block_bytes(1)))


@ends(Opcode.SEAL, Status.DENIED)
def nobody_seals_a_foreign_block(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    return bench.do(B, seal(handle, b"x"))


@ends(Opcode.SEAL, Status.STALE)
def a_stale_end_seals_nothing(bench: Bench) -> Completion:
    session = bench.open()
    old = bench.alloc(A, session, 1)
    bench.must(A, c.Abort(old))
    bench.settle()
    data = block_bytes(1)
    new = [bench.alloc(A, session, key) for key in (2, 3, 4, 1)][-1]
    assert new.frame == old.frame
    bench.must(A, c.Write(new, 0, data))
    result = bench.do(A, seal(old, data))
    assert bench.look(A, 1) is Status.PENDING
    return result


# ABORT


@ends(Opcode.ABORT, Status.OK)
def an_abort_frees_the_key(bench: Bench) -> Completion:
    session = bench.open()
    handle = bench.alloc(A, session, 1)
    result = bench.do(A, c.Abort(handle))
    assert bench.look(A, 1) is Status.MISS
    bench.alloc(A, session, 1)
    return result


@ends(Opcode.ABORT, Status.WRITE_ONCE)
def a_sealed_block_is_not_aborted(bench: Bench) -> Completion:
    handle = bench.store(A, bench.open(), 1)
    return bench.do(A, c.Abort(handle))


@ends(Opcode.ABORT, Status.PENDING)
def the_new_ring_does_not_abort_yet(bench: Bench) -> Completion:
    _, handle = moving(bench)
    return bench.do(A_FAR, c.Abort(handle))


@ends(Opcode.ABORT, Status.DENIED)
def nobody_aborts_a_foreign_block(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    return bench.do(A_FAR, c.Abort(handle))


@ends(Opcode.ABORT, Status.STALE)
def an_abort_is_not_repeated(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    bench.must(A, c.Abort(handle))
    return bench.do(A, c.Abort(handle))


# READ


@ends(Opcode.READ, Status.OK)
def any_segments_of_a_sealed_block_are_read(bench: Bench) -> Completion:
    data = block_bytes(3, short=5)
    handle = bench.store(A, bench.open(), 1, data)
    result = bench.do(A_FAR, c.Read(handle, 1, 2))
    assert (result.data, result.count) == (data[SEGMENT:], 2)
    return result


@ends(Opcode.READ, Status.PENDING)
def only_its_own_session_reads_what_has_landed(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1, 4096)
    bench.ask(A, c.Write(handle, 0, block_bytes(2)))
    bench.execute(log.Landed(0, 1))
    own = bench.ask(A, c.Read(handle, 0, 1))
    too_far = bench.do(A, c.Read(handle, 0, 2))
    bench.execute(log.ReadDone(A, own))
    assert bench.answered(A, own).data == block_bytes(2)[:SEGMENT]
    assert too_far.status is Status.PENDING
    return bench.do(A_TOO, c.Read(handle, 0, 1))


@ends(Opcode.READ, Status.RANGE)
def nothing_is_read_beyond_the_end(bench: Bench) -> Completion:
    handle = bench.store(A, bench.open(), 1, block_bytes(2))
    return bench.do(A, c.Read(handle, 1, 2))


@ends(Opcode.READ, Status.POISON)
def damaged_bytes_end_the_block_and_are_not_returned(bench: Bench) -> Completion:
    handle = bench.store(A, bench.open(), 1)
    tag = bench.ask(A, c.Read(handle, 0, 1))
    bench.execute(log.ReadDone(A, tag, ok=False))
    assert bench.look(A, 1) is Status.MISS
    result = bench.answered(A, tag)
    assert result.data == b""
    return result


@ends(Opcode.READ, Status.DENIED)
def a_handle_gives_no_right(bench: Bench) -> Completion:
    handle = bench.store(A, bench.open(), 1)
    return bench.do(B, c.Read(handle, 0, 1))


@ends(Opcode.READ, Status.STALE)
def a_dropped_block_is_stale_even_through_a_pin(bench: Bench) -> Completion:
    handle = bench.store(A, bench.open(), 1)
    bench.pin(A, 1)
    bench.must(A, c.Drop(0, 1))
    return bench.do(A, c.Read(handle, 0, 1))


# UNPIN and DROP


@ends(Opcode.UNPIN, Status.OK)
def a_pin_is_returned(bench: Bench) -> Completion:
    bench.store(A, bench.open(), 1)
    return bench.do(A, c.Unpin(bench.pin(A, 1)))


@ends(Opcode.UNPIN, Status.STALE)
def a_pin_is_returned_once_and_by_its_own_ring(bench: Bench) -> Completion:
    bench.store(A, bench.open(), 1)
    pin = bench.pin(A, 1)
    assert bench.do(A_TOO, c.Unpin(pin)).status is Status.STALE
    bench.must(A, c.Unpin(pin))
    return bench.do(A, c.Unpin(pin))


@ends(Opcode.DROP, Status.OK)
def a_drop_takes_blocks_being_written_too(bench: Bench) -> Completion:
    handle = bench.alloc(A, bench.open(), 1)
    result = bench.do(A_FAR, c.Drop(0, 1))
    assert bench.do(A, c.Write(handle, 0, block_bytes(1))).status is Status.STALE
    return result


@ends(Opcode.DROP, Status.MISS)
def a_drop_reaches_no_other_partition(bench: Bench) -> Completion:
    bench.store(B, bench.open(B), 1)
    assert bench.look(A, 1) is Status.HIT, "public, so it may be read"
    return bench.do(A, c.Drop(0, 1))
