"""A slice that restarts waits for what memory has been asked by any port, forgets the rest, and begins anew."""

import sys
from collections.abc import Callable
from random import Random
from typing import Any

import google_crc32c
import pytest

from hw.params import TINY
from hw.params import commands as c
from hw.params.protocol import RingId, Status
from hw.rdl import register_map
from hw.rtl.emit import Emission, emit
from hw.rtl.node import slice as top
from hw.rtl.node.restart import Restart
from hw.rtl.node.slice import Slice
from hw.tb.harness import Harness, Memory
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.slice.software import Software

RINGS = RingId(0, 0), RingId(1, 0)
LENGTH = TINY.pools[0].frame_bytes
SEGMENTS = LENGTH // TINY.memory.segment_bytes
LATE = Memory(latency=60, jitter=40, reorder=True)
LOADED = 400
"""Cycles of a load before the restart, at most."""

PATIENCE = 4_000
"""Cycles in which memory has answered everything, however much was under way."""


def restart(harness: Harness) -> None:
    """Have the slice restart, and wait for the end of it."""
    control = register_map()["CONTROL"]
    harness.write_register(control.offset, control.field("restart").mask)
    harness.run(1)
    end = harness.cycle + PATIENCE
    while harness.restarting:
        if harness.cycle >= end:
            raise CheckError(f"restart: no end in {PATIENCE:,} cycles")
        harness.run(20)
    for port in range(TINY.tables.ports):
        harness.received(port)


def live(harness: Harness, random: Random) -> None:
    """Both ports store a block and read it; then both write and read all they can, and the slice restarts."""
    software = Software(harness, TINY)
    software.begin(*RINGS)
    for key, ring in enumerate(RINGS):
        data = random.randbytes(LENGTH)
        stored = software.store(ring, key, data)
        read = software.ask(ring, c.Read(stored, 0, SEGMENTS))
        if read.status is not Status.OK or read.data != data:
            raise CheckError(f"READ in a new life ended {read.status.name}, or with other bytes")
        written = software.allocate(ring, 100 + key, LENGTH, software.session(ring))
        software.send(ring, c.Write(written, 0, data))
        software.send(ring, c.Seal(written, LENGTH, google_crc32c.value(data)))
        for _ in range(4):
            software.send(ring, c.Read(stored, 0, SEGMENTS))
    harness.run(random.randrange(LOADED))
    restart(harness)


def restarts(seed: int, moments: int, emission: Emission | None = None) -> None:
    """A slice that restarts at so many moments."""
    random, harness = Random(seed), Harness(TINY, seed=seed, memory=LATE, emission=emission)
    for _ in range(moments):
        live(harness, random)
    harness.close()


@pytest.mark.parametrize("moments", [8, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_restart_at_any_moment_leaves_nothing(seed: int, moments: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_slice_restart.py")
    restarts(seed, moments)


MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "for the writes of one port": (
        sys.modules[__name__],
        Slice,
        "sum(segments.valid & segments.ready for segments in path.segments)",
        "path.segments[0].valid & path.segments[0].ready",
    ),
    "for no write": (top, Restart, "(writes == 0) & ", ""),
    "for no read": (top, Restart, "(reads == 0) & ", ""),
}
"""What a restart waits for, and should not, to where it is looked up, what it is, what is right and what is wrong."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_a_restart_that_waits_for_something_else_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    with pytest.raises(CheckError):
        restarts(0, 20, emit(Slice(TINY), "slice"))
