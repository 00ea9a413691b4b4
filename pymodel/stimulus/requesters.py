"""What requesters know: the commands they sent, their completions, the messages to their ports, and no more."""

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import NamedTuple

from hw.params import commands as c
from hw.params.commands import Binding, Command, Completion, Message
from hw.params.params import Params
from hw.params.protocol import REGISTERS, Handle, Opcode, PinId, RingId, SessionId, Status

REMEMBERED = 48
"""Blocks, pins and sessions of the past that may still be named."""


class Submit(NamedTuple):
    """A command that a ring sends."""

    ring: RingId
    tag: int
    command: Command


class Requester(Enum):
    """Who asks, seen from whoever owns what the command names."""

    OWN_RING = "own ring"
    OTHER_RING = "other ring of the port"
    OTHER_PORT = "ring of another port"
    OTHER_PARTITION = "ring of another partition"
    DEAD_SCOPE = "what is named has died"


class Covered(NamedTuple):
    """One bin of coverage."""

    opcode: Opcode
    status: Status
    requester: Requester


@dataclass(slots=True, eq=False)
class Block:
    """What its writer knows of a block; ``data`` is what it means to store, ``spoilt`` when that went wrong."""

    handle: Handle
    ring: RingId
    partition: int
    session: SessionId
    model: int
    key: int
    bound: int
    data: bytes
    sent: int = 0
    spoilt: bool = False
    sealed: bool = False
    dead: bool = False


@dataclass(slots=True, eq=False)
class Open:
    """What a requester knows of a session; ``accepted`` counts the segments that its present ring has written."""

    name: SessionId
    ring: RingId
    partition: int
    accepted: int = 0
    dead: bool = False


@dataclass(slots=True)
class Asked:
    """A command under way: who asked, and for which block or session."""

    command: Command
    requester: Requester
    block: Block | None = None


class Requesters:
    """All rings' view of one slice. ``coverage`` counts completions by command, status and requester (each key of a
    LOOKUP too); ``outstanding`` has the commands that have not completed."""

    def __init__(self, params: Params, seed: int) -> None:
        self.params = params
        self.coverage: Counter[Covered] = Counter()
        self.outstanding: dict[tuple[RingId, int], Asked] = {}
        self._random = random.Random(seed)
        self._tags = count()
        self._nonces = count(1)
        tables = params.tables
        self._rings = [RingId(port, ring) for port in range(tables.ports) for ring in range(tables.rings_per_port)]
        self._forget()

    def _forget(self) -> None:
        """A life begins: nothing is bound, what was known is history."""
        self._bindings: dict[RingId, int | Binding] = dict.fromkeys(self._rings, Binding.NONE)
        self._lost: set[RingId] = set()
        self._blocks: deque[Block] = deque(maxlen=REMEMBERED)
        self._died: deque[Block] = deque(maxlen=4)
        self._sessions: deque[Open] = deque(maxlen=REMEMBERED)
        self._pins: deque[tuple[RingId, PinId]] = deque(maxlen=REMEMBERED)
        self._spent: deque[tuple[RingId, PinId]] = deque(maxlen=REMEMBERED)
        self._to_answer: list[tuple[RingId, Open]] = []

    def heard(self, outputs: Sequence[Completion | Message]) -> None:
        """Learn from what the ports are told."""
        for output in outputs:
            if isinstance(output, Completion):
                self._completed(output, self.outstanding.pop((output.ring, output.tag)))
            elif isinstance(output, c.Fence):
                session = self._session(output.session)
                if session is not None:
                    self._to_answer.append((output.ring, session))

    # Learning.

    def _completed(self, result: Completion, asked: Asked) -> None:
        command, status, block = asked.command, result.status, asked.block
        self.coverage[Covered(command.opcode, status, asked.requester)] += 1
        for one in result.statuses:
            self.coverage[Covered(command.opcode, one, asked.requester)] += 1
        self._pins.extend((result.ring, pin) for pin in result.pins if pin is not None)
        if block is not None and status in (Status.STALE, Status.CRC, Status.MEM_ERROR, Status.POISON):
            block.dead = True
        named = getattr(command, "session", None)
        if status is Status.STALE and isinstance(named, SessionId):
            self._end(named, result.ring)
        if isinstance(command, c.Alloc):
            self._granted(command, result)
        elif isinstance(command, c.Write) and block is not None:
            session = self._session(block.session)
            if session is not None:
                session.accepted += result.count
            block.spoilt |= status is not Status.OK and result.ring == block.ring
        elif status is Status.OK:
            self._done(command, result, block)
        elif status is Status.PENDING and isinstance(command, c.Bind):
            self._lose(command.ring)

    def _granted(self, command: c.Alloc, result: Completion) -> None:
        if result.status is not Status.GRANTED or result.handle is None:
            return
        partition = self._bindings[result.ring]
        nonce = next(self._nonces).to_bytes(8, "little")
        size = command.length if self._chance(0.6) else self._random.randint(1, command.length)
        data = (nonce * (size // 8 + 1))[:size]
        known = (partition if isinstance(partition, int) else -1, command.session, command.model, command.key)
        self._blocks.append(Block(result.handle, result.ring, *known, command.length, data))

    def _done(self, command: Command, result: Completion, block: Block | None) -> None:
        """A command with one way to go well went well."""
        if isinstance(command, c.Seal) and block is not None:
            block.sealed = True
        elif isinstance(command, c.Abort) and block is not None:
            block.dead = True
        elif isinstance(command, c.Unpin):
            self._spent.append((result.ring, command.pin))
            self._pins = deque((pin for pin in self._pins if pin != (result.ring, command.pin)), REMEMBERED)
        elif isinstance(command, c.OpenSession) and result.session is not None:
            partition = self._bindings[result.ring]
            if isinstance(partition, int):
                self._sessions.append(Open(result.session, result.ring, partition))
        elif isinstance(command, c.CloseSession | c.Migrate):
            session = self._session(command.session)
            if session is not None:
                self._turned(command, result.ring, session)
        elif isinstance(command, c.Bind):
            self._lose(command.ring)
            self._lost.discard(command.ring)
            self._bindings[command.ring] = command.to
        elif isinstance(command, c.Drop | c.DropPartition | c.Retire):
            for known in self._blocks:
                if not known.dead and self._dies(command, result.ring, known):
                    known.dead = True
                    self._died.append(known)

    def _turned(self, command: Command, ring: RingId, session: Open) -> None:
        """A session is closed, moved, or on its way."""
        if isinstance(command, c.CloseSession):
            self._end(session.name, ring)
        elif session.ring != ring:
            session.ring, session.accepted = ring, 0
            for block in self._blocks:
                if block.session == session.name and not block.sealed:
                    block.ring = ring

    def _dies(self, command: Command, ring: RingId, block: Block) -> bool:
        if isinstance(command, c.DropPartition):
            return block.partition == command.partition
        if isinstance(command, c.Retire):
            return block.model == command.model
        assert isinstance(command, c.Drop), "the third that kills"
        return (block.partition, block.model, block.key) == (self._bindings[ring], command.model, command.key)

    def _end(self, name: SessionId, ring: RingId) -> None:
        """A session of this ring is no more, nor what it has not sealed."""
        for session in self._sessions:
            session.dead |= session.name == name and session.ring == ring
        for block in self._blocks:
            block.dead |= block.session == name and block.ring == ring and not block.sealed

    def _lose(self, ring: RingId) -> None:
        """A ring is lost, and its sessions and pins with it."""
        self._lost.add(ring)
        for session in self._sessions:
            if session.ring == ring:
                self._end(session.name, ring)
        self._spent.extend(pin for pin in self._pins if pin[0] == ring)
        self._pins = deque((pin for pin in self._pins if pin[0] != ring), REMEMBERED)

    def _session(self, name: SessionId) -> Open | None:
        return next((session for session in self._sessions if session.name == name), None)

    # Asking.

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _submit(self, ring: RingId, command: Command, block: Block | None = None) -> Submit:
        """Send a command, about ``block`` if it is about one."""
        tag = next(self._tags)
        self.outstanding[ring, tag] = Asked(command, self._requester(ring, command, block), block)
        return Submit(ring, tag, command)

    def _requester(self, ring: RingId, command: Command, block: Block | None) -> Requester:
        """Who asks, as far as requesters can know."""
        if command.opcode.administrative:
            administrative = ring == REGISTERS or self._bindings[ring] is Binding.ADMINISTRATIVE
            return Requester.OWN_RING if administrative else Requester.OTHER_PARTITION
        session = getattr(command, "session", None)
        owner: Block | Open | None = block
        if isinstance(session, SessionId):
            owner = self._session(session)
        elif isinstance(command, c.Drop | c.Lookup):
            key = command.key if isinstance(command, c.Drop) else (*command.keys, None)[0]
            stored = [b for b in self._blocks if (b.model, b.key) == (command.model, key)]
            own = [b for b in stored if b.partition == self._bindings.get(ring)]
            owner = next(reversed(own or stored), None)
        elif isinstance(command, c.Unpin):
            holder = next((r for r, pin in self._pins if pin == command.pin and r != ring), ring)
            return self._distance(ring, holder, self._bindings[holder])
        if owner is None:
            return Requester.OWN_RING
        if owner.dead or owner.ring in self._lost:
            return Requester.DEAD_SCOPE
        return self._distance(ring, owner.ring, owner.partition)

    def _distance(self, ring: RingId, owner: RingId, partition: int | Binding) -> Requester:
        if ring == owner:
            return Requester.OWN_RING
        if self._bindings.get(ring) != partition:
            return Requester.OTHER_PARTITION
        return Requester.OTHER_RING if ring.port == owner.port else Requester.OTHER_PORT
