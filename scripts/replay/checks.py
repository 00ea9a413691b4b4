"""What has to agree at the end of a replay: the device's counters, the driver's, and the replay's own."""

from collections import Counter
from collections.abc import Iterator

from hw.params.protocol import EngineOpcode, FrameState, Opcode, Status
from scripts.replay.run import Replay
from scripts.replay.serve import NOT_STORED
from scripts.replay.tally import Tally


def failed_checks(replay: Replay) -> list[str]:
    """Every disagreement, one line each; empty when all is well."""
    counters = replay.device.counters()
    total = Tally.total(replay.tallies)
    return [
        *_content(replay),
        *_counts(replay, counters, total),
        *_conservation(replay, counters),
        *replay.service.unexpected,
    ]


def _content(replay: Replay) -> Iterator[str]:
    ledger = replay.ledger
    if ledger.wrong_bytes:
        yield f"{ledger.wrong_bytes} wrong bytes; the first in {ledger.first_wrong}"


_OF_LOST_PUTS = (Status.GRANTED, Status.OK, Status.STALE, Status.UNAVAILABLE)
"""What the commands of a PUT that a loss or a retirement has ended may have been answered."""


def _commands(completed: Counter[tuple[Opcode | EngineOpcode, Status]]) -> tuple[Counter[Status], bool]:
    """What the device has answered as far as the driver can tell, and whether it can: not of PUTs that were lost."""
    answered: Counter[Status] = Counter()
    certain = True
    for (opcode, status), count in completed.items():
        if opcode is EngineOpcode.PUT and status is Status.OK:
            answered += Counter({Status.GRANTED: count, Status.OK: 2 * count})
        elif opcode is not EngineOpcode.FLUSH:
            answered[status] += count
            certain &= opcode is not EngineOpcode.PUT or status in NOT_STORED
    return answered, certain


def _counts(replay: Replay, counters: dict[str, int], total: Tally) -> Iterator[str]:
    """Counted twice, in different places."""
    completed = replay.device.completed
    driver, certain = _commands(completed)
    for status in Status:
        name = f"status_{status.name.lower()}"
        device = counters[name] - replay.before[name]
        if driver[status] != device and (certain or status not in _OF_LOST_PUTS):
            yield f"{status.name}: the driver saw {driver[status]} completions, the device counted {device}"
    sealed = completed[Opcode.SEAL, Status.OK] + completed[EngineOpcode.PUT, Status.OK]

    def refused(status: Status) -> int:
        return completed[Opcode.ALLOC, status] + completed[EngineOpcode.PUT, status]

    pairs = (
        ("evictions", "EVENTs", total.evictions, "device", counters["evictions"]),
        ("blocks sealed", "EVENTs", replay.stored_events, "driver", sealed),
        ("blocks sealed", "requests", total.stored_blocks, "driver", sealed),
        ("blocks of outputs sealed", "EVENTs", replay.ledger.sealed_outputs, "requests", total.decode_blocks),
        ("ALLOCs NO_SPACE", "requests", total.refused_no_space, "driver", refused(Status.NO_SPACE)),
        ("ALLOCs QUOTA", "requests", total.refused_quota, "driver", refused(Status.QUOTA)),
        ("ALLOCs RETIRED", "requests", total.refused_retired, "driver", refused(Status.RETIRED)),
        ("ALLOCs EXISTS", "requests", total.existing_blocks, "driver", refused(Status.EXISTS)),
        ("ALLOCs PENDING", "requests", total.pending_blocks, "driver", refused(Status.PENDING)),
        ("requests", "partitions", total.requests, "history", len(replay.history.references)),
        ("references", "requests", total.block_lookups, "history", sum(replay.history.references)),
        ("hits", "partitions", total.block_hits, "history", sum(replay.history.hits)),
        ("prefix hits", "partitions", total.prefix_hits, "history", sum(replay.history.prefix_hits)),
    )
    for what, one, ones, other, others in pairs:
        if ones != others:
            yield f"{what}: {ones} by the {one}, {others} by the {other}"


def _conservation(replay: Replay, counters: dict[str, int]) -> Iterator[str]:
    """Nothing is left behind."""
    frames = {state: counters[f"frames_{state.name.lower()}"] for state in FrameState}
    expected = replay.params.node.slices * replay.params.frames
    if sum(frames.values()) != expected:
        yield f"{sum(frames.values())} frames in all states, expected {expected}"
    for left in (FrameState.WRITING, FrameState.DRAINING):
        if frames[left]:
            yield f"{frames[left]} frames are left {left.name}"
    for table in ("pins", "sessions", "parked"):
        if counters[f"{table}_used"]:
            yield f"{counters[f'{table}_used']} entries are left in the table of {table}"
