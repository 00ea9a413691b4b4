"""One ring of a requester as software sees it, which judges every completion and every byte that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hw.params.protocol import EngineOpcode, Opcode, RingId, Status
from hw.params.records import COMPLETION, DESCRIPTOR, PHASE
from hw.rdl import requester_map
from hw.tb.scoreboard import CheckError

if TYPE_CHECKING:
    from hw.tb.system.world import World

LOG2_ENTRIES = 5
STRIDE = 1 << 32
PLACES = 48
"""Pieces of memory of a ring, each as large as a frame."""

FLAGS = COMPLETION.offsets["flags"]
UNTOUCHED = 0xEE

Judge = Callable[[dict[str, int]], None]


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

    world: World
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
