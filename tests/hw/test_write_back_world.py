"""A requester with a write-back buffer between memory, software and a node that stores blocks. Most is for the
nights."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hw.params import records
from hw.params.protocol import EngineOpcode, Status
from hw.rtl.gpu import requester, starter
from hw.rtl.gpu.requester import Requester
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw import requester_world
from tests.hw.requester_commands import Commands
from tests.hw.requester_world import Software
from tests.hw.test_requester import traffic
from tests.hw.write_back_world import SLOTS, Put, Puts, PutWorld

NIGHTLY = pytest.mark.nightly


def counted(world: PutWorld, story: Software) -> Software:
    """A story; then what was counted is what has completed."""
    ends = {"SEALED": 0, "EXISTED": 0, "FAILED": 0}
    judge = world.commands.judge

    def note(submission: Any, entry: dict[str, int]) -> None:
        judge(submission, entry)
        put = isinstance(submission, Put) and submission.fields["opcode"] == EngineOpcode.PUT
        if put and submission.refusal is None and (submission.done or entry["status"] != Status.NO_SPACE):
            if entry["status"] == Status.EXISTS:
                ends["EXISTED"] += 1
            elif entry["status"] != Status.OK:
                ends["FAILED"] += 1
            elif not submission.flag(records.OPEN):
                ends["SEALED"] += 1

    world.commands.judge = note  # type: ignore[method-assign]
    yield from story
    for name, count in ends.items():
        if (got := (yield from world.read(f"COUNT_PUTS_{name}"))) != count:
            raise CheckError(f"COUNT_PUTS_{name} is {got}, expected {count}")
    if not ends["SEALED"]:
        raise CheckError("no block was sealed")
    if (yield from world.read("CAP_SLOTS")) != SLOTS:
        raise CheckError("CAP_SLOTS")


def play(beat_bytes: int, seed: int, *, commands: int = 10, rate: float = 0.0, losses: float = 0.0) -> PutWorld:
    world = PutWorld(beat_bytes, seed, rate=rate)
    story = traffic(world, commands, make=Puts.mix, losses=losses)
    world.play(story if losses else counted(world, story))
    return world


@pytest.mark.parametrize(
    ("beat_bytes", "rate"), [(64, 0.3), *(pytest.param(size, 0, marks=NIGHTLY) for size in (16, 128))]
)
def test_blocks_are_stored_as_they_were_put(beat_bytes: int, rate: float, seed: int) -> None:
    print(f"seed {seed}")
    play(beat_bytes, seed, rate=rate)


@NIGHTLY
@pytest.mark.parametrize("beat_bytes", [16, 64])
def test_rings_are_lost_amid_puts(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    play(beat_bytes, seed, commands=30, rate=0.1, losses=0.1)


def restarting(world: PutWorld) -> Software:
    """The node restarts amid PUTs, some of which wait for a fence that is reached behind that. PUTs that come then are
    stored."""
    rng = world.random
    for number in range(3):
        yield from world.enable(number, log2_entries=2)
    for turn in range(4):
        for number in (0, 1, 2, 0, 1, 2):
            fenced = rng.random() < 0.2
            world.put(number, partial(Puts.put, fence=turn + 1) if fenced else Puts.mix)
            yield from world.ring_doorbell(number)
        yield from world.sleep(rng.randint(0, 200))
        world.restarted, world.restart = True, rng.choice([2, 20])
        yield from world.sleep(100)
        for number in world.rings:
            yield from world.reach(number, turn + 1)
            yield from world.settle(number)
        world.restarted = False
        world.until_renewed = turn % 2 == 0
        for number in (0, 1, 2):
            world.put(number, Puts.put)
            yield from world.ring_doorbell(number)
        for number in world.rings:
            yield from world.settle(number)


def play_restarting(seed: int, *, rate: float = 0.0) -> PutWorld:
    world = PutWorld(64, seed, rate=rate)
    world.play(restarting(world))
    return world


@NIGHTLY
@pytest.mark.parametrize("rate", [0, 0.4])
def test_a_restart_of_the_node_ends_puts(rate: float, seed: int) -> None:
    print(f"seed {seed}")
    play_restarting(seed, rate=rate)


def going_on(world: PutWorld) -> Software:
    """Blocks of several PUTs, each submitted when the one before has completed."""
    rng = world.random
    world.node.fails = 0.05
    yield from world.enable(0, log2_entries=3)
    stored = 0
    for _ in range(8):
        block = world.put(0, partial(Puts.put, flags=records.OPEN))
        assert isinstance(block, Put)
        for part in range(4):
            yield from world.ring_doorbell(0)
            yield from world.settle(0)
            if block.entry["status"] != Status.OK or not block.flag(records.OPEN):
                break
            flags = records.OPEN if rng.random() < 0.5 and part < 2 else 0
            after = world.put(0, partial(Puts.put, flags=flags, after=block))
            assert isinstance(after, Put)
            block = after
        yield from world.ring_doorbell(0)
        yield from world.settle(0)
        stored += bool(block.before) and block.entry["status"] == Status.OK
    if not stored:
        raise CheckError("no block of several PUTs was sealed")


def play_going_on(seed: int) -> PutWorld:
    world = PutWorld(64, seed)
    world.play(going_on(world))
    return world


@NIGHTLY
def test_a_block_of_several_puts_is_stored(seed: int) -> None:
    print(f"seed {seed}")
    play_going_on(seed)


def waiting(world: PutWorld) -> Software:
    """All slots wait for a fence, and one more PUT for a slot; commands of another ring go on meanwhile."""
    world.node.fails = 0
    for number in (0, 1):
        yield from world.enable(number, log2_entries=3)
    for fence in range(1, SLOTS + 2):
        world.put(0, partial(Puts.put, fence=fence))
    yield from world.ring_doorbell(0)
    yield from world.sleep(100)
    for _ in range(3):
        world.put(1, Commands.read)
    yield from world.ring_doorbell(1)
    yield from world.settle(1)
    if world.completions != 3:
        raise CheckError("a PUT completes before its fence is reached")
    for fence in range(1, SLOTS + 2):
        yield from world.reach(0, fence)
        while world.rings[0].consumed < fence:
            yield from world.consume(0)
            yield from world.sleep(2)
    if not (yield from world.read("COUNT_PUTS_FULL")):
        raise CheckError("a PUT has waited for a slot, and that was not counted")


def play_waiting(seed: int) -> PutWorld:
    world = PutWorld(64, seed)
    world.play(waiting(world))
    return world


@NIGHTLY
def test_puts_that_wait_hold_up_no_others(seed: int) -> None:
    print(f"seed {seed}")
    play_waiting(seed)


MUTANTS: dict[str, tuple[Any, str, str, Callable[[int], PutWorld]]] = {
    "a slot is free when anything is released": (
        Requester,
        "seen.context.eq(released.payload.token)",
        "seen.context.eq(0)",
        lambda seed: play(64, seed),
    ),
    "what waits for the link is counted as sent": (
        Requester,
        "seen.sent.valid.eq(mover.flits.valid & mover.flits.ready)",
        "seen.sent.valid.eq(mover.flits.valid)",
        lambda seed: play(64, seed),
    ),
    "the tag of another command": (
        Requester,
        "seen.next_tag.eq(self._contexts.next_tag)",
        "seen.next_tag.eq(self._finisher.answer_tag)",
        lambda seed: play(64, seed),
    ),
    "a PUT without data begins": (starter.check, "(few | wrong)", "wrong", lambda seed: play(64, seed, rate=1)),
    "a PUT of data that is not aligned begins": (
        starter.check,
        "(few | wrong)",
        "few",
        lambda seed: play(64, seed, rate=1),
    ),
    "a PUT that is too long begins": (
        starter.check,
        "(moves & (descriptor.length > largest))",
        "(write & (descriptor.length > largest))",
        lambda seed: play(64, seed, rate=1),
    ),
    "an empty end is refused": (starter.check, "~empty & ", "", play_going_on),
}


@NIGHTLY
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad, run = MUTANTS[name]
    for module in (requester, requester_world, starter):
        if hasattr(module, target.__name__):
            monkeypatch.setattr(module, target.__name__, mutate(target, good, bad))
    with pytest.raises(CheckError):
        for seed in range(4):
            run(seed)
