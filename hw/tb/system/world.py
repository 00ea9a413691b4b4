"""Software of all rings of a compiled system: time, service, and what all of them share."""

from collections import Counter
from collections.abc import Callable
from random import Random

import google_crc32c

from hw.params import Params, records
from hw.params import commands as c
from hw.params.protocol import ModelState, Opcode, RingId, Status
from hw.params.records import COMPLETION
from hw.rdl import register_map
from hw.tb.harness.system import SystemHarness
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import administer
from hw.tb.system.ring import LOG2_ENTRIES, RingSoftware, Stored

PATIENCE = 50_000
"""Cycles for what no loss ends."""

Bound = Callable[[Params, int, int], int]
"""One of `hw.tb.system.bounds`."""


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
