"""Where segments are: in lists of pages that come and go in the same memory."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.rtl.gpu import page_walker
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw import requesterbench
from tests.hw.agents import Memory, ReadSide, Sink, Source, expect, run
from tests.hw.requesterbench import HOST, LISTS, Data, WithWalker, params
from tests.hw.simulate import Restart, simulate


def walk(beat_bytes: int, seed: int, pace: float) -> None:
    """Two commands at a time ask for their segments, between each other; then others, with other lists in the same
    memory."""
    print(f"seed {seed}")
    random = Random(seed)
    host = Memory(beat_bytes, random)
    dut = WithWalker(params(beat_bytes))
    reads = ReadSide(dut.host, host, random, pace=pace)
    walks = Source(dut.walker.walks, random, pace)
    found: list[Any] = []
    agents = [reads, walks, Sink("found", dut.walker.found, random, pace, found.append)]

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for _ in range(60):
            commands = [
                Data(host, random.randint(1, 16), region=i, at=LISTS[i], faults=0.3)
                for i in range(random.randint(1, 2))
            ]
            turns = [i for i, command in enumerate(commands) for _ in command.addresses]
            if random.random() < 0.5:
                random.shuffle(turns)
            numbers, expected = Counter[int](), []
            for i in turns:
                walks.queue.append({"place": commands[i].place, "segment": numbers[i]})
                expected.append(commands[i].addresses[numbers[i]])
                numbers[i] += 1
            found.clear()
            await run(ctx, agents, lambda owed=turns: len(found) == len(owed), within=3_000)
            got = [None if answer["error"] else answer["address"] for answer in found]
            expect(got == expected, f"{got}, expected {expected}")

    simulate(dut, bench)
    expect(not reads.under_way, "a read too many")


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_every_segment_is_found(beat_bytes: int) -> None:
    walk(beat_bytes, seed=0, pace=1)
    walk(beat_bytes, seed=1, pace=0.5)


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_a_beat_of_a_list_is_read_once(beat_bytes: int) -> None:
    random = Random(0)
    host = Memory(beat_bytes, random)
    dut = WithWalker(params(beat_bytes))
    reads = ReadSide(dut.host, host, random, pace=1)
    walks, found = Source(dut.walker.walks, random, 1), []
    walks.queue.extend({"place": {"address": HOST, "scattered": 1, "page_shift": 10}, "segment": i} for i in range(32))

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        agents = [reads, walks, Sink("found", dut.walker.found, random, 1, found.append)]
        await run(ctx, agents, lambda: len(found) == 32, within=1_000)

    simulate(dut, bench)
    assert reads.bursts == [(HOST + i, 1) for i in range(0, 16 * 8, beat_bytes)]


MUTANTS = {
    "a beat is kept over commands": ("kept & (walk.segment != 0) & ", "kept & "),
    "a beat of another list": ("& (kept_list == place.address) ", ""),
    "a beat of other entries": (" & (kept_beat == entry[lane_bits:])", ""),
    "a beat is kept that was refused": ("kept.eq(~self.beats.payload.error)", "kept.eq(1)"),
    "an error of memory is swallowed": ("failed | base", "base"),
    "an unaligned page is taken": ("failed | base[:segment_shift].any()", "failed"),
    "an error stays": ("failed.eq(0),", ""),
    "the beginning of a page": ("Mux(place.scattered, within, distance)", "Mux(place.scattered, 0, distance)"),
    "the page before": ("lane.eq(entry)", "lane.eq(entry - 1)"),
    "an answer that changes": ("self.walks.ready.eq(1)", "[self.walks.ready.eq(1), self.found.valid.eq(1)]"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requesterbench, "PageWalker", mutate(page_walker.PageWalker, *MUTANTS[name]))
    with pytest.raises(CheckError):
        walk(16, seed=0, pace=1)
