"""A requester between a model of host memory and a model of a node: random commands on several rings, and everything
that can go wrong on either side. Some beat sizes are for the nights."""

from collections import deque
from typing import Any

import pytest

from hw.params import records
from hw.rdl import requester_map
from hw.rtl.fabric import Channel
from hw.tb.scoreboard import CheckError
from tests.hw.requester_commands import KEYS, Commands, params
from tests.hw.requester_world import COMMANDS, Make, Software, World


def traffic(world: World, commands: int, *, losses: float = 0.0, make: Make = Commands.invent) -> Software:
    """Random commands on all rings; now and then a ring is told lost, or disabled amid its commands."""
    rng = world.random
    for number in range(3):
        yield from world.enable(number, log2_entries=rng.choice([1, 2, 3]))
    left = commands
    while left:
        number = rng.randrange(3)
        kind = rng.random()
        if kind < 0.5 and world.room(number):
            world.put(number, make)
            left -= 1
        if kind < 0.5 and rng.random() < 0.7:
            yield from world.ring_doorbell(number)
        elif 0.5 <= kind < 0.8:
            yield from world.consume(number)
        elif kind > 1 - losses:
            told = world.node.losses[number]
            if rng.random() < 0.5:
                yield from world.write(f"RING{number}_CONTROL", 0)
                yield from world.inactive(number, failed=0, told=told)
                yield from world.enable(number, log2_entries=rng.choice([1, 2, 3]))
            else:
                yield from world.write(f"RING{number}_CONTROL", 3)
                yield from world.ring_doorbell(number)
                yield from world.settle(number)
                while (yield from world.read(f"RING{number}_STATUS")) & 4:
                    yield from world.sleep(2)
                if world.node.losses[number] == told:
                    raise CheckError(f"ring {number} was told lost, and the node was not told")
                world.node.lost.discard(number)
        yield from world.sleep(rng.choice([0, 1, 20]))
    for number in world.rings:
        yield from world.ring_doorbell(number)
        yield from world.settle(number)
        status = yield from world.read(f"RING{number}_STATUS")
        if status != 1:
            raise CheckError(f"ring {number} has status {status:#x} in the end, expected 1")


def play(beat_bytes: int, seed: int, *, commands: int = COMMANDS, rate: float = 0.0, **options: Any) -> World:
    world = World(beat_bytes, seed, rate=rate)
    return world.play(traffic(world, commands, **options))


@pytest.mark.parametrize(
    "beat_bytes", [16, pytest.param(64, marks=pytest.mark.nightly), pytest.param(128, marks=pytest.mark.nightly)]
)
def test_commands_end_as_the_node_says(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    assert play(beat_bytes, seed).completions == COMMANDS


@pytest.mark.parametrize("beat_bytes", [128, pytest.param(16, marks=pytest.mark.nightly)])
def test_bad_descriptors_end_by_themselves(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    assert play(beat_bytes, seed, rate=0.6).completions == COMMANDS


@pytest.mark.parametrize("beat_bytes", [64, pytest.param(32, marks=pytest.mark.nightly)])
def test_rings_are_lost_and_come_back(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    play(beat_bytes, seed, rate=0.1, losses=0.1)


def look_up_in_vain(world: World) -> None:
    """Submit a LOOKUP on ring 0 of whose results memory refuses the first."""
    submission = world.put(0, Commands.look_up)
    world.host.bad.update(range(submission.fields["results"], submission.fields["results"] + 32))


def failing(world: World, what: str) -> Software:
    """A ring fails amid traffic, another one goes on; then it is enabled again, and works."""
    yield from world.write("INTERRUPT_ENABLE", 0xF)
    yield from world.enable(0, log2_entries=3, bad=what)
    yield from world.enable(1, log2_entries=3)
    for number in (0, 0, 1, 0, 1):
        if what == "results" and number == 0:
            look_up_in_vain(world)
        else:
            world.put(number)
    for number in (0, 1):
        yield from world.ring_doorbell(number)
    while what == "results" and (yield from world.read("RING0_STATUS")) == 1:  # the node may end a LOOKUP without any
        yield from world.consume(0)
        if world.room(0):
            look_up_in_vain(world)
        yield from world.ring_doorbell(0)
        yield from world.sleep(100)
    if what in ("TAIL", "HEAD"):
        yield from world.write(f"RING0_{what}", 8)
    yield from world.inactive(0, failed=1, told=0)
    yield from world.settle(1)
    happened = yield from world.read("INTERRUPT_STATUS")
    if happened & 0b1101 != 0b1101:
        raise CheckError(f"interrupts {happened:#x}, expected completion, failed and inactive")
    yield from world.write("INTERRUPT_STATUS", 0xF)
    yield from world.sleep(50)
    yield from world.write("RING0_CONTROL", 0)
    yield from world.enable(0, log2_entries=2)
    world.put(0)
    yield from world.ring_doorbell(0)
    yield from world.settle(0)
    if (yield from world.read("RING0_STATUS")) != 1:
        raise CheckError("a ring that was enabled again is not active, or still failed")


@pytest.mark.parametrize("what", ["submission", "completion", "results", "TAIL", "HEAD"])
def test_a_ring_that_fails_is_lost_alone(what: str, seed: int) -> None:
    print(f"seed {seed}")
    world = World(64, seed)
    world.play(failing(world, what))


def silenced(world: World) -> Software:
    """A ring is disabled while the node holds all of its answers and data back; all of that comes later."""
    yield from world.enable(0, log2_entries=3)
    yield from world.enable(1, log2_entries=3)
    world.node.hold = True
    for make in (
        Commands.look_up,
        Commands.invent,
        Commands.look_up,
        Commands.invent,
        Commands.invent,
    ):
        world.put(0, make)
    yield from world.ring_doorbell(0)
    yield from world.sleep(400)
    yield from world.write("RING0_CONTROL", 0)
    yield from world.sleep(200)
    world.forbid(0)
    if (yield from world.read("RING0_STATUS")) & 1 == 0:
        raise CheckError("a ring is inactive, and commands of it are under way")
    world.node.hold = False
    yield from world.inactive(0, failed=0, told=0)
    world.put(1)
    yield from world.ring_doorbell(1)
    yield from world.settle(1)


def play_silenced(seed: int) -> World:
    world = World(64, seed)
    return world.play(silenced(world))


def test_nothing_of_a_ring_that_is_lost_is_written(seed: int) -> None:
    print(f"seed {seed}")
    play_silenced(seed)


def telling(world: World) -> Software:  # noqa: PLR0915 (one story)
    """Messages, more than there is room for; the event ring is disabled, fails, and comes back."""
    rng, told, got = world.random, deque[bytes](), 0
    size = records.MESSAGE.size

    def tell(count: int) -> None:
        for _ in range(count):
            slice_ = (count + len(told)) % world.params.node.slices
            message = rng.randbytes(size - 2) + bytes([rng.getrandbits(8) & ~(records.LOST | records.MANAGED)])
            told.append(message + bytes([slice_]))
            world.node.message(message + bytes(1), slice_)

    def enable(*, bad: bool = False) -> Software:
        nonlocal base
        base = world.host.allocate(64 * 4, align=128, bad=bad)
        world.host.put(base, bytes(64 * 4))
        world.host.permit(base, 64 * 4)
        yield from world.write("EVENT_BASE_LOW", base & 0xFFFF_FFFF)
        yield from world.write("EVENT_BASE_HIGH", base >> 32)
        yield from world.write("EVENT_SIZE", 2)
        yield from world.write("EVENT_CONTROL", 1)

    def expect(number: int, *, lost: bool) -> None:
        entry = world.host.get(base + 64 * (number % 4), 64)
        message = told.popleft()
        want = message[:46] + bytes([message[46] | records.LOST * lost]) + message[47:] + bytes(15)
        if entry != want + bytes([1 - number // 4 % 2]):
            raise CheckError(f"event {number} is {entry.hex()}, expected {want.hex()}")

    base = 0
    tell(2)
    yield from world.sleep(60)
    told.clear()
    yield from enable()
    yield from world.write("EVENT_SIZE", 2, okay=False)
    tell(6)
    yield from world.sleep(300)
    for number in range(3):
        expect(number, lost=False)
    if (dropped := (yield from world.read("COUNT_DROPPED"))) != 5:
        raise CheckError(f"{dropped} messages are dropped, expected 5")
    told.clear()
    yield from world.write("EVENT_HEAD", 3)
    tell(3)
    yield from world.sleep(200)
    for number in range(3, 6):
        expect(number, lost=number == 3)
    got = yield from world.read("INTERRUPT_STATUS")
    if got != 2:
        raise CheckError(f"interrupts {got:#x}, expected event")
    yield from world.write("EVENT_CONTROL", 0)
    tell(1)
    while (yield from world.read("EVENT_STATUS")) & 1:
        yield from world.sleep(3)
    world.host.permit(base, 64 * 4, yes=False)
    yield from world.sleep(100)
    for bad in (True, False):
        yield from enable(bad=bad)
        if bad:
            tell(1)
        else:
            yield from world.write("EVENT_HEAD", 4)
        yield from world.sleep(100)
        status = yield from world.read("EVENT_STATUS")
        if status != 2:
            raise CheckError(f"the event ring has status {status}, expected failed")
        yield from world.write("EVENT_CONTROL", 0)
    told.clear()
    yield from enable()
    tell(1)
    yield from world.sleep(100)
    expect(0, lost=False)


def play_telling(seed: int, beat_bytes: int = 64) -> World:
    world = World(beat_bytes, seed)
    return world.play(telling(world))


@pytest.mark.parametrize("beat_bytes", [64, pytest.param(16, marks=pytest.mark.nightly)])
def test_messages_become_events_or_are_told_lost(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    play_telling(seed, beat_bytes)


def again(world: World) -> Software:
    """Traffic, in which old answers and data come once more when their commands have long ended."""
    yield from world.enable(0, log2_entries=3)
    for _ in range(6):
        for _ in range(3):
            world.put(0)
        yield from world.ring_doorbell(0)
        yield from world.settle(0)
        yield from world.sleep(100)
        old, world.node.stale = world.node.stale, []
        for _ in range(3):
            world.put(0)
        yield from world.ring_doorbell(0)
        yield from world.sleep(world.random.randint(10, 60))
        for channel, flits in old:
            world.node.between(channel, flits)
        yield from world.settle(0)


def play_again(seed: int) -> World:
    world = World(64, seed)
    return world.play(again(world))


def test_stale_answers_and_data_are_dropped(seed: int) -> None:
    print(f"seed {seed}")
    play_again(seed)


def restarting(world: World, *, times: int = 4) -> Software:
    """The node restarts amid traffic, again and again: what was under way ends UNAVAILABLE, what comes then works.
    Now and then it has sent some data by then. Commands that are good come where others were cut off."""
    rng = world.random
    for number in range(3):
        yield from world.enable(number, log2_entries=3)
    for _ in range(times):
        amid_data = rng.random() < 0.6
        for number in (0, 1, 2, 0, 1, 2, 0, 1, 2):
            world.put(number, Commands.read if amid_data else Commands.invent)
            yield from world.ring_doorbell(number)
        while amid_data and not world.node.out[Channel.DATA] and not world.node.idle():
            yield from world.sleep(1)
        yield from world.sleep(rng.randint(0, 60 if amid_data else 150))
        world.restarted, world.restart = True, rng.choice([2, 20])
        for number in world.rings:
            yield from world.settle(number)
        world.restarted = False
        rate, world.commands.rate = world.commands.rate, 0
        for number in (0, 1, 2, 0, 1, 2):
            world.put(number, Commands.read if amid_data else Commands.invent)
            yield from world.ring_doorbell(number)
        for number in world.rings:
            yield from world.settle(number)
        world.commands.rate = rate


def play_restarting(seed: int, beat_bytes: int = 16, *, rate: float = 0.0) -> World:
    world = World(beat_bytes, seed, rate=rate)
    return world.play(restarting(world))


def play_losing(seed: int) -> World:
    """As when the node restarts; but the link is held in reset until the requester says that it may be used again."""
    world = World(64, seed, rate=0.3)
    world.until_renewed = True
    return world.play(restarting(world, times=2))


def test_the_loss_of_a_port_ends_what_is_under_way_before_the_link_is_used_again(seed: int) -> None:
    print(f"seed {seed}")
    play_losing(seed)


@pytest.mark.parametrize("rate", [0, 0.6])
@pytest.mark.parametrize("beat_bytes", [16, pytest.param(64, marks=pytest.mark.nightly)])
def test_a_restart_of_the_node_ends_what_is_under_way(beat_bytes: int, rate: float, seed: int) -> None:
    print(f"seed {seed}")
    play_restarting(seed, beat_bytes, rate=rate)


AT_ONCE = 200
"""Cycles in which what is submitted while the node is away has to end: that it is fetched, and told."""


def away(world: World) -> Software:
    """The node restarts amid traffic, and stays away; what is submitted then ends, and what comes later works."""
    for number in range(2):
        yield from world.enable(number, log2_entries=3)
    for _ in range(3):
        for number in (0, 1, 0, 1):
            world.put(number)
            yield from world.ring_doorbell(number)
        yield from world.sleep(world.random.randint(0, 100))
        world.restarted, world.restart = True, 1_000_000
        for number in world.rings:
            yield from world.settle(number)
        while not (yield from world.read("LINK_STATUS")):
            yield from world.sleep(1)
        for number in (0, 1, 0, 1):
            submission = world.put(number)
            yield from world.ring_doorbell(number)
            asked = world.cycle
            yield from world.settle(number)
            if world.cycle > asked + AT_ONCE:
                raise CheckError(f"{submission.fields} has ended after {world.cycle - asked} cycles")
            if any(each is submission for each in world.node.names.values()):
                raise CheckError(f"{submission.fields} goes to a node that is away")
        world.restart = 1
        yield from world.sleep(3)
        world.restarted = False
        if (yield from world.read("LINK_STATUS")):
            raise CheckError("the node is away, and its link is not reset")
        for number in (0, 1, 0, 1):
            world.put(number)
            yield from world.ring_doorbell(number)
        for number in world.rings:
            yield from world.settle(number)


def play_away(seed: int) -> World:
    world = World(64, seed)
    return world.play(away(world))


def test_what_is_submitted_while_the_node_is_away_ends_at_once(seed: int) -> None:
    print(f"seed {seed}")
    play_away(seed)


def whole(world: World) -> Software:
    """READs of which the node has sent all, as it restarts; some wait for memory alone, and end as answered."""
    yield from world.enable(0, log2_entries=3)
    for _ in range(8):
        submission = world.put(0, Commands.read)
        yield from world.ring_doorbell(0)
        while not (submission.seen and world.node.idle()):
            yield from world.sleep(1)
        yield from world.sleep(world.random.randint(0, 8))
        world.restarted, world.restart = True, 2
        yield from world.settle(0)
        world.restarted = False


def play_whole(seed: int) -> World:
    world = World(64, seed)
    return world.play(whole(world))


def test_a_restart_of_the_node_leaves_alone_what_is_whole(seed: int) -> None:
    print(f"seed {seed}")
    play_whole(seed)


def bereaving(world: World) -> Software:
    """Rings are lost and disabled before the node restarts, and after, while commands are still being ended."""
    rng = world.random
    for _ in range(3):
        for number in range(3):
            yield from world.enable(number, log2_entries=3)
        for number in (0, 1, 2, 0, 1, 2):
            world.put(number, Commands.read)
            yield from world.ring_doorbell(number)
        while not world.node.out[Channel.DATA] and not world.node.idle():
            yield from world.sleep(1)
        yield from world.write("RING0_CONTROL", 3)
        yield from world.sleep(rng.randint(0, 4))
        world.restarted, world.restart = True, rng.choice([2, 20])
        while world.restart:
            yield from world.sleep(1)
        told = dict(world.node.losses)
        yield from world.write("RING1_CONTROL", 3)
        yield from world.write("RING2_CONTROL", 0)
        while (yield from world.read("RING1_STATUS")) & 4:
            yield from world.sleep(1)
        if world.node.losses[1] == told.get(1, 0):
            raise CheckError("ring 1 was told lost, and the node was not told")
        yield from world.inactive(2, failed=0, told=told.get(2, 0))
        for number in (0, 1):
            yield from world.settle(number)
            told[number] = world.node.losses[number]
        world.restarted = False
        for number in (0, 1):
            yield from world.write(f"RING{number}_CONTROL", 0)
            yield from world.inactive(number, failed=0, told=told[number])


def play_bereaving(seed: int) -> World:
    world = World(64, seed)
    return world.play(bereaving(world))


def test_a_restarted_node_is_told_of_losses(seed: int) -> None:
    print(f"seed {seed}")
    play_bereaving(seed)


def test_registers_are_locked_and_doorbells_read_back() -> None:
    world = World(64, 0)

    def software() -> Software:
        yield from world.enable(2, log2_entries=2)
        for name in ("SUBMISSION_LOW", "SUBMISSION_HIGH", "COMPLETION_LOW", "COMPLETION_HIGH", "SIZE"):
            yield from world.write(f"RING2_{name}", 0x80 if name.endswith("LOW") else 1, okay=False)
        for name in ("TAIL", "HEAD"):
            yield from world.write(f"RING2_{name}", 0)
        world.put(2)
        yield from world.ring_doorbell(2)
        yield from world.settle(2)
        assert (yield from world.read("RING2_TAIL")) == (yield from world.read("RING2_HEAD")) == 1
        assert (yield from world.read("ID")) == 0x4B565251
        assert (yield from world.read("CAP_RINGS")) == KEYS << 16 | 3
        assert (yield from world.read("COUNT_FETCHED")) == 1

    world.play(software())


def test_addresses_of_rings_have_the_bits_that_alignment_leaves() -> None:
    low = [field for name, each in requester_map(params(64)).items() if name.endswith("_LOW") for field in each.fields]
    assert len(low) == 1 + 2 * 3
    assert {(1 << field.low, field.low + field.width) for field in low} == {(records.ALIGNMENT, 32)}
