"""What threads that use a device may see: contents that say where they belong, legal statuses, times without losses."""

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import shake_128
from itertools import count
from struct import Struct
from threading import Lock

from driverbench import SEGMENT

from hw.params.protocol import Handle, Status

LENGTHS = (600, 100, 512, 1300, 4096)
"""Of a block, by its key."""

READABLE = {0: {0, 2}, 1: {1}, 2: {2}}
"""The partitions that a partition may read, itself included."""

_HEADER = Struct("<BBHQ")

Mark = tuple[bool, list[int]]
"""A moment, as ``Spans`` see it."""

GONE = {Status.STALE, Status.UNAVAILABLE}
LEGAL: dict[str, set[Status]] = {
    "open": {Status.OK, Status.NO_SPACE, Status.UNAVAILABLE},
    "close": {Status.OK, *GONE},
    "close wrong": GONE | {Status.DENIED, Status.INVALID},
    "put": GONE | {Status.GRANTED, Status.EXISTS, Status.PENDING, Status.NO_SPACE, Status.QUOTA},
    "put wrong": GONE | {Status.DENIED, Status.INVALID},
    "lookup": {Status.OK, Status.HIT, Status.MISS, Status.PENDING, Status.NO_SPACE, Status.UNAVAILABLE},
    "get": GONE | {Status.OK},
    "get seen": GONE | {Status.OK, Status.PENDING, Status.DENIED, Status.RANGE},
    "get mismatch": GONE | {Status.OK, Status.PENDING, Status.DENIED, Status.RANGE},
    "wrong": GONE | {Status.DENIED, Status.INVALID},
    "unpin": GONE | {Status.OK},
    "unpin wrong": GONE | {Status.INVALID},
    "drop": {Status.OK, Status.MISS, Status.UNAVAILABLE},
}
"""How operations may end. Memory is good and nobody changes a buffer, so it is never with CRC, MEM_ERROR or POISON."""


def length_of(key: int) -> int:
    """The bytes of every block with this key."""
    return LENGTHS[key % len(LENGTHS)]


def content(partition: int, model: int, key: int, nonce: int) -> bytes:
    """The bytes of one store of a block: what it is, and what follows from that."""
    header = _HEADER.pack(partition, model, key, nonce)
    return header + shake_128(header).digest(length_of(key) - len(header))


class Spans:
    """What happens to things in whichever thread, each from a beginning to an end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._begun: Counter[Hashable] = Counter()
        self._ended: Counter[Hashable] = Counter()

    @contextmanager
    def during(self, *things: Hashable) -> Iterator[None]:
        """It happens to these, for the length of a ``with`` block."""
        with self._lock:
            self._begun.update(things)
        yield
        with self._lock:
            self._ended.update(things)

    def mark(self, *things: Hashable) -> Mark:
        """The present, for ``quiet``."""
        with self._lock:
            begun = [self._begun[thing] for thing in things]
            return begun == [self._ended[thing] for thing in things], begun

    def quiet(self, mark: Mark, *things: Hashable) -> bool:
        """Whether nothing has happened to the things of a mark at any time since then."""
        return mark[0] and mark == self.mark(*things)


@dataclass(frozen=True)
class Seen:
    """A block that some thread has a handle of; ``sealed``: it was a HIT, or stored."""

    handle: Handle
    model: int
    key: int
    sealed: bool


class Judge:
    """Remembers what was stored, and raises AssertionError for what cannot be, at once or in the end.

    - ``losses``: of rings. ``drops``: of blocks, by partition, model and key.
    - ``seen``: the last handles that threads have come across.
    - ``statuses``: how often each kind of operation ended in each way.
    """

    def __init__(self) -> None:
        self.losses, self.drops = Spans(), Spans()
        self.seen: deque[Seen] = deque(maxlen=32)
        self.statuses: Counter[tuple[str, Status]] = Counter()
        self._lock = Lock()
        self._nonces = count(1)
        self._stores: dict[int, Status | None] = {}
        self._names: dict[Handle, int] = {}
        self._returned: set[int] = set()

    def count(self, what: str, status: Status) -> None:
        """An operation has ended."""
        assert status in LEGAL[what], f"{what} ends {status.name}"
        with self._lock:
            self.statuses[what, status] += 1

    def store(self) -> int:
        """The nonce of a store that begins."""
        with self._lock:
            nonce = next(self._nonces)
            self._stores[nonce] = None
            return nonce

    def stored(self, nonce: int, status: Status, handle: Handle | None) -> None:
        """How it has ended."""
        self._stores[nonce] = status
        if status is Status.GRANTED:
            assert handle is not None
            self._name(handle, nonce)

    def returned(self, seen: Seen, partition: int, data: bytes) -> None:
        """A ring of a partition has read a block's beginning, or all of it."""
        where, model, key, nonce = _HEADER.unpack_from(data)
        what = f"{seen}, read from partition {partition}: block of {where}, model {model}, key {key}, nonce {nonce}"
        assert where in READABLE[partition] and (model, key) == (seen.model, seen.key), f"{what}: a foreign block"
        assert nonce in self._stores, f"{what}: was never stored"
        assert data == content(where, model, key, nonce)[: len(data)], f"{what}: torn"
        self._name(seen.handle, nonce)
        if seen.sealed:
            self._returned.add(nonce)

    def _name(self, handle: Handle, nonce: int) -> None:
        """A handle is of one store."""
        with self._lock:
            known = self._names.setdefault(handle, nonce)
        assert known == nonce, f"{handle} was store {known}, and now it is {nonce}"

    def finish(self) -> None:
        """All threads have ended: what came as sealed has been sealed, though the answer may have been lost."""
        wrong = {nonce: self._stores[nonce] for nonce in self._returned}
        wrong = {nonce: how for nonce, how in wrong.items() if how not in (Status.GRANTED, Status.UNAVAILABLE)}
        assert not wrong, f"blocks were read as sealed whose stores ended otherwise: {wrong}"


def fits(key: int, size: int) -> bool:
    """Whether a READ into so many bytes gives as many: of the whole block, or of its first segments."""
    return min(-(-size // SEGMENT) * SEGMENT, length_of(key)) == size
