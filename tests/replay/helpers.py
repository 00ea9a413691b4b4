"""Small traces and runs for the tests of the replay."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from hw.params import Params, load_params
from pymodel.trace import Request, Trace, Workload, generate, write_requests
from scripts.replay import command, workload
from scripts.replay.backends import make_transport
from scripts.replay.run import Replay
from sw.driver import Transport

SMALL = ("pools.0.frames=512", "pools.0.frame_bytes=4096", "replay.block_bytes=64")


def params_of(*overrides: str) -> Params:
    """Parameters of a small node."""
    return load_params(None, [*SMALL, *overrides])


def made_trace(requests: int = 120) -> Trace:
    """An invented trace with reuse."""
    return Trace.of(generate(Workload(requests=requests, turn_gap_s=20, opening_document_tokens=3000)))


def prompts(*ids: Sequence[int], output: int = 0) -> Trace:
    """Requests with these prompts, of whole blocks."""
    return Trace.of(Request(0, 512 * len(prompt), output, list(prompt)) for prompt in ids)


def replay_of(trace: Trace, params: Params, transport: Transport | None = None) -> Replay:
    """A finished replay."""
    replay = Replay(workload.Workload(trace, params), params, transport or make_transport("spec", params))
    replay.run()
    return replay


def write_trace(path: Path, requests: int = 60) -> Path:
    """A trace file."""
    write_requests(path, generate(Workload(requests=requests, turn_gap_s=20, opening_document_tokens=3000)))
    return path


def kvnode_replay(*arguments: object) -> Result:
    """The command, on a small node."""
    small = [word for override in SMALL for word in ("--set", override)]
    return CliRunner(env={"COLUMNS": "200"}).invoke(command, [*map(str, arguments), *small])


def leaves(stats: Any, names: frozenset[str], prefix: str = "") -> set[str]:
    """Dotted names of all fields: down to a name of the table, or else to a value."""
    if prefix in names or not isinstance(stats, dict | list):
        return {prefix}
    found: set[str] = set()
    for name, value in stats.items() if isinstance(stats, dict) else (("[]", value) for value in stats):
        joined = prefix + name if name == "[]" or not prefix else f"{prefix}.{name}"
        found |= leaves(value, names, joined)
    return found
