"""`kvnode replay` on compiled RTL: the specification, following, decides the same."""

import json
import re
import shlex
from pathlib import Path

import pytest

from scripts.cli import run

ROOT = Path(__file__).resolve().parents[2]
CONFIG = shlex.quote(str(ROOT / "configs" / "rtl.toml"))
WINDOW = range(5000, 5100)


@pytest.mark.nightly
@pytest.mark.parametrize("losses", ["", "--set replay.retire_model_at=0.5 --set replay.lose_port_at=0.5"])
def test_the_specification_decides_the_same(losses: str, tmp_path: Path) -> None:
    trace, out = tmp_path / "small.jsonl", tmp_path / "out"
    generate = f"trace generate -o {trace} --requests 80 --set turn_gap_s=20 --set opening_document_tokens=3000"
    window = f"--waves {WINDOW[0]}:{WINDOW[-1] + 1}"
    replay = f"replay {trace} --config {CONFIG} --backend rtl {window} {losses} --out {out}"
    assert [run(shlex.split(command)) for command in (generate, replay)] == [0, 0]
    stats = json.loads((out / "stats.json").read_text())
    assert stats["following"]["identical"] and stats["wrong_bytes"] == 0
    assert stats["evictions"] > 0 and stats["bytes_read"] > 0 and stats["stall_cycles"] < stats["cycles"]
    assert bool(stats["failed_requests"]) == bool(losses)
    stamps = re.findall(r"^#(\d+)$", (out / "waves.vcd").read_text(), re.MULTILINE)
    assert stamps
