"""What `make run` runs is a demonstration of something."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from hw.params import Params, load_params
from pymodel.trace import load_trace
from scripts.cli import run
from scripts.replay import backends
from scripts.replay.backends import Waves
from scripts.replay.workload import Workload
from sw.driver import Transport
from tests.replay.clocked import Ticking, clocked

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def in_a_folder_with_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "build").mkdir()


def commands() -> list[str]:
    """What `make run` has `kvnode` do."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.findall(r"^\t@\$\(BIN\)/kvnode ((?:trace|replay) .*)$", makefile, re.MULTILINE)


def stats(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("build", folder, "stats.json").read_text())
    return found


def test_the_demonstration_shows_hits_evictions_and_losses() -> None:
    assert [run(shlex.split(command)) for command in commands()[:2]] == [0, 0]
    found = stats("demo")
    assert found["complete"] and found["requests"] >= 1000 and found["evictions"] >= 1000
    assert found["hit_rate"] >= 0.1 and found["wrong_bytes"] == 0
    assert found["failed_requests"] > 0 and found["retired_requests"] > 0
    assert {event["what"] for event in found["events"]} == {"model 1 retired", "port 1 lost"}
    assert all(partition["prefix_hits"] > 0 for partition in found["partitions"])


def test_the_small_system_shows_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """What configs/rtl.toml gives RTL to do; here the specification in a random order stands in for it."""

    def ticking(params: Params, seed: int, waves: Waves | None) -> Transport:
        return clocked(Ticking(params, seed))

    monkeypatch.setitem(backends.BACKENDS, "rtl", ticking)
    assert [run(shlex.split(command)) for command in commands()[2:]] == [0, 0]
    found, params = stats("rtl"), load_params(Path("configs/rtl.toml"), [])
    assert found["requests"] >= 300 and found["evictions"] >= 200 and found["hit_rate"] >= 0.1
    assert found["prefix_hit_rate"] >= 0.1 and found["wrong_bytes"] == 0 and found["failed_requests"] == 0
    assert found["following"]["identical"] and params.replay.in_flight >= 8
    assert params.segments(params.replay.block_bytes) >= 2 * params.memory.channels
    requests = [*Workload(load_trace("build/small.jsonl", None, block_tokens=512), params)]
    assert {(request.port, request.partition) for request in requests} == {(0, 0), (0, 1), (1, 0), (1, 1)}
