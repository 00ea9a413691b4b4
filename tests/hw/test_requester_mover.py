"""The data of WRITEs: every byte is sent as memory has it, in order, and what memory refuses is told."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.rtl.gpu import mover
from hw.rtl.gpu.mover import Mover
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.agents import Memory, ReadSide, Sink, Source, expect, run
from tests.hw.requesterbench import AHEAD, CONTEXTS, HBM, LISTS, SEGMENT, Data, WithWalker, params
from tests.hw.simulate import Restart, simulate


@dataclass
class Move:
    """A WRITE, and what has to come of it: its `flits`, and `error`."""

    payload: dict[str, Any]
    flits: list[dict[str, int]] = field(default_factory=list)
    bursts: list[tuple[int, int]] = field(default_factory=list)
    error: bool = False


def move_of(data: Data, length: int, hbm: Memory, random: Random) -> Move:
    """A WRITE of `length` bytes; memory has the data, or refuses some of it."""
    size = hbm.beat_bytes
    names = {"ring": random.getrandbits(4), "tag": random.getrandbits(16)}
    move = Move(names | {"place": data.place, "length": length, "context": random.randrange(CONTEXTS)})
    for number, address in enumerate(data.addresses):
        inside = min(SEGMENT, length - number * SEGMENT)
        beats = -(-inside // size)
        if address is not None:
            move.bursts.append((address, beats))
        for i in range(beats):
            last = i == beats - 1
            count = inside - i * size if last else size
            word = bytes(size)
            if address is not None:
                hbm.load(address + i * size, random.randbytes(size))
                if random.random() < 0.01:
                    hbm.refused.add(address + i * size)
                if address + i * size not in hbm.refused:
                    word = bytes(hbm.beat(address + i * size))
            move.error |= address is None or address + i * size in hbm.refused
            content = int.from_bytes(word[:count], "little")
            move.flits.append(names | {"segment": number, "count": count, "last": last, "data": content})
    return move


def move(beat_bytes: int, seed: int, pace: float, faults: float = 0.1) -> None:
    """Send the data of WRITEs, one batch after the other, with other lists in the same memory."""
    print(f"seed {seed}")
    random = Random(seed)
    host, hbm = Memory(beat_bytes, random), Memory(beat_bytes, random)
    dut = WithWalker(params(beat_bytes), Mover)
    unit = dut.unit
    moves = Source(unit.moves, random, pace)
    owed: list[dict[str, int]] = []
    ends: list[tuple[int, int, bool]] = []  # context, flits that have to come after it, error

    def take(flit: dict[str, int]) -> None:
        expected = owed.pop(0)
        flit["data"] &= (1 << 8 * flit["count"]) - 1
        got = {name: flit[name] for name in expected}
        expect(got == expected and not flit["end"], f"{got}, expected {expected}")

    def end(ended: dict[str, int]) -> None:
        context, after, error = ends.pop(0)
        expect((ended["token"], ended["error"]) == (context, error), f"{ended}, expected error {error} of {context}")
        expect(len(owed) <= after, "a WRITE has ended before its last flit left")

    reads, lists = ReadSide(unit.axi, hbm, random, pace=pace), ReadSide(dut.host, host, random, pace=pace)
    flits, ended = Sink("flits", unit.flits, random, pace, take), Sink("ended", unit.ended, random, 1, end)
    agents = [reads, lists, moves, flits, ended]

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for batch in range(8):
            lengths = [random.randint(1, random.choice([SEGMENT, 12 * SEGMENT])) for _ in range(2)]
            data = [
                Data(host, -(-length // SEGMENT), region=2 * batch + i, at=LISTS[i], faults=faults)
                for i, length in enumerate(lengths)
            ]
            batch_of = [move_of(where, length, hbm, random) for where, length in zip(data, lengths, strict=True)]
            for each in batch_of:
                moves.queue.append(each.payload)
                owed.extend(each.flits)
            left = len(owed)
            for each in batch_of:
                left -= len(each.flits)
                ends.append((each.payload["context"], left, each.error))
            before = len(reads.bursts)
            await run(ctx, agents, lambda: not ends, within=10_000)
            expected = [burst for each in batch_of for burst in each.bursts]
            expect(not owed and reads.bursts[before:] == expected, "bursts")

    simulate(dut, bench)
    expect(not reads.under_way, "a burst too many")
    expect(reads.most == AHEAD, f"{reads.most} bursts at once")


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_writes_are_sent_as_memory_has_them(beat_bytes: int) -> None:
    move(beat_bytes, seed=0, pace=1)
    move(beat_bytes, seed=1, pace=0.5)
    move(beat_bytes, seed=2, pace=0.9, faults=0)


def test_a_beat_a_cycle_is_sent_if_latency_is_covered() -> None:
    random = Random(0)
    dut = WithWalker(params(64), Mover)
    memory = Memory(64, random)
    moves = Source(dut.unit.moves, random, 1)
    sent: list[int] = []
    cycles = 0
    for tag in range(2):
        place = {"address": HBM, "scattered": 0, "page_shift": 0}
        moves.queue.append({"place": place, "length": 6 * SEGMENT, "ring": 0, "tag": tag, "context": 0})
    sink = Sink("flits", dut.unit.flits, random, 1, lambda _: sent.append(cycles))
    agents = [ReadSide(dut.unit.axi, memory, random, pace=1, latency=12), moves, sink]

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        nonlocal cycles
        while len(sent) < 2 * 6 * 8:
            cycles += await run(ctx, agents, lambda: True, within=1)

    simulate(dut, bench)
    assert sent == list(range(sent[0], sent[0] + 2 * 6 * 8))


MUTANTS = {
    "the page of another segment": ("self.walks.payload.segment.eq(segment)", "self.walks.payload.segment.eq(0)"),
    "no room is reserved": ("depth=params.requester.write_segments", "depth=8"),
    "an error of memory is swallowed": ("failed | refused | old.error", "failed | refused"),
    "an error of a page is swallowed": ("failed | refused | old.error", "failed | old.error"),
    "an error before the last beat is swallowed": ("failed | refused | old.error", "refused | old.error"),
    "an error stays": ("failed_now & ~end", "failed_now"),
    "what came with an error is sent": ("Mux(new.error, 0, axi.rdata)", "axi.rdata"),
    "what was there before is sent": ("Mux(refused, 0, old.data)", "old.data"),
    "a page in error is read": ("axi.arvalid.eq(~self.found.payload.error)", "axi.arvalid.eq(1)"),
    "an address is overwritten": ("free & order.i.ready", "order.i.ready"),
    "a flit is overwritten": (" & (~flits.valid | flits.ready)", ""),
    "a short beat is whole": ("Mux(last, entry.count, params.memory.beat_bytes)", "params.memory.beat_bytes"),
    "a short segment is whole": ("rest.eq(Mux(end, ", "rest.eq(Mux(0, "),
    "a move ends early": ("taken & end)", "send & last & entry.end)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Mover", mutate(mover.Mover, *MUTANTS[name]))
    with pytest.raises(CheckError):
        move(16, seed=1, pace=0.5)
