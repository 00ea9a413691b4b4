"""What the traffic of a slice has met: each command, by what it names and by who asks; and what it can never meet."""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from itertools import product
from typing import NamedTuple

from hw.params import commands as c
from hw.params.commands import Command, Completion
from hw.params.protocol import REGISTERS, FrameState, Handle, Opcode, RingId, SlotId, Status
from pymodel.spec.cam import Tag
from pymodel.spec.core import Core
from pymodel.spec.state import NOBODY, Frame
from pymodel.spec.validate import well_formed


class Met(Enum):
    """What a command finds under the name that it gives, when the core takes it."""

    ANYTHING = "it names nothing that has states"
    NOTHING = "nothing, or nothing any more"
    WRITING = "a block that is being written"
    SEALING = "a block whose SEAL waits for memory"
    SEALED = "a sealed block"
    DRAINING = "a block that drains"
    DEAD = "a block or session in a dead scope, before a hand has taken it out"
    OPEN = "a session"
    MOVING = "a session that moves; its FENCE is not answered"
    ANSWERED = "a session that moves; its FENCE is answered"
    LEFT = "a session that has moved away from who asks"
    HELD = "a pin"


class Asker(Enum):
    """Who asks, seen from the owner of what is named: the ring of a session, of a block the ring it was granted to."""

    OWN_RING = "the owner"
    OTHER_RING = "another ring of its port and partition"
    OTHER_PORT = "a ring of another port, and of its partition"
    OTHER_PARTITION = "a ring of another partition"
    TENANT = "a ring of a partition; nobody is the owner"
    STRANGER = "a ring of no partition"
    ADMINISTRATOR = "an administrative ring, for what it may ask"
    LOST = "a ring that is lost"
    REGISTERS = "registers"


class Bin(NamedTuple):
    """One bin of coverage."""

    opcode: Opcode
    met: Met
    asker: Asker


BY_HANDLE = (Opcode.WRITE, Opcode.SEAL, Opcode.ABORT, Opcode.READ)
BY_KEY = (Opcode.LOOKUP, Opcode.ALLOC, Opcode.DROP)
BY_SESSION = (Opcode.CLOSE_SESSION, Opcode.MIGRATE, Opcode.ANSWER_FENCE)

STATES: dict[Opcode, tuple[Met, ...]] = {
    **dict.fromkeys(Opcode, (Met.ANYTHING,)),
    **dict.fromkeys(BY_HANDLE, (Met.NOTHING, Met.WRITING, Met.SEALING, Met.SEALED, Met.DRAINING, Met.DEAD)),
    **dict.fromkeys(BY_KEY, (Met.NOTHING, Met.WRITING, Met.SEALING, Met.SEALED, Met.DEAD)),
    **dict.fromkeys(BY_SESSION, (Met.NOTHING, Met.OPEN, Met.MOVING, Met.ANSWERED, Met.LEFT, Met.DEAD)),
    Opcode.UNPIN: (Met.NOTHING, Met.HELD),
}
"""What each command may meet."""

TENANTS = tuple(asker for asker in Asker if asker not in (Asker.ADMINISTRATOR, Asker.REGISTERS))
ADMINISTRATIVE = (Asker.TENANT, Asker.STRANGER, Asker.ADMINISTRATOR, Asker.LOST, Asker.REGISTERS)
BINS = frozenset(
    Bin(opcode, met, asker)
    for opcode, states in STATES.items()
    for met, asker in product(states, Asker)
    if asker in (ADMINISTRATIVE if opcode.administrative else TENANTS)
)


class Owner(NamedTuple):
    """Whose something was when it was given out."""

    ring: RingId
    partition: int


class Coverage:
    """Counts bins. Looks at the specification before it executes a command, and remembers what it gave to whom."""

    def __init__(self, core: Core) -> None:
        self.hit: Counter[Bin] = Counter()
        self._core = core
        self._blocks: dict[Handle, Owner] = {}
        self._slots: dict[SlotId, Owner] = {}
        self._pins: set[tuple[RingId, SlotId]] = set()

    def take(self, ring: RingId, command: Command) -> None:
        """A command is about to be executed. What is malformed names nothing, and is in no bin."""
        if well_formed(self._core, command):
            met, owner = self._find(ring, command)
            self.hit[Bin(command.opcode, met, self._asker(ring, command.opcode, owner))] += 1

    def end(self, command: Command, result: Completion) -> None:
        """A command has ended."""
        owner = Owner(result.ring, self._core.rings[result.ring].partition.id)
        if isinstance(command, c.Alloc) and result.status is Status.GRANTED and result.handle is not None:
            self._blocks[result.handle] = owner
        elif isinstance(command, c.OpenSession) and result.session is not None:
            self._slots[result.session] = owner
        for pin in result.pins:
            if pin is not None:
                self._slots[pin] = owner
                self._pins.add((result.ring, pin))

    def _asker(self, name: RingId, opcode: Opcode, owner: Owner | None) -> Asker:
        ring = self._core.rings[name]
        if name == REGISTERS or ring.lost:
            return Asker.REGISTERS if name == REGISTERS else Asker.LOST
        if ring.partition is NOBODY:
            return Asker.ADMINISTRATOR if ring.administrative and opcode.administrative else Asker.STRANGER
        if owner is None or owner.partition != ring.partition.id:
            return Asker.TENANT if owner is None else Asker.OTHER_PARTITION
        if owner.ring == name:
            return Asker.OWN_RING
        return Asker.OTHER_RING if owner.ring.port == name.port else Asker.OTHER_PORT

    def _find(self, ring: RingId, command: Command) -> tuple[Met, Owner | None]:
        """What a command names, and whose it is."""
        match command:
            case c.Write(handle) | c.Seal(handle) | c.Abort(handle) | c.Read(handle):
                return self._block(handle)
            case c.Alloc(model, key, _, session):
                met, _ = self._key(ring, model, key, everywhere=False)
                return met, self._session(ring, session)[1]
            case c.Drop(model, key) | c.Lookup(model, [key, *_]):
                return self._key(ring, model, key, everywhere=True)
            case c.CloseSession(session) | c.Migrate(session) | c.AnswerFence(session):
                return self._session(ring, session)
            case c.Unpin(pin):
                held = self._core.rings[ring].pins.get(pin) is not None
                own = Owner(ring, self._core.rings[ring].partition.id)
                return Met.HELD if held else Met.NOTHING, own if (ring, pin) in self._pins else self._slots.get(pin)
        return Met.ANYTHING, None

    def _block(self, handle: Handle) -> tuple[Met, Owner | None]:
        frame = self._core.frames[handle.frame]
        granted = self._blocks.get(handle)
        if self._core.handle(frame) != handle or frame.state in (FrameState.FREE, FrameState.QUARANTINED):
            return Met.NOTHING, granted
        return self._state(frame), self._owner(frame)

    def _state(self, frame: Frame) -> Met:
        """Of a frame that has a block."""
        if frame.state is FrameState.DRAINING:
            return Met.DRAINING
        if not self._core.alive(frame):
            return Met.DEAD
        return Met.SEALING if frame.sealing is not None else Met[frame.state.name]

    def _owner(self, frame: Frame) -> Owner | None:
        """The ring of the session while a block is being written, else the ring that it was granted to."""
        session = self._core.sessions.get(frame.session) if frame.state is FrameState.WRITING else None
        if session is None:
            return self._blocks.get(self._core.handle(frame))
        return Owner(session.ring.id, frame.partition.id)

    def _key(self, ring: RingId, model: int, key: int, *, everywhere: bool) -> tuple[Met, Owner | None]:
        """The block of a key in the ring's partition; of `everywhere` else one in another."""
        own = self._core.rings[ring].partition
        others = [each for each in self._core.partitions if each is not own] if everywhere else []
        for partition in (own, *others):
            frame = self._core.entry(Tag(partition.id, model, key))
            if frame is not None:
                return self._state(frame), self._owner(frame)
        return Met.NOTHING, None

    def _session(self, ring: RingId, name: SlotId) -> tuple[Met, Owner | None]:
        session = self._core.sessions.get(name)
        if session is None:
            return Met.NOTHING, self._slots.get(name)
        owner = Owner(session.ring.id, session.ring.partition.id)
        if session.ring.lost:
            return Met.DEAD, owner
        if session.fence is not None:
            return Met.MOVING if session.fence.writes is None else Met.ANSWERED, owner
        former = self._core.rings[ring]
        left = session.former is former and session.ring.partition is former.partition
        return Met.LEFT if left else Met.OPEN, owner


class Unreachable(NamedTuple):
    """Bins that no traffic can hit: all of these commands, in these states, by these askers."""

    opcodes: Iterable[Opcode]
    met: Iterable[Met]
    askers: Iterable[Asker]
    why: str

    @property
    def bins(self) -> set[Bin]:
        """Those of them that there are."""
        return {Bin(*each) for each in product(self.opcodes, self.met, self.askers)} & BINS


_OF_TENANTS = tuple(opcode for opcode in Opcode if not opcode.administrative)
_RELATED = (Asker.OWN_RING, Asker.OTHER_RING, Asker.OTHER_PORT, Asker.OTHER_PARTITION)
_THERE = tuple(met for met in Met if met not in (Met.ANYTHING, Met.NOTHING))

UNREACHABLE = (
    Unreachable([Opcode.OPEN_SESSION], [Met.ANYTHING], _RELATED, "nothing is named that has an owner"),
    Unreachable(
        [Opcode.LOOKUP, Opcode.DROP], [Met.NOTHING], _RELATED, "of a key under which nothing is nobody is the owner"
    ),
    Unreachable(
        [opcode for opcode in _OF_TENANTS if opcode is not Opcode.ALLOC],
        _THERE,
        [Asker.TENANT],
        "whatever is there was given to a ring",
    ),
    Unreachable([Opcode.ALLOC], _THERE, [Asker.STRANGER], "a ring of no partition has no keys of its own"),
    Unreachable(
        [Opcode.UNPIN],
        [Met.HELD],
        [*_RELATED[1:], Asker.STRANGER],
        "a pin is held in the table of the ring that names it, which changes hands without pins",
    ),
    Unreachable(BY_SESSION, [Met.DEAD], [Asker.OWN_RING], "a session dies with its ring, which is LOST then"),
    Unreachable(BY_SESSION, [Met.LEFT], [Asker.OWN_RING], "who has a session has not left it"),
    Unreachable(
        BY_SESSION,
        [Met.LEFT],
        [Asker.OTHER_PARTITION, Asker.STRANGER],
        "who has left a session and another partition since is as strange to it as any other",
    ),
)
"""Every bin that cannot be hit, with the reason."""


def problems(hit: Counter[Bin], *, complete: bool) -> list[str]:
    """What is wrong with the table of unreachable bins: one of them was hit, or, if `complete`, another was not."""
    listed = {each: row.why for row in UNREACHABLE for each in row.bins}
    found = [f"{_text(each)} was hit, but {listed[each]}" for each in sorted_bins(hit) if each in listed]
    if complete:
        found += [f"{_text(each)} was never hit" for each in sorted_bins(BINS - listed.keys() - hit.keys())]
    return found


def sorted_bins(bins: Iterable[Bin]) -> list[Bin]:
    """In the order of the words' definition."""
    met, askers = list(Met), list(Asker)
    return sorted(bins, key=lambda each: (each.opcode, met.index(each.met), askers.index(each.asker)))


def _text(each: Bin) -> str:
    return f"{each.opcode.name} of {each.met.name} by {each.asker.name}"
