"""A port among packets that no good requester sends: each is answered once, and nothing is left behind."""

from collections import Counter, deque
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.protocol import KEY_BYTES, Opcode, Status
from hw.params.sections import LinkParams, MemoryParams, TableParams
from hw.rtl.emit import describe
from hw.rtl.fabric.layouts import COMMAND, COMMAND_BYTES, Channel, to_node_buffers
from hw.rtl.node.layouts import Kind
from hw.rtl.node.port import Port, port, reader
from hw.tb.mutate import mutate
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError
from tests.hw.simulate import Restart, simulate

CYCLES = 5_000
FEEDING = 2_500
"""Cycles in which packets are sent; the rest is for their answers."""


def params(beat_bytes: int) -> Params:
    return Params(
        memory=MemoryParams(beat_bytes=beat_bytes, segment_bytes=512, channels=1, waiting_reads=2),
        link=LinkParams(commands=2, write_segments=2, answers=4, response_flits=4, data_flits=8, message_flits=2),
        tables=TableParams(ports=2, rings_per_port=2, lookup_keys=4, sessions=4, pins_per_ring=4),
    )


class Hostile:
    """A requester whose packets are short, long, empty, or of rings and opcodes that there are not.

    - `sent`, `answered`: packets, by tag. `kept`, `stored`: segments that the core accepts, and that go on.
    """

    def __init__(self, of: Params, seed: int) -> None:
        self.params = of
        self.random = Random(seed)
        self.sent: Counter[int] = Counter()
        self.answered: Counter[int] = Counter()
        self.kept = self.stored = 0
        self._codec = Codec(describe(COMMAND))
        self.queues: dict[Channel, deque[dict[str, int]]] = {Channel.REQUEST: deque(), Channel.DATA: deque()}

    def packet(self) -> None:
        """Queue a packet, and the data that its WRITE asks for, in segments of any shape."""
        rng, size = self.random, self.params.memory.beat_bytes
        opcode = rng.choice([Opcode.LOOKUP, Opcode.LOOKUP, Opcode.WRITE, Opcode.WRITE, Opcode.OPEN_SESSION, 0xEE])
        length = rng.choice([0, 1, 512, 513, 1200])
        word = self._codec.pack(
            self._codec.unpack(0) | {"opcode": opcode, "count": rng.randint(0, 6), "length": length}
        )
        parts = self.params.flits(COMMAND_BYTES)
        flits = parts + (self.params.flits(KEY_BYTES * rng.randint(0, 4)) if opcode == Opcode.LOOKUP else 0)
        shape = rng.random()
        if shape < 0.2:
            flits = rng.randint(1, parts)
        elif shape < 0.35:
            flits += rng.randint(1, 20)
        tag, ring = sum(self.sent.values()), rng.randrange(4)
        self.sent[tag] += 1
        for i in range(flits):
            data = word >> 8 * size * i & (1 << 8 * size) - 1 if i < parts else rng.getrandbits(8 * size)
            last = i == flits - 1
            count = rng.randint(0, size) if last else size
            header = {"ring": ring, "tag": tag}
            self.queues[Channel.REQUEST].append(header | {"data": data, "count": count, "last": int(last)})
        if opcode == Opcode.WRITE and flits >= parts:
            for _ in range(self.params.segments(length)):
                self._segment()

    def _segment(self) -> None:
        """A segment, or one that does not end where the longest has to."""
        rng, most = self.random, self.params.segment_beats
        beats = rng.choice([1, rng.randint(1, most), most])
        for i in range(beats):
            last = i == beats - 1 and not (beats == most and rng.random() < 0.5)
            count = rng.randint(0, self.params.memory.beat_bytes + 1)
            self.queues[Channel.DATA].append({"data": rng.getrandbits(64), "count": count, "last": int(last)})


def play(beat_bytes: int, seed: int) -> Hostile:  # noqa: PLR0915 (one cycle of everything around a port)
    """Run a port. Raises CheckError for an answer too many, credits that do not come back, or data left behind."""
    of = params(beat_bytes)
    dut, world, rng = Port(of), Hostile(of, seed), Random(seed)
    sizes = to_node_buffers(of)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:  # noqa: PLR0912, PLR0915 (likewise)
        to_node, from_node = dut.link.to_node, dut.link.from_node
        credits = dict(sizes)
        asked: deque[tuple[int, dict[str, Any]]] = deque()
        response: list[int] = []
        stopped = False
        ctx.set(dut.number, 1)
        for cycle in range(CYCLES):
            if cycle < FEEDING and len(world.queues[Channel.REQUEST]) < 30:
                world.packet()
            ctx.set(to_node.valid, 0)
            for channel in rng.sample(list(world.queues), 2):
                if world.queues[channel] and credits[channel]:
                    flit = world.queues[channel].popleft()
                    credits[channel] -= 1
                    ctx.set(to_node.valid, 1)
                    ctx.set(to_node.flit, {"channel": channel, **flit})
                    break
            ready = rng.random() < 0.6
            ctx.set(dut.operations.ready, ready)
            for stream in (dut.segments, dut.beats):
                ctx.set(stream.ready, rng.random() < 0.7)
            said = asked.popleft()[1] if asked and asked[0][0] <= cycle else None
            ctx.set(dut.verdict_valid, said is not None)
            if said is not None:
                ctx.set(dut.verdict, said)
            back = ctx.get(from_node.valid) and ctx.get(from_node.flit.channel) == Channel.RESPONSE
            ctx.set(from_node.credits, 1 << Channel.RESPONSE if back else 0)
            if back:
                response.append(ctx.get(from_node.flit.data))
                if ctx.get(from_node.flit.last):
                    world.answered[ctx.get(from_node.flit.tag)] += response[0] >> 8 & 1
                    response.clear()
            op = dut.operations.payload
            if ready and ctx.get(dut.operations.valid):
                kind, tag, item, last = (ctx.get(field) for field in (op.kind, op.tag, op.item, op.last))
                malformed = ctx.get(op.malformed) or (not ctx.get(op.length) and kind == Kind.WRITE.value)
                if ctx.get(op.stamp.port) != 1:
                    raise CheckError("a command with the stamp of another port")
                if ctx.get(op.stamp.ring) >= 2 and not malformed:
                    raise CheckError("a command of a ring that the port does not have")
                if item == 0:
                    stopped = False
                if not (stopped and kind == Kind.LOOKUP.value):
                    status = Status.INVALID if malformed else rng.choice([Status.OK, Status.OK, Status.DENIED])
                    complete = status is not Status.OK or bool(last)
                    stopped = complete
                    world.kept += kind == Kind.WRITE.value and status is Status.OK
                    due = max(asked[-1][0] if asked else 0, cycle + rng.choice([2, 2, 6, 20]))
                    stamp = {"port": 1, "ring": ctx.get(op.stamp.ring)}
                    fields = {"kind": kind, "tag": tag, "item": item, "status": status, "complete": complete}
                    asked.append((due, fields | {"outcome": status, "stamp": stamp}))
            world.stored += ctx.get(dut.beats.valid) and ctx.get(dut.beats.ready) and ctx.get(dut.beats.payload.last)
            returned = ctx.get(to_node.credits)
            for channel in sizes:
                credits[channel] += returned >> channel & 1
            await ctx.tick()
        if world.answered != world.sent:
            raise CheckError(
                f"sent {sum(world.sent.values())} packets, answered {world.answered - world.sent} too often"
            )
        if credits != sizes:
            raise CheckError(f"credits {credits} came back, expected {sizes}")
        if world.kept != world.stored:
            raise CheckError(f"{world.kept} segments were accepted, {world.stored} went on")

    simulate(dut, bench)
    return world


@pytest.mark.parametrize("beat_bytes", [16, 64, 128])
def test_bad_packets_are_answered_once(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    world = play(beat_bytes, seed)
    assert sum(world.sent.values()) > 50
    assert world.stored


def rebind() -> tuple[list[int], list[int]]:
    """Commands of two rings wait at a port, the first ring is bound anew, and sends one more.

    Returns the tags that reach the core, and those answered UNAVAILABLE by the port.
    """
    of = params(64)
    dut = Port(of)
    codec = Codec(describe(COMMAND))
    command = codec.pack(codec.unpack(0) | {"opcode": Opcode.OPEN_SESSION})
    reached: list[int] = []
    refused: list[int] = []

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        async def cycles(count: int) -> None:
            for _ in range(count):
                if ctx.get(dut.operations.valid) and ctx.get(dut.operations.ready) and not ctx.get(dut.expired):
                    reached.append(ctx.get(dut.operations.payload.tag))
                flit = dut.link.from_node.flit
                if ctx.get(dut.link.from_node.valid):
                    assert ctx.get(flit.data) & 0xFF == Status.UNAVAILABLE
                    refused.append(ctx.get(flit.tag))
                await ctx.tick()

        async def send(ring: int, tag: int) -> None:
            ctx.set(
                dut.link.to_node.flit,
                {"channel": Channel.REQUEST, "ring": ring, "tag": tag, "data": command, "last": 1},
            )
            ctx.set(dut.link.to_node.valid, 1)
            await cycles(1)
            ctx.set(dut.link.to_node.valid, 0)

        for tag, ring in enumerate((0, 1, 0)):
            await send(ring, tag)
        await cycles(6)
        ctx.set(dut.rebound, 0b01)
        await cycles(1)
        ctx.set(dut.rebound, 0)
        await send(0, 3)
        ctx.set(dut.operations.ready, 1)
        await cycles(40)

    simulate(dut, bench)
    return reached, refused


def test_commands_of_a_binding_that_is_over_are_refused() -> None:
    assert rebind() == ([1, 3], [0, 2])


MUTANTS = {
    "a refused WRITE is not waited for": ("with m.If(lookup | write):", "with m.If(lookup):"),
    "a stray ring": ("with m.If(ring >= params.tables.rings_per_port):", "with m.If(0):"),
    "a long packet is never whole": ("(packets != 0) | (flits == size)", "packets != 0"),
    "the last of a packet is not skipped": (
        'with m.If(~ended):\n                m.next = "SKIP"',
        "with m.If(0):\n                pass",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "CommandReader", mutate(reader.CommandReader, *MUTANTS[name]))
    with pytest.raises(CheckError):
        for seed in range(4):
            play(64 if name == "a refused WRITE is not waited for" else 16, seed)


def test_a_port_that_forgets_bindings_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        port, "CommandReader", mutate(reader.CommandReader, "self.expired.eq(old != 0)", "self.expired.eq(0)")
    )
    assert rebind() != ([1, 3], [0, 2])


def flood() -> tuple[int, int]:
    """Data comes without credits, and then one WRITE, of a block as long as the buffer; return segments and ends of
    segments that go on to the data path."""
    of = params(64)
    dut, room = Port(of), to_node_buffers(of)[Channel.DATA]
    codec = Codec(describe(COMMAND))
    segments = room // of.segment_beats + 2
    command = {"opcode": Opcode.WRITE, "length": segments * of.memory.segment_bytes}
    word = codec.pack(codec.unpack(0) | command)
    begun, ended = [0], [0]

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        to_node = dut.link.to_node
        ctx.set(to_node.valid, 1)
        for beat in range(segments * of.segment_beats):
            last = beat % of.segment_beats == of.segment_beats - 1
            ctx.set(to_node.flit, {"channel": Channel.DATA, "count": 64, "last": int(last)})
            await ctx.tick()
        ctx.set(to_node.flit, {"channel": Channel.REQUEST, "data": word, "last": 1})
        await ctx.tick()
        ctx.set(to_node.valid, 0)
        for ready in (dut.operations.ready, dut.segments.ready, dut.beats.ready):
            ctx.set(ready, 1)
        for _ in range(300):
            taken = ctx.get(dut.operations.valid)
            begun[0] += ctx.get(dut.segments.valid)
            ended[0] += ctx.get(dut.beats.valid) and ctx.get(dut.beats.payload.last)
            await ctx.tick()
            ctx.set(dut.verdict_valid, taken)
            ctx.set(dut.verdict, {"kind": Kind.WRITE, "status": Status.OK})

    simulate(dut, bench)
    return begun[0], ended[0]


def test_data_without_a_credit_is_lost_alone() -> None:
    begun, ended = flood()
    assert begun == ended == 2


def test_a_port_that_counts_lost_data_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = "arriving.eq(receiver.taken)", "arriving.eq(self.link.to_node.valid)"
    monkeypatch.setitem(globals(), "Port", mutate(Port, good, bad))
    begun, ended = flood()
    assert begun > ended
