"""Models retire and ports are lost in the middle of a replay: counted, and nothing is left behind."""

from scripts.replay.checks import failed_checks
from scripts.replay.tally import Tally
from tests.replay.helpers import made_trace, params_of, prompts, replay_of


def test_requests_of_a_retired_model_are_refused_and_counted() -> None:
    replay = replay_of(made_trace(), params_of("replay.models=2", "replay.retire_model_at=0.5"))
    assert failed_checks(replay) == []
    total = Tally.total(replay.tallies)
    assert total.requests == 120
    assert 0 < total.retired_requests < 60
    assert total.refused_retired > 0
    assert replay.history.events == [(60, "model 1 retired")]


def test_requests_under_way_fail_when_their_model_retires() -> None:
    params = params_of("replay.models=2", "replay.retire_model_at=0.5", "replay.in_flight=40")
    replay = replay_of(made_trace(), params)
    assert failed_checks(replay) == []
    assert Tally.total(replay.tallies).failed_requests > 0


def test_requests_on_a_lost_port_fail_and_the_port_returns() -> None:
    params = params_of("replay.ports=2", "replay.partitions=2", "replay.lose_port_at=0.5", "replay.in_flight=8")
    replay = replay_of(made_trace(), params)
    assert failed_checks(replay) == []
    total = Tally.total(replay.tallies)
    assert total.requests == 120
    assert 0 < total.failed_requests <= 4
    assert replay.history.events == [(60, "port 1 lost")]


def test_a_port_can_be_lost_after_all_requests_have_started() -> None:
    params = params_of("replay.ports=2", "replay.lose_port_at=1.0", "replay.in_flight=2")
    replay = replay_of(prompts([1], [2], [3], [4]), params)
    assert failed_checks(replay) == []
    assert Tally.total(replay.tallies).failed_requests == 1


def test_everything_at_once_on_a_full_node() -> None:
    params = params_of(
        *("pools.0.frames=96", "replay.ports=4", "replay.partitions=3", "replay.models=2", "replay.in_flight=32"),
        *("replay.quota=0.5", "replay.guarantee=0.8", "replay.retire_model_at=0.5", "replay.lose_port_at=0.5"),
        *("tables.pins_per_ring=8", "tables.lookup_keys=16"),
    )
    replay = replay_of(made_trace(), params)
    assert failed_checks(replay) == []
    total = Tally.total(replay.tallies)
    assert total.requests == 120 and total.evictions > 0 and total.cut_lookups > 0
