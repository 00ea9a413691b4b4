"""What `make run` runs is a demonstration of something."""

import json
import re
import shlex
from pathlib import Path

import pytest

from scripts.cli import run

ROOT = Path(__file__).resolve().parents[2]


def test_the_demonstration_shows_hits_evictions_and_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "build").mkdir()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^\t@\$\(BIN\)/kvnode ((?:trace|replay) .*)$", makefile, re.MULTILINE)
    assert [run(shlex.split(command)) for command in commands] == [0, 0]
    (found,) = Path("build").glob("*/stats.json")
    stats = json.loads(found.read_text())
    assert stats["complete"] and stats["requests"] >= 1000 and stats["evictions"] >= 1000
    assert stats["hit_rate"] >= 0.1 and stats["wrong_bytes"] == 0
    assert stats["failed_requests"] > 0 and stats["retired_requests"] > 0
    assert {event["what"] for event in stats["events"]} == {"model 1 retired", "port 1 lost"}
    assert all(partition["prefix_hits"] > 0 for partition in stats["partitions"])
