"""What two isolated partitions do: one always the same, the other whatever its seed says."""

from random import Random

import google_crc32c

from hw.params import commands as c
from hw.params.protocol import Handle, LookupMode, PinId, RingId, Status
from hw.tb.slice.party import Asked, Before, Moves, handle_of, pins_of, session_of

WATCHED, OTHER = 1, 0
"""Ports, and partitions. The watched one has the turn behind the other's."""

RINGS = 4
"""Of a port."""


def block(key: int, segments: int) -> bytes:
    """The bytes of a block; its last segment is a short one."""
    return Random(key).randbytes(512 * segments - 100)


def crc(data: bytes) -> int:
    """The CRC that a SEAL declares."""
    return int(google_crc32c.value(data))


def diary() -> Moves:  # noqa: PLR0915 (one story)
    """What the watched partition does: it stores, reads, pins, parks, moves sessions, fills its pool, loses a ring."""
    near, far = RingId(WATCHED, 0), RingId(WATCHED, 1)
    handles = {}
    (opened,) = yield [(near, c.OpenSession())]
    session = session_of(opened)
    for key, segments in ((1, 3), (2, 1), (3, 4)):
        data = block(key, segments)
        (granted,) = yield [(near, c.Alloc(0, key, len(data), session))]
        handles[key] = handle_of(granted)
        yield [(near, c.Write(handles[key], 0, data)), (near, c.Seal(handles[key], len(data), crc(data)))]
    reads = [
        (near if key % 2 else far, c.Read(handles[key], 0, segments)) for key, segments in ((1, 3), (2, 1), (3, 4))
    ]
    yield reads
    (found,) = yield [(near, c.Lookup(0, [1, 2, 3, 9], LookupMode.BITMAP, pin=True))]
    yield [*reads[:2], (far, c.Lookup(0, [3, 9, 1], LookupMode.RUN)), (far, c.Drop(0, 2))]
    yield 100
    yield [(near, c.Unpin(pin)) for pin in pins_of(found)]

    # Commands wait for the turn to begin, when something of another partition might still be there.
    for _ in range(12):
        yield Before(0)
        yield [(near, c.Lookup(0, [1, 3], LookupMode.BITMAP)), (far, c.Read(handles[1], 0, 1))]

    # Reads and writes want memory at once, more of them than a turn has time for.
    for keys in ((20, 21), (22, 23)):
        moves: list[Asked] = [(ring, c.Read(handles[3], 0, 4)) for ring in (near, far, near, far)]
        for key in keys:
            data = block(key, 8)
            (granted,) = yield [(near, c.Alloc(0, key, len(data), session))]
            handle = handle_of(granted)
            moves += [(near, c.Write(handle, 0, data)), (near, c.Seal(handle, len(data), crc(data)))]
        yield [*moves, *((near, c.Drop(0, key)) for key in keys)]

    # READs of a block that is being written wait for it, one until it is done, one until its time is up.
    data = block(4, 2)
    (granted,) = yield [(near, c.Alloc(0, 4, len(data), session))]
    handle = handle_of(granted)
    yield [
        (near, c.Read(handle, 0, 2, park=True)),
        (near, c.Write(handle, 0, data)),
        (near, c.Seal(handle, len(data), crc(data))),
        (near, c.Read(handle, 0, 1, park=True)),
    ]
    (granted,) = yield [(near, c.Alloc(0, 5, 512, session))]
    yield [(near, c.Read(handle_of(granted), 0, 1, park=True)), (near, c.Lookup(0, [1, 3, 4, 5], LookupMode.BITMAP))]
    yield [(near, c.Abort(handle_of(granted)))]

    # A session moves to the other ring, with a block that is half written.
    data = block(6, 2)
    (granted,) = yield [(near, c.Alloc(0, 6, len(data), session))]
    handle = handle_of(granted)
    yield [(near, c.Write(handle, 0, data[:512]))]
    yield [(far, c.Migrate(session)), (near, c.AnswerFence(session, 100))]
    (opened,) = yield [(far, c.OpenSession())]
    if opened.answers[0].slot is None:  # in a shared slice others may have them all
        return
    moved = session_of(opened)
    (granted,) = yield [(far, c.Alloc(0, 7, 1024, moved))]
    yield [(far, c.Write(handle_of(granted), 0, bytes(1024))), (far, c.Read(handle_of(granted), 0, 2))]
    yield [(near, c.Migrate(moved)), (far, c.AnswerFence(moved, 2))]
    yield [(near, c.Seal(handle_of(granted), 1024, crc(bytes(1024))))]

    # All frames are used, and used again.
    for key in range(10, 16):
        (granted,) = yield [(near, c.Alloc(0, key, 512, moved))]
        if granted.status is not Status.GRANTED:
            break
        handle = handle_of(granted)
        yield [(near, c.Write(handle, 0, bytes(512))), (near, c.Seal(handle, 512, crc(bytes(512))))]
    yield [
        (near, c.Lookup(0, list(range(10, 14)), LookupMode.BITMAP, pin=True)),
        (far, c.Lookup(0, [15], LookupMode.RUN)),
    ]
    (found,) = yield [(far, c.Lookup(0, [14, 15], LookupMode.BITMAP, pin=True))]
    yield far
    yield [(near, c.Lookup(0, [1, 2, 14, 15], LookupMode.BITMAP))]
    yield 20_000
    yield [(near, c.OpenSession()), (near, c.Lookup(0, [15, 14], LookupMode.BITMAP))]


KINDS = ("read", "write", "lookup", "fill", "park", "session", "migrate", "lose")
"""What a load may be made of, besides nothing. `migrate` and `lose` leave the most behind when their turn ends."""


def load(seed: int) -> Moves:
    """What the other partition does: by its seed nothing (0), one thing, or some of all, as fast as it goes."""
    random = Random(f"{seed}/load")
    if seed == 0:
        return
    kinds = [KINDS[seed - 1]] if seed <= len(KINDS) else random.sample(KINDS, random.randint(2, len(KINDS)))
    yield random.randrange(3_000)
    yield from _Load(random).moves(kinds)


class _Load:
    """The other partition, with blocks that can be read, a session to write in and one that moves."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._near, *self._others = (RingId(OTHER, ring) for ring in range(RINGS))
        self._moving_to = (self._near, self._others[-1])
        self._stored: list[tuple[Handle, int]] = []
        self._key = 100

    def moves(self, kinds: list[str]) -> Moves:
        """One of these kinds after the other, for ever."""
        opened, also = yield [(self._near, c.OpenSession()), (self._near, c.OpenSession())]
        self._session, self._moving = session_of(opened), session_of(also)
        for key in range(3):
            data = block(key, 4)
            (granted,) = yield [(self._near, c.Alloc(0, key, len(data), self._session))]
            handle = handle_of(granted)
            yield [(self._near, c.Write(handle, 0, data)), (self._near, c.Seal(handle, len(data), crc(data)))]
            self._stored.append((handle, 4))
        while True:
            kind = self._random.choice(kinds)
            if kind in ("write", "fill", "park"):
                yield from self._write(kind)
            elif kind == "migrate" and self._others:
                yield from self._migrate()
            elif kind == "lose" and self._others:
                yield from self._lose()
            else:
                count = self._random.choice([1, 4, 8])
                yield list(filter(None, (self._ask(kind) for _ in range(count)))) or self._random.randrange(1, 500)

    def _ask(self, kind: str) -> Asked | None:
        """A command that needs no other, if the kind has any."""
        random, ring = self._random, self._random.choice([self._near, *self._others])
        if kind == "read":
            handle, segments = random.choice(self._stored)
            return ring, c.Read(handle, 0, segments)
        if kind == "lookup":
            return ring, c.Lookup(0, random.choices(range(8), k=4), LookupMode.BITMAP, pin=random.random() < 0.3)
        if kind == "session":
            return ring, random.choice([c.OpenSession(), c.Migrate(self._session), c.Unpin(PinId(0, 0))])
        return None

    def _write(self, kind: str) -> Moves:
        """A block is stored; to `park`, a READ waits for it; to `fill`, it stays."""
        self._key += 1
        near, data = self._near, block(self._key, self._random.randint(1, 8))
        (granted,) = yield [(near, c.Alloc(0, self._key, len(data), self._session))]
        if granted.status is not Status.GRANTED:
            yield [(near, c.Drop(0, self._random.randrange(100, self._key)))]
            return
        handle = handle_of(granted)
        moves: list[Asked] = [(near, c.Write(handle, 0, data)), (near, c.Seal(handle, len(data), crc(data)))]
        if kind == "park":
            moves.insert(0, (near, c.Read(handle, 0, 1, park=True)))
        if kind != "fill":
            moves.append((near, c.Drop(0, self._key)))
        yield moves

    def _migrate(self) -> Moves:
        """A session moves to the last ring, and back, as the turn ends: one of the moves may be left for the next."""
        yield Before(self._random.randrange(100, 200))
        moves: list[Asked] = []
        for owner, target in (self._moving_to, self._moving_to[::-1]) * 3:
            moves += [(target, c.Migrate(self._moving)), (owner, c.AnswerFence(self._moving, 0))]
        replies = yield moves
        if sum(reply.status is Status.OK for reply in replies[::2]) % 2:
            self._moving_to = self._moving_to[::-1]

    def _lose(self) -> Moves:
        """A ring with a session and pins is lost at the end of a turn: taking them back is left for the next."""
        lost = self._others.pop(0)
        yield [(lost, c.OpenSession()), (lost, c.Lookup(0, [0, 1, 2], LookupMode.BITMAP, pin=True))]
        yield self._random.randrange(10_000)
        yield Before(self._random.randrange(30, 130))
        yield lost
