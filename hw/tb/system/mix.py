"""A mix of everything that software asks of a requester with both engines, and what has to come of it."""

from collections.abc import Callable

from hw.params import records
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.params.records import ARRIVAL, BLOCK, COMPLETION
from hw.tb.scoreboard import CheckError
from hw.tb.system.ring import RingSoftware, Stored

ROW = 4
"""Logarithm of the entries of a row of an arrival table."""


def load(ring: RingSoftware, *, cancels: bool = False) -> list[Stored]:
    """Submit a mix of everything on a ring, in any order; the blocks that are stored as PUTs end OK."""
    world, put = ring.world, list[Stored]()
    parts: list[Callable[[], object]] = [
        *(lambda: ring.read_back(world.random.choice([*world.blocks.values()])),) * 3,
        lambda: look(ring),
        lambda: put_block(ring, put),
        lambda: put_block(ring, put, fence=ring.fence + 1),
        lambda: append(ring),
    ]
    world.random.shuffle(parts)
    tag = prefetch(ring)
    for number, part in enumerate(parts):
        part()
        if cancels and number == 3:
            cancel(ring, tag)
    ring.put(EngineOpcode.FLUSH, (Status.OK, Status.NO_SPACE))
    ring.ring()
    return put


def reach(ring: RingSoftware) -> None:
    """The producer of a ring has filled its blocks."""
    ring.fence += 1
    ring.write("FENCE", ring.fence)


def cancel(ring: RingSoftware, tag: int) -> None:
    """CANCEL a PREFETCH, which may then end UNAVAILABLE."""
    ring.asked[tag].wanted |= {Status.UNAVAILABLE}
    ring.put(EngineOpcode.CANCEL, (Status.OK, Status.MISS, Status.NO_SPACE), count=tag)


def look(ring: RingSoftware) -> None:
    """LOOKUP of a block that is pinned, and of a key that nobody has."""
    block = ring.world.random.choice([*ring.world.blocks.values()])
    keys = ring.take(block.key.to_bytes(16, "little") + (1 << 100).to_bytes(16, "little"))
    results = ring.take()

    def judge(entry: dict[str, int]) -> None:
        found = [
            COMPLETION.unpack(ring.content(results)[i * COMPLETION.size :][: COMPLETION.size])
            for i in range(entry["items"])
        ]
        if ring.world.also:
            return
        if [each["status"] for each in found] != [Status.HIT, Status.MISS] or found[0]["handle"] != block.handle:
            raise CheckError(f"{ring.id}: LOOKUP says {found}")

    ring.put(
        Opcode.LOOKUP,
        (Status.OK, Status.HIT, Status.MISS),
        judge,
        (keys, results),
        count=2,
        data=ring.address(keys),
        results=ring.address(results),
    )


def append(ring: RingSoftware) -> None:
    """A WRITE of a block that is sealed: its data is moved, and comes to nothing."""
    block = ring.world.blocks.get(ring.id)
    if block is None:
        return
    place = ring.take(ring.world.random.randbytes(len(block.data)))
    ring.put(
        Opcode.WRITE,
        Status.WRITE_ONCE,
        None,
        (place,),
        subject=block.handle,
        length=len(block.data),
        data=ring.address(place),
    )


def put_block(ring: RingSoftware, put: list[Stored], fence: int | None = None) -> None:
    """A PUT of a new block."""
    world, random = ring.world, ring.world.random
    world.keys += 1
    key, data = world.keys, random.randbytes(random.randint(1, world.params.pools[0].frame_bytes))
    place = ring.take(data)

    def judge(entry: dict[str, int]) -> None:
        if ring.content(place, len(data)) != data:
            raise CheckError(f"{ring.id}: the source of a PUT was written")
        if entry["status"] == Status.OK:
            put.append(Stored(key, entry["handle"], data, ring.id))

    flags = {} if fence is None else {"flags": records.FENCED, "results": fence & 0xFFFFFFFF}
    ring.put(
        EngineOpcode.PUT,
        (Status.OK, Status.NO_SPACE),
        judge,
        (place,),
        subject=key,
        slot=ring.session,
        data=ring.address(place),
        length=len(data),
        **flags,
    )


def prefetch(ring: RingSoftware) -> int:
    """A PREFETCH of segments of the blocks of several sessions; its tag."""
    random, params = ring.world.random, ring.world.params
    segment = params.memory.segment_bytes
    blocks = random.sample([*ring.world.blocks.values()], random.randint(1, len(ring.world.blocks)))
    first = random.randrange(4)
    span, ranges = random.randint(1, 8 - first), random.randint(1, 3)
    places = [ring.take() for _ in blocks]
    entries = (
        BLOCK.pack(handle=block.handle, data=ring.address(place), length=span * segment)
        for block, place in zip(blocks, places, strict=True)
    )
    listed = ring.take(b"".join(entries))
    table = ring.take(bytes(ARRIVAL.size * len(blocks) << ROW))
    tag = ring.tags

    def judge(entry: dict[str, int]) -> None:
        wanted = [each.data[first * segment :][: span * segment] for each in blocks]
        arrive(ring, tag, entry, [*zip(wanted, places, strict=True)], table)

    return ring.put(
        EngineOpcode.PREFETCH,
        (Status.OK, Status.NO_SPACE),
        judge,
        (*places, listed, table),
        count=len(blocks),
        segment=first,
        length=span,
        slot=ranges,
        page_shift=ROW,
        data=ring.address(listed),
        results=ring.address(table),
    )


def arrive(ring: RingSoftware, tag: int, end: dict[str, int], blocks: list[tuple[bytes, int]], table: int) -> None:
    """Judge the arrival table of a PREFETCH that has completed, and what is said to have arrived."""
    marks = ring.content(table)
    arrived = 0
    for number, (data, place) in enumerate(blocks):
        whole = ARRIVAL.unpack(marks[(number << ROW) * ARRIVAL.size :][: ARRIVAL.size])
        if whole["flags"] == records.ARRIVED:
            arrived += 1
            ring.expect(place, data)
            if (whole["tag"], whole["block"], whole["length"]) != (tag, number, len(data)):
                raise CheckError(f"{ring.id}: {whole} marks block {number} of PREFETCH {tag}")
        elif whole["flags"] == records.FAILED and Status(whole["status"]) not in ring.world.also:
            raise CheckError(f"{ring.id}: block {number} has failed: {Status(whole['status']).name}")
        elif end["status"] == Status.OK and not whole["flags"]:
            raise CheckError(f"{ring.id}: PREFETCH ends OK without block {number}")
    if end["status"] in (Status.OK, Status.UNAVAILABLE) and end["count"] != arrived:
        raise CheckError(f"{ring.id}: PREFETCH says {end['count']} blocks, {arrived} have arrived")
