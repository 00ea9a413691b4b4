"""Seeded traffic that looks for trouble: every command, status and state, as requesters and an unkind world make it.

It knows only what requesters know: the commands they sent, their completions, the messages to their ports. So the
specification and the RTL can be driven by the same traffic.
"""

import random
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import NamedTuple, TypeVar

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.params import Params
from hw.params.protocol import KEY_BITS, REGISTERS, LookupMode, ModelState, PinId, RingId, SessionId
from hw.params.toeplitz import diagonals, home_set, pack_tag
from pymodel.stimulus.requesters import Block, Covered, Open, Requester, Requesters, Submit

__all__ = ["MOODS", "Covered", "Fault", "Happen", "Mood", "Requester", "Submit", "Traffic", "colliding_keys"]

T = TypeVar("T")


class Fault(Enum):
    """What the world does to a slice. The bench makes it happen where it can; the traffic does not know where."""

    RING_LOST = "a ring or its port's link is gone"
    PARKED_READ_EXPIRED = "the timer of a parked read runs out"
    FENCE_EXPIRED = "the timer of a fence runs out"
    WRITE_FAILED = "memory fails to store a segment"
    READ_DAMAGED = "memory returns damaged bytes"
    RESTARTED = "reset"


class Happen(NamedTuple):
    """A fault, of ``ring`` when one is lost."""

    fault: Fault
    ring: RingId | None = None


@dataclass
class Mood:
    """What the traffic is up to for a while: how much likelier than usual some moves are, and how keys are chosen."""

    factors: dict[str, float] = field(default_factory=dict)
    colliding: bool = False
    pinning: float = 0.4


MOODS = (
    Mood(),
    Mood(colliding=True),
    Mood({"unpin": 0.02, "lookup": 2}, pinning=1.0),
    Mood({"unpin": 8, "abort": 4, "drop": 6}),
    Mood({"migrate": 12, "open": 3, "read": 2}),
    Mood({"set_partition": 20, "alloc": 2}),
    Mood({"drop_partition": 60, "retire": 20, "set_model": 30}),
    Mood({"bind": 25, "lose_ring": 25, "migrate": 6}),
    Mood({"write_failed": 30, "read_damaged": 20, "expire_parked": 20, "expire_fence": 20, "migrate": 4}),
    Mood({"malformed": 8, "set_epoch": 20}),
)
"""One after another, in random order."""

MOOD_LENGTH = 150
TRIALS = 2000
"""Keys looked at for some that collide."""


class Traffic(Requesters):
    """Chooses what happens next, by ``seed``: ``next()`` gives it, ``heard()`` takes what the ports are told.

    ``without`` names moves that are not made: what a design under test does not have yet. It is never ``over``.
    """

    over = False

    def __init__(self, params: Params, seed: int, *, without: Collection[str] = ()) -> None:
        super().__init__(params, seed)
        self._moves: dict[str, tuple[float, Callable[[], Submit | Happen | None]]] = {
            "lookup": (18, self._lookup),
            "alloc": (12, self._alloc),
            "write": (22, self._write),
            "seal": (14, self._seal),
            "abort": (1, self._abort),
            "read": (12, self._read),
            "unpin": (6, self._unpin),
            "drop": (1.5, self._drop),
            "open": (3, self._open),
            "close": (0.6, self._close),
            "migrate": (1.5, self._migrate),
            "answer": (6, self._answer),
            "malformed": (1.5, self._malformed),
            "bind": (0.3, self._bind),
            "set_partition": (0.3, self._set_partition),
            "drop_partition": (0.1, self._drop_partition),
            "set_model": (0.3, self._set_model),
            "retire": (0.1, self._retire),
            "set_epoch": (0.1, self._set_epoch),
            "lose_ring": (0.1, self._lose_ring),
            "expire_parked": (0.3, lambda: Happen(Fault.PARKED_READ_EXPIRED)),
            "expire_fence": (0.1, lambda: Happen(Fault.FENCE_EXPIRED)),
            "write_failed": (0.4, lambda: Happen(Fault.WRITE_FAILED)),
            "read_damaged": (0.1, lambda: Happen(Fault.READ_DAMAGED)),
            "restart": (0.03, self._restart),
        }
        for name in without:
            del self._moves[name]
        self._keys = [self._random.getrandbits(KEY_BITS) for _ in range(params.frames)]
        self._colliding = list(colliding_keys(params, self._random, params.frames + 2))
        self._mood = MOODS[0]
        self._mood_left = MOOD_LENGTH
        self._start()

    def _start(self) -> None:
        """A life begins: an epoch is set, partitions and models are configured, rings are bound."""
        self._script: deque[tuple[RingId, Command]] = deque()
        self._forget()
        if self._chance(0.5):
            self._script.append((self._random.choice(self._rings), c.OpenSession()))
        self._script.append((REGISTERS, c.SetEpoch(self._random.getrandbits(63) + 1)))
        partitions = range(self.params.tables.partitions)
        self._script.extend((REGISTERS, self._partition(partition)) for partition in partitions)
        models = range(self.params.tables.models)
        self._script.extend((REGISTERS, c.SetModel(model, ModelState.LIVE)) for model in models)
        for number, ring in enumerate(self._rings):
            to: int | Binding = ring.port % len(partitions) if self.params.strict else number % len(partitions)
            if ring == self._rings[-1]:
                to = Binding.ADMINISTRATIVE
            self._script.append((REGISTERS, c.Bind(ring, to)))

    # What the bench calls.

    def next(self) -> Submit | Happen:
        """The next command of some ring, or the next thing that happens to the slice."""
        if self._script:
            return self._submit(*self._script.popleft())
        self._mood_left -= 1
        if self._mood_left < 0:
            self._mood, self._mood_left = self._random.choice(MOODS), MOOD_LENGTH
        factors = self._mood.factors
        weights = [weight * factors.get(name, 1) for name, (weight, _) in self._moves.items()]
        while True:
            (_, move), *_ = self._random.choices(list(self._moves.values()), weights)
            action = move()
            if action is not None:
                return action

    def lose_port(self, port: int) -> None:
        """A port is gone, and all of its rings with it; they are bound again."""
        for ring in self._rings:
            if ring.port == port:
                self._lose(ring)
                self._script.append((REGISTERS, c.Bind(ring, self._tenant_of(ring))))

    # Choosing.

    def _any(self, items: Sequence[T]) -> T | None:
        return self._random.choice(items) if items else None

    def _tenant(self) -> RingId:
        """A ring, mostly one that is bound to a partition and not lost."""
        tenants = [r for r, to in self._bindings.items() if isinstance(to, int) and r not in self._lost]
        return self._random.choice(tenants if tenants and self._chance(0.96) else self._rings)

    def _stray(self, ring: RingId, session: SessionId | None = None) -> RingId:
        """The ring that has the right to something, or now and then another; best one that the session moves to."""
        movers = [
            r
            for (r, _), a in self.outstanding.items()
            if isinstance(a.command, c.Migrate) and a.command.session == session
        ]
        if movers and self._chance(0.3):
            return self._random.choice(movers)
        return ring if self._chance(0.85) else self._random.choice(self._rings)

    def _admin(self) -> RingId:
        """Who administers: registers, an administrative ring, or now and then somebody else."""
        if self._chance(0.6):
            return REGISTERS
        rings = [ring for ring, to in self._bindings.items() if to is Binding.ADMINISTRATIVE]
        return self._random.choice(rings if rings and self._chance(0.7) else self._rings)

    def _key(self) -> int:
        keys = self._colliding if self._mood.colliding and self._colliding else self._keys
        return keys[min(self._random.randrange(len(keys)), self._random.randrange(len(keys)))]

    def _model(self) -> int:
        return 0 if self._chance(0.6) else self._random.randrange(self.params.tables.models)

    def _block(self, *, writing: bool) -> Block | None:
        """A block that is (not) being written, or one that has just died, or any."""
        if self._died and self._chance(0.04):
            return self._random.choice(self._died)
        fitting = [b for b in self._blocks if not (b.dead or b.spoilt) and b.sealed is not writing]
        return self._any(fitting if fitting and self._chance(0.93) else self._blocks)

    def _live_session(self) -> Open | None:
        live = [session for session in self._sessions if not session.dead]
        return self._any(live if live and self._chance(0.95) else self._sessions)

    # Moves of tenants.

    def _lookup(self) -> Submit:
        """Keys at random, or some that somebody stored; mostly by who may know of them."""
        block = self._any([b for b in self._blocks if not b.dead]) if self._chance(0.7) else None
        model = self._model() if block is None else block.model
        stored = [b.key for b in self._blocks if b.model == model and not b.dead]
        wanted = self._random.randint(1, self.params.tables.lookup_keys)
        keys = [self._random.choice(stored) if stored and self._chance(0.7) else self._key() for _ in range(wanted)]
        ring = self._tenant() if block is None or self._chance(0.3) else block.ring
        mode = self._random.choice(list(LookupMode))
        return self._submit(ring, c.Lookup(model, keys, mode, self._chance(self._mood.pinning)))

    def _alloc(self) -> Submit | None:
        session = self._live_session()
        if session is None:
            return None
        largest = max(pool.frame_bytes for pool in self.params.pools)
        length = self._random.randint(1, largest + (largest // 4 if self._chance(0.1) else 0))
        command = c.Alloc(self._model(), self._key(), length, session.name)
        return self._submit(self._stray(session.ring, session.name), command)

    def _write(self) -> Submit | None:
        """The next segments of a block, all its rest in one, or something that does not fit."""
        block = self._block(writing=True)
        if block is None:
            return None
        size = self.params.memory.segment_bytes
        total = self.params.segments(len(block.data))
        if block.sent >= total and self._chance(0.9):
            return None
        first, segments = block.sent, self._random.randint(1, max(1, total - block.sent))
        if self._chance(0.06):
            first = self._random.randint(0, total + 1)
        data = block.data[first * size : (first + segments) * size]
        if self._chance(0.03) or not data:
            data = bytes(self._random.randint(1, 2 * size))
        elif first == block.sent:
            block.sent += segments
        return self._submit(self._stray(block.ring, block.session), c.Write(block.handle, first, data), block)

    def _seal(self) -> Submit | None:
        """Seal what has been sent whole; now and then too early, or with another length or CRC."""
        block = self._block(writing=True)
        if block is None:
            return None
        total = self.params.segments(len(block.data))
        if block.sent < total and self._chance(0.9):
            return None
        length = len(block.data) if self._chance(0.95) else self._random.randint(1, block.bound)
        crc = google_crc32c.value(block.data) ^ (self._random.getrandbits(32) if self._chance(0.05) else 0)
        return self._submit(self._stray(block.ring, block.session), c.Seal(block.handle, length, crc), block)

    def _abort(self) -> Submit | None:
        """Give up what went wrong; or what is about to be sealed, or must not be given up any more."""
        spoilt = [b for b in self._blocks if b.spoilt and not b.dead]
        block = self._any(self._sealing() if self._chance(0.4) else spoilt) or self._block(writing=self._chance(0.8))
        if block is None:
            return None
        return self._submit(self._stray(block.ring, block.session), c.Abort(block.handle), block)

    def _sealing(self) -> list[Block]:
        """Blocks whose SEAL has been asked for."""
        seals = (asked for asked in self.outstanding.values() if isinstance(asked.command, c.Seal))
        return [asked.block for asked in seals if asked.block is not None]

    def _read(self) -> Submit | None:
        block = self._block(writing=self._chance(0.4))
        if block is None:
            return None
        total = max(1, self.params.segments(len(block.data)))
        first = self._random.randrange(total)
        many = self._random.randint(1, total - first + (self._chance(0.05)))
        ring = block.ring if self._chance(0.4) else self._tenant()
        return self._submit(ring, c.Read(block.handle, first, many, park=self._chance(0.6)), block)

    def _unpin(self) -> Submit | None:
        known = self._any(self._pins if self._chance(0.9) else self._spent)
        if known is None:
            return None
        return self._submit(self._stray(known[0]), c.Unpin(known[1]))

    def _drop(self) -> Submit:
        block = self._any([b for b in self._blocks if not b.dead]) if self._chance(0.5) else self._any(self._sealing())
        if block is not None:
            return self._submit(self._stray(block.ring), c.Drop(block.model, block.key))
        return self._submit(self._tenant(), c.Drop(self._model(), self._key()))

    def _open(self) -> Submit | None:
        """Open a session; not always when there are many."""
        live = sum(not session.dead for session in self._sessions)
        if live >= self.params.tables.sessions - 1 and self._chance(0.9):
            return None
        return self._submit(self._tenant(), c.OpenSession())

    def _close(self) -> Submit | None:
        session = self._live_session()
        if session is None:
            return None
        return self._submit(self._stray(session.ring, session.name), c.CloseSession(session.name))

    def _migrate(self) -> Submit | None:
        session = self._live_session()
        if session is None:
            return None
        same = [ring for ring, to in self._bindings.items() if to == session.partition and ring != session.ring]
        ring = self._any(same) if self._chance(0.85) else None
        return self._submit(ring or self._random.choice(self._rings), c.Migrate(session.name))

    def _answer(self) -> Submit | None:
        """Answer a FENCE: rightly, counting writes under way; too early, too low, by another ring, or never."""
        if not self._to_answer:
            session = self._live_session() if self._chance(0.03) else None
            if session is None:
                return None
            return self._submit(self._stray(session.ring, session.name), c.AnswerFence(session.name, session.accepted))
        ring, session = self._to_answer.pop(self._random.randrange(len(self._to_answer)))
        if self._chance(0.08):
            return None
        writes = session.accepted + sum(self._under_way(ring, session.name))
        if self._chance(0.1):
            writes = max(0, writes + self._random.choice((-1, 1)))
            self._to_answer.append((ring, session))
        return self._submit(self._stray(ring, session.name), c.AnswerFence(session.name, writes))

    def _under_way(self, ring: RingId, session: SessionId) -> Iterator[int]:
        """Segments of each WRITE of a session that has not completed."""
        for (owner, _), asked in self.outstanding.items():
            command, block = asked.command, asked.block
            if owner == ring and isinstance(command, c.Write) and block is not None and block.session == session:
                yield self.params.segments(len(command.data))

    def _malformed(self) -> Submit | None:
        """A command with one field that cannot be, or that names nothing."""
        block, session = self._any(self._blocks), self._any(self._sessions)
        if block is None or session is None:
            return None
        tables, handle, name = self.params.tables, block.handle, session.name
        wrong = handle._replace(**self._random.choice(({"frame": self.params.frames}, {"node": handle.node ^ 1})))
        nobody = SessionId(tables.sessions, 0)
        key, model = self._key(), self._model()
        commands: tuple[Command, ...] = (
            c.Lookup(model, []),
            c.Lookup(tables.models, [key]),
            c.Lookup(model, [key] * (tables.lookup_keys + 1)),
            c.Alloc(model, 1 << KEY_BITS, 1, name),
            c.Alloc(model, key, 0, name),
            c.Alloc(model, key, 1, nobody),
            c.Write(wrong, 0, b"x"),
            c.Write(handle, 0, b""),
            c.Write(handle, -1, b"x"),
            c.Seal(wrong, 1, 0),
            c.Seal(handle, 1, 1 << 32),
            c.Abort(wrong),
            c.Read(wrong, 0, 1),
            c.Read(handle, 0, 0),
            c.Unpin(PinId(tables.pins_per_ring, 0)),
            c.Drop(model, -1),
            c.CloseSession(nobody),
            c.Migrate(nobody),
            c.AnswerFence(nobody, 0),
            c.AnswerFence(name, -1),
        )
        privileged: tuple[Command, ...] = (
            c.Bind(RingId(tables.ports, 0), 0),
            c.Bind(REGISTERS, 0),
            c.Bind(self._rings[0], tables.partitions),
            c.SetPartition(tables.partitions),
            c.SetPartition(0, pool=len(self.params.pools)),
            c.SetPartition(0, read_mask=1 << tables.partitions),
            c.DropPartition(tables.partitions),
            c.SetModel(tables.models, ModelState.LIVE),
            c.SetModel(0, ModelState.RETIRED),
            c.Retire(tables.models),
            c.SetEpoch(0),
        )
        if self._chance(0.3):
            return self._submit(self._admin(), self._random.choice(privileged))
        return self._submit(self._tenant(), self._random.choice(commands))

    # Moves of the administrator.

    def _partition(self, partition: int) -> c.SetPartition:
        """A configuration: partition 1 is public, most may read it; quotas are tight, guarantees small."""
        pool = partition % len(self.params.pools)
        if self._chance(0.1):
            pool = self._random.randrange(len(self.params.pools))
        frames = self.params.pools[pool].frames
        quota = self._random.randint(max(1, frames // 2), frames + self._chance(0.1))
        guarantee = self._random.randint(0, frames // self.params.tables.partitions + self._chance(0.1))
        mask = self._random.getrandbits(self.params.tables.partitions) | 2 * self._chance(0.8)
        return c.SetPartition(partition, pool, quota, guarantee, partition == 1 or self._chance(0.1), mask)

    def _set_partition(self) -> Submit:
        command = self._partition(self._random.randrange(self.params.tables.partitions))
        if self._chance(0.2):
            command = replace(command, quota=self._random.randint(0, 2), guarantee=0)
        return self._submit(self._admin(), command)

    def _bind(self) -> Submit:
        """Give a ring to somebody; a ring that waits to be bound comes first."""
        waiting = sorted(self._lost)
        ring = self._random.choice(waiting if waiting and self._chance(0.8) else self._rings)
        to: int | Binding = self._tenant_of(ring)
        if self._chance(0.1):
            to = self._random.choice(list(Binding))
        return self._submit(self._admin(), c.Bind(ring, to))

    def _tenant_of(self, ring: RingId) -> int:
        """A partition for a ring: any, but where partitions are isolated mostly the one that it may be of."""
        partitions = self.params.tables.partitions
        to = self._random.randrange(partitions)
        return ring.port % partitions if self.params.strict and self._chance(0.9) else to

    def _drop_partition(self) -> Submit:
        """Drop a partition; now and then so often that its stamps run out."""
        partition = self._random.randrange(self.params.tables.partitions)
        if self._chance(0.3):
            self._script.extend([(REGISTERS, c.DropPartition(partition))] * min(8, 1 << self.params.tables.stamp_bits))
        return self._submit(self._admin(), c.DropPartition(partition))

    def _set_model(self) -> Submit:
        state = ModelState.READ_ONLY if self._chance(0.2) else ModelState.LIVE
        return self._submit(self._admin(), c.SetModel(self._model(), state))

    def _retire(self) -> Submit:
        """Retire a model, and mostly bring it back at once."""
        model = self._model()
        if self._chance(0.8):
            self._script.append((REGISTERS, c.SetModel(model, ModelState.LIVE)))
        return self._submit(self._admin(), c.Retire(model))

    def _set_epoch(self) -> Submit:
        return self._submit(self._admin(), c.SetEpoch(self._random.getrandbits(63) + 1))

    # Moves of the world.

    def _lose_ring(self) -> Happen:
        """A ring is lost, best one between which a session moves; it is bound again some time later."""
        rings = [ring for ring, to in self._bindings.items() if to is not Binding.NONE]
        moves = [
            (ring, a.command.session) for (ring, _), a in self.outstanding.items() if isinstance(a.command, c.Migrate)
        ]
        if moves and self._chance(0.5):
            to, name = self._random.choice(moves)
            session = self._session(name)
            rings = [to] if session is None else [to, session.ring, session.ring]
        ring = self._random.choice(rings or self._rings)
        self._lose(ring)
        return Happen(Fault.RING_LOST, ring)

    def _restart(self) -> Happen:
        self._start()
        return Happen(Fault.RESTARTED)


def colliding_keys(params: Params, rng: random.Random, wanted: int) -> Iterator[int]:
    """Up to ``wanted`` keys that share their set with each other in every bank of the CAM, within any partition.

    Found by trial, so in large geometries there are few or none.
    """
    matrices = diagonals(params)

    def places(key: int) -> list[int]:
        tag = pack_tag(params, 0, 0, key)
        return [home_set(params, diagonal, tag) for diagonal in matrices]

    first = rng.getrandbits(KEY_BITS)
    target = places(first)
    trials = (rng.getrandbits(KEY_BITS) for _ in range(TRIALS))
    yield first
    yield from islice((key for key in trials if places(key) == target), wanted - 1)
