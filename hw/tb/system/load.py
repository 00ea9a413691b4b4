"""Rings that keep a compiled system busy for as long as one likes, without Python in the loop."""

from dataclasses import dataclass, field

import google_crc32c

from hw.params import Params
from hw.params import commands as c
from hw.params.protocol import EngineOpcode, ModelState, Opcode, RingId, Status
from hw.params.records import COMPLETION, DESCRIPTOR, PHASE
from hw.rdl import register_map, requester_map
from hw.tb.harness.system import SystemHarness
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import administer

LOG2_ENTRIES = 12
PATIENCE = 100_000
"""Cycles for a command, and for the slice to be ready."""

STRIDE = 1 << 32
"""Between the addresses of the rings of a port, and of what belongs to them."""


@dataclass
class Ring:
    """Ring 0 of a port; `data` is what its commands move."""

    harness: SystemHarness
    params: Params
    port: int
    data: bytearray
    tail: int = 0
    head: int = 0
    submissions: bytearray = field(default_factory=lambda: bytearray(DESCRIPTOR.size << LOG2_ENTRIES))
    completions: bytearray = field(default_factory=lambda: bytearray(COMPLETION.size << LOG2_ENTRIES))

    def __post_init__(self) -> None:
        for place, memory in enumerate((self.submissions, self.completions, self.data), start=1):
            self.harness.map(self.port, place * STRIDE, memoryview(memory), writable=True)
        self.write("SUBMISSION_HIGH", 1)
        self.write("COMPLETION_HIGH", 2)
        self.write("SIZE", LOG2_ENTRIES)
        self.write("CONTROL", 1)

    def put(self, opcode: Opcode | EngineOpcode, **fields: int) -> None:
        """Write a descriptor behind those there are, about `data` if nothing else is said; its tag is its place."""
        at = self.tail * DESCRIPTOR.size
        fields = {"opcode": opcode, "data": 3 * STRIDE, "tag": self.tail} | fields
        self.submissions[at : at + DESCRIPTOR.size] = DESCRIPTOR.pack(**fields)
        self.tail = (self.tail + 1) % (1 << LOG2_ENTRIES)

    def ring(self) -> None:
        """Ring the doorbell."""
        self.write("TAIL", self.tail)

    def taken(self, most: int = 1 << LOG2_ENTRIES) -> list[dict[str, int]]:
        """Take what has completed since the last time, the oldest first."""
        found: list[dict[str, int]] = []
        while len(found) < most:
            at = self.head % (1 << LOG2_ENTRIES) * COMPLETION.size
            entry = COMPLETION.unpack(bytes(self.completions[at : at + COMPLETION.size]))
            if entry["flags"] & PHASE != (PHASE if self.head >> LOG2_ENTRIES & 1 == 0 else 0):
                break
            self.head += 1
            found.append(entry)
        if found:
            self.write("HEAD", self.head % (1 << LOG2_ENTRIES))
        return found

    def ask(self, opcode: Opcode | EngineOpcode, wanted: Status, **fields: int) -> dict[str, int]:
        """Have a command done; the fields of its completion. CheckError for another status, or none."""
        self.put(opcode, **fields)
        self.ring()
        return self.end(opcode, wanted)

    def end(self, opcode: Opcode | EngineOpcode, wanted: Status) -> dict[str, int]:
        """Wait for the end of the oldest command; the fields of its completion. CheckError as from `ask`."""
        for _ in range(PATIENCE // 100):
            for found in self.taken(1):
                if found["status"] != wanted:
                    raise CheckError(f"{opcode.name}: {Status(found['status']).name}, expected {wanted.name}")
                return found
            self.harness.run(100)
        raise CheckError(f"{opcode.name}: no completion in {PATIENCE:,} cycles")

    def store(self, key: int, data: bytes, session: int) -> int:
        """Store a block; its handle. CheckError if the node does not take it."""
        self.data[: len(data)] = data
        length = len(data)
        handle = self.ask(Opcode.ALLOC, Status.GRANTED, subject=key, length=length, slot=session)["handle"]
        self.ask(Opcode.WRITE, Status.OK, subject=handle, length=length)
        self.ask(Opcode.SEAL, Status.OK, subject=handle, length=length, crc=google_crc32c.value(data))
        return handle

    def write(self, name: str, value: int) -> None:
        self.harness.write_register(
            requester_map(self.params)[f"RING0_{name}"].offset, value, unit=self.params.node.slices + self.port
        )


def serve(harness: SystemHarness, params: Params, *, quota: int | None = None) -> None:
    """Bring a system into service, with ring 0 of each port bound to partition 0, whose quota is all frames if unsaid.

    Raises CheckError if the system does not do what this needs.
    """
    status = register_map()["STATUS"]
    while not harness.read_register(status.offset)[0] & status.field("ready").mask:
        if harness.cycle > PATIENCE:
            raise CheckError(f"not ready in {PATIENCE:,} cycles")
        harness.run(100)
    for command in (
        c.SetEpoch(1),
        c.SetPartition(0, quota=quota or params.frames),
        c.SetModel(0, ModelState.LIVE),
        *(c.Bind(RingId(port, 0), 0) for port in range(params.tables.ports)),
    ):
        if administer(harness, command) not in (None, Status.OK):
            raise CheckError(f"{command} was refused")


def busy(harness: SystemHarness, params: Params, *, commands: int = (1 << LOG2_ENTRIES) - 2) -> list[Ring]:
    """Bring a system into service, and give all its ports so many READs and WRITEs in turn: some thousand fill a ring.

    A block as large as a frame is read whole; it is sealed, so the WRITEs come to nothing, but their data is moved.
    Raises CheckError if the system does not do what this needs.
    """
    serve(harness, params)
    made = [_stored(harness, params, port, commands) for port in range(params.tables.ports)]
    for ring in made:
        ring.ring()
    return made


def _stored(harness: SystemHarness, params: Params, port: int, commands: int) -> Ring:
    """A ring with a block of its own, and descriptors that read and write it."""
    length = params.pools[0].frame_bytes
    data = bytearray(i * 7 + (i >> 8) + port & 0xFF for i in range(length))
    ring = Ring(harness, params, port, data)
    handle = ring.store(port, bytes(data), ring.ask(Opcode.OPEN_SESSION, Status.OK)["slot"])
    while (ring.tail - ring.head) % (1 << LOG2_ENTRIES) < commands:
        ring.put(Opcode.READ, subject=handle, count=params.segments(length), length=length)
        ring.put(Opcode.WRITE, subject=handle, length=length)
    return ring
