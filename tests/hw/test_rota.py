"""Turns of isolated partitions: what one of them does when is the same whatever the others ask for."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.rota import RotaParams
from hw.params.sections import CamParams, MemoryParams, PoolParams, TableParams
from hw.rtl.node import dispatch, rota
from hw.rtl.node.data import read_lane, write_lane
from hw.rtl.node.data.turns import READS, WRITES, Turns
from hw.rtl.node.layouts import Kind
from hw.rtl.node.rota import Rota
from hw.tb.mutate import mutate
from tests.hw.simulate import Restart, simulate

PARAMS = Params(
    memory=MemoryParams(segment_bytes=512, beat_bytes=128, channels=1, latency_cycles=8, turn_bursts=1),
    cam=CamParams(banks=2, ways=2, sets=4),
    pools=(PoolParams(frame_bytes=4096, frames=4),) * 2,
    tables=TableParams(
        ports=4,
        partitions=2,
        models=1,
        sessions=2,
        parked_reads=2,
        fences=2,
        lookup_keys=4,
        victims=2,
        isolation="strict",
    ),
    rota=RotaParams(guard=60, turn=240),
)
TIMES = PARAMS.times
PERIOD = TIMES.period(2)
CYCLES = 3 * PERIOD
BEATS = PARAMS.segment_beats
MINE = (1, 3)
"""Ports of the partition that is watched; its turn comes behind that of the other."""

LATENCY = 12
"""Of memory, in cycles."""

Seen = list[tuple[Any, ...]]
"""What is watched, each with its cycle."""


def turn(cycle: int) -> dict[str, int]:
    """The turn in a cycle, as `turn_layout` has it."""
    share, passed = divmod(cycle % PERIOD, TIMES.turn)
    left = (TIMES.house if share == 2 else TIMES.turn) - passed
    return {"share": share, "left": left, "memory": int(share < 2 and left > TIMES.guard), "ends": int(left == 1)}


def test_turns_come_as_the_parameters_say() -> None:
    dut = Rota(PARAMS)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for cycle in range(2 * PERIOD + 3):
            assert {name: ctx.get(dut.turn)[name] for name in turn(cycle)} == turn(cycle), cycle
            await ctx.tick()

    simulate(dut, bench)


def arrivals(port: int, seed: int, most: int) -> deque[int]:
    """When a port asks: the watched ones at the same times for all seeds, the others more often, or never for 0."""
    random = Random(f"{port}" if port in MINE else f"{port}/{seed}")
    count = most if port in MINE else 3 * most if seed else 0
    return deque(sorted(random.randrange(CYCLES) for _ in range(count)))


def reads(seed: int) -> Seen:
    """The reads of the watched ports, and what `Turns` is told of them."""
    dut, seen = read_lane.ReadLane(PARAMS), []
    asked = [arrivals(port, seed, 40) for port in range(4)]
    under_way: deque[tuple[int, int, bool]] = deque()

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.turn.may, 1)
        ctx.set(dut.memory.arready, 1)
        for port, beats in enumerate(dut.beats):
            ctx.set(beats.ready, 1)
            ctx.set(dut.reads[port].payload, {"address": 512 * port, "last": BEATS - 1})
        for cycle in range(CYCLES):
            now = turn(cycle)
            ctx.set(dut.rota, now)
            for port, queue in enumerate(asked):
                ctx.set(dut.reads[port].valid, bool(queue and queue[0] <= cycle))
            there = bool(under_way and under_way[0][0] <= cycle)
            ctx.set(dut.memory.rvalid, there)
            if there:
                _, burst, last = under_way.popleft()
                ctx.set(dut.memory.rid, burst)
                ctx.set(dut.memory.rlast, last)
            for port, queue in enumerate(asked):
                if ctx.get(dut.reads[port].valid) and ctx.get(dut.reads[port].ready):
                    queue.popleft()
                    if port in MINE:
                        seen.append((cycle, port))
            if ctx.get(dut.memory.arvalid):
                begin = max(cycle + LATENCY, under_way[-1][0] + 1 if under_way else 0)
                under_way.extend((begin + i, ctx.get(dut.memory.arid), i == BEATS - 1) for i in range(BEATS))
            if now["share"] == 1:
                seen.append((cycle, ctx.get(dut.turn.waits), ctx.get(dut.turn.busy)))
            await ctx.tick()

    simulate(dut, bench)
    return seen


def writes(seed: int) -> Seen:
    """The writes of the watched ports, and what `Turns` is told of them."""
    dut, seen = write_lane.WriteLane(PARAMS), []
    asked = [arrivals(port, seed, 40) for port in range(4)]
    beat = [0] * 4
    addresses: deque[int] = deque()
    answers: deque[tuple[int, int]] = deque()

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.turn.may, 1)
        ctx.set(dut.memory.awready, 1)
        ctx.set(dut.memory.wready, 1)
        for port, each in enumerate(dut.answers):
            ctx.set(each.ready, 1)
            ctx.set(dut.beats[port].payload.beat.count, 128)
        for cycle in range(CYCLES):
            now = turn(cycle)
            ctx.set(dut.rota, now)
            for port, queue in enumerate(asked):
                ctx.set(dut.beats[port].valid, bool(queue and queue[0] <= cycle))
                ctx.set(dut.beats[port].payload.beat.last, beat[port] == BEATS - 1)
            there = bool(answers and answers[0][0] <= cycle)
            ctx.set(dut.memory.bvalid, there)
            if there:
                ctx.set(dut.memory.bid, answers.popleft()[1])
            for port, queue in enumerate(asked):
                if ctx.get(dut.beats[port].valid) and ctx.get(dut.beats[port].ready):
                    beat[port] = (beat[port] + 1) % BEATS
                    if beat[port] == 0:
                        queue.popleft()
            if ctx.get(dut.memory.awvalid):
                burst = ctx.get(dut.memory.awid)
                addresses.append(burst)
                if burst & 3 in MINE:
                    seen.append((cycle, burst))
            if ctx.get(dut.memory.wvalid) and ctx.get(dut.memory.wlast):
                answers.append((cycle + LATENCY, addresses.popleft()))
            if now["share"] == 1:
                seen.append((cycle, ctx.get(dut.turn.waits), ctx.get(dut.turn.presses)))
            await ctx.tick()

    simulate(dut, bench)
    return seen


COMMANDS = ((Kind.OPEN_SESSION, TIMES.other), (Kind.ALLOC, TIMES.alloc), (Kind.LOOKUP, TIMES.key))
"""What ports ask, and for how long that keeps the core busy."""


def operations(seed: int) -> Seen:
    """The operations of the watched partition."""
    dut, seen = dispatch.Dispatch(PARAMS), []
    asked = [arrivals(port, seed, 20) for port in range(4)]
    lost = [arrivals(port, seed, 2) for port in range(4)]
    landed, done = ([arrivals(port, seed, 3) for port in range(2)] for _ in range(2))
    keys = [0] * 4

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        busy = 0
        for cycle in range(CYCLES):
            ctx.set(dut.rota, turn(cycle))
            ctx.set(dut.operations.ready, cycle >= busy)
            sources: list[tuple[int, Any, deque[int]]] = []
            for port in range(4):
                kind = COMMANDS[len(asked[port]) % 3][0]
                command = dut.commands[port].payload
                ctx.set(command.kind, kind)
                ctx.set(command.item, keys[port])
                ctx.set(command.last, keys[port] == 3 or kind is not Kind.LOOKUP)
                sources += [(port, dut.commands[port], asked[port]), (port, dut.losses[port], lost[port])]
            for share in range(2):
                sources += [(share, dut.landed[share], landed[share]), (share, dut.done[share], done[share])]
            for _, source, queue in sources:
                ctx.set(source.valid, bool(queue and queue[0] <= cycle))
            for number, (port, source, queue) in enumerate(sources):
                if not (ctx.get(source.valid) and ctx.get(source.ready)):
                    continue
                kind = Kind(ctx.get(dut.operations.payload.kind))
                busy = cycle + dict(COMMANDS).get(kind, TIMES.other)
                if kind is Kind.LOOKUP and keys[port] < 3:
                    keys[port] += 1
                else:
                    queue.popleft()
                    keys[port] = 0 if kind is Kind.LOOKUP else keys[port]
                if port in MINE:
                    seen.append((cycle, number, kind))
            await ctx.tick()

    simulate(dut, bench)
    return seen


class Batches(wiring.Component):
    """The `Turns` of a channel, with batches of four, as a data path has them."""

    def __init__(self) -> None:
        self._params = replace(PARAMS, memory=replace(PARAMS.memory, turn_bursts=4))
        super().__init__(rota.rota_member(self._params) | {"reads": In(READS), "writes": In(WRITES)})

    def elaborate(self, platform: object) -> Module:
        m, inner = Module(), Turns(self._params)
        m.submodules.turns = rota.Turn(self._params, self).anew(inner)
        wiring.connect(m, wiring.flipped(self.reads), inner.reads)
        wiring.connect(m, wiring.flipped(self.writes), inner.writes)
        return m


def batches(seed: int) -> Seen:
    """What a channel may let out while reads and writes of the watched ports wait, and no turn but theirs goes on."""
    dut, seen, random = Batches(), [], Random(seed)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for cycle in range(CYCLES):
            now = turn(cycle)
            ctx.set(dut.rota, now)
            mine = now["share"] == 1
            for side in dut.reads, dut.writes:
                ctx.set(side.waits, now["memory"] and (mine or bool(seed and random.getrandbits(1))))
            ctx.set(dut.reads.busy, ctx.get(dut.reads.waits))
            ctx.set(dut.writes.presses, ctx.get(dut.writes.waits))
            for side in dut.reads, dut.writes:
                ctx.set(side.begins, ctx.get(side.waits) & ctx.get(side.may))
            if mine:
                seen.append((cycle, ctx.get(dut.reads.may), ctx.get(dut.writes.may)))
            await ctx.tick()

    simulate(dut, bench)
    return seen


WATCHES: dict[str, Callable[[int], Seen]] = {
    "reads": reads,
    "writes": writes,
    "batches": batches,
    "operations": operations,
}


@cache
def alone(name: str) -> Seen:
    """What is seen while the others do nothing."""
    return WATCHES[name](0)


@pytest.mark.parametrize("name", WATCHES)
def test_nothing_of_a_partition_follows_from_others(name: str, seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_rota.py", flush=True)
    assert len({entry[0] for entry in alone(name)}) > 15
    assert WATCHES[name](seed + 1) == alone(name)


ANEW = "rota.begin_anew(m, last)", "pass"
MUTANTS: dict[str, tuple[str, Any, str, str, str]] = {
    "reads in all turns": (
        "reads",
        read_lane,
        "ReadLane",
        "rota.memory(read.valid & bank.free, i)",
        "read.valid & bank.free",
    ),
    "reads remember": ("reads", read_lane, "ReadLane", *ANEW),
    "writes in all turns": (
        "writes",
        write_lane,
        "WriteLane",
        "rota.memory(bank.bursts.valid, i)",
        "bank.bursts.valid",
    ),
    "writes remember": ("writes", write_lane, "WriteLane", *ANEW),
    "writes of others press": ("writes", write_lane, "WriteLane", "rota.counted(bank.waiting, i)", "bank.waiting"),
    "batches go on": ("batches", rota, "Turn", "ResetInserter(self.now.ends)(component)", "component"),
    "commands in all turns": ("operations", dispatch, "Dispatch", "turn.only(each.valid, i)\n", "each.valid\n"),
    "commands that do not end": (
        "operations",
        dispatch,
        "Dispatch",
        "turn.lasts(asks, self._cycles(each.payload))",
        "asks",
    ),
    "ports of all are remembered": (
        "operations",
        dispatch,
        "Dispatch",
        "turn.each(range(ports + 1), name=name) for",
        "Signal(range(ports + 1), name=name) for",
    ),
}
"""Name to what is watched, where the mutant is, what it is of, what is right there and what is wrong."""

SEEDS = 5
"""Loads that find a mutant."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_what_follows_from_others_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target, mutate(getattr(where, target), good, bad))
    quiet = WATCHES[watched](0)
    assert any(WATCHES[watched](seed) != quiet for seed in range(1, SEEDS + 1))
