"""`stats.json`: what a replay found, under the names of ``hw.params.statistics``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from hw.params.protocol import FrameState, Opcode
from pymodel.trace import Curve
from scripts.replay.run import Replay
from scripts.replay.tally import Tally
from scripts.replay.timing import Timing
from scripts.replay.wear import hints

HIT_RATE_DEFINITION = (
    "fraction of the block references of all prompts of the run, from an empty node on; a partial last block counts"
    " as one block, output blocks are stored but never counted, failed and refused requests are counted"
)


def statistics(
    replay: Replay,
    about: dict[str, Any],
    failed: list[str],
    lru: Curve,
    optimum: Curve,
    *,
    timing: Timing | None = None,
) -> dict[str, Any]:
    """The whole of ``stats.json``, nothing being followed yet; ``about`` says what was run, by the names there."""
    params, history, ledger = replay.params, replay.history, replay.ledger
    counters = replay.device.counters()
    total = Tally.total(replay.tallies)
    capacity = replay.shares.capacity
    return {
        **about,
        "params": asdict(params),
        "params_hash": params.hash,
        "seed": params.replay.seed,
        "complete": replay.complete,
        "trace_requests": len(replay.workload),
        "requests": total.requests,
        "failed_requests": total.failed_requests,
        "retired_requests": total.retired_requests,
        "events": [{"request": request, "what": what} for request, what in history.events],
        "hints": hints(replay.wear, params, replay.shares.pools),
        "failed_checks": failed,
        "wall_seconds": round(replay.wall_seconds, 3),
        "hit_rate_definition": HIT_RATE_DEFINITION,
        "block_lookups": total.block_lookups,
        "block_hits": total.block_hits,
        "hit_rate": total.hit_rate,
        "prefix_hits": total.prefix_hits,
        "prefix_hit_rate": total.prefix_hit_rate,
        "pending_lookups": total.pending_lookups,
        "cut_lookups": total.cut_lookups,
        "capacity_frames": capacity,
        "lru_prefix_hit_rate": lru.prefix_hit_rate(capacity),
        "optimum_prefix_hit_rate": optimum.prefix_hit_rate(capacity),
        "stored_blocks": total.stored_blocks,
        "decode_blocks": total.decode_blocks,
        "existing_blocks": total.existing_blocks,
        "pending_blocks": total.pending_blocks,
        "refused": {
            "no_space": total.refused_no_space,
            "quota": total.refused_quota,
            "retired": total.refused_retired,
        },
        "cam_refusals": counters["cam_refusals"],
        "evictions": counters["evictions"],
        "unused_evictions": ledger.unused,
        "eviction_age": _spread(np.array(ledger.ages)),
        "replacement_stall_steps": counters["replacement_stall_steps"],
        "bytes_read": total.bytes_read,
        "bytes_written": total.bytes_written,
        "wrong_bytes": ledger.wrong_bytes,
        "frames": {state.name.lower(): counters[f"frames_{state.name.lower()}"] for state in FrameState},
        "worn_frames": replay.wear.frames,
        "worn_sessions": replay.wear.sessions,
        "worn_pins": replay.wear.pins,
        "cycles": timing.cycles if timing else None,
        "read_latency_cycles": _spread(timing.latencies(Opcode.READ) if timing else np.array([])),
        "stall_cycles": timing.stall_cycles if timing else None,
        "following": {"operations": None, "identical": None, "difference": None, "fields": None},
        "partitions": [{"partition": number} | _partition(tally) for number, tally in enumerate(replay.tallies)],
        "statuses": {
            f"{opcode.name} {status.name}": number
            for (opcode, status), number in sorted(replay.device.completed.items())
        },
    }


def lookup(stats: dict[str, Any], name: str) -> Any:
    """The value of a statistic by its dotted name."""
    value: Any = stats
    for part in name.split("."):
        value = value[part]
    return value


def _spread(values: np.ndarray) -> dict[str, int | None]:
    """Median, 99th percentile (each a value that occurs) and maximum; null without any."""
    if not len(values):
        return {"p50": None, "p99": None, "max": None}
    p50, p99 = np.percentile(values, [50, 99], method="inverted_cdf")
    return {"p50": int(p50), "p99": int(p99), "max": int(values.max())}


def _partition(tally: Tally) -> dict[str, Any]:
    names = (
        "requests",
        "failed_requests",
        "block_lookups",
        "block_hits",
        "hit_rate",
        "prefix_hits",
        "prefix_hit_rate",
        "stored_blocks",
        "refused_blocks",
        "evictions",
        "bytes_read",
        "bytes_written",
    )
    return {name: getattr(tally, name) for name in names}
