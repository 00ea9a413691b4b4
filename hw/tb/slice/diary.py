"""What two isolated partitions do: one always the same, the other whatever its seed says."""

from random import Random

import google_crc32c

from hw.params import commands as c
from hw.params.protocol import Handle, LookupMode, PinId, RingId, Status
from hw.tb.slice.party import Asked, Moves, handle_of, pins_of, session_of

WATCHED, OTHER = 1, 0
"""Ports, and partitions. The watched one has the turn behind the other's."""


def block(key: int, segments: int) -> bytes:
    """The bytes of a block; its last segment is a short one."""
    return Random(key).randbytes(512 * segments - 100)


def crc(data: bytes) -> int:
    """The CRC that a SEAL declares."""
    return int(google_crc32c.value(data))


def diary() -> Moves:
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


KINDS = ("read", "write", "lookup", "fill", "park", "session", "lose")
"""What a load may be made of, besides nothing."""


def load(seed: int) -> Moves:
    """What the other partition does: by its seed nothing (0), one thing, or some of all, as fast as it goes."""
    random = Random(f"{seed}/load")
    if seed == 0:
        return
    kinds = [KINDS[seed - 1]] if seed <= len(KINDS) else random.sample(KINDS, random.randint(2, len(KINDS)))
    near, far = RingId(OTHER, 0), RingId(OTHER, 1)
    yield random.randrange(3_000)
    (opened,) = yield [(near, c.OpenSession())]
    session = session_of(opened)
    stored: list[tuple[Handle, int]] = []
    for key in range(3):
        data = block(key, 4)
        (granted,) = yield [(near, c.Alloc(0, key, len(data), session))]
        handle = handle_of(granted)
        yield [(near, c.Write(handle, 0, data)), (near, c.Seal(handle, len(data), crc(data)))]
        stored.append((handle, 4))
    key, lost = 100, False
    while True:
        kind, rings = random.choice(kinds), [near] if lost else [near, far]
        moves: list[Asked] = []
        for _ in range(random.choice([1, 4, 8])):
            ring = random.choice(rings)
            handle, segments = random.choice(stored)
            if kind == "read":
                moves.append((ring, c.Read(handle, 0, segments)))
            elif kind == "lookup":
                moves.append(
                    (ring, c.Lookup(0, random.choices(range(8), k=4), LookupMode.BITMAP, pin=random.random() < 0.3))
                )
            elif kind == "session":
                moves.append((ring, random.choice([c.OpenSession(), c.Migrate(session), c.Unpin(PinId(0, 0))])))
        if kind == "lose" and not lost:
            lost = True
            yield [(far, c.OpenSession()), (far, c.Lookup(0, [0, 1, 2], LookupMode.BITMAP, pin=True))]
            yield far
            yield random.randrange(10_000)
            continue
        if kind in ("write", "fill", "park"):
            key += 1
            data = block(key, random.randint(1, 8))
            (granted,) = yield [(near, c.Alloc(0, key, len(data), session))]
            if granted.status is not Status.GRANTED:
                yield [(near, c.Drop(0, random.randrange(100, key)))]
                continue
            handle = handle_of(granted)
            moves = [(near, c.Write(handle, 0, data)), (near, c.Seal(handle, len(data), crc(data)))]
            if kind == "park":
                moves.insert(0, (near, c.Read(handle, 0, 1, park=True)))
            if kind != "fill":
                moves.append((near, c.Drop(0, key)))
        yield moves or random.randrange(1, 500)
