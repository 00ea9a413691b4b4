"""Replays whose blocks are stored by the write-back buffers of requesters."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from hw.params.commands import Command, Completion, Read
from hw.params.protocol import Status
from hw.params.tasks import Put
from hw.tb.mutate import mutate
from scripts.cli import run
from scripts.replay.checks import failed_checks
from scripts.replay.ledger import Ledger
from scripts.replay.timeline import timeline
from sw.driver.transport import engines
from tests.replay.helpers import params_of, prompts, replay_of
from tests.replay.test_replay_checks import Lying
from tests.replay.test_replay_following import EVERYTHING, Run, returned

CONFIG = shlex.quote(str(Path(__file__).resolve().parents[2] / "configs" / "engines.toml"))
ENGINES = ("requester.slots=4", "requester.commands=16")
TWO = ("node.slices=2", "node.home=key", "tables.sessions=8")
SMALL = ("pools.0.frames=8", "replay.block_bytes=1500", "memory.segment_bytes=512", "replay.ports=2", *ENGINES)


@pytest.mark.parametrize("slices", [(), TWO])
def test_the_specification_repeats_every_decision_of_engines(slices: tuple[str, ...], seed: int) -> None:
    recorded = Run(params_of(*EVERYTHING, *ENGINES, *slices), seed)
    stats, section = recorded.stats, recorded.followed()
    assert section["difference"] is None and section["identical"]
    assert stats["failed_checks"] == [] and stats["wrong_bytes"] == 0 and stats["evictions"] > 0
    assert stats["statuses"]["PUT OK"] == stats["stored_blocks"] > 100
    assert not any(name.startswith(("ALLOC", "WRITE", "SEAL")) for name in stats["statuses"])


def test_the_timeline_counts_puts_under_way() -> None:
    recorded = Run(params_of(*SMALL))
    events = json.loads(timeline(recorded.transport.timing, recorded.replay.visits))["traceEvents"]
    for port in (0, 1):
        counts = [
            each["args"]["PUTs"] for each in events if each["name"] == "PUTs under way" and each["pid"] == 1 + port
        ]
        assert min(counts) == counts[-1] == 0 and 0 < max(counts) <= 14


# What differs is found.


def flip_status(recorded: Run) -> None:
    returned(recorded, lambda it: it.completion.status is Status.OK and it.completion.handle is not None)[
        2
    ].completion.status = Status.EXISTS


def swap_frame(recorded: Run) -> None:
    _, _, it = returned(recorded, lambda it: it.completion.status is Status.OK and it.completion.handle is not None)
    assert it.completion.handle is not None
    it.completion.handle = it.completion.handle._replace(frame=it.completion.handle.frame ^ 1)


@pytest.mark.parametrize("mutant", [flip_status, swap_frame])
def test_a_put_that_ended_otherwise_is_named(mutant: Callable[[Run], None]) -> None:
    recorded = Run(params_of(*SMALL))
    mutant(recorded)
    difference = recorded.followed()["difference"]
    assert ": PUT, tag" in difference.replace("recording, ", "recording: ") and "expected" in difference


FOLLOWERS = {
    "it writes other bytes": ("c.Write(granted.handle, 0, put.data)", "c.Write(granted.handle, 0, put.data[::-1])"),
    "it seals another length": ("c.Seal(granted.handle, len(put.data)", "c.Seal(granted.handle, len(put.data) - 1"),
    "it allocates another key": ("c.Alloc(put.model, put.key,", "c.Alloc(put.model, put.key ^ 1,"),
}


@pytest.mark.parametrize("name", FOLLOWERS)
def test_an_engine_that_does_something_else_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    recorded = Run(params_of(*SMALL))
    monkeypatch.setattr(engines, "put_commands", mutate(engines.put_commands, *FOLLOWERS[name]))
    assert not recorded.followed()["identical"]


# The judge of bytes.

TRACE = prompts([1, 2, 3], [1, 2, 3], [1, 9, 3])


def damage(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Read):
        transport.buffers[completion.ring, completion.tag][5] ^= 1


def misname(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Put) and completion.status is Status.EXISTS:
        completion.handle = None


def fail(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Put) and completion.status is Status.OK:
        completion.status = Status.CRC


def deny(transport: Lying, command: Command, completion: Completion) -> None:
    if isinstance(command, Put) and completion.status is Status.OK:
        completion.status = Status.NO_SPACE


LIES = {
    damage: "4 wrong bytes; the first in request",
    misname: "64 wrong bytes; the first in request",
    fail: "CRC: the driver saw",
    deny: "NO_SPACE: the driver saw",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_device_that_lies_about_puts_is_found(lie: Callable[[Lying, Command, Completion], None]) -> None:
    params = params_of("replay.in_flight=1", *ENGINES)
    failed = failed_checks(replay_of(TRACE, params, Lying(params, lie)))
    assert any(LIES[lie] in line for line in failed), failed


def test_puts_that_overlap_are_of_the_same_bytes() -> None:
    """Whose bytes are stored nobody can tell; a later store has others again."""

    def story(ledger: Ledger) -> list[bool]:
        block = (0, 0, 7)
        first, second = ledger.offered(block), ledger.offered(block)
        ledger.answered(block, None)
        still = ledger.offered(block) == first
        for _ in range(2):
            ledger.answered(block, None)
        return [first == second and still, first != ledger.offered(block)]

    assert story(Ledger(0, 64)) == [True, True]
    assert story(mutate(Ledger, "if offer.puts == 0:", "if False:")(0, 64)) == [True, False]
    assert story(mutate(Ledger, "block, offer.nonce, self", "block, offer.nonce + offer.puts, self")(0, 64))[0] is False


# On compiled RTL.


@pytest.mark.nightly
@pytest.mark.parametrize("losses", ["", "--set replay.retire_model_at=0.5 --set replay.lose_port_at=0.5"])
def test_rtl_with_engines_decides_what_the_specification_decides(losses: str, tmp_path: Path) -> None:
    trace, out = tmp_path / "small.jsonl", tmp_path / "out"
    generate = f"trace generate -o {trace} --requests 40 --set turn_gap_s=20 --set opening_document_tokens=3000"
    replay = f"replay {trace} --config {CONFIG} --backend rtl {losses} --out {out}"
    assert [run(shlex.split(command)) for command in (generate, replay)] == [0, 0]
    stats = json.loads((out / "stats.json").read_text())
    assert stats["following"]["identical"] and stats["wrong_bytes"] == 0
    assert stats["evictions"] > 0 and stats["bytes_read"] > 0
    assert stats["statuses"]["PUT OK"] == stats["stored_blocks"] > 0
    assert bool(stats["failed_requests"]) == bool(losses)
