"""A replay on a node of several slices: the same checks, the specification beside each slice, plots of both."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from hw.params.protocol import Handle, PinId, RingId
from hw.params.statistics import STATISTICS
from hw.rtl.node.layouts import Kind
from hw.tb.mutate import mutate
from scripts.cli import run
from scripts.replay import clockplots
from scripts.replay.journal import Journal
from scripts.replay.timing import Sample, Timing
from scripts.replay.wear import Wear, hints
from sw.driver import Diverged
from sw.driver.lives import session_of
from sw.driver.transport import FollowingTransport
from sw.driver.transport.recording import Count, Took
from tests.replay.helpers import kvnode_replay, leaves, params_of, prompts, replay_of, write_trace
from tests.replay.test_replay_following import EVERYTHING, Run
from tests.replay.test_replay_journal import RING, Issued, Made

ROOT = Path(__file__).resolve().parents[2]
TWO = ("node.slices=2", "node.home=key")
LOSSES = "--set replay.retire_model_at=0.5 --set replay.lose_port_at=0.5"


@pytest.mark.parametrize("home", ["root", "key"])
def test_the_specification_repeats_the_decisions_of_both(home: str, seed: int) -> None:
    print(f"seed {seed}")
    run = Run(params_of(*EVERYTHING, "node.slices=2", f"node.home={home}"), seed % (1 << 31))
    assert run.stats["failed_checks"] == [] and run.stats["wrong_bytes"] == 0
    assert run.stats["evictions"] > 50 and run.stats["capacity_frames"] == 64
    assert run.stats["failed_requests"] > 0 and run.stats["retired_requests"] > 0
    section = run.followed()
    assert section["difference"] is None and section["identical"] and all(section["fields"].values())
    granted = [run.replay.device.counters(slice_)["status_granted"] for slice_ in (0, 1)]
    assert bool(min(granted)) == (home == "key"), "all prompts of this trace begin with the same block"
    assert bool(run.stats["hints"]) == (home == "root")


def test_a_chain_of_a_prompt_is_in_one_slice() -> None:
    replay = replay_of(prompts(*([first, 1000, 1001] for first in range(12))), params_of("node.slices=2"))
    granted = [replay.device.counters(slice_)["status_granted"] for slice_ in (0, 1)]
    assert sum(granted) == 12 + 2 * 2 and min(granted) > 2, (
        "blocks behind several first ones are in every slice of these"
    )


def moved(recorded: Run) -> str:
    """A command of one slice stands in the log of the other: what the one that follows says."""
    one, other = recorded.recording.operations
    at = max(i for i, operation in enumerate(one) if isinstance(operation, Took))
    other.append(one.pop(at))
    return str(recorded.followed()["difference"])


def counted(recorded: Run) -> str:
    """The counters of the other slice are read."""
    following = FollowingTransport(recorded.params, recorded.recording)
    steps = recorded.recording.steps
    following._step = next(at for at, step in enumerate(steps) if isinstance(step, Count))
    following._done = list(steps[following._step].until)
    with pytest.raises(Diverged) as caught:
        following.counters(1)
    return str(caught.value)


def test_what_differs_in_a_slice_is_named_with_it() -> None:
    params = params_of("pools.0.frames=8", "replay.ports=2", *TWO)
    assert "order log of slice" in moved(Run(params))
    assert "the counters of slice 0, expected those of 1" in counted(Run(params))


def test_the_command_shows_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "trace.jsonl", 20)
    two = [word for override in TWO for word in ("--set", override)]
    result = kvnode_replay("trace.jsonl", "--out", "out", *two, "--set", "replay.quota=0.1")
    assert result.exit_code == 0, result.output
    stats: dict[str, Any] = json.loads(Path("out", "stats.json").read_text())
    assert leaves(stats, names := frozenset(s.name for s in STATISTICS)) == names
    assert stats["capacity_frames"] == 2 * 51 and sum(stats["frames"].values()) == 2 * 512
    assert "Blocks by slice" in Path("out", "report.html").read_text() and Path("out", "slices.svg").exists()


# What is kept of each slice.


def both(kind: type[Journal] = Journal) -> list[Any]:
    """A link tag is used at one slice, then at the other, and both logs are read at once."""
    made = Made()
    journal = kind(made, 2)
    for cycle, tag in ((10, 100), (50, 200)):
        journal.filled(cycle, RING, 3, tag)
    made.issues = [Issued(20, 1, 0, 3, 7), Issued(60, 1, 0, 3, 7)]
    made.took(61, Kind.READ, RING, 7)
    made.others, made.entries = made.entries, []
    made.took(25, Kind.READ, RING, 7)
    made.entries, made.others = made.others, made.entries
    return journal.news()


BOTH = [[Took(RING, 200)], [Took(RING, 100)]]


def test_logs_of_slices_are_read_in_the_order_of_cycles() -> None:
    assert both() == BOTH
    assert both(mutate(Journal, "sorted(entries, key=itemgetter(0))", "entries")) != BOTH


def test_wear_is_that_of_each_slice() -> None:
    params = params_of("tables.generation_bits=8", "tables.slot_generation_bits=8", "tables.pins_per_ring=1", *TWO)
    wear, ring = Wear(params.tables), RingId(0, 0)
    for slice_ in (0, 1):
        wear.frame(Handle(0, slice_, 5, 255, 1))
    wear.session(session_of({0: PinId(3, 255), 1: PinId(3, 255)}, 0))
    assert (wear.frames, wear.sessions, wear.no_pins(ring)) == (2, 2, False)
    wear.pin(ring, PinId(0, 255))
    assert wear.no_pins(ring) and not wear.no_pins(RingId(1, 0))
    assert not any("slice" in hint for hint in hints(wear, params, (0,)))
    assert "slice 1 was given no block" in hints(Wear(params.tables), params, (0,))[-1]


def test_channels_are_named_by_their_slices_and_drawn_apart() -> None:
    beats = (0, 0, 0, 0)
    timing = Timing(lambda: 0, lambda: beats, 2)
    timing.samples += [Sample(0, beats, 0), Sample(10, (5, 0, 1, 2), 0)]
    assert [timing.channel(number) for number in range(4)] == [
        *("slice 0, channel 0", "slice 0, channel 1", "slice 1, channel 0", "slice 1, channel 1")
    ]
    clockplots.channels(axes := Figure().add_subplot(), timing)
    assert [line.get_ydata()[0] for line in axes.lines] == [1.5]


# On compiled RTL.


@pytest.mark.nightly
@pytest.mark.parametrize("home", ["key", "root"])
@pytest.mark.parametrize("losses", ["", LOSSES])
def test_rtl_of_two_slices_decides_what_the_specification_decides(losses: str, home: str, tmp_path: Path) -> None:
    trace, out = tmp_path / "small.jsonl", tmp_path / "out"
    generate = f"trace generate -o {trace} --requests 40 --set turn_gap_s=20 --set opening_document_tokens=3000"
    config = shlex.quote(str(ROOT / "configs" / "slices.toml"))
    replay = f"replay {trace} --config {config} --set node.home={home} --backend rtl {losses} --out {out}"
    assert [run(shlex.split(command)) for command in (generate, replay)] == [0, 0]
    stats = json.loads((out / "stats.json").read_text())
    assert stats["following"]["identical"] and stats["wrong_bytes"] == 0
    assert stats["evictions"] > 0 and stats["bytes_read"] > 0
    assert bool(stats["failed_requests"]) == bool(losses)
    assert "slice 1, channel 1" in (out / "timeline.json").read_text()
