"""A requester with a prefetch engine: lists of blocks amid other traffic, cancelled, lost and cut off."""

from typing import Any

import pytest

from hw.params import records
from hw.params.protocol import Status
from hw.tb.scoreboard import CheckError
from tests.hw.prefetch_world import Prefetch, PrefetchWorld
from tests.hw.requester_commands import SEGMENT
from tests.hw.requester_world import Software


def lists(world: PrefetchWorld, count: int = 6, *, others: float = 0.5) -> Software:
    """PREFETCHes and other commands on three rings."""
    rng = world.random
    for number in range(3):
        yield from world.enable(number, log2_entries=3)
    for _ in range(count):
        number = rng.randrange(3)
        running = [each for each in world.commands.by_tag.values() if isinstance(each, Prefetch)]
        if len(running) < 2:
            world.put_prefetch(number)
        while rng.random() < others and world.room(number):
            world.put(number)
        yield from world.ring_doorbell(number)
        yield from world.sleep(rng.choice([0, 1, 60]))
        for each in range(3):
            yield from world.consume(each)
        while not all(world.room(each) for each in range(3)):
            for each in range(3):
                yield from world.consume(each)
            yield from world.sleep(5)
    for number in range(3):
        yield from world.settle(number)


def play(beat_bytes: int, seed: int, story: Any = lists, *, rate: float = 0.0, **options: Any) -> PrefetchWorld:
    world = PrefetchWorld(beat_bytes, seed, rate=rate)
    world.play(story(world, **options))
    return world


@pytest.mark.parametrize(
    ("beat_bytes", "rate"), [(64, 0.5), *(pytest.param(bytes, 0.3, marks=pytest.mark.nightly) for bytes in (16, 128))]
)
def test_blocks_arrive_and_are_marked(beat_bytes: int, rate: float, seed: int) -> None:
    print(f"seed {seed}")
    play(beat_bytes, seed, rate=rate)


def staged(world: PrefetchWorld, *, blocks: int = 4, slow: int = 0) -> Software:
    """A session goes through a ring in the GPU's memory that holds less than it, twice, and another list beside it."""
    rng = world.random
    yield from world.enable(0, log2_entries=2)
    yield from world.enable(1, log2_entries=2)
    log2 = rng.choice([1, 2, 3])
    segments = rng.randint(1, min(4, 1 << log2))
    address = world.hbm.allocate(SEGMENT << log2, align=SEGMENT)
    world.hbm.permit(address, SEGMENT << log2)
    for _ in range(2):
        # Counts go over the end of their 16 bits.
        if not world.consumed[0]:
            world.consumed[0] = 0x10000 - rng.randint(1, 8)
            yield from world.write("RING0_CONSUMED", world.consumed[0])
        of = world.put_prefetch(
            0, blocks=blocks, segments=segments, staging=(address, log2, world.consumed[0] & 0xFFFF)
        )
        yield from world.ring_doorbell(0)
        world.put_prefetch(1)
        yield from world.ring_doorbell(1)
        yield from world.consume_segments(of, slow=slow)
        for number in (0, 1):
            yield from world.settle(number)


@pytest.mark.parametrize("rate", [0, pytest.param(0.4, marks=pytest.mark.nightly)])
def test_a_session_goes_through_a_staging_ring(rate: float, seed: int) -> None:
    print(f"seed {seed}")
    play(64, seed, staged, rate=rate, blocks=4 if rate else 2)


def refused(world: PrefetchWorld) -> Software:
    """PREFETCHes that ask for nothing or too much, for more than there are jobs, whose list or table memory refuses."""
    yield from world.enable(0, log2_entries=4)
    ring = world.hbm.allocate(SEGMENT << 3, align=SEGMENT)
    for change in (
        {"count": 0},
        {"length": 0},
        {"slot": 0},
        {"slot": 1 << 16},
        {"length": 1 << 16},
        {"length": 40, "slot": 2, "page_shift": 4},
        {"page_shift": 16},
        {"data": 64},
        {"results": 16},
        {"flags": records.STAGED, "subject": ring + 1 | 3 << 64},
        {"flags": records.STAGED, "subject": ring | 0 << 64},
        {"flags": records.STAGED, "subject": ring | 15 << 64},
        {"flags": records.STAGED, "subject": ring | 1 << 64, "length": 3, "slot": 3},
        {"flags": records.STAGED, "subject": ring | 3 << 64, "length": 1 << 15, "slot": 1 << 15},
    ):
        of = world.put_prefetch(0, change=change)
        of.refusal = Status.INVALID
        yield from world.ring_doorbell(0)
        yield from world.settle(0)
    bad = world.put_prefetch(0, blocks=3)
    bad.open_ended, bad.failing = True, True
    world.host.bad.update(range(bad.fields["data"] + 128, bad.fields["data"] + 192))
    yield from world.ring_doorbell(0)
    yield from world.settle(0)
    bad = world.put_prefetch(0, blocks=2)
    bad.failing = True
    world.host.bad.update(range(bad.fields["results"], bad.fields["results"] + 16))
    yield from world.ring_doorbell(0)
    yield from world.settle(0)
    for i in range(3):
        of = world.put_prefetch(0, blocks=3, span=6)
        if i == 2:
            of.refusal = Status.NO_SPACE
    yield from world.ring_doorbell(0)
    yield from world.settle(0)


@pytest.mark.nightly
def test_what_cannot_be_done_is_refused(seed: int) -> None:
    print(f"seed {seed}")
    play(64, seed, refused)


def merged(world: PrefetchWorld) -> Software:
    """Two PREFETCHes of the same blocks to the same places at once, and the list of one twice."""
    yield from world.enable(0, log2_entries=3)
    first = world.put_prefetch(0, blocks=3, span=6, segments=3)
    world.put_prefetch(0, same=first)
    yield from world.ring_doorbell(0)
    yield from world.settle(0)
    wanted = 2 * sum(4 for block in first.blocks)
    if world.node.reads >= wanted:
        raise CheckError(f"{world.node.reads} READs for {wanted}, of which half are the same")


@pytest.mark.nightly
def test_what_is_under_way_is_not_read_again(seed: int) -> None:
    print(f"seed {seed}")
    play(64, seed, merged)


def cancelled(world: PrefetchWorld) -> Software:
    """PREFETCHes are cancelled at any time, also staged ones for which nobody makes room; others go on."""
    rng = world.random
    for number in range(2):
        yield from world.enable(number, log2_entries=3)
    for _ in range(4):
        place = None
        if rng.random() < 0.5:
            address = world.hbm.allocate(SEGMENT << 2, align=SEGMENT)
            world.hbm.permit(address, SEGMENT << 2)
            place = address, 2, 0
        of = world.put_prefetch(0, blocks=rng.randint(1, 4), staging=place)
        of.open_ended = True
        yield from world.ring_doorbell(0)
        world.put_prefetch(1)
        yield from world.ring_doorbell(1)
        yield from world.sleep(rng.choice([0, 30, 100, 200]))
        tag = of.fields["tag"]
        other = next(each for each in range(1 << 10, 1 << 11) if each not in world.commands.by_tag)
        world.put_cancel(1, tag)
        world.put_cancel(0, other)
        world.put_cancel(0, tag)
        world.put_cancel(0, tag)
        for number in (0, 1):
            yield from world.ring_doorbell(number)
        yield from world.settle(0)
        reads, under_way = world.node.reads, world.node.asked[tag]
        yield from world.sleep(60)
        if place and world.node.asked[tag] != under_way:
            raise CheckError(f"{world.node.reads - reads} READs behind a CANCEL that has completed")
        yield from world.settle(1)


@pytest.mark.nightly
def test_what_is_cancelled_ends_and_leaves_nothing(seed: int) -> None:
    print(f"seed {seed}")
    play(64, seed, cancelled)


def lost(world: PrefetchWorld) -> Software:
    """Rings are lost and disabled amid PREFETCHes, of which nothing is written once they are inactive."""
    rng = world.random
    for _ in range(3):
        for number in (0, 1):
            yield from world.enable(number, log2_entries=3)
        for number in (0, 1):
            world.put_prefetch(number).open_ended = True
            world.put(number)
            yield from world.ring_doorbell(number)
        yield from world.sleep(rng.choice([0, 40, 120, 250]))
        told = dict(world.node.losses)
        yield from world.write("RING0_CONTROL", 0)
        yield from world.write("RING1_CONTROL", 3)
        yield from world.inactive(0, failed=0, told=told.get(0, 0))
        yield from world.settle(1)
        told = dict(world.node.losses)
        yield from world.write("RING1_CONTROL", 0)
        yield from world.inactive(1, failed=0, told=told.get(1, 0))


@pytest.mark.nightly
def test_the_loss_of_a_ring_ends_its_prefetches(seed: int) -> None:
    print(f"seed {seed}")
    play(64, seed, lost)


def cut(world: PrefetchWorld) -> Software:
    """The node restarts amid PREFETCHes; those that come later are done."""
    rng = world.random
    for number in (0, 1):
        yield from world.enable(number, log2_entries=3)
    for _ in range(3):
        for number in (0, 1):
            world.put_prefetch(number).open_ended = True
            world.put(number)
            yield from world.ring_doorbell(number)
        yield from world.sleep(rng.choice([10, 60, 150, 250]))
        world.restarted, world.restart = True, rng.choice([2, 20])
        for number in (0, 1):
            yield from world.settle(number)
        world.restarted = False
        rate, world.commands.rate = world.commands.rate, 0
        world.put_prefetch(0)
        yield from world.ring_doorbell(0)
        yield from world.settle(0)
        world.commands.rate = rate


@pytest.mark.nightly
@pytest.mark.parametrize("rate", [0, 0.4])
def test_a_restart_of_the_node_ends_prefetches(rate: float, seed: int) -> None:
    print(f"seed {seed}")
    play(64, seed, cut, rate=rate)
