"""What a slice must hold, known from its order log and from what its ports are told alone."""

from collections import Counter
from dataclasses import dataclass, field

from hw.params.commands import Command
from hw.params.protocol import Handle, PinId, RingId, SessionId, Status


@dataclass(slots=True, eq=False)
class Store:
    """One block as its writer stored it; ``holds`` counts the pins and the READs under way on it."""

    handle: Handle
    owner: int
    model: int
    key: int
    session: SessionId
    lives: tuple[int, int]
    segments: list[bytes] = field(default_factory=list, repr=False)
    crc: int = 0
    answered: int = 0
    landed: int = 0
    holds: int = 0
    sealed: bool = False
    gone: bool = False


class Ledger:
    """Partition and model lives without wrapping, every store with its bytes, every pin, session and command.

    ``owners`` says whose each frame in use is, ``used`` counts them by partition, and ``worn_out`` the frames that
    have left service by pool. ``fences`` has the answered WRITE count of each session under way to another ring;
    ``names`` the last generation given out for each slot, of a ring's pins or (None) of the sessions.
    """

    def __init__(self, partitions: int, models: int) -> None:
        self.stores: dict[int, Store] = {}
        self.latest: dict[tuple[int, int, int], Store] = {}
        self.owners: dict[int, int] = {}
        self.used: Counter[int] = Counter()
        self.worn_out: Counter[int] = Counter()
        self.partition_lives = [0] * partitions
        self.model_lives = [0] * models
        self.sessions: dict[int, tuple[SessionId, RingId]] = {}
        self.written: Counter[SessionId] = Counter()
        self.fences: dict[int, int] = {}
        self.lost: set[RingId] = set()
        self.pins: dict[tuple[RingId, int], tuple[PinId, Store]] = {}
        self.reads: dict[tuple[RingId, int], Store] = {}
        self.outstanding: dict[tuple[RingId, int], Command] = {}
        self.names: dict[tuple[RingId | None, int], int] = {}

    def alive(self, store: Store) -> bool:
        """Whether a store is reachable: nothing it is under has died since it was granted."""
        lives = (self.partition_lives[store.owner], self.model_lives[store.model])
        if store.gone or lives != store.lives:
            return False
        return store.sealed or self.ring_of(store) is not None

    def ring_of(self, store: Store) -> RingId | None:
        """The ring that a store's session is bound to, while both live."""
        name, ring = self.sessions.get(store.session.slot, (None, None))
        return ring if name == store.session and ring not in self.lost else None

    def named(self, handle: Handle) -> Store | None:
        """The store that a handle was given for, while it is the latest in its frame."""
        store = self.stores.get(handle.frame)
        return store if store is not None and store.handle == handle else None

    def find(self, owner: int, model: int, key: int) -> Store | None:
        """The live store of a key."""
        store = self.latest.get((owner, model, key))
        return store if store is not None and self.alive(store) else None

    def look(self, reader: int, public: list[int], model: int, key: int) -> tuple[Status, Store | None]:
        """What LOOKUP has to say, and of which store; ``public`` are the other partitions that may be read, by id."""
        own = self.find(reader, model, key)
        for store in (own, *(self.find(owner, model, key) for owner in public)):
            if store is not None and store.sealed:
                return Status.HIT, store
        return (Status.MISS, None) if own is None else (Status.PENDING, own)

    def fresh(self, ring: RingId | None, name: PinId | SessionId) -> bool:
        """Whether an identifier (of a ring's pin table, or of the sessions) was never given before; it is now."""
        fresh = name.generation > self.names.get((ring, name.slot), -1)
        self.names[ring, name.slot] = name.generation
        return fresh

    def occupy(self, frame: int, owner: int) -> None:
        """A frame is given to a partition, taken from the one that had it until now, if any."""
        self.vacate(frame)
        self.owners[frame] = owner
        self.used[owner] += 1

    def vacate(self, frame: int) -> None:
        """A frame is nobody's."""
        owner = self.owners.pop(frame, None)
        if owner is not None:
            self.used[owner] -= 1

    def end_session(self, slot: int) -> None:
        """A session is gone, with a fence that it was in."""
        name, _ = self.sessions.pop(slot)
        self.written.pop(name, None)
        self.fences.pop(slot, None)
