"""`kvnode replay` on a device with a clock: times, timeline, and the specification beside it."""

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from matplotlib.figure import Figure

from hw.params.commands import Completion, Read, Write
from hw.params.params import Params
from hw.params.protocol import Opcode, RingId, Status
from hw.params.statistics import STATISTICS
from hw.tb.mutate import mutate
from scripts.replay import backends, clockplots, timeline
from scripts.replay.backends import Waves
from scripts.replay.tally import History
from scripts.replay.timing import Sample, Span, Timing, Visit, utilisation
from sw.driver import Transport
from sw.driver.transport import FollowingTransport
from tests.replay.clocked import Ticking, clocked
from tests.replay.helpers import kvnode_replay, leaves, write_trace

LITTLE = ("--set", "replay.quota=0.05", "--set", "replay.ports=2", "--set", "replay.partitions=2")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "trace.jsonl", 20)


def with_backend(monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """A backend named `ticking`."""

    def make(params: Params, seed: int, waves: Waves | None) -> Transport:
        if waves is not None:
            waves.path.write_text(f"{waves.begin} {waves.end}")
        return clocked(Ticking(params, seed, **options))

    monkeypatch.setitem(backends.BACKENDS, "ticking", make)


def ticking(*arguments: object) -> Result:
    return kvnode_replay("trace.jsonl", "--backend", "ticking", "--out", "out", *arguments, *LITTLE)


def stats() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out", "stats.json").read_text())
    return found


def test_a_run_is_timed_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_backend(monkeypatch)
    result = ticking()
    assert result.exit_code == 0, result.output
    found = stats()
    assert leaves(found, names := frozenset(s.name for s in STATISTICS)) == names
    assert found["evictions"] > 20 and found["wrong_bytes"] == 0
    section = found["following"]
    assert section["identical"] and section["difference"] is None and all(section["fields"].values())
    latency = found["read_latency_cycles"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"] < found["cycles"]
    assert 0 < found["stall_cycles"] < found["cycles"]
    for words in ("the specification follows", "difference", "stall_cycles"):
        assert words in result.output
    plots = {"latency.svg", "channels.svg", "in_flight.svg", "timeline.json"}
    assert plots <= {file.name for file in Path("out").iterdir()}
    report = Path("out", "report.html").read_text()
    assert "Latency by command" in report and "Use of the memory channels" in report


def test_without_a_clock_there_is_nothing_of_time() -> None:
    result = kvnode_replay("trace.jsonl", "--out", "out")
    assert "the specification follows" not in result.output and "cycles" not in result.output
    assert set(stats()["following"].values()) == {None}
    assert not {"latency.svg", "timeline.json"} & {file.name for file in Path("out").iterdir()}
    assert "Latency by command" not in Path("out", "report.html").read_text()


def test_a_device_that_differs_ends_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def miscount(completion: Completion) -> None:
        """Nobody but the specification knows better."""
        if completion.length == 0 and completion.count == 1 and not completion.statuses:
            completion.count = 2

    with_backend(monkeypatch, lie=miscount)
    result = ticking()
    assert result.exit_code == 1
    assert "check failed: the specification differs: step" in result.output
    assert "WRITE, tag" in result.output and "count is 2, expected 1" in result.output
    assert stats()["following"]["identical"] is False and stats()["following"]["fields"] is None
    assert "Check failed" in Path("out", "report.html").read_text()
    assert "the specification follows" not in result.output


def test_an_interrupted_run_is_followed_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    with_backend(monkeypatch)
    interrupt_at(monkeypatch, 8)
    result = ticking()
    assert result.exit_code == 130 and "interrupted after" in result.output
    found = stats()
    assert not found["complete"] and found["following"]["identical"] and found["failed_checks"] == []


def interrupt_at(monkeypatch: pytest.MonkeyPatch, requests: int) -> None:
    """Ctrl-C, once, when so many requests have ended."""
    add, ended = History.add, []

    def interrupt(history: History, *numbers: int) -> None:
        add(history, *numbers)
        ended.append(1)
        if len(ended) == requests:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(History, "add", interrupt)


def test_an_interrupt_while_the_specification_follows_keeps_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with_backend(monkeypatch)
    monkeypatch.setattr(FollowingTransport, "step", lambda _: signal.raise_signal(signal.SIGINT))
    result = ticking()
    assert result.exit_code == 130 and "interrupted while the specification followed" in result.output
    assert stats()["complete"] and set(stats()["following"].values()) == {None}


def test_waves_are_among_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    with_backend(monkeypatch)
    assert ticking("--waves", "10:200").exit_code == 0
    assert Path("out", "waves.vcd").read_text() == "10 200"
    late = ticking("--waves", f"{1 << 40}:{1 << 41}")
    assert late.exit_code == 0 and f"no waves: the run ended after {stats()['cycles']:,} cycles" in late.output
    assert ticking().exit_code == 0 and not Path("out", "waves.vcd").exists()


@pytest.mark.parametrize(
    ("waves", "words"),
    [
        ("1:2", "the backend spec has no cycles"),
        ("2:1", "the first before the second"),
        ("a:b", "FROM:TO"),
        ("5", "5"),
        (f"0:{1 << 64}", "64 bits"),
    ],
)
def test_waves_that_cannot_be_had_are_refused(waves: str, words: str) -> None:
    result = kvnode_replay("trace.jsonl", "--waves", waves, "--out", "out")
    assert words in str(result.exception) and not Path("out").exists()


# Figures.

RING, OTHER = RingId(0, 0), RingId(1, 1)


def timed(kind: type[Timing] = Timing) -> Timing:
    """A READ from 10 to 40, a WRITE from 20 to 60; between them channel 1 moves more than channel 0."""
    now = [10]
    beats = {10: (0, 0), 40: (5, 20), 60: (15, 25), 100: (15, 25)}
    timing = kind(lambda: now[0], lambda: beats[now[0]])
    handle: Any = None
    timing.submitted(RING, 1, Read(handle, 0, 1), None, cycle=10, slice_=0)
    timing.submitted(OTHER, 1, Write(handle, 0, b"x"), None, cycle=20, slice_=0)
    for now[0], ring in ((40, RING), (60, OTHER)):
        timing.polled([Completion(ring, 1)])
    now[0] = 100
    timing.polled([])
    return timing


def figures(timing: Timing) -> tuple[int, int, list[int]]:
    return timing.cycles, timing.stall_cycles, timing.latencies(Opcode.READ).tolist()


def test_figures_are_those_of_the_definitions() -> None:
    """Of 30 and 20 cycles with commands in flight the busiest channels moved 20 and 10; the last 40 had none."""
    assert figures(timed()) == (50, 10 + 10, [30])


@pytest.mark.parametrize(
    ("good", "bad"),
    [("if after.in_flight", "if True"), ("max(b - a", "min(b - a"), ("now, arrival.status", "begin, arrival.status")],
)
def test_mutant_is_found(good: str, bad: str) -> None:
    assert figures(timed(mutate(Timing, good, bad))) != figures(timed())


def test_utilisation_is_beats_per_cycle() -> None:
    edges, use = utilisation([Sample(0, (0, 0), 1), Sample(10, (10, 0), 1), Sample(20, (10, 5), 1)], 2)
    assert edges.tolist() == [0, 10, 20]
    assert use.tolist() == [[1, 0], [0, 0.5]]


def test_each_channel_has_a_row_of_the_plot_to_itself() -> None:
    axes = Figure().add_subplot()
    clockplots.channels(axes, timing := timed())
    _, use = utilisation(timing.samples, 300)
    assert len(use) == 2 and use[0].tolist() != use[1].tolist()
    assert np.array_equal(axes.images[0].get_array(), use)


def events_of(text: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return events


def test_a_timeline_has_commands_requests_and_channels() -> None:
    timing = timed()
    timing.spans.append(Span(RING, 2, Opcode.LOOKUP, 15, 30, Status.OK))
    events = events_of(timeline.timeline(timing, [Visit(7, RING, 10, 60)]))
    assert Counter(event["ph"] for event in events) >= Counter({"X": 3, "b": 1, "e": 1, "C": 2, "M": 6})
    read, lookup = (next(event for event in events if event["name"] == name) for name in ("READ", "LOOKUP"))
    assert read["ts"] == 0.01 and read["dur"] == 0.03 and read["pid"] == lookup["pid"]
    assert read["tid"] != lookup["tid"], "commands that overlap are in tracks of their own"
    request = [event for event in events if event.get("cat") == "request"]
    assert {event["id"] for event in request} == {7} and [event["ts"] for event in request] == [0.01, 0.06]


def test_a_timeline_is_cut_where_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_COMMANDS", 1)
    text = timeline.timeline(timed(), [Visit(0, RING, 10, 60), Visit(1, OTHER, 50, 60)])
    about = json.loads(text)["otherData"]
    assert about["commands"] == 2 and about["commands shown"] == 1
    names = [event["name"] for event in events_of(text)]
    assert "READ" in names and "WRITE" not in names and "request 0" in names and "request 1" not in names


def test_the_names_of_files_are_known_to_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with a clock is replaced by one without."""
    with_backend(monkeypatch)
    assert ticking("--waves", "1:2").exit_code == 0
    assert kvnode_replay("trace.jsonl", "--out", "out").exit_code == 0
    assert not Path("out", "timeline.json").exists()
