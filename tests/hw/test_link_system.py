"""The compiled system with links with replay: all bytes, over wires with errors, and after a cut."""

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import google_crc32c
import pytest

from hw.params import Params
from hw.params import commands as c
from hw.params.protocol import Opcode, RingId, Status
from hw.rtl.emit import Emission, emit
from hw.rtl.system import System
from hw.tb.harness.system import SystemHarness
from hw.tb.link.noisy import NoisyWire
from hw.tb.slice.compiled import administer
from hw.tb.system.load import Ring, busy
from tests.driver.driverbench import PARAMS
from tests.hw.test_system import READ, WRITTEN, completions, play

LINKED = replace(PARAMS, link=replace(PARAMS.link, replay=True, latency=20))
PERIOD, CUT = 40_000, 5_000
COMMANDS = 400


def noisy_system(monkeypatch: pytest.MonkeyPatch, params: Params, **noise: int) -> Emission:
    """Return the system with wires that go wrong."""
    monkeypatch.setattr("hw.rtl.fabric.span.Wire", partial(NoisyWire, **noise))
    return emit(System(params), "system")


@pytest.mark.nightly
@pytest.mark.parametrize("every", [0, 64], ids=["whole", "flips"])
def test_full_rings_move_data_over_links(every: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As over direct links, with a flipped bit in one piece of 64, or none."""
    print(f"seed {seed}")
    play(SystemHarness(LINKED, seed=seed, emission=noisy_system(monkeypatch, LINKED, every=every)))


@pytest.mark.nightly
def test_a_cut_ends_what_is_under_way_and_the_link_comes_back(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command completes once, after the cut UNAVAILABLE; rings that are bound again store and read."""
    print(f"seed {seed}")
    emission = noisy_system(monkeypatch, LINKED, cut=CUT, period=PERIOD)
    harness = SystemHarness(LINKED, seed=seed, emission=emission)
    rings = busy(harness, LINKED, commands=COMMANDS)
    harness.run(PERIOD + CUT - harness.cycle)
    for ring in rings:
        done = completions(ring)
        found = Counter((Status(each["status"]), each["count"], each["slot"]) for each in done)
        assert len({each["tag"] for each in done}) == len(done) == COMMANDS
        cut_off = {key: n for key, n in found.items() if key[0] is Status.UNAVAILABLE}
        assert found.keys() - cut_off.keys() == {READ, WRITTEN}
        assert min(sum(cut_off.values()), found[READ]) > 10
        ring.head += len(done)
        assert administer(harness, c.Bind(RingId(ring.port, 0), 0)) in (None, Status.OK)
        store_and_read(ring)
    assert harness.cycle < 2 * PERIOD - CUT


def store_and_read(ring: Ring) -> None:
    """Store a new block, and read what it was."""
    length, data = len(ring.data), bytes(ring.data)
    found: dict[str, Any] = ring.ask(Opcode.OPEN_SESSION, Status.OK)
    found = ring.ask(Opcode.ALLOC, Status.GRANTED, subject=100 + ring.port, length=length, slot=found["slot"])
    handle = found["handle"]
    ring.ask(Opcode.WRITE, Status.OK, subject=handle, length=length)
    ring.ask(Opcode.SEAL, Status.OK, subject=handle, length=length, crc=google_crc32c.value(data))
    ring.data[:] = bytes(length)
    ring.ask(Opcode.READ, Status.OK, subject=handle, count=LINKED.segments(length), length=length)
    assert ring.data == data
