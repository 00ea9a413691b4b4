"""What was stored in which frame, kept apart from the device: the judge of every hit and every byte."""

from array import array
from collections import deque
from dataclasses import dataclass

import numpy as np

from hw.params.commands import Event, Fate
from hw.params.protocol import Handle
from scripts.replay.content import payload


@dataclass(slots=True)
class Store:
    """One block as it was granted. Times are block references looked up so far, in the whole run."""

    handle: Handle
    partition: int
    model: int
    key: int
    nonce: int
    output: bool = False
    sealed_at: int = 0
    used_at: int = 0
    hits: int = 0


@dataclass(frozen=True, slots=True)
class WrongBlock:
    """A hit that gave other bytes than were stored."""

    request: int
    partition: int
    model: int
    key: int
    handle: Handle | None
    what: str

    def __str__(self) -> str:
        return (
            f"request {self.request}: partition {self.partition}, model {self.model}, key {self.key:032x},"
            f" {self.handle}: {self.what}"
        )


@dataclass(slots=True)
class _Offer:
    """PUTs of a block that are under way, all with the same bytes."""

    nonce: int
    output: bool
    puts: int = 0


Block = tuple[int, int, int]
"""Partition, model and key."""

_REMEMBERED = 4096
"""Stores that have gone, but are not forgotten yet: a completion may be looked at later than it arrived."""


class Ledger:
    """Remembers every store that may still be read, by its handle."""

    def __init__(self, seed: int, block_bytes: int) -> None:
        self._seed = seed
        self._bytes = block_bytes
        self._nonce = 0
        self._stores: dict[Handle, Store] = {}
        self._offers: dict[Block, _Offer] = {}
        self._gone: deque[Handle] = deque()
        self.sealed_outputs = 0
        """Blocks of outputs that the device told of as sealed."""
        self.references = 0
        """Block references looked up so far: the clock of ages."""
        self.wrong_bytes = 0
        self.first_wrong: WrongBlock | None = None
        self.ages = array("q")
        """Of each eviction: references since its block was sealed."""
        self.idle = array("q")
        """Of each eviction: references since its block was last hit, or sealed."""
        self.unused = 0
        """Evictions of blocks that were never hit."""

    def granted(self, handle: Handle, partition: int, model: int, key: int, *, output: bool = False) -> bytes:
        """A block is about to be stored; returns the bytes to store."""
        self._nonce += 1
        self._stores[handle] = Store(handle, partition, model, key, self._nonce, output)
        return payload(self._seed, (partition, model, key), self._nonce, self._bytes)

    def offered(self, block: Block, *, output: bool = False) -> bytes:
        """A PUT of a block is about to be sent; returns the bytes to store.

        Where the block is may be told by anybody before that PUT ends. PUTs of a block that overlap have one number:
        whose bytes are stored, nothing tells.
        """
        if block not in self._offers:
            self._nonce += 1
            self._offers[block] = _Offer(self._nonce, output)
        offer = self._offers[block]
        offer.puts += 1
        return payload(self._seed, block, offer.nonce, self._bytes)

    def answered(self, block: Block, sealed: Handle | None) -> None:
        """A PUT has ended; ``sealed``: where its block is, if it was that PUT which stored it."""
        if sealed is not None:
            self._find(sealed, block)
        offer = self._offers[block]
        offer.puts -= 1
        if offer.puts == 0:
            del self._offers[block]

    def _find(self, handle: Handle, block: Block) -> Store | None:
        """What is stored there; a block that is on offer may turn up under any new handle."""
        if handle not in self._stores and block in self._offers:
            offer = self._offers[block]
            self._stores[handle] = Store(handle, *block, offer.nonce, offer.output)
        return self._stores.get(handle)

    def event(self, event: Event) -> None:
        """The device tells of what has become of a block."""
        self._find(event.handle, (event.partition, event.model, event.key))
        store = self._stores[event.handle]
        if event.stored:
            store.sealed_at = store.used_at = self.references
            self.sealed_outputs += store.output
            return
        if event.fate is Fate.EVICTED:
            self.ages.append(self.references - store.sealed_at)
            self.idle.append(self.references - store.used_at)
            self.unused += store.hits == 0
        self._gone.append(event.handle)
        if len(self._gone) > _REMEMBERED:
            del self._stores[self._gone.popleft()]

    def hit(self, request: int, handle: Handle | None, partition: int, model: int, key: int) -> Store | None:
        """The store that a hit stands for; None, and a whole block of wrong bytes, when it is of another block."""
        store = None if handle is None else self._find(handle, (partition, model, key))
        if store is None or (store.partition, store.model, store.key) != (partition, model, key):
            what = "the handle names no block" if store is None else f"the handle names another block, {store}"
            self._wrong(self._bytes, WrongBlock(request, partition, model, key, handle, what))
            return None
        store.used_at = self.references
        store.hits += 1
        return store

    def check(self, request: int, store: Store, data: bytearray) -> None:
        """Compare the bytes that a READ returned with those stored, every one."""
        block = (store.partition, store.model, store.key)
        wanted = payload(self._seed, block, store.nonce, self._bytes)
        if data == wanted:
            return
        wrong = np.flatnonzero(np.frombuffer(data, np.uint8) != np.frombuffer(wanted, np.uint8))
        what = f"{len(wrong)} wrong bytes, the first at {wrong[0]}, of store {store.nonce}"
        self._wrong(len(wrong), WrongBlock(request, *block, store.handle, what))

    def _wrong(self, count: int, block: WrongBlock) -> None:
        self.wrong_bytes += count
        self.first_wrong = self.first_wrong or block
