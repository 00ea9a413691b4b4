"""How commands end that name sessions, and those of an administrator."""

from scenarios import Scenarios
from specbench import A_FAR, A_TOO, SEGMENT, A, B, Bench, block_bytes, moving

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Binding, Completion
from hw.params.protocol import REGISTERS, ModelState, Opcode, Status

CONTROL = Scenarios()
ends = CONTROL.ends


# Sessions


@ends(Opcode.OPEN_SESSION, Status.OK)
def any_bound_ring_opens_a_session(bench: Bench) -> Completion:
    return bench.do(B, c.OpenSession())


@ends(Opcode.OPEN_SESSION, Status.NO_SPACE)
def the_session_table_is_bounded(bench: Bench) -> Completion:
    bench.open(A)
    bench.open(B)
    return bench.do(A, c.OpenSession())


@ends(Opcode.CLOSE_SESSION, Status.OK)
def closing_a_session_ends_what_it_has_not_sealed(bench: Bench) -> Completion:
    session = bench.open()
    bench.store(A, session, 1)
    bench.alloc(A, session, 2)
    result = bench.do(A, c.CloseSession(session))
    assert (bench.look(A, 1), bench.look(A, 2)) == (Status.HIT, Status.MISS)
    return result


@ends(Opcode.CLOSE_SESSION, Status.PENDING)
def the_new_ring_does_not_close_yet(bench: Bench) -> Completion:
    session, _ = moving(bench)
    return bench.do(A_FAR, c.CloseSession(session))


@ends(Opcode.CLOSE_SESSION, Status.DENIED)
def nobody_closes_a_foreign_session(bench: Bench) -> Completion:
    return bench.do(A_TOO, c.CloseSession(bench.open(A)))


@ends(Opcode.CLOSE_SESSION, Status.STALE)
def a_session_is_closed_once(bench: Bench) -> Completion:
    session = bench.open()
    bench.must(A, c.CloseSession(session))
    return bench.do(A, c.CloseSession(session))


@ends(Opcode.MIGRATE, Status.OK)
def a_session_changes_rings_when_the_old_one_has_answered(bench: Bench) -> Completion:
    session, handle = moving(bench)
    bench.must(A, c.AnswerFence(session, 1))
    bench.settle()
    (result,) = [o for o in bench.heard if isinstance(o, Completion) and o.ring == A_FAR]
    assert bench.must(A_FAR, c.Read(handle, 0, 1)).data == block_bytes(1)
    assert bench.do(A, c.Write(handle, 1, block_bytes(1))).status is Status.STALE
    return result


@ends(Opcode.MIGRATE, Status.PENDING)
def a_session_moves_to_one_ring_at_a_time(bench: Bench) -> Completion:
    session, _ = moving(bench)
    assert bench.do(A, c.Migrate(session)).status is Status.PENDING, "it is on its way out"
    return bench.do(A_TOO, c.Migrate(session))


@ends(Opcode.MIGRATE, Status.NO_SPACE)
def so_many_sessions_move_at_a_time(bench: Bench) -> Completion:
    for _ in range(bench.params.tables.fences):
        bench.ask(A_FAR, c.Migrate(bench.open(A)))
    return bench.do(A_FAR, c.Migrate(bench.open(A)))


@ends(Opcode.MIGRATE, Status.DENIED)
def sessions_do_not_leave_their_partition(bench: Bench) -> Completion:
    return bench.do(B, c.Migrate(bench.open(A)))


@ends(Opcode.MIGRATE, Status.STALE)
def a_closed_session_does_not_move(bench: Bench) -> Completion:
    session = bench.open()
    bench.must(A, c.CloseSession(session))
    return bench.do(A_FAR, c.Migrate(session))


@ends(Opcode.ANSWER_FENCE, Status.OK)
def the_old_ring_answers_with_its_count(bench: Bench) -> Completion:
    session, _ = moving(bench)
    return bench.do(A, c.AnswerFence(session, 1))


@ends(Opcode.ANSWER_FENCE, Status.RANGE)
def the_count_is_not_below_what_was_accepted(bench: Bench) -> Completion:
    session, _ = moving(bench)
    return bench.do(A, c.AnswerFence(session, 0))


@ends(Opcode.ANSWER_FENCE, Status.PENDING)
def the_new_ring_does_not_answer_for_the_old(bench: Bench) -> Completion:
    session, _ = moving(bench)
    return bench.do(A_FAR, c.AnswerFence(session, 1))


@ends(Opcode.ANSWER_FENCE, Status.DENIED)
def nobody_answers_for_another(bench: Bench) -> Completion:
    session, _ = moving(bench)
    return bench.do(A_TOO, c.AnswerFence(session, 1))


@ends(Opcode.ANSWER_FENCE, Status.STALE)
def a_fence_that_nobody_asked_for_is_not_answered(bench: Bench) -> Completion:
    return bench.do(A, c.AnswerFence(bench.open(), 0))


# The administrator


@ends(Opcode.BIND, Status.OK)
def an_administrative_ring_binds_others(bench: Bench) -> Completion:
    bench.must(REGISTERS, c.Bind(B, Binding.ADMINISTRATIVE))
    result = bench.do(B, c.Bind(A, 1))
    bench.open(A)
    return result


@ends(Opcode.BIND, Status.PENDING)
def a_ring_in_use_is_lost_and_bound_once_it_is_quiet(bench: Bench) -> Completion:
    bench.open(A)
    return bench.do(REGISTERS, c.Bind(A, 1))


@ends(Opcode.SET_PARTITION, Status.OK)
def a_quota_may_fall_below_use(bench: Bench) -> Completion:
    session = bench.open()
    for key in range(3):
        bench.store(A, session, key)
    result = bench.do(REGISTERS, c.SetPartition(0, quota=1))
    bench.must(A, c.Alloc(0, 9, SEGMENT, session))
    assert bench.core.partitions[0].used == 3, "it does not grow"
    return result


@ends(Opcode.SET_PARTITION, Status.RANGE)
def guarantees_do_not_exceed_the_pool(bench: Bench) -> Completion:
    bench.must(REGISTERS, c.SetPartition(0, quota=4, guarantee=3))
    assert bench.do(REGISTERS, c.SetPartition(1, quota=5)).status is Status.RANGE
    assert bench.do(REGISTERS, c.SetPartition(1, quota=1, guarantee=2)).status is Status.RANGE
    return bench.do(REGISTERS, c.SetPartition(1, quota=4, guarantee=2))


@ends(Opcode.DROP_PARTITION, Status.OK)
def a_partition_dies_whole(bench: Bench) -> Completion:
    session = bench.open()
    bench.store(A, session, 1)
    bench.alloc(A, session, 2)
    bench.store(B, bench.open(B), 3)
    result = bench.do(REGISTERS, c.DropPartition(0))
    assert [bench.look(A, key) for key in (1, 2, 3)] == [Status.MISS, Status.MISS, Status.HIT]
    return result


@ends(Opcode.SET_MODEL, Status.OK)
def what_was_retired_stays_dead_when_the_model_is_live_again(bench: Bench) -> Completion:
    bench.store(A, bench.open(), 1)
    bench.must(REGISTERS, c.Retire(0))
    result = bench.do(REGISTERS, c.SetModel(0, ModelState.LIVE))
    assert bench.look(A, 1) is Status.MISS
    return result


@ends(Opcode.RETIRE, Status.OK)
def a_model_dies_in_all_partitions_and_no_other_model_with_it(bench: Bench) -> Completion:
    session = bench.open(A)
    bench.store(A, session, 1)
    bench.store(A, session, 1, model=1)
    bench.store(B, bench.open(B), 2)
    result = bench.do(REGISTERS, c.Retire(0))
    assert [bench.look(A, 1), bench.look(B, 2), bench.look(A, 1, model=1)] == [Status.MISS, Status.MISS, Status.HIT]
    return result


@ends(Opcode.SET_EPOCH, Status.OK)
def an_epoch_starts_a_life_and_is_in_every_handle(bench: Bench) -> Completion:
    bench.execute(log.Restarted())
    result = bench.do(REGISTERS, c.SetEpoch(1 << 63))
    bench.must(REGISTERS, c.SetPartition(0, quota=4))
    bench.must(REGISTERS, c.SetModel(0, ModelState.LIVE))
    bench.must(REGISTERS, c.Bind(A, 0))
    assert bench.alloc(A, bench.open(), 1).epoch == 1 << 63
    return result
