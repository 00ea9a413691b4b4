"""A replay's second run: the specification follows the recording of the first, and both are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hw.params.statistics import STATISTICS
from scripts.replay.run import Replay
from scripts.replay.stats import lookup
from sw.driver import Diverged
from sw.driver.transport import FollowingTransport, Recording

_OWN = frozenset(("Time", "Following", "Partitions"))
_WORDS = frozenset(("hit_rate_definition",))
_OF_THE_RUN = frozenset(("complete", "requests", "failed_requests", "retired_requests", "events", "hints"))

COMPARED = (
    *(
        s.name
        for s in STATISTICS
        if s.group not in _OWN and s.name not in _WORDS and (s.group != "Run" or s.name in _OF_THE_RUN)
    ),
    "partitions",
)
"""Statistics that a run and the specification that follows it have in common, by dotted name."""


def follow(
    first: Replay,
    recording: Recording,
    judge: Callable[[Replay], dict[str, Any]],
    ended: Callable[[], None] = lambda: None,
) -> dict[str, Any] | str:
    """Repeat a recorded run on the specification; returns its statistics, or in words the first difference.

    ``judge`` makes the statistics, and reads the counters as often as that of the first run did. ``ended`` is called
    after each request.
    """
    transport = FollowingTransport(first.params, recording)
    try:
        replay = Replay(first.workload, first.params, transport, epoch=first.epoch)
        replay.run(ended, stop_at=first.stopped_at)
        stats = judge(replay)
        transport.finish()
    except Diverged as difference:
        return str(difference)
    return stats


def compared(first: dict[str, Any], second: dict[str, Any] | str, operations: int) -> dict[str, Any]:
    """The section ``following`` of the statistics: what ``follow`` returned, beside the first run's."""
    section: dict[str, Any] = {"operations": operations, "identical": False, "difference": second, "fields": None}
    if isinstance(second, str):
        return section
    same = {name: lookup(first, name) == lookup(second, name) for name in COMPARED}
    different = [name for name, equal in same.items() if not equal]
    difference = None
    if different:
        one, other = (lookup(stats, different[0]) for stats in (first, second))
        difference = f"{different[0]} is {one}, expected {other}"
    return section | {"identical": not different, "difference": difference, "fields": same}
