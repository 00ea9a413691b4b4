"""Agents for components in the Amaranth simulator: the other ends of streams, and memory behind AXI4.

All are driven in every cycle, then all observe, then the clock ticks.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from amaranth import Value
from amaranth.lib import data, stream, wiring
from amaranth.sim import SimulatorContext

from hw.rtl.axi import Burst, Response
from hw.tb.scoreboard import CheckError

BOUNDARY = 4096
"""Bytes of the blocks that no AXI4 burst may cross (IHI 0022, A3.4.1)."""


def expect(good: bool, message: str) -> None:
    """Raise CheckError unless `good`."""
    if not good:
        raise CheckError(message)


def plain(value: Any) -> Any:
    """Return a payload as a number, or a dictionary of its fields."""
    if isinstance(value, data.Const):
        return {str(name): plain(value[name]) for name, _ in value.shape()}
    return value


class Steady:
    """A check: what is offered stays until it is taken."""

    def __init__(self, name: str, signals: Iterable[Value]):
        self._name = name
        self._signals = list(signals)
        self._before: list[Any] | None = None

    def observe(self, ctx: SimulatorContext, *, valid: bool, ready: bool) -> None:
        expect(valid or self._before is None, f"{self._name}: an offer was withdrawn")
        if not valid or (ready and self._before is None):
            return
        now = [ctx.get(signal) for signal in self._signals]
        expect(self._before in (None, now), f"{self._name}: an offer has changed")
        self._before = None if ready else now


class Source:
    """Offers what is put into `queue`, in `pace` of all cycles, until it is taken."""

    def __init__(self, target: stream.Interface, random: Random, pace: float):
        self.queue: deque[Any] = deque()
        self._target, self._random, self._pace = target, random, pace
        self._offering = False

    def drive(self, ctx: SimulatorContext) -> None:
        if not self._offering and self.queue and self._random.random() < self._pace:
            self._offering = True
            ctx.set(self._target.payload, self.queue[0])
        ctx.set(self._target.valid, self._offering)

    def observe(self, ctx: SimulatorContext) -> None:
        if self._offering and ctx.get(self._target.ready):
            self._offering = False
            self.queue.popleft()


class Sink:
    """Takes what a stream offers, in `pace` of all cycles, and gives it to `take`, as `plain` has it."""

    def __init__(self, name: str, source: stream.Interface, random: Random, pace: float, take: Callable[[Any], None]):
        self._source, self._random, self._pace, self._take = source, random, pace, take
        self._always = source.signature.always_ready
        self._steady = Steady(name, [Value.cast(source.payload)])

    def drive(self, ctx: SimulatorContext) -> None:
        if not self._always:
            ctx.set(self._source.ready, self._random.random() < self._pace)

    def observe(self, ctx: SimulatorContext) -> None:
        valid = bool(ctx.get(self._source.valid))
        ready = self._always or bool(ctx.get(self._source.ready))
        self._steady.observe(ctx, valid=valid, ready=ready)
        if valid and ready:
            self._take(plain(ctx.get(self._source.payload)))


class Memory:
    """Bytes by address, 0 at first. A beat at an address in `refused` gets SLVERR or DECERR, and is not written."""

    def __init__(self, beat_bytes: int, random: Random) -> None:
        self.beat_bytes = beat_bytes
        self.refused: set[int] = set()
        self.random = random
        self._beats: dict[int, bytearray] = {}

    def beat(self, address: int) -> bytearray:
        """The beat at an address."""
        expect(address % self.beat_bytes == 0, f"{address:#x} is no beat")
        return self._beats.setdefault(address, bytearray(self.beat_bytes))

    def load(self, address: int, content: bytes) -> None:
        """Store bytes from the beginning of a beat on."""
        for i in range(0, len(content), self.beat_bytes):
            part = content[i : i + self.beat_bytes]
            self.beat(address + i)[: len(part)] = part

    def dump(self, address: int, size: int) -> bytes:
        """The bytes from the beginning of a beat on."""
        return b"".join(bytes(self.beat(address + i)) for i in range(0, size, self.beat_bytes))[:size]

    def response(self, *addresses: int) -> Response:
        """The answer to an access to these beats."""
        if self.refused.isdisjoint(addresses):
            return Response.OKAY
        return self.random.choice([Response.SLVERR, Response.DECERR])

    def burst(self, ctx: SimulatorContext, axi: wiring.PureInterface, prefix: str) -> list[int]:
        """The addresses of the beats of the burst on an address channel, which has to be one that AXI allows."""
        address, count, size, kind = (ctx.get(getattr(axi, prefix + name)) for name in ("addr", "len", "size", "burst"))
        expect(1 << size == self.beat_bytes and kind == Burst.INCR, f"{prefix}: no burst of whole beats")
        addresses = [address + i * self.beat_bytes for i in range(count + 1)]
        expect(address // BOUNDARY == addresses[-1] // BOUNDARY, f"{prefix}: {address:#x} crosses a boundary")
        return addresses


class ReadSide:
    """Answers reads: in order for each ID, else in any order and interleaved, after any time.

    - `bursts`: first address and number of beats, in order. `under_way`: bursts that have not ended; `most`: the most
      there were at once.
    """

    def __init__(self, axi: wiring.PureInterface, memory: Memory, random: Random, *, pace: float, latency: int = 0):
        self._axi, self._memory, self._random, self._pace, self._latency = axi, memory, random, pace, latency
        self._queues: defaultdict[int, deque[tuple[int, list[int]]]] = defaultdict(deque)
        self._steady = Steady("AR", [axi.arid, axi.araddr, axi.arlen])
        self._offer: int | None = None
        self._now = 0
        self.most = 0
        self.bursts: list[tuple[int, int]] = []

    @property
    def under_way(self) -> int:
        return sum(map(len, self._queues.values()))

    def drive(self, ctx: SimulatorContext) -> None:
        axi, memory = self._axi, self._memory
        ctx.set(axi.arready, self._random.random() < self._pace)
        due = [i for i, queue in self._queues.items() if queue and queue[0][0] <= self._now]
        if self._offer is None and due and self._random.random() < self._pace:
            self._offer = self._random.choice(due)
            addresses = self._queues[self._offer][0][1]
            response = memory.response(addresses[0])
            there = memory.beat(addresses[0])
            wrong = self._random.choice([bytes(there), self._random.randbytes(len(there))])
            ctx.set(axi.rid, self._offer)
            ctx.set(axi.rdata, int.from_bytes(wrong if response.value else there, "little"))
            ctx.set(axi.rresp, response)
            ctx.set(axi.rlast, len(addresses) == 1)
        ctx.set(axi.rvalid, self._offer is not None)

    def observe(self, ctx: SimulatorContext) -> None:
        axi = self._axi
        if self._offer is not None and ctx.get(axi.rready):
            queue = self._queues[self._offer]
            del queue[0][1][0]
            if not queue[0][1]:
                queue.popleft()
            self._offer = None
        valid, ready = bool(ctx.get(axi.arvalid)), bool(ctx.get(axi.arready))
        self._steady.observe(ctx, valid=valid, ready=ready)
        if valid and ready:
            delay = self._latency or self._random.choice([1, 2, 5, 30])
            addresses = self._memory.burst(ctx, axi, "ar")
            self._queues[ctx.get(axi.arid)].append((self._now + delay, addresses))
            self.bursts.append((addresses[0], len(addresses)))
        self.most = max(self.most, self.under_way)
        self._now += 1


class WriteSide:
    """Takes writes, and acknowledges them: in order for each ID, else in any order, after any time.

    With a `pace` below 1 it now and then takes no address for as long as some segments last.

    - `bursts`: first addresses, in order. `under_way`: bursts that have not been acknowledged.
    """

    def __init__(self, axi: wiring.PureInterface, memory: Memory, random: Random, *, pace: float):
        self._axi, self._memory, self._random, self._pace = axi, memory, random, pace
        self._steady_aw = Steady("AW", [axi.awid, axi.awaddr, axi.awlen])
        self._steady_w = Steady("W", [axi.wdata, axi.wstrb, axi.wlast])
        self._addresses: deque[tuple[int, list[int]]] = deque()
        self._beats: deque[tuple[int, int, bool]] = deque()
        self._written = 0
        self._answers: defaultdict[int, deque[tuple[int, Response]]] = defaultdict(deque)
        self._offer: int | None = None
        self._now = self._shut_until = 0
        self.bursts: list[int] = []

    @property
    def under_way(self) -> int:
        return len(self._addresses) + len(self._beats) + sum(map(len, self._answers.values()))

    def drive(self, ctx: SimulatorContext) -> None:
        axi = self._axi
        if self._pace < 1 and self._random.random() < 0.01:
            self._shut_until = self._now + 60
        ctx.set(axi.awready, self._random.random() < self._pace and self._now >= self._shut_until)
        ctx.set(axi.wready, self._random.random() < self._pace)
        due = [i for i, queue in self._answers.items() if queue and queue[0][0] <= self._now]
        if self._offer is None and due and self._random.random() < self._pace:
            self._offer = self._random.choice(due)
            ctx.set(axi.bid, self._offer)
            ctx.set(axi.bresp, self._answers[self._offer][0][1])
        ctx.set(axi.bvalid, self._offer is not None)

    def observe(self, ctx: SimulatorContext) -> None:
        axi = self._axi
        if self._offer is not None and ctx.get(axi.bready):
            self._answers[self._offer].popleft()
            self._offer = None
        valid, ready = bool(ctx.get(axi.awvalid)), bool(ctx.get(axi.awready))
        self._steady_aw.observe(ctx, valid=valid, ready=ready)
        if valid and ready:
            addresses = self._memory.burst(ctx, axi, "aw")
            self._addresses.append((ctx.get(axi.awid), addresses))
            self.bursts.append(addresses[0])
        valid, ready = bool(ctx.get(axi.wvalid)), bool(ctx.get(axi.wready))
        self._steady_w.observe(ctx, valid=valid, ready=ready)
        if valid and ready:
            self._beats.append((ctx.get(axi.wdata), ctx.get(axi.wstrb), bool(ctx.get(axi.wlast))))
        while self._addresses and self._beats:
            self._write(*self._beats.popleft())
        self._now += 1

    def _write(self, word: int, strobes: int, last: bool) -> None:
        """Write a beat of the oldest burst."""
        their_id, addresses = self._addresses[0]
        address = addresses[self._written]
        self._written += 1
        expect(last == (self._written == len(addresses)), f"W: last in beat {self._written} of {len(addresses)}")
        if self._memory.response(address) == Response.OKAY:
            beat = self._memory.beat(address)
            for i, byte in enumerate(word.to_bytes(len(beat), "little")):
                if strobes >> i & 1:
                    beat[i] = byte
        if last:
            delay = self._random.choice([1, 2, 5, 30])
            self._answers[their_id].append((self._now + delay, self._memory.response(*addresses)))
            self._addresses.popleft()
            self._written = 0


async def run(ctx: SimulatorContext, agents: Iterable[Any], done: Callable[[], bool], *, within: int) -> int:
    """Let agents act until they are done; return the cycles that it took. CheckError if there are too many."""
    for cycle in range(within):
        for agent in agents:
            agent.drive(ctx)
        for agent in agents:
            agent.observe(ctx)
        await ctx.tick()
        if done():
            return cycle + 1
    raise CheckError(f"not done after {within} cycles")
