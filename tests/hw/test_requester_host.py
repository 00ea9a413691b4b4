"""Host memory as the parts of a requester share it: every client has its bytes, in order, and its errors."""

from collections import defaultdict
from random import Random
from typing import Any

import pytest
from amaranth.lib import stream
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.sections import MemoryParams, RequesterParams
from hw.rtl.gpu import host_reader, host_writer
from hw.rtl.gpu.host_reader import HostReader
from hw.rtl.gpu.host_writer import AHEAD, HostWriter
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.agents import Memory, ReadSide, Sink, Source, WriteSide, expect, run
from tests.hw.simulate import Restart, simulate

CLIENTS = 3
BASE = 0xFEDC_BA98_0000_0000
BLOCKS = 4
"""Blocks of 4 KiB that each client uses."""


def params(beat_bytes: int) -> Params:
    return Params(memory=MemoryParams(beat_bytes=beat_bytes, segment_bytes=512), requester=RequesterParams(commands=4))


def burst_in(client: int, beat_bytes: int, random: Random) -> tuple[int, int]:
    """A burst in the blocks of a client: address and beats."""
    beats = random.randint(1, random.choice([1, 4, min(256, 4096 // beat_bytes)]))
    room = 4096 // beat_bytes - beats
    block = 4096 * (client * BLOCKS + random.randrange(BLOCKS))
    return BASE + block + beat_bytes * random.randint(0, room), beats


def read(beat_bytes: int, seed: int, pace: float) -> int:
    """Clients read at random; return the most bursts that were under way."""
    print(f"seed {seed}")
    random = Random(seed)
    memory = Memory(beat_bytes, random)
    memory.load(BASE, random.randbytes(4096 * BLOCKS * CLIENTS))
    memory.refused = {BASE + beat_bytes * random.randrange(4096 * BLOCKS * CLIENTS // beat_bytes) for _ in range(50)}
    dut = HostReader(params(beat_bytes), clients=CLIENTS)
    reads = ReadSide(dut.axi, memory, random, pace=pace)
    agents: list[Any] = [reads]
    owed: list[list[tuple[int, bool]]] = [[] for _ in range(CLIENTS)]
    for client in range(CLIENTS):
        source = Source(dut.bursts[client], random, pace)
        for _ in range(12):
            address, beats = burst_in(client, beat_bytes, random)
            source.queue.append({"address": address, "beats": beats})
            owed[client] += [(address + i * beat_bytes, i == beats - 1) for i in range(beats)]

        def take(beat: Any, client: int = client) -> None:
            address, last = owed[client].pop(0)
            expect(beat["last"] == last and beat["error"] == (address in memory.refused), f"beat at {address:#x}")
            if not beat["error"]:
                word = beat["data"].to_bytes(beat_bytes, "little")
                expect(word == memory.beat(address), f"bytes at {address:#x}")

        agents += [source, Sink(f"beats {client}", dut.beats[client], random, 1, take)]

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        await run(ctx, agents, lambda: not any(owed), within=10_000)
        await run(ctx, agents, lambda: True, within=1)
        expect(not reads.under_way, "a burst too many")

    simulate(dut, bench)
    return reads.most


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_clients_read_what_they_asked_for(beat_bytes: int) -> None:
    assert read(beat_bytes, seed=0, pace=0.9) > CLIENTS
    read(beat_bytes, seed=1, pace=0.4)


def test_readers_take_turns_and_a_burst_a_cycle() -> None:
    dut = HostReader(params(16), clients=CLIENTS)
    taken = []

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.axi.arready, 1)
        for bursts in dut.bursts:
            ctx.set(bursts.payload, {"address": 0, "beats": 1})
            ctx.set(bursts.valid, 1)
        for _ in range(1 + 4 * CLIENTS):
            if ctx.get(dut.axi.arvalid):
                taken.append(ctx.get(dut.axi.arid))
            await ctx.tick()

    simulate(dut, bench)
    assert [taken.count(client) for client in range(CLIENTS)] == [4] * CLIENTS


class Writing:
    """Clients that write bursts at random.

    - `after`: what memory has to hold. `owed`, `acknowledged`: the errors of each client and token, in order.
    """

    def __init__(self, dut: HostWriter, of: Params, random: Random, pace: float) -> None:
        size = of.memory.beat_bytes
        self.memory, self.after = Memory(size, random), Memory(size, random)
        refused = {BASE + size * random.randrange(4096 * BLOCKS * CLIENTS // size) for _ in range(50)}
        self.memory.refused = self.after.refused = refused
        self.owed: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self.acknowledged: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self.writes = WriteSide(dut.axi, self.memory, random, pace=pace)
        self.agents: list[Any] = [self.writes]
        for client in range(CLIENTS):
            bursts, beats = Source(dut.bursts[client], random, pace), Source(dut.beats[client], random, pace)
            for _ in range(12):
                self._burst(client, bursts, beats, random)
            sink = self._sink(client, dut.acknowledgements[client], random)
            self.agents += [bursts, beats, sink]

    def _burst(self, client: int, bursts: Source, beats: Source, random: Random) -> None:
        size = self.memory.beat_bytes
        address, count = burst_in(client, size, random)
        token = random.randrange(4)
        bursts.queue.append({"address": address, "beats": count, "token": token})
        error = False
        for i in range(count):
            word, strobes = random.randbytes(size), random.choice([(1 << size) - 1, random.getrandbits(size)])
            beats.queue.append({"data": int.from_bytes(word, "little"), "strobe": strobes})
            at = address + i * size
            if at in self.memory.refused:
                error = True
                continue
            beat = self.after.beat(at)
            beat[:] = bytes(word[j] if strobes >> j & 1 else beat[j] for j in range(size))
        self.owed[client, token].append(error)

    def _sink(self, client: int, source: stream.Interface, random: Random) -> Sink:
        def take(ended: Any) -> None:
            self.acknowledged[client, ended["token"]].append(bool(ended["error"]))

        return Sink(f"acknowledgements {client}", source, random, 1, take)

    def done(self) -> bool:
        """Whether as many bursts as were owed have been acknowledged."""
        return sum(map(len, self.acknowledged.values())) >= sum(map(len, self.owed.values()))


def write(beat_bytes: int, seed: int, pace: float) -> None:
    """Clients write at random."""
    print(f"seed {seed}")
    of = params(beat_bytes)
    dut = HostWriter(of, clients=CLIENTS)
    writing = Writing(dut, of, Random(seed), pace)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        await run(ctx, writing.agents, writing.done, within=10_000)

    simulate(dut, bench)
    expect(writing.acknowledged == writing.owed, "acknowledgements")
    expect(not writing.writes.under_way, "something was written too much")
    size = 4096 * BLOCKS * CLIENTS
    expect(writing.memory.dump(BASE, size) == writing.after.dump(BASE, size), "bytes in memory")


@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_memory_has_what_clients_wrote(beat_bytes: int) -> None:
    write(beat_bytes, seed=0, pace=0.9)
    write(beat_bytes, seed=1, pace=0.4)


def flow(*, addresses: bool, beats: bool, cycles: int) -> tuple[int, int]:
    """Return how many addresses and beats leave in so many cycles if memory takes all; clients give what they are
    let to, in bursts of two beats."""
    dut = HostWriter(params(16), clients=2)
    left = [0, 0]

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.axi.awready, addresses)
        ctx.set(dut.axi.wready, 1)
        for i in range(2):
            ctx.set(dut.bursts[i].payload, {"address": 0, "beats": 2, "token": 0})
            ctx.set(dut.bursts[i].valid, 1)
            ctx.set(dut.beats[i].valid, beats)
        for _ in range(cycles):
            left[0] += ctx.get(dut.axi.awvalid) & ctx.get(dut.axi.awready)
            left[1] += ctx.get(dut.axi.wvalid) & ctx.get(dut.axi.wready)
            await ctx.tick()

    simulate(dut, bench)
    return left[0], left[1]


def test_addresses_and_beats_leave_as_soon_as_they_can() -> None:
    assert flow(addresses=True, beats=False, cycles=20) == (AHEAD, 0)
    assert flow(addresses=False, beats=True, cycles=20) == (0, 2)
    assert flow(addresses=True, beats=True, cycles=42)[1] == 40


MUTANTS = {
    "a beat of another client": (host_reader.HostReader, "axi.rid == i", "axi.rid == 0"),
    "a read error is swallowed": (host_reader.HostReader, "is_error(axi.rresp)", "0"),
    "a burst is one too long": (host_reader.HostReader, "burst.beats - 1", "burst.beats"),
    "an address is overwritten": (host_reader.HostReader, "~axi.arvalid | axi.arready", "1"),
    "an acknowledgement of another client": (host_writer.HostWriter, "their_id.client == i", "their_id.client == 0"),
    "a write error is swallowed": (host_writer.HostWriter, "is_error(axi.bresp)", "0"),
    "tokens are lost": (host_writer.HostWriter, "our_id.token.eq(burst.token)", "our_id.token.eq(0)"),
    "the last beat is not marked": (host_writer.HostWriter, "axi.wlast.eq(ends)", "axi.wlast.eq(0)"),
    "a beat is overwritten": (host_writer.HostWriter, "(~axi.wvalid | axi.wready)", "1"),
    "an address does not wait for its place": (host_writer.HostWriter, "free & order.i.ready", "free"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad = MUTANTS[name]
    monkeypatch.setitem(globals(), target.__name__, mutate(target, good, bad))
    with pytest.raises(CheckError):
        (read if target is host_reader.HostReader else write)(16, seed=0, pace=0.9)
