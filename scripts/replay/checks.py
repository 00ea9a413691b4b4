"""What has to agree at the end of a replay: the device's counters, the driver's, and the replay's own."""

from collections.abc import Iterator

from hw.params.protocol import FrameState, Opcode, Status
from scripts.replay.run import Replay
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


def _counts(replay: Replay, counters: dict[str, int], total: Tally) -> Iterator[str]:
    """Counted twice, in different places."""
    completed = replay.device.completed
    for status in Status:
        name = f"status_{status.name.lower()}"
        driver = sum(completed[opcode, status] for opcode in Opcode)
        device = counters[name] - replay.before[name]
        if driver != device:
            yield f"{status.name}: the driver saw {driver} completions, the device counted {device}"
    pairs = (
        ("evictions", "EVENTs", total.evictions, "device", counters["evictions"]),
        ("blocks sealed", "EVENTs", replay.stored_events, "driver", completed[Opcode.SEAL, Status.OK]),
        ("blocks sealed", "requests", total.stored_blocks, "driver", completed[Opcode.SEAL, Status.OK]),
        ("blocks of outputs sealed", "EVENTs", replay.ledger.sealed_outputs, "requests", total.decode_blocks),
        ("ALLOCs NO_SPACE", "requests", total.refused_no_space, "driver", completed[Opcode.ALLOC, Status.NO_SPACE]),
        ("ALLOCs QUOTA", "requests", total.refused_quota, "driver", completed[Opcode.ALLOC, Status.QUOTA]),
        ("ALLOCs RETIRED", "requests", total.refused_retired, "driver", completed[Opcode.ALLOC, Status.RETIRED]),
        ("ALLOCs EXISTS", "requests", total.existing_blocks, "driver", completed[Opcode.ALLOC, Status.EXISTS]),
        ("ALLOCs PENDING", "requests", total.pending_blocks, "driver", completed[Opcode.ALLOC, Status.PENDING]),
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
