"""A port whose requester falls silent in the middle of anything: what the core has begun ends, all else is gone."""

from collections import Counter, deque
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.protocol import KEY_BYTES, Opcode, Status
from hw.params.sections import LinkParams, MemoryParams, TableParams
from hw.rtl.emit import describe
from hw.rtl.fabric.layouts import COMMAND, COMMAND_BYTES, Channel, from_node_buffers, to_node_buffers
from hw.rtl.node.layouts import Kind
from hw.rtl.node.port import Port, loss, port, reader, watch
from hw.tb.mutate import mutate
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError
from tests.everyday import everyday
from tests.hw.simulate import Restart, simulate

CYCLES = 2_500
LIMIT = 400
"""Cycles from the loss to rest: the core takes some tens for all that is under way, and memory less."""

PARAMS = Params(
    memory=MemoryParams(beat_bytes=64, segment_bytes=512, channels=1, waiting_reads=2),
    link=LinkParams(
        commands=2,
        write_segments=2,
        answers=4,
        response_flits=2,
        data_flits=4,
        message_flits=2,
        heartbeat_cycles=8,
        silence_cycles=30,
    ),
    tables=TableParams(ports=2, rings_per_port=2, lookup_keys=4, sessions=4, pins_per_ring=4),
)
RINGS = range(PARAMS.tables.rings_per_port)


class Requester:
    """Sends good commands, until it falls silent; then it is reset.

    - `waiting`: tags of commands that have not been answered.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.tag = 0
        self._codec = Codec(describe(COMMAND))
        self.renew()

    def renew(self) -> None:
        """Begin anew."""
        self.credits = dict(to_node_buffers(PARAMS))
        self.waiting: set[int] = set()
        self.queues: dict[Channel, deque[dict[str, int]]] = {channel: deque() for channel in self.credits}
        self.flits = 0
        self.owed: deque[tuple[int, int]] = deque()

    def ask(self) -> None:
        """Queue a command."""
        rng, size = self.random, PARAMS.memory.beat_bytes
        opcode = rng.choice([Opcode.LOOKUP, Opcode.WRITE, Opcode.WRITE, Opcode.OPEN_SESSION, Opcode.READ, Opcode.SEAL])
        keys, length = rng.randint(1, 4), rng.choice([512, 1024, 1500, 2048])
        count = keys if opcode == Opcode.LOOKUP else 1
        word = self._codec.pack(self._codec.unpack(0) | {"opcode": opcode, "count": count, "length": length})
        payload = word.to_bytes(COMMAND_BYTES, "little").ljust(PARAMS.flits(COMMAND_BYTES) * size, b"\0")
        header = {"ring": rng.choice(RINGS), "tag": self.tag}
        self.waiting.add(self.tag)
        self.tag += 1
        if opcode == Opcode.LOOKUP:
            payload += bytes(KEY_BYTES * keys)
        self._packet(Channel.REQUEST, header, payload)
        for at in range(0, length if opcode == Opcode.WRITE else 0, PARAMS.memory.segment_bytes):
            self._packet(Channel.DATA, header, bytes(min(PARAMS.memory.segment_bytes, length - at)))

    def _packet(self, channel: Channel, header: dict[str, int], payload: bytes) -> None:
        size = PARAMS.memory.beat_bytes
        for at in range(0, len(payload), size):
            part = payload[at : at + size]
            rest = {"data": int.from_bytes(part, "little"), "count": len(part), "last": int(at + size >= len(payload))}
            self.queues[channel].append({"channel": channel.value, **header, **rest})

    def flit(self) -> dict[str, int] | None:
        """The next flit, if there is one with a credit."""
        for channel in self.random.sample(list(self.queues), len(self.queues)):
            if self.queues[channel] and self.credits[channel]:
                self.credits[channel] -= 1
                return self.queues[channel].popleft()
        return None


class Core:
    """Takes operations, and says something of each some cycles later; of a lost ring UNAVAILABLE.

    - `begun`: commands that have no end yet, by tag. `lost`: rings, and how often each was told.
    - `kept`: segments that are to be stored.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(~seed)
        self.begun: dict[int, int] = {}
        self.sealing: dict[int, dict[str, Any]] = {}
        self.reads: deque[dict[str, Any]] = deque()
        self.lost: Counter[int] = Counter()
        self.kept = 0
        self.said: deque[tuple[int, dict[str, Any]]] = deque()
        self._stopped = False

    def take(self, cycle: int, op: dict[str, Any]) -> None:
        """An operation. Raises CheckError for one that should not have come."""
        kind, tag, item, ring = Kind(op["kind"]), op["tag"], op["item"], op["stamp"]["ring"]
        if item == 0:
            if len(self.lost) == len(RINGS):
                raise CheckError(f"{kind.name} begins behind the loss of the port")
            self.begun[tag] = ring
            self._stopped = False
        if self._stopped and kind is Kind.LOOKUP:
            return
        status = Status.UNAVAILABLE if ring in self.lost else self.random.choice([Status.OK, Status.OK, Status.DENIED])
        complete = status is not Status.OK or (bool(op["last"]) and kind is not Kind.READ)
        self._stopped = complete
        self.kept += kind is Kind.WRITE and status is Status.OK
        fields = {"kind": kind, "tag": tag, "item": item, "stamp": op["stamp"]}
        if kind is Kind.SEAL and status is Status.OK:
            self.sealing[tag] = fields
            return
        self.say(cycle, fields | {"status": status, "outcome": status, "complete": complete})

    def say(self, cycle: int, fields: dict[str, Any]) -> None:
        """Something is said, not before all that was said before."""
        due = max(self.said[-1][0] if self.said else 0, cycle + self.random.choice([2, 2, 6, 20]))
        self.said.append((due, fields))

    def lose(self, cycle: int, ring: int) -> None:
        """A ring is lost: what waits of it is answered."""
        self.lost[ring] += 1
        for tag in [tag for tag, fields in self.sealing.items() if fields["stamp"]["ring"] == ring]:
            self._seal(cycle, tag, Status.UNAVAILABLE)

    def work(self, cycle: int) -> None:
        """A SEAL ends now and then."""
        if self.sealing and self.random.random() < 0.05:
            self._seal(cycle, next(iter(self.sealing)), Status.OK)

    def _seal(self, cycle: int, tag: int, status: Status) -> None:
        self.say(cycle, self.sealing.pop(tag) | {"status": status, "outcome": status, "complete": 1})


class World:
    """A port between a requester that falls silent now and then, and a core.

    - `losses`: how often, `ended`: WRITEs that ended with the port, `slowest`: cycles from a loss to rest at most.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.requester, self.core = Requester(seed), Core(seed)
        self.losses = self.ended = self.slowest = self.stored = 0
        self._data: deque[tuple[int, dict[str, Any]]] = deque()  # beats of READs that are still to come

    def play(self) -> "World":
        """Run. Raises CheckError for what does not end, is told twice, or comes from a port that is down."""
        dut = Port(PARAMS)

        async def bench(ctx: SimulatorContext, _: Restart) -> None:
            silent = down = 0
            for cycle in range(CYCLES):
                await self._cycle(ctx, dut, cycle, talks=not silent)
                if not ctx.get(dut.down) and down:
                    self._rested(cycle - down)
                    silent = down = 0
                elif ctx.get(dut.down):
                    down = down or cycle
                    if cycle - down > LIMIT:
                        raise CheckError(f"{LIMIT} cycles after its loss a port is not at rest")
                elif silent and cycle - silent > PARAMS.link.silence_cycles + 10:
                    raise CheckError("a silent port is not lost")
                elif not silent and cycle < CYCLES - 800 and self.requester.flits and self.random.random() < 0.01:
                    silent = cycle
            if self.requester.waiting:
                raise CheckError(f"{len(self.requester.waiting)} commands have not been answered")

        simulate(dut, bench)
        return self

    def _rested(self, cycles: int) -> None:
        """The port is out of its loss."""
        core = self.core
        if core.begun:
            raise CheckError(f"the core still has {core.begun}")
        if core.lost != Counter(RINGS):
            raise CheckError(f"lost are {core.lost}")
        if core.kept != self.stored:
            raise CheckError(f"{core.kept} segments were accepted, {self.stored} went on")
        self.losses += 1
        self.slowest = max(self.slowest, cycles)
        core.lost.clear()
        self.requester.renew()

    async def _cycle(self, ctx: SimulatorContext, dut: Any, cycle: int, *, talks: bool) -> None:
        """A cycle of everything around the port."""
        requester, core, rng = self.requester, self.core, self.random
        to_node, from_node = dut.link.to_node, dut.link.from_node
        down = bool(ctx.get(dut.down))
        ctx.set(dut.renewed, down and rng.random() < 0.1)
        if talks and cycle < CYCLES - 500 and sum(map(len, requester.queues.values())) < 20:
            requester.ask()
        flit = requester.flit() if talks and not down and rng.random() < 0.9 else None
        ctx.set(to_node.valid, flit is not None)
        if flit is not None:
            requester.flits += 1
            ctx.set(to_node.flit, flit)
        ctx.set(dut.operations.ready, rng.random() < 0.6)
        for part in (dut.segments, dut.beats, dut.losses):
            ctx.set(part.ready, rng.random() < 0.7)
        beat = self._data[0] if self._data and self._data[0][0] <= cycle else None
        ctx.set(dut.read_beats.valid, beat is not None)
        if beat is not None:
            ctx.set(dut.read_beats.payload, {"last": 1, "end": 1})
        said = core.said.popleft()[1] if core.said and core.said[0][0] <= cycle else None
        starts = said is not None and said["kind"] is Kind.READ and not said["complete"]
        ctx.set(dut.verdict_valid, said is not None and not starts)
        if starts and said is not None:
            self._data.append((cycle + rng.randint(5, 30), said))
        elif said is not None:
            ctx.set(dut.verdict, said)
            if said["complete"]:
                del core.begun[said["tag"]]
                self.ended += said["kind"] is Kind.WRITE and said["status"] is Status.UNAVAILABLE
        self._hear(ctx, from_node, talks=talks, down=down)
        if ctx.get(dut.losses.valid) and ctx.get(dut.losses.ready):
            core.lose(cycle, ctx.get(dut.losses.payload))
        if ctx.get(dut.operations.valid) and ctx.get(dut.operations.ready):
            op = dut.operations.payload
            fields = {name: ctx.get(op[name]) for name in ("tag", "item", "last")}
            stamp = {"port": 0, "ring": ctx.get(op.stamp.ring)}
            core.take(cycle, fields | {"kind": ctx.get(op.kind), "stamp": stamp})
        core.work(cycle)
        if beat is not None and ctx.get(dut.read_beats.ready):
            self._data.popleft()
            done = {"kind": Kind.READ_DONE, "status": Status.OK, "outcome": Status.OK, "complete": 1}
            core.say(cycle, beat[1] | done)
        self.stored += ctx.get(dut.beats.valid) and ctx.get(dut.beats.ready) and ctx.get(dut.beats.payload.last)
        returned = 0 if down else ctx.get(to_node.credits)
        for channel in requester.credits:
            requester.credits[channel] += returned >> channel & 1
            if requester.credits[channel] > to_node_buffers(PARAMS)[channel]:
                raise CheckError(f"a credit too many on {channel!r}")
        await ctx.tick()

    def _hear(self, ctx: SimulatorContext, from_node: Any, *, talks: bool, down: bool) -> None:
        """What comes back is taken, unless the requester is silent; a credit goes back some cycles later."""
        requester = self.requester
        ctx.set(from_node.credits, 0)
        if requester.owed and talks:
            ctx.set(from_node.credits, requester.owed.popleft()[0])
        if down or not ctx.get(from_node.valid):
            return
        flit = from_node.flit
        channel = Channel(ctx.get(flit.channel))
        requester.owed.append((1 << channel, 0))
        if sum(each == 1 << channel for each, _ in requester.owed) > from_node_buffers(PARAMS)[channel]:
            raise CheckError(f"a flit without a credit on {channel!r}")
        complete = ctx.get(flit.data) >> 8 & 1
        if channel is Channel.RESPONSE and complete:
            tag = ctx.get(flit.tag)
            if tag not in requester.waiting:
                raise CheckError(f"an answer to {tag}, which was answered, or never asked")
            requester.waiting.remove(tag)


def test_what_the_core_has_begun_ends_and_all_else_is_gone(seed: int) -> None:
    print(f"seed {seed}")
    world = World(seed).play()
    print(f"{world.losses} losses, {world.ended} WRITEs ended by them, {world.slowest} cycles to rest at most")
    assert world.losses > 5


MUTANTS: dict[str, tuple[Any, str, str]] = {
    "silence is not noticed": (watch.Watch, "begun & (count == self._cycles)", "0"),
    "one ring is lost": (loss.Loss, "ring == self._rings - 1", "ring == 0"),
    "a WRITE that was begun is forgotten": (
        reader.CommandReader,
        "with m.If(item == 0):",
        "with m.If(1):",
    ),
    "a command that waits is offered behind the loss": (
        reader.CommandReader,
        "m.d.sync += [left.eq(total), answered.eq(0)]\n                with m.If(self.lost):",
        "m.d.sync += [left.eq(total), answered.eq(0)]\n                with m.If(0):",
    ),
    "rest does not wait for answers": (port.Port, "(owed == 0) & (parked == 0)", "(parked == 0)"),
    "rest does not wait for data": (port.Port, "ended & ~mover.moving", "ended"),
    "data of a READ waits for its requester": (port.Port, "ResetInserter(self.down)(transmitter)", "transmitter"),
}


EVERYDAY = ("silence is not noticed", "one ring is lost", "a WRITE that was begun is forgotten")


@pytest.mark.parametrize("name", everyday(MUTANTS, *EVERYDAY))
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad = MUTANTS[name]
    mutant = mutate(target, good, bad)
    monkeypatch.setattr(port, target.__name__, mutant)
    monkeypatch.setitem(globals(), target.__name__, mutant)
    with pytest.raises((CheckError, KeyError)):
        for seed in range(4):
            World(seed).play()
