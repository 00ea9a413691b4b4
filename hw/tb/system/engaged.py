"""Software that keeps both engines of the requesters of a compiled system busy, and judges every byte."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

import google_crc32c

from hw.params import Params, records
from hw.params import commands as c
from hw.params.protocol import EngineOpcode, ModelState, Opcode, RingId, Status
from hw.params.records import ARRIVAL, BLOCK, COMPLETION, DESCRIPTOR, PHASE
from hw.rdl import register_map, requester_map
from hw.tb.harness.system import SystemHarness
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import administer

LOG2_ENTRIES = 5
STRIDE = 1 << 32
PATIENCE = 50_000
"""Cycles for what no loss ends."""

PLACES = 48
"""Pieces of memory of a ring, each as large as a frame."""

FLAGS = COMPLETION.offsets["flags"]
UNTOUCHED = 0xEE
ROW = 4
"""Logarithm of the entries of a row of an arrival table."""

Judge = Callable[[dict[str, int]], None]
Bound = Callable[[Params, int, int], int]
"""One of `hw.tb.system.bounds`."""


@dataclass(frozen=True)
class Stored:
    """A block that a node has sealed."""

    key: int
    handle: int
    data: bytes
    ring: RingId


@dataclass
class Asked:
    """A command under way: how it may end if nothing is lost, what has to be true then, and the memory that it uses."""

    opcode: int
    wanted: frozenset[Status]
    judge: Judge | None
    places: tuple[int, ...]


@dataclass
class RingSoftware:
    """One ring of a requester, and its memory.

    What no command may write at the moment is known, and `audit` says whether it is as it was.
    """

    world: "World"
    id: RingId
    tail: int = 0
    head: int = 0
    session: int = 0
    fence: int = 0
    tags: int = 0
    asked: dict[int, Asked] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.submissions = bytearray(DESCRIPTOR.size << LOG2_ENTRIES).ljust(4096, b"\0")
        self.completions = bytearray(COMPLETION.size << LOG2_ENTRIES).ljust(4096, b"\0")
        self.frame = self.world.params.pools[0].frame_bytes
        self.data = bytearray([UNTOUCHED]) * (PLACES * self.frame)
        self.known = bytearray(self.data)
        self.free = list(range(PLACES))
        for at, memory in enumerate((self.submissions, self.completions, self.data)):
            self.world.harness.map(self.id.port, self._base(at), memoryview(memory), writable=True)

    def _base(self, at: int) -> int:
        return (1 + 3 * self.id.ring + at) * STRIDE

    def address(self, place: int) -> int:
        """Where a requester finds a place."""
        return self._base(2) + place * self.frame

    # Registers.

    def write(self, name: str, value: int) -> None:
        self.world.harness.write_register(self._offset(name), value, unit=self.world.unit(self.id.port))

    def read(self, name: str, of: str | None = None) -> int:
        """A register of the ring, or a field of it."""
        value = self.world.harness.read_register(self._offset(name), unit=self.world.unit(self.id.port))[0]
        if of is None:
            return value
        found = requester_map(self.world.params)[f"RING{self.id.ring}_{name}"].field(of)
        return (value & found.mask) >> found.low

    def _offset(self, name: str) -> int:
        return requester_map(self.world.params)[f"RING{self.id.ring}_{name}"].offset

    def enable(self) -> None:
        """Put the ring into service, from its first entry on."""
        self.completions[:] = bytes(len(self.completions))
        self.tail = self.head = 0
        self.write("SUBMISSION_HIGH", 1 + 3 * self.id.ring)
        self.write("COMPLETION_HIGH", 2 + 3 * self.id.ring)
        self.write("SIZE", LOG2_ENTRIES)
        self.write("CONTROL", 1)

    # Memory.

    def take(self, content: bytes | None = None) -> int:
        """A free place: with this content, which nothing may alter; or untouched, to be written."""
        place = self.free.pop(0)
        filled = (content or b"").ljust(self.frame, bytes([UNTOUCHED]))
        self.data[place * self.frame : (place + 1) * self.frame] = filled
        self.known[place * self.frame : (place + 1) * self.frame] = filled
        return place

    def content(self, place: int, length: int | None = None) -> bytes:
        """What is at a place now."""
        return bytes(self.data[place * self.frame : place * self.frame + (self.frame if length is None else length)])

    def give(self, places: Iterable[int]) -> None:
        """From now on nothing may alter them."""
        for place in places:
            piece = slice(place * self.frame, (place + 1) * self.frame)
            self.known[piece] = self.data[piece]
            self.free.append(place)

    def expect(self, place: int, data: bytes) -> None:
        """CheckError unless these bytes are at the place, and nothing behind them was written."""
        if self.content(place) != data.ljust(self.frame, bytes([UNTOUCHED])):
            raise CheckError(f"{self.id}: {len(data)} bytes are not those that were stored")
        self.world.compared += len(data)

    def audit(self) -> None:
        """CheckError if anything was written that no command under way may write."""
        open_places = {place for asked in self.asked.values() for place in asked.places}
        if not open_places and self.data == self.known:
            return
        for place in range(PLACES):
            piece = slice(place * self.frame, (place + 1) * self.frame)
            if place not in open_places and self.data[piece] != self.known[piece]:
                raise CheckError(f"{self.id}: place {place} was written by a command that has ended")

    # Commands.

    def put(
        self,
        opcode: Opcode | EngineOpcode,
        wanted: Iterable[Status] | Status,
        judge: Judge | None = None,
        places: Iterable[int] = (),
        **fields: int,
    ) -> int:
        """Write a descriptor behind those there are; its tag."""
        tag, at = self.tags, self.tail * DESCRIPTOR.size
        self.tags = (self.tags + 1) % (1 << 16)
        self.submissions[at : at + DESCRIPTOR.size] = DESCRIPTOR.pack(opcode=opcode, tag=tag, **fields)
        self.tail = (self.tail + 1) % (1 << LOG2_ENTRIES)
        statuses = frozenset([wanted] if isinstance(wanted, Status) else wanted)
        self.asked[tag] = Asked(opcode, statuses, judge, tuple(places))
        return tag

    def ring(self) -> None:
        """Ring the doorbell."""
        self.write("TAIL", self.tail)

    def poll(self) -> bool:
        """Judge what has completed since the last time; whether something has."""
        found = False
        while True:
            at = self.head % (1 << LOG2_ENTRIES) * COMPLETION.size
            if self.completions[at + FLAGS] & PHASE == self.head >> LOG2_ENTRIES & 1:
                break
            self.head, found = self.head + 1, True
            self._judge(COMPLETION.unpack(memoryview(self.completions)[at : at + COMPLETION.size]))
        if found:
            self.world.doorbells.add(self.id)
        return found

    def _judge(self, entry: dict[str, int]) -> None:
        status = Status(entry["status"])
        asked = self.asked.pop(entry["tag"], None)
        if asked is None:
            raise CheckError(f"{self.id}: tag {entry['tag']} completes, and no such command is under way")
        if status not in asked.wanted | self.world.also:
            names = ", ".join(sorted(each.name for each in asked.wanted | self.world.also))
            raise CheckError(f"{self.id}: opcode {asked.opcode} ends {status.name}, expected {names}")
        self.world.ended[asked.opcode, status] += 1
        if asked.judge is not None:
            asked.judge(entry)
        self.give(asked.places)

    def ask(self, opcode: Opcode, wanted: Iterable[Status] | Status, **fields: int) -> dict[str, int]:
        """Have a command done; its completion."""
        ends: list[dict[str, int]] = []
        self.put(opcode, wanted, ends.append, (), **fields)
        self.ring()
        self.world.until(lambda: bool(ends), f"{opcode.name} of {self.id}")
        return ends[0]

    def read_back(self, block: Stored, wanted: Iterable[Status] = (Status.OK,)) -> None:
        """Submit a READ of a block; if it ends OK, of all its bytes."""
        place = self.take()

        def judge(entry: dict[str, int]) -> None:
            if entry["status"] == Status.OK:
                self.expect(place, block.data)
                if entry["slot"] != len(block.data):
                    raise CheckError(f"READ of {len(block.data)} bytes says {entry['slot']}")

        segments, size = self.world.params.segments(len(block.data)), self.frame
        self.put(
            Opcode.READ,
            wanted,
            judge,
            (place,),
            subject=block.handle,
            count=segments,
            length=size,
            data=self.address(place),
        )


class World:
    """All rings of all requesters, and the blocks that they share; a life ends with a restart of the node.

    - `also`: how commands may end besides, because something was lost.
    - `ended`: how many commands ended how. `compared`: bytes. `longest`: cycles that the end of a
      loss took at most, `bound` those that it may take.
    """

    def __init__(self, harness: SystemHarness, params: Params, seed: int):
        self.harness, self.params, self.random = harness, params, Random(seed)
        self.also: frozenset[Status] = frozenset()
        self.ended: Counter[tuple[int, Status]] = Counter()
        self.compared = self.keys = self.longest = self.bound = 0
        self.doorbells: set[RingId] = set()
        tables = params.tables
        self.rings = [
            RingSoftware(self, RingId(port, ring))
            for port in range(tables.ports)
            for ring in range(tables.rings_per_port)
        ]
        self.blocks: dict[RingId, Stored] = {}
        latencies = (each.latency + each.jitter for each in (harness.memory, harness.host, harness.hbm))
        self.latency = max(latencies)
        for ring in self.rings:
            ring.enable()
        self.epoch = 0
        self.serve()

    def unit(self, port: int) -> int:
        """The unit of registers of a requester."""
        return self.params.node.slices + port

    # Time.

    def step(self) -> None:
        """A cycle, and what has completed in it."""
        self.harness.run(1)
        for ring in self.rings:
            ring.poll()

    def until(self, over: Callable[[], bool], what: str, bound: int = PATIENCE) -> int:
        """Run until then; how many cycles it took. CheckError if it takes longer than the bound."""
        start = self.harness.cycle
        while not over():
            if self.harness.cycle - start > bound:
                left = {str(ring.id): Counter(each.opcode for each in ring.asked.values()) for ring in self.rings}
                raise CheckError(f"{what}: not over within {bound:,} cycles, under way are {left}")
            self.step()
        return self.harness.cycle - start

    def settle(self) -> None:
        """Wait for all commands, and judge what is in memory."""
        self.until(lambda: not any(ring.asked for ring in self.rings), "commands")
        self.audit()

    def within(self, bound: Bound, over: Callable[[], bool], what: str) -> None:
        """Wait for what a loss or CANCEL ends. CheckError if it takes longer than docs/requester.md says."""
        waiting = max(
            sum(len(ring.asked) for ring in self.rings if ring.id.port == port)
            for port in range(self.params.tables.ports)
        )
        cycles = bound(self.params, self.latency, waiting)
        self.bound = max(self.bound, cycles)
        self.longest = max(self.longest, self.until(over, what, cycles))

    def audit(self) -> None:
        """CheckError for what was written and should not be; software looks at completions."""
        for ring in self.rings:
            ring.audit()
            if ring.id in self.doorbells:
                ring.write("HEAD", ring.head % (1 << LOG2_ENTRIES))
        self.doorbells.clear()

    # Service.

    def serve(self) -> None:
        """A new epoch, all rings bound, each with a session and a block that is pinned."""
        status = register_map()["STATUS"]
        self.until(lambda: bool(self.harness.read_register(status.offset)[0] & status.field("ready").mask), "ready")
        self.epoch += 1
        self.blocks = {}
        for command in (
            c.SetEpoch(self.epoch),
            c.SetPartition(0, quota=self.params.frames),
            c.SetModel(0, ModelState.LIVE),
        ):
            self.order(command)
        for ring in self.rings:
            self.join(ring)

    def order(self, command: c.Command) -> None:
        """Have an administrative command done, as often as it is PENDING."""
        ends: list[Status | None] = []

        def over() -> bool:
            ends.append(administer(self.harness, command))
            return ends[-1] is not Status.PENDING

        self.until(over, str(command))
        if ends[-1] not in (None, Status.OK):
            raise CheckError(f"{command} was refused: {ends[-1]}")

    def join(self, ring: RingSoftware) -> None:
        """Bind a ring; it stores a block, pins it, and reads it."""
        self.order(c.Bind(ring.id, 0))
        ring.session = ring.ask(Opcode.OPEN_SESSION, Status.OK)["slot"]
        block = self.store(ring, self.random.randbytes(self.params.pools[0].frame_bytes - self.random.choice([0, 100])))
        keys, results = ring.take(block.key.to_bytes(16, "little")), ring.take()

        def pinned(entry: dict[str, int]) -> None:
            result = COMPLETION.unpack(ring.content(results, COMPLETION.size))
            if result["status"] != Status.HIT or result["handle"] != block.handle:
                raise CheckError(f"{ring.id}: its block is {Status(result['status']).name}")

        ring.put(
            Opcode.LOOKUP,
            Status.OK,
            pinned,
            (keys, results),
            count=1,
            flags=records.PIN,
            data=ring.address(keys),
            results=ring.address(results),
        )
        ring.read_back(block)
        ring.ring()
        self.until(lambda: not ring.asked, f"the block of {ring.id}")
        self.blocks[ring.id] = block

    def store(self, ring: RingSoftware, data: bytes) -> Stored:
        """Have a block stored by single commands."""
        self.keys += 1
        length, place = len(data), ring.take(data)
        key, handle = self.keys, 0
        for _ in range(100):
            end = ring.ask(
                Opcode.ALLOC,
                (Status.GRANTED, Status.NO_SPACE),
                subject=key,
                length=length,
                slot=ring.session,
            )
            if end["status"] == Status.GRANTED:
                handle = end["handle"]
                break
            self.harness.run(50)
        else:
            raise CheckError(f"{ring.id}: no frame")
        ring.ask(Opcode.WRITE, Status.OK, subject=handle, length=length, data=ring.address(place))
        ring.ask(Opcode.SEAL, Status.OK, subject=handle, length=length, crc=google_crc32c.value(data))
        ring.give([place])
        return Stored(key, handle, data, ring.id)

    # Load.

    def load(self, ring: RingSoftware, *, cancels: bool = False) -> list[Stored]:
        """Submit a mix of everything on a ring, in any order; the blocks that are stored as PUTs end OK."""
        put: list[Stored] = []
        parts: list[Callable[[], object]] = [
            *(lambda: ring.read_back(self.random.choice([*self.blocks.values()])),) * 3,
            lambda: self.look(ring),
            lambda: self.put_block(ring, put),
            lambda: self.put_block(ring, put, fence=ring.fence + 1),
            lambda: self.append(ring),
        ]
        self.random.shuffle(parts)
        tag = self.prefetch(ring)
        for number, part in enumerate(parts):
            part()
            if cancels and number == 3:
                ring.put(EngineOpcode.CANCEL, (Status.OK, Status.MISS, Status.NO_SPACE), count=tag)
        ring.put(EngineOpcode.FLUSH, (Status.OK, Status.NO_SPACE))
        ring.ring()
        return put

    def reach(self, ring: RingSoftware) -> None:
        """The producer of a ring has filled its blocks."""
        ring.fence += 1
        ring.write("FENCE", ring.fence)

    def look(self, ring: RingSoftware) -> None:
        """LOOKUP of a block that is pinned, and of a key that nobody has."""
        block = self.random.choice([*self.blocks.values()])
        keys = ring.take(block.key.to_bytes(16, "little") + (1 << 100).to_bytes(16, "little"))
        results = ring.take()

        def judge(entry: dict[str, int]) -> None:
            found = [
                COMPLETION.unpack(ring.content(results)[i * COMPLETION.size :][: COMPLETION.size])
                for i in range(entry["items"])
            ]
            if self.also:
                return
            if [each["status"] for each in found] != [Status.HIT, Status.MISS] or found[0]["handle"] != block.handle:
                raise CheckError(f"{ring.id}: LOOKUP says {found}")

        ring.put(
            Opcode.LOOKUP,
            (Status.OK, Status.HIT, Status.MISS),
            judge,
            (keys, results),
            count=2,
            data=ring.address(keys),
            results=ring.address(results),
        )

    def append(self, ring: RingSoftware) -> None:
        """A WRITE of a block that is sealed: its data is moved, and comes to nothing."""
        block = self.blocks.get(ring.id)
        if block is None:
            return
        place = ring.take(self.random.randbytes(len(block.data)))
        ring.put(
            Opcode.WRITE,
            Status.WRITE_ONCE,
            None,
            (place,),
            subject=block.handle,
            length=len(block.data),
            data=ring.address(place),
        )

    def put_block(self, ring: RingSoftware, put: list[Stored], fence: int | None = None) -> None:
        """A PUT of a new block."""
        self.keys += 1
        key, data = self.keys, self.random.randbytes(self.random.randint(1, self.params.pools[0].frame_bytes))
        place = ring.take(data)

        def judge(entry: dict[str, int]) -> None:
            if ring.content(place, len(data)) != data:
                raise CheckError(f"{ring.id}: the source of a PUT was written")
            if entry["status"] == Status.OK:
                put.append(Stored(key, entry["handle"], data, ring.id))

        flags = {} if fence is None else {"flags": records.FENCED, "results": fence & 0xFFFFFFFF}
        ring.put(
            EngineOpcode.PUT,
            (Status.OK, Status.NO_SPACE),
            judge,
            (place,),
            subject=key,
            slot=ring.session,
            data=ring.address(place),
            length=len(data),
            **flags,
        )

    def prefetch(self, ring: RingSoftware) -> int:
        """A PREFETCH of segments of the blocks of several sessions; its tag."""
        random, params = self.random, self.params
        segment = params.memory.segment_bytes
        blocks = random.sample([*self.blocks.values()], random.randint(1, len(self.blocks)))
        first = random.randrange(4)
        span, ranges = random.randint(1, 8 - first), random.randint(1, 3)
        places = [ring.take() for _ in blocks]
        entries = (
            BLOCK.pack(handle=block.handle, data=ring.address(place), length=span * segment)
            for block, place in zip(blocks, places, strict=True)
        )
        listed = ring.take(b"".join(entries))
        table = ring.take(bytes(ARRIVAL.size * len(blocks) << ROW))
        tag = ring.tags

        def judge(entry: dict[str, int]) -> None:
            wanted = [each.data[first * segment :][: span * segment] for each in blocks]
            self.arrive(ring, tag, entry, [*zip(wanted, places, strict=True)], table)

        return ring.put(
            EngineOpcode.PREFETCH,
            (Status.OK, Status.NO_SPACE, Status.UNAVAILABLE),
            judge,
            (*places, listed, table),
            count=len(blocks),
            segment=first,
            length=span,
            slot=ranges,
            page_shift=ROW,
            data=ring.address(listed),
            results=ring.address(table),
        )

    def arrive(
        self, ring: RingSoftware, tag: int, end: dict[str, int], blocks: list[tuple[bytes, int]], table: int
    ) -> None:
        """Judge the arrival table of a PREFETCH that has completed, and what is said to have arrived."""
        marks = ring.content(table)
        arrived = 0
        for number, (data, place) in enumerate(blocks):
            whole = ARRIVAL.unpack(marks[(number << ROW) * ARRIVAL.size :][: ARRIVAL.size])
            if whole["flags"] == records.ARRIVED:
                arrived += 1
                ring.expect(place, data)
                if (whole["tag"], whole["block"], whole["length"]) != (tag, number, len(data)):
                    raise CheckError(f"{ring.id}: {whole} marks block {number} of PREFETCH {tag}")
            elif whole["flags"] == records.FAILED and Status(whole["status"]) not in self.also:
                raise CheckError(f"{ring.id}: block {number} has failed: {Status(whole['status']).name}")
            elif end["status"] == Status.OK and not whole["flags"]:
                raise CheckError(f"{ring.id}: PREFETCH ends OK without block {number}")
        if end["status"] in (Status.OK, Status.UNAVAILABLE) and end["count"] != arrived:
            raise CheckError(f"{ring.id}: PREFETCH says {end['count']} blocks, {arrived} have arrived")
