"""Memory models behind AXI4: channels of DRAM, and one bus for reads and writes; by themselves, and behind a slice."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hw.params import InputError
from hw.params import commands as c
from hw.params.dram import DRAMS, HBM2, HBM3, MAPS, Dram, MemoryChannel
from hw.params.params import TINY
from hw.params.protocol import Handle, Status
from hw.tb.harness import Harness, HarnessError, Memory
from hw.tb.harness.build import HERE
from hw.tb.harness.dram import Request, request
from hw.tb.harness.manager import Managed, manage
from hw.tb.slice.software import Software
from tests.hw.test_harness import OTHER, RING, SEGMENT, block

BURST = 4096


def mix(count: int, writes: float, seed: int = 0) -> list[Request]:
    """A stream of bursts, some of them writes."""
    generator = random.Random(seed)
    return [Request(BURST * number, BURST, generator.random() < writes) for number in range(count)]


def beats(run: Managed) -> int:
    return run.target.read_beats + run.target.write_beats


@pytest.mark.parametrize("name", DRAMS)
@pytest.mark.parametrize("writes", [0.0, 0.3, 1.0], ids=["reads", "mixed", "writes"])
def test_a_manager_gets_what_the_channel_gives(name: str, writes: float) -> None:
    """Within 2 % of a requester without AXI4."""
    channel, requests = MemoryChannel(dram=DRAMS[name]), mix(300, writes)
    best = request(channel, requests).fraction
    run = manage(Memory(channel=channel, reorder=True), requests)
    assert best * 0.98 <= run.rate <= best * 1.01
    moved = run.channel.reads + run.channel.writes + run.channel.forwarded
    assert (
        0 <= 300 * BURST // channel.dram.access_bytes - moved <= channel.controller.queue
    )  # those are told as written
    assert run.channel.refreshes and (run.channel.turnarounds > 1) == (writes == 0.3)


@pytest.mark.parametrize("dram", DRAMS.values(), ids=DRAMS)
@pytest.mark.parametrize("latency", [0, 7])
def test_the_first_beat_comes_when_the_device_has_it(dram: Dram, latency: int) -> None:
    """Two accesses for a beat at most: the second is of another bank group, and a tCCD_S later, or a tRRD_S."""
    run = manage(Memory(channel=MemoryChannel(dram=dram), latency=latency), [Request(0, 64)])
    clocks = dram.rcd_read + dram.cl + dram.bl + (dram.rrd_s if dram.access_bytes < 64 else 0)
    assert run.cycles - 2 == -(-clocks // dram.clocks_per_cycle(64)) + latency


@pytest.mark.parametrize("dram", DRAMS.values(), ids=DRAMS)
def test_no_beat_comes_before_its_data(dram: Dram) -> None:
    """Each access opens its row, so a burst is as slow as its last beat."""
    channel, burst = MemoryChannel(dram=dram, map=MAPS["row"]), [Request(0, BURST)]
    clocks = int(request(channel, burst).ends[0])
    assert manage(Memory(channel=channel, latency=0), burst).cycles - 2 == -(-clocks // dram.clocks_per_cycle(64))


@pytest.mark.parametrize("order", MAPS)
def test_data_is_right_in_any_order(order: str, seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_harness_memory.py", flush=True)
    generator = random.Random(seed)
    places = [BURST * generator.choice([n, n * n, n << 10]) for n in range(20)]
    requests = [Request(place, 512 * generator.randrange(1, 9), write) for write in (True, False) for place in places]
    generator.shuffle(requests)
    requests += [Request(place, 512) for place in places]
    memory = Memory(
        channel=MemoryChannel(dram=HBM3, map=MAPS[order]), latency=3, jitter=9, reorder=True, interleave=True,
        address_willing=0.8, data_willing=0.6, answer_willing=0.7,
    )  # fmt: skip
    run = manage(memory, requests, beat_bytes=16, seed=seed)
    assert beats(run) == sum(each.bytes for each in requests) // 16
    again = manage(memory, requests, beat_bytes=16, seed=seed)
    assert (again.cycles, again.channel, again.ends.tolist()) == (run.cycles, run.channel, run.ends.tolist())


@pytest.mark.parametrize("turnaround", [0, 1, 8, 30])
@pytest.mark.parametrize("batch", [64, 256])
def test_a_shared_bus_moves_one_beat_a_cycle(turnaround: int, batch: int) -> None:
    """A batch and a turnaround, in turns: as long as there are reads and writes."""
    requests = [Request(BURST * number, BURST, number % 2 == 1) for number in range(400)]
    run = manage(Memory(shared=True, turnaround=turnaround, batch=batch), requests, outstanding=64)
    assert run.together == 0 and run.least_turn == turnaround + 1
    assert run.rate == pytest.approx(batch / (batch + turnaround), rel=0.02)
    assert 0 <= run.cycles - beats(run) - turnaround * run.target.turns < 30


def test_a_shared_bus_is_not_turned_for_one_kind_alone() -> None:
    for writes in (0.0, 1.0):
        assert manage(Memory(shared=True, turnaround=30), mix(200, writes)).rate > 0.99


def test_memory_has_a_bus_each_way_unless_it_is_shared() -> None:
    run = manage(Memory(), [Request(BURST * number, BURST, number % 2 == 1) for number in range(400)], outstanding=64)
    assert run.rate > 1.98 and run.together > 0.98 * run.cycles


def test_a_channel_is_never_shared() -> None:
    with pytest.raises(InputError, match="a channel has one bus"):
        Memory(shared=True, channel=MemoryChannel(dram=HBM2))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("latency", -1, "expected 0 to"), ("latency", 1 << 32, "expected 0 to"), ("jitter", -1, "expected 0 to"),
        ("outstanding", 0, "expected 1 to"), ("batch", 0, "expected 1 to"), ("turnaround", -1, "expected 0 to"),
        ("turnaround", 8, "not shared, expected 0"), ("address_willing", -0.1, "a probability"),
        ("data_willing", 1.5, "a probability"), ("answer_willing", float("nan"), "a probability"),
    ],
)  # fmt: skip
def test_what_is_no_memory_is_refused(name: str, value: float, expected: str) -> None:
    with pytest.raises(InputError, match=rf"memory with {name} = {value}.*{expected}"):
        Memory(**{name: value})


def test_a_manager_without_anything_to_ask_for_is_refused() -> None:
    with pytest.raises(InputError, match="no requests, expected one at least"):
        manage(Memory(), [])
    with pytest.raises(InputError, match="outstanding = 0, expected 1 or more"):
        manage(Memory(), mix(1, 0.0), outstanding=0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "good", "bad"),
    [
        ("shared_bus.h", "free_ = cycle + turnaround_;", "free_ = cycle;"),
        ("shared_bus.h", "(!mine || moved_ >= batch_)", "!mine"),
        ("shared_bus.h", "writes_ = writing_ && cycle >= free_;", "writes_ = true;"),
        ("shared_bus.h", "return turns;", "return others;"),
        ("target.h", "(cycle - burst.due) * dram_", "cycle * dram_"),
        ("target.h", "dram_->when(burst.dram, address, bytes)", "dram_->when(burst.dram, burst.address, bytes)"),
        ("target.h", "dram_->begin(burst.write, burst.address, bytes,", "dram_->begin(burst.write, burst.address, 1,"),
    ],
)
def test_a_mutant_is_found(file: str, good: str, bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source in [*HERE.glob("*.h"), HERE / "manager.cpp"]:
        shutil.copy(source, tmp_path)
    text = (HERE / file).read_text()
    assert text.count(good) == 1
    (tmp_path / file).write_text(text.replace(good, bad))
    monkeypatch.setitem(globals(), "manage", partial(manage, sources=tmp_path))
    with pytest.raises((AssertionError, HarnessError)):
        test_a_shared_bus_moves_one_beat_a_cycle(8, 64)
        test_the_first_beat_comes_when_the_device_has_it(HBM2, 7)
        test_no_beat_comes_before_its_data(HBM2)
        test_a_manager_gets_what_the_channel_gives("HBM2", 1.0)


def stored(software: Software) -> Sequence[tuple[int, Handle]]:
    """Blocks of several lengths, in a slice that is begun."""
    software.begin(RING, OTHER)
    return [(length, software.store(RING, key, block(length))) for key, length in enumerate([1, SEGMENT + 5, 4096])]


@pytest.mark.parametrize(
    "memory",
    [
        Memory(channel=MemoryChannel(dram=HBM3), reorder=True, interleave=True, jitter=5),
        Memory(channel=MemoryChannel(dram=replace(HBM3, refresh="bank"), map=MAPS["row"])),
        Memory(channel=MemoryChannel(dram=DRAMS["DDR5-4800"]), reorder=True),
        Memory(shared=True, turnaround=9, reorder=True),
    ],
    ids=["HBM3", "bank-by-bank", "DDR5", "shared"],
)
def test_a_slice_keeps_its_blocks_in_any_memory(memory: Memory) -> None:
    harness = Harness(TINY, memory=memory)
    software = Software(harness, TINY)
    for length, handle in stored(software):
        read = software.ask(OTHER, c.Read(handle, 0, TINY.segments(length)))
        assert (read.status, read.data) == (Status.OK, block(length))
    counts = harness.channel_statistics()
    accesses = sum(each.reads + each.writes + each.forwarded for each in counts)
    assert (accesses > 0) == (memory.channel is not None)


def test_a_channel_stays_while_bursts_are_under_way() -> None:
    memory = Memory(channel=MemoryChannel(dram=HBM3), latency=100)
    harness = Harness(TINY, memory=memory)
    software = Software(harness, TINY)
    handle = stored(software)[-1][1]
    software.send(RING, c.Read(handle, 0, 8))
    harness.run(60)
    harness.memory = replace(memory, jitter=2)
    with pytest.raises(InputError, match="expected the same while bursts are under way"):
        harness.memory = Memory()
    assert harness.memory.jitter == 2
    harness.run(1000)
    harness.memory = Memory()
    assert software.ask(OTHER, c.Read(handle, 0, 8)).data == block(4096)
    assert set(harness.channel_statistics()[0]) == {0}
