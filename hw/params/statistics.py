"""Every statistic of a replay: its name, unit and definition, in the order of reports and documents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statistic:
    """One field of ``stats.json``. Dots lead into objects, ``[]`` into each element of a list."""

    group: str
    name: str
    unit: str
    definition: str


_RUN = (
    ("backend", "", "what was run behind the driver"),
    ("trace", "", "trace file, as it was given"),
    ("command", "", "command line that gives the same run"),
    ("params", "", "all parameters, by section and name"),
    ("params_hash", "", "twelve hexadecimal digits that name the set of parameters"),
    ("git_rev", "", "revision of the code; null outside a checkout"),
    ("seed", "", "replay.seed: seed of schedule and payloads"),
    (
        "complete",
        "",
        "false when the run was interrupted: hits are of the requests that ended, other counts of all that was done",
    ),
    ("trace_requests", "requests", "requests that the run was asked for"),
    ("requests", "requests", "requests that have ended, failed ones included"),
    (
        "failed_requests",
        "requests",
        "requests that ended early: a command ended STALE or UNAVAILABLE, or no slot was left",
    ),
    ("retired_requests", "requests", "requests with a block that was refused because its model is retired"),
    ("events", "", "what was done to the device on purpose, and after how many requests had started"),
    ("hints", "", "what has worn out, and what was configured for nothing, in words"),
    ("failed_checks", "", "cross-checks that failed, in words; empty when device and replay agree"),
    ("wall_seconds", "s", "time from the first request to the last, on this machine"),
)

_HITS = (
    ("hit_rate_definition", "", "what the hit rates are fractions of"),
    ("block_lookups", "blocks", "block references of prompts; a partial last block counts as one"),
    (
        "block_hits",
        "blocks",
        "references whose block was sealed and readable when its request looked it up, at its start",
    ),
    ("hit_rate", "fraction", "block_hits / block_lookups: every block reference present at its request's start"),
    ("prefix_hits", "blocks", "hits in the leading run of their request: the only ones that save prefill work"),
    ("prefix_hit_rate", "fraction", "prefix_hits / block_lookups: only the leading run"),
    ("pending_lookups", "blocks", "references whose block another request was still writing; no hits"),
    ("cut_lookups", "commands", "LOOKUPs that a full pin table cut; the rest was looked up again"),
    ("capacity_frames", "frames", "most frames that the partitions may use together"),
    ("lru_prefix_hit_rate", "fraction", "prefix hit rate of exact LRU over this trace with capacity_frames frames"),
    ("optimum_prefix_hit_rate", "fraction", "the same of Belady's MIN, which knows the future"),
)

_STORES = (
    ("stored_blocks", "blocks", "blocks sealed by a request, prompt and output"),
    ("decode_blocks", "blocks", "blocks of outputs among them"),
    ("existing_blocks", "blocks", "ALLOCs that found the block sealed already: same key, same content"),
    ("pending_blocks", "blocks", "ALLOCs that found another request writing the block"),
    ("refused.no_space", "blocks", "ALLOCs refused: no frame or index slot could be had"),
    ("refused.quota", "blocks", "ALLOCs refused: the partition is at its quota and has nothing to evict"),
    ("refused.retired", "blocks", "ALLOCs refused: the model is retired"),
    ("cam_refusals", "commands", "ALLOCs among refused.no_space that found no free slot in the block CAM"),
)

_REPLACEMENT = (
    ("evictions", "blocks", "blocks that gave their frame to another, counted by the device"),
    ("unused_evictions", "blocks", "blocks among them that no LOOKUP ever hit"),
    ("eviction_age.p50", "references", "block references of the whole run from seal to eviction, median"),
    ("eviction_age.p99", "references", "the same, 99th percentile"),
    ("eviction_age.max", "references", "the same, maximum"),
    ("replacement_stall_steps", "steps", "steps that the replacement hand took beyond its allowance to find a victim"),
)

_BYTES = (
    ("bytes_read", "bytes", "block bytes that READs returned, each compared with what was stored"),
    ("bytes_written", "bytes", "block bytes that WRITEs took"),
    ("wrong_bytes", "bytes", "bytes that differ from those stored under the key looked up, by store; must be 0"),
)

_FRAMES = (
    ("frames.free", "frames", "frames without a block at the end of the run"),
    ("frames.writing", "frames", "frames being written at the end; must be 0"),
    ("frames.sealed", "frames", "frames with a readable block at the end"),
    ("frames.draining", "frames", "frames that wait to be freed at the end; must be 0"),
    ("frames.quarantined", "frames", "frames that left service until restart: free, with their generations used up"),
    ("worn_frames", "frames", "frames given out in their last generation: they keep that block, or are quarantined"),
    ("worn_sessions", "slots", "session slots given out in their last generation: out of service once closed"),
    ("worn_pins", "slots", "pin slots given out in their last generation, of all rings: out of service once returned"),
)

_TIME = (
    ("cycles", "cycles", "cycles from the first command to the last completion; null without timing"),
    (
        "read_latency_cycles.p50",
        "cycles",
        "cycles from before the doorbell of a READ until software saw its completion, median; null without timing",
    ),
    ("read_latency_cycles.p99", "cycles", "the same, 99th percentile; null without timing"),
    ("read_latency_cycles.max", "cycles", "the same, maximum; null without timing"),
    (
        "stall_cycles",
        "cycles",
        "cycles with commands in flight, less one for each beat that the busiest memory channel read or wrote: the"
        " busiest of each interval between two polls; null without timing",
    ),
)

_FOLLOWING = (
    ("following.operations", "", "entries of the order log that the specification followed; null without a recording"),
    (
        "following.identical",
        "",
        "whether the specification, following, had the same completions, messages and statistics; null without",
    ),
    ("following.difference", "", "the first difference in words; null when there is none"),
    (
        "following.fields",
        "",
        "of each statistic that both have, whether it is the same; null when it did not get so far",
    ),
)

_PARTITION = (
    ("partition", "", "number of the partition"),
    ("requests", "requests", "requests of the partition that have ended"),
    ("failed_requests", "requests", "those of them that ended early"),
    ("block_lookups", "blocks", "its block references"),
    ("block_hits", "blocks", "its hits"),
    ("hit_rate", "fraction", "its block_hits / block_lookups"),
    ("prefix_hits", "blocks", "its prefix hits"),
    ("prefix_hit_rate", "fraction", "its prefix_hits / block_lookups"),
    ("stored_blocks", "blocks", "its blocks sealed"),
    ("refused_blocks", "blocks", "its ALLOCs refused, for whatever cause"),
    ("evictions", "blocks", "its blocks that gave their frame to another"),
    ("bytes_read", "bytes", "its bytes read"),
    ("bytes_written", "bytes", "its bytes written"),
)

_DETAILS = (("statuses", "completions", "completions by command and status, administrative commands included"),)

STATISTICS: tuple[Statistic, ...] = tuple(
    Statistic(group, prefix + name, unit, definition)
    for group, prefix, entries in (
        ("Run", "", _RUN),
        ("Hits", "", _HITS),
        ("Stores", "", _STORES),
        ("Replacement", "", _REPLACEMENT),
        ("Bytes", "", _BYTES),
        ("Frames at the end", "", _FRAMES),
        ("Time", "", _TIME),
        ("Following", "", _FOLLOWING),
        ("Partitions", "partitions[].", _PARTITION),
        ("Details", "", _DETAILS),
    )
    for name, unit, definition in entries
)
