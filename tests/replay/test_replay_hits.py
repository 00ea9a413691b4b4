"""What a replay counts as a hit, against small traces worked out by hand and an independent LRU."""

import pytest

from hw.params import InputError
from pymodel.trace import Request, Trace, lru_curve
from scripts.replay import content
from scripts.replay.checks import failed_checks
from scripts.replay.run import Replay
from scripts.replay.tally import Tally
from tests.replay.helpers import made_trace, params_of, prompts, replay_of


def total(replay: Replay) -> Tally:
    assert not failed_checks(replay)
    return Tally.total(replay.tallies)


def one_by_one(trace: Trace, *overrides: str) -> Tally:
    return total(replay_of(trace, params_of("replay.in_flight=1", "replay.decode=false", *overrides)))


def test_only_the_leading_run_is_a_prefix_hit() -> None:
    tally = one_by_one(prompts([1, 2, 3], [1, 2, 9, 3], [1, 2, 9, 3]))
    assert (tally.block_lookups, tally.block_hits, tally.prefix_hits) == (11, 3 + 4, 2 + 4)
    assert (tally.stored_blocks, tally.existing_blocks) == (4, 1)
    assert tally.bytes_read == 6 * 64 and tally.bytes_written == 4 * 64


def test_a_block_stored_by_its_own_request_is_no_hit() -> None:
    tally = one_by_one(prompts([5, 5]))
    assert (tally.block_hits, tally.stored_blocks, tally.existing_blocks) == (0, 1, 1)


def test_unlimited_room_hits_what_the_curve_says() -> None:
    trace = made_trace()
    curve = lru_curve(trace)
    tally = one_by_one(trace, "pools.0.frames=8192")
    assert tally.prefix_hits == curve.prefix_hits[-1]
    assert tally.block_hits == curve.block_hits[-1]
    assert tally.evictions == 0


def test_a_small_pool_evicts_and_hits_less() -> None:
    trace = made_trace()
    small, large = one_by_one(trace, "pools.0.frames=128"), one_by_one(trace, "pools.0.frames=8192")
    assert small.evictions == small.stored_blocks - 128 > 0
    assert 0 < small.prefix_hits < large.prefix_hits


@pytest.mark.parametrize("limit", ["tables.lookup_keys=2", "tables.pins_per_ring=1", "tables.pins_per_ring=3"])
def test_hits_do_not_depend_on_the_size_of_lookups_and_pin_tables(limit: str) -> None:
    trace = prompts(range(10), range(10), [*range(6), 99, *range(7, 10)])
    tally = one_by_one(trace, limit)
    assert (tally.block_hits, tally.prefix_hits) == (10 + 9, 10 + 6)
    assert bool(tally.cut_lookups) == ("pins" in limit)


def test_requests_share_one_pin_in_flight() -> None:
    trace = prompts(*[range(6)] * 6)
    replay = replay_of(trace, params_of("tables.pins_per_ring=1", "replay.in_flight=6"))
    assert total(replay).requests == 6


def test_outputs_are_stored_but_not_looked_up() -> None:
    trace = prompts([1, 2], [1, 2], output=600)
    tally = total(replay_of(trace, params_of("replay.in_flight=1")))
    assert (tally.block_lookups, tally.decode_blocks, tally.stored_blocks) == (4, 2 + 2, 6)
    assert tally.prefix_hits == 2


def test_blocks_that_a_prompt_does_not_list_are_no_outputs() -> None:
    trace = Trace.of([Request(0, 1000, 10, [1]), Request(0, 1024, 1, [2, 3])])
    tally = total(replay_of(trace, params_of()))
    assert (tally.block_lookups, tally.decode_blocks) == (3, 1)


def test_lists_that_do_not_fit_the_block_size_are_refused_with_what_to_set() -> None:
    with pytest.raises(
        InputError, match=r"^request 1: 2 hash_ids .* expected 1023 or 1024: set replay.block_tokens=512"
    ):
        replay_of(prompts([1, 2], [3]), params_of("replay.block_tokens=1"))
    with pytest.raises(InputError, match=r"no replay.block_tokens fits"):
        replay_of(Trace.of([Request(0, 5, 0, [1, 2, 3, 4, 5]), Request(0, 999, 0, [])]), params_of())


def test_an_endless_output_is_refused() -> None:
    trace = Trace.of([Request(0, 512, 512 << 21, [1])])
    with pytest.raises(InputError, match=r"request 1: output_length .* is 2,097,152 blocks .* replay.decode=false"):
        replay_of(trace, params_of())
    assert one_by_one(trace).stored_blocks == 1


@pytest.mark.parametrize("in_flight", [1, 2, 8])
def test_requests_in_flight_lose_no_count_of_outputs(in_flight: int) -> None:
    trace = prompts(*[[1, number] for number in range(2, 14)], output=1500)
    tally = total(replay_of(trace, params_of(f"replay.in_flight={in_flight}")))
    assert tally.evictions == 0
    assert (tally.decode_blocks, tally.stored_blocks) == (12 * 3, 12 * 3 + 13)


def test_requests_in_flight_meet_each_others_blocks() -> None:
    trace = prompts(*[range(20)] * 8)
    tally = total(replay_of(trace, params_of("replay.in_flight=8", "replay.ports=2")))
    assert tally.stored_blocks == 20
    assert tally.pending_blocks > 0
    assert tally.block_hits + tally.existing_blocks + tally.pending_blocks + tally.stored_blocks == 8 * 20


def test_partitions_and_models_share_no_blocks() -> None:
    trace = made_trace(60)
    params = params_of("replay.partitions=3", "replay.models=2", "replay.in_flight=1", "pools.0.frames=8192")
    replay = replay_of(trace, params)
    assert total(replay).prefix_hits == lru_curve(replay.workload.blocks(range(60))).prefix_hits[-1]
    assert all(tally.block_lookups for tally in replay.tallies)


def test_a_partition_stays_within_its_quota() -> None:
    replay = replay_of(made_trace(), params_of("replay.quota=0.25", "replay.partitions=2", "replay.guarantee=0.1"))
    total(replay)
    assert max(sealed for _, _, _, sealed, *_ in replay.history.occupancy) == 2 * 128
    assert replay.shares.capacity == 2 * 128


def test_isolated_partitions_are_replayed_in_a_pool_each() -> None:
    shared = ("replay.partitions=2", "tables.partitions=2", "replay.ports=2", "replay.in_flight=4")
    params = params_of(*shared, "tables.isolation=strict", "pools.0.frames=64", "pools.1.frames=8192")
    replay = replay_of(made_trace(), params)
    small, large = replay.tallies
    total(replay)
    assert small.evictions > 0 == large.evictions
    assert replay.shares.capacity == 64 + 8192


def test_equal_seeds_give_equal_runs() -> None:
    trace = made_trace(60)
    runs = [replay_of(trace, params_of("replay.ports=2", f"replay.seed={seed}")) for seed in (7, 7, 8)]
    outcomes = [(list(run.history.prefix_hits), run.device.completed) for run in runs]
    assert outcomes[0] == outcomes[1]


def test_a_request_without_blocks_passes() -> None:
    tally = one_by_one(prompts([], [1], []))
    assert (tally.requests, tally.block_lookups, tally.hit_rate) == (3, 1, 0)


def test_names_and_bytes_differ_where_they_must() -> None:
    keys = {content.prompt_key(1), content.prompt_key(2), content.output_key(1, 2), content.output_key(2, 1)}
    assert len(keys) == 4 and max(keys) < 1 << 128
    blocks = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    payloads = {content.payload(seed, block, nonce, 64) for seed in (0, 1) for block in blocks for nonce in (1, 2)}
    assert len(payloads) == 12
    assert content.conversation([1, 2, 3]) == content.conversation([9, 2]) != content.conversation([2, 9])
