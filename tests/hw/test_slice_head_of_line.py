"""A port that is slow, stopped or full stops itself alone."""

from functools import cache

import pytest

from hw.params import TINY
from hw.params import commands as c
from hw.params.protocol import Handle, LookupMode, RingId, SessionId
from hw.rtl.emit import Emission, emit
from hw.rtl.node.data import read_path
from hw.rtl.node.data.read_lane import ReadLane
from hw.rtl.node.slice import Slice
from hw.tb.harness import Harness, Links
from hw.tb.mutate import mutate
from hw.tb.slice.software import Reply, Software

BUSY, STOPPED = RingId(0, 0), RingId(1, 0)
SEGMENTS = TINY.pools[0].frame_bytes // TINY.memory.segment_bytes
ASKED = 12
"""READs under way of the port that is looked at."""

WARMING, CYCLES, STEP = 500, 1_500, 50


def load(software: Software, handle: Handle, session: SessionId, key: int) -> None:
    """All that a port can ask for, more than its buffers take: READs, LOOKUPs with pins, WRITEs, ALLOCs."""
    size = TINY.memory.segment_bytes
    for i in range(40):
        software.send(STOPPED, c.Read(handle, 0, SEGMENTS))
        software.send(STOPPED, c.Lookup(0, (key,) * TINY.tables.lookup_keys, LookupMode.BITMAP, pin=True))
        software.send(STOPPED, c.Alloc(0, 1_000 + i, size, session))
        software.send(STOPPED, c.Write(handle, 0, bytes(size)))


def rate(stopped: Links | None, emission: Emission | None = None) -> float:
    """Flits a cycle that a port brings while the other one is idle, or asks for all it can over a link that is so."""
    software = Software(Harness(TINY, emission=emission), TINY)
    software.begin(BUSY, STOPPED)
    data = bytes(range(256)) * (TINY.pools[0].frame_bytes // 256)
    handle = software.store(BUSY, 7, data)
    if stopped is not None:
        session = software.session(STOPPED)
        software.harness.set_link(STOPPED.port, stopped)
        load(software, handle, session, 7)
    reads: list[Reply] = []
    begin = software.harness.cycle + WARMING
    while software.harness.cycle < begin + CYCLES:
        waiting = sum(not read.ended for read in reads)
        reads += [software.send(BUSY, c.Read(handle, 0, SEGMENTS)) for _ in range(ASKED - waiting)]
        software.run(STEP)
    software.harness.close()
    assert all(read.data == data for read in reads if read.ended)
    return sum(begin <= cycle < begin + CYCLES for read in reads for cycle in read.cycles) / CYCLES


@cache
def alone() -> float:
    """What the port brings when nobody else asks for anything."""
    return rate(None)


HOW = {"stopped": Links(backpressure=1.0), "slow": Links(backpressure=0.98), "far": Links(latency=500)}


@pytest.mark.parametrize("how", HOW)
def test_a_port_brings_as_much_whatever_the_other_does(how: str) -> None:
    beside = rate(HOW[how])
    print(f"alone {alone():.3f} flits a cycle, beside one that is {how} {beside:.3f}")
    assert alone() > 0.99
    assert beside > 0.99


@pytest.mark.nightly
def test_a_channel_that_waits_for_every_port_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good, waiting = "read.valid & bank.free", "read.valid & Cat(each.free for each in banks).all()"
    monkeypatch.setattr(read_path, "ReadLane", mutate(ReadLane, good, waiting))
    assert rate(HOW["stopped"], emit(Slice(TINY), "slice")) < 0.9
