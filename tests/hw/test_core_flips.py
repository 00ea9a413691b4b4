"""The core with flipped bits in its tables: one in a codeword changes nothing, two are contained."""

import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import google_crc32c
import pytest
from amaranth.sim import SimulatorContext

from hw.params import commands as c
from hw.params.protocol import REGISTERS, Handle, LookupMode, RingId, SlotId, Status
from hw.rtl.node.core import Core, allocation, core, internal, tables
from hw.rtl.node.core.tables import HANDS_EVERY
from hw.rtl.node.layouts import Kind, State, frame_layout
from hw.tb.core.world import Script, World
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.everyday import everyday
from tests.hw.corebench import play, small
from tests.hw.flips import Content, open_tables
from tests.hw.simulate import Restart, simulate
from tests.hw.talk import FRAMES, PARAMS, RING, Talk
from tests.hw.test_core import RESTLESS, SCRIPTS, Restless, holding_much, pinned_again_and_again

QUIET = 200
"""Idle cycles in which every scrubber comes round."""


@pytest.mark.parametrize("seed", everyday(range(2), 0))
def test_single_flips_change_nothing(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Random traffic is judged as the specification judges it, while every table loses bits here and there."""
    contents = open_tables(monkeypatch)
    rng = random.Random(seed)
    flips = [0] * 20

    def disturb(ctx: SimulatorContext, _: World) -> None:
        for i, content in enumerate(contents):
            flips[i] += rng.random() < 0.1 and content.flip_one(ctx, rng)

    play(small(), seed, 250, disturb=disturb)
    assert len(contents) == 12
    assert all(count > 20 for count in flips[: len(contents)])


def mend_without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flip a bit of every codeword while operations come without a pause, and expect all mended after some of them."""
    contents = open_tables(monkeypatch)
    traffic = Restless(holding_much(), RESTLESS[0], HANDS_EVERY * 20)
    flipped, left = False, [-1]

    def codewords() -> Iterator[tuple[Content, int, int]]:
        for content in contents:
            yield from ((content, row, lane) for row in range(content.depth) for lane in range(content.lanes))

    def disturb(ctx: SimulatorContext, _: World) -> None:
        nonlocal flipped, left
        turns = max(content.depth for content in contents) + 1
        if traffic.busy and not flipped:
            for content, row, lane in codewords():
                content.flip(ctx, row, 0, lane=lane)
            flipped = True
        elif traffic.busy and traffic.sent == HANDS_EVERY * turns:
            left = [
                row for content, row, lane in codewords() if content.code.syndrome(content.codeword(ctx, row, lane))
            ]

    play(small(), script=traffic, disturb=disturb)
    assert flipped
    assert left == []


def test_scrubbers_work_while_operations_come_without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    mend_without_pause(monkeypatch)


def test_scrubbers_that_starve_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal, "due", mutate(internal.due, "return ~t.failed", "return t.failed"))
    with pytest.raises(AssertionError):
        mend_without_pause(monkeypatch)


@pytest.mark.parametrize("story", SCRIPTS)
def test_no_row_is_relied_on_that_is_read_while_it_is_written(
    monkeypatch: pytest.MonkeyPatch, story: Callable[[], Any]
) -> None:
    """Such a row comes out of the SRAM spoilt, as `open_tables` has it."""
    open_tables(monkeypatch)
    play(small(), script=SCRIPTS[story](story()))


Story = Callable[[Talk], Awaitable[None]]


def tell(monkeypatch: pytest.MonkeyPatch, story: Story) -> None:
    """Tell a story to a core."""
    contents = open_tables(monkeypatch)
    dut = Core(PARAMS)

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        talk = Talk(ctx, dut, contents)
        await talk.begin()
        await story(talk)

    simulate(dut, bench)


async def quarantined(talk: Talk, frame: int) -> None:
    """The scrubber has told of a lost row once, has overwritten it, and nobody has changed it since."""
    await talk.tick(3 * QUIET)
    assert talk.events == [(frame, True)]
    row = frame_layout(PARAMS).const({"state": State.QUARANTINED}).as_bits()
    assert talk.frames.codeword(talk.ctx, frame) == talk.frames.code.encode(row)
    assert not talk.ctx.get(talk.dut.failed)


async def a_sealed_block_is_lost(talk: Talk) -> None:
    """It is a MISS, its handle STALE, its pin goes back; its key gets another frame, and that is as good as any."""
    handle = await talk.store(7)
    pinned = await talk.ask(c.Lookup(0, [7], pin=True))
    assert pinned["status"] == Status.HIT
    assert await talk.status(c.Read(handle, 0, 1)) is Status.OK
    talk.lose(handle.frame)
    assert await talk.lookup(7) is Status.MISS
    assert await talk.status(c.Read(handle, 0, 1)) is Status.STALE
    assert await talk.status(c.Drop(0, 7)) is Status.MISS
    assert await talk.status(c.Unpin(SlotId(**pinned["slot"]))) is Status.OK
    assert await talk.status(c.Unpin(SlotId(**pinned["slot"]))) is Status.STALE
    await talk.internal(Kind.READ_DONE, handle.frame, ok=1)
    again = await talk.store(7)
    assert again.frame != handle.frame
    assert await talk.lookup(7) is Status.HIT
    assert await talk.status(c.Drop(0, 7)) is Status.OK
    await quarantined(talk, handle.frame)


async def a_block_is_lost_as_it_is_written(talk: Talk) -> None:
    """What memory answers of it is taken, and changes nothing."""
    handle = await talk.alloc(7)
    assert handle is not None
    assert await talk.status(c.Write(handle, 0, bytes(512))) is Status.OK
    talk.lose(handle.frame)
    await talk.internal(Kind.LANDED, handle.frame, count=1, ok=1)
    assert await talk.status(c.Seal(handle, 512, 0)) is Status.STALE
    assert await talk.status(c.Abort(handle)) is Status.STALE
    assert await talk.status(c.CloseSession(talk.session)) is Status.OK
    await quarantined(talk, handle.frame)


async def waiting_seal(talk: Talk) -> Handle:
    """A block of two segments that memory has still to answer when SEAL has come."""
    handle = await talk.alloc(7, 1024)
    assert handle is not None
    for segment in range(2):
        assert await talk.status(c.Write(handle, segment, bytes(512))) is Status.OK
    for item in talk.encode(c.Seal(handle, 1024, google_crc32c.value(bytes(1024)))):
        await talk.operation(item)
    await talk.tick(20)
    talk.said.clear()
    return handle


async def ends_as_lost(talk: Talk, handle: Handle) -> None:
    """The SEAL that waited has ended, once; and nothing more is said of the block."""
    await talk.tick(QUIET)
    assert [(said["kind"], said["status"]) for said in talk.said] == [(Kind.SEAL, Status.MEM_ERROR)]
    assert await talk.lookup(7) is Status.MISS
    await quarantined(talk, handle.frame)


async def a_block_is_lost_before_its_done_bit(talk: Talk) -> None:
    """The SEAL that waits for it ends with the next answer of memory; the READ of what has landed ends as it would."""
    handle = await waiting_seal(talk)
    await talk.internal(Kind.LANDED, handle.frame, count=1, ok=1)
    assert await talk.status(c.Read(handle, 0, 1)) is Status.OK
    talk.said.clear()
    talk.lose(handle.frame)
    await talk.internal(Kind.READ_DONE, handle.frame, ok=1)
    talk.said.clear()
    await talk.internal(Kind.LANDED, handle.frame, count=1, ok=1)
    await ends_as_lost(talk, handle)


async def a_block_is_mended_before_its_done_bit(talk: Talk) -> None:
    """The same, when the scrubber has been there."""
    handle = await waiting_seal(talk)
    talk.lose(handle.frame)
    await talk.tick(QUIET)
    assert not talk.said
    for _ in range(2):
        await talk.internal(Kind.LANDED, handle.frame, count=1, ok=1)
    await ends_as_lost(talk, handle)


async def a_block_is_lost_in_the_way_of_its_done_bit(talk: Talk) -> None:
    """The row is read with the last answer of memory, and is lost when it is to be sealed."""
    handle = await waiting_seal(talk)
    await talk.internal(Kind.LANDED, handle.frame, count=2, ok=1, wait=3)
    talk.lose(handle.frame)
    await ends_as_lost(talk, handle)


async def what_is_stored_twice_is_lost_once(talk: Talk) -> None:
    """The row is enough: the block is sealed."""
    handle = await waiting_seal(talk)
    talk.seals.flip(talk.ctx, handle.frame, 0, 1)
    await talk.internal(Kind.LANDED, handle.frame, count=2, ok=1)
    await talk.tick(QUIET)
    assert [(said["kind"], said["status"]) for said in talk.said] == [(Kind.SEAL, Status.OK)]
    assert await talk.lookup(7) is Status.HIT
    assert talk.events == []


async def a_free_frame_is_lost(talk: Talk) -> None:
    """It is passed over, and is in use no more than before."""
    talk.lose(0)
    handles = [await talk.store(key) for key in range(FRAMES - 1)]
    assert [handle.frame for handle in handles] == list(range(1, FRAMES))
    more = [await talk.store(FRAMES + key) for key in range(2 * FRAMES)]
    assert 0 not in {handle.frame for handle in more}
    await quarantined(talk, 0)


async def a_victim_is_lost(talk: Talk) -> None:
    """Others are evicted in its place, again and again."""
    handles = [await talk.store(key) for key in range(FRAMES)]
    lost = handles[0].frame
    talk.lose(lost)
    more = [await talk.store(FRAMES + key) for key in range(3 * FRAMES)]
    assert {handle.frame for handle in more} == {handle.frame for handle in handles} - {lost}
    assert await talk.lookup(0) is Status.MISS
    await quarantined(talk, lost)


async def all_victims_are_lost(talk: Talk) -> None:
    """An ALLOC ends without a frame."""
    for key in range(FRAMES):
        talk.lose((await talk.store(key)).frame)
    assert await talk.status(c.Alloc(0, 99, 512, talk.session)) is Status.QUOTA
    for key in range(FRAMES):
        assert await talk.lookup(key) is Status.MISS


LOSSES: dict[str, Story] = {
    story.__name__: story
    for story in (
        a_sealed_block_is_lost,
        a_block_is_lost_as_it_is_written,
        a_block_is_lost_before_its_done_bit,
        a_block_is_mended_before_its_done_bit,
        a_block_is_lost_in_the_way_of_its_done_bit,
        what_is_stored_twice_is_lost_once,
        a_free_frame_is_lost,
        a_victim_is_lost,
        all_victims_are_lost,
    )
}


@pytest.mark.parametrize(
    "story",
    everyday(LOSSES, "a_sealed_block_is_lost", "a_block_is_lost_as_it_is_written", "all_victims_are_lost"),
)
def test_a_frame_whose_row_is_lost_is_quarantined(monkeypatch: pytest.MonkeyPatch, story: str) -> None:
    tell(monkeypatch, LOSSES[story])


UNAVAILABLE = (Status.UNAVAILABLE, Status.UNAVAILABLE)


async def ends(talk: Talk, command: c.Command, ring: RingId = RING) -> tuple[Status, Status]:
    """The status and outcome of a command's last verdict, which completes it."""
    said = await talk.ask(command, ring)
    assert said["complete"]
    return Status(said["status"]), Status(said["outcome"])


@pytest.mark.parametrize("number", everyday(range(10), 0, 4, 8))
def test_any_other_lost_word_stops_the_core(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    async def story(talk: Talk) -> None:
        handle = await talk.store(7)
        others = [content for content in talk.contents if content not in (talk.frames, talk.seals)]
        assert len(others) == 10
        others[number].flip_two(talk.ctx)
        await talk.tick(QUIET)
        assert talk.ctx.get(talk.dut.failed)
        entries = talk.entries
        for command in (
            c.Lookup(0, [7, 8, 9]),
            c.Lookup(0, [7, 8, 9], LookupMode.BITMAP),
            c.Alloc(0, 8, 512, talk.session),
            c.Read(handle, 0, 1),
            c.Write(handle, 0, bytes(512)),
            c.OpenSession(),
        ):
            assert await ends(talk, command) == UNAVAILABLE
        assert await ends(talk, c.SetEpoch(7), REGISTERS) == UNAVAILABLE
        for kind in (Kind.LANDED, Kind.READ_DONE, Kind.LOST):
            talk.said.clear()
            await talk.internal(kind, handle.frame, count=1, ok=1)
            await talk.tick(20)
            told = [(said["status"], said["outcome"]) for said in talk.said]
            assert told == [UNAVAILABLE] * (kind is Kind.READ_DONE)
        assert talk.entries == entries

    tell(monkeypatch, story)


MEETING: dict[str, Callable[[Talk], c.Command]] = {
    "ALLOC": lambda talk: c.Alloc(0, 8, 512, talk.session),
    "LOOKUP of a run": lambda _: c.Lookup(0, [7]),
    "LOOKUP of a bitmap": lambda _: c.Lookup(0, [7], LookupMode.BITMAP),
    "OPEN_SESSION": lambda _: c.OpenSession(),
    "CLOSE_SESSION": lambda talk: c.CloseSession(talk.session),
}


@pytest.mark.parametrize("name", everyday(MEETING, "ALLOC", "LOOKUP of a run"))
def test_the_command_that_meets_a_lost_word_is_not_answered_by_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No idle cycle comes between: it is not the scrubber that finds the word."""

    async def story(talk: Talk) -> None:
        await talk.store(7)
        await talk.tick()  # the entry of the last command is a cycle behind its verdict
        for content in talk.contents:
            if content is not talk.frames:
                content.flip_two(talk.ctx)
        entries = talk.entries
        assert await ends(talk, MEETING[name](talk)) == UNAVAILABLE
        assert talk.ctx.get(talk.dut.failed)
        assert talk.entries == entries

    tell(monkeypatch, story)


def test_reset_ends_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = open_tables(monkeypatch)
    dut = Core(PARAMS)

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        for _ in range(2):
            talk = Talk(ctx, dut, contents)
            await talk.begin()
            await talk.store(7)
            for content in contents:
                content.flip_two(ctx)
            await talk.tick(QUIET)
            assert ctx.get(dut.failed)
            await restart(ctx)
            assert not ctx.get(dut.failed)

    simulate(dut, bench)


MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str, Story]] = {
    "a lost SEAL is forgotten with a READ": (
        core,
        tables.Tables,
        "frames.write | self.ends_lost_seal",
        "self._writes",
        a_block_is_lost_before_its_done_bit,
    ),
    "a lost SEAL ends again": (
        core,
        tables.Tables,
        "frames.write | self.ends_lost_seal",
        "frames.write",
        a_block_is_mended_before_its_done_bit,
    ),
    "nobody ends a lost SEAL": (
        internal,
        internal._answer_lost,
        "with m.If(t.quarantined & t.seal.sealing):",
        "with m.If(0):",
        a_block_is_lost_in_the_way_of_its_done_bit,
    ),
    "a QUARANTINED row is written": (
        core,
        tables.Tables,
        "self._writes & ~self.quarantined",
        "self._writes",
        a_sealed_block_is_lost,
    ),
    "a lost frame is claimed": (
        allocation,
        allocation.states,
        """    with m.State("CLAIM"):
        with m.If(t.quarantined):""",
        """    with m.State("CLAIM"):
        with m.If(0):""",
        a_free_frame_is_lost,
    ),
    "a lost frame is evicted": (
        allocation,
        allocation.states,
        """    with m.State("EVICT"):
        with m.If(t.quarantined):""",
        """    with m.State("EVICT"):
        with m.If(0):""",
        all_victims_are_lost,
    ),
}
"""Name to where it is looked up, what it is, what is right and what is wrong, and the story that finds it."""


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad, story = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        tell(monkeypatch, story)


def test_a_spoilt_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = "self.arriving.eq(Mux(collided, before, frames.read_data))", "self.arriving.eq(frames.read_data)"
    monkeypatch.setattr(core, "Tables", mutate(tables.Tables, good, bad))
    open_tables(monkeypatch)
    with pytest.raises(CheckError):
        play(small(), script=Script(pinned_again_and_again()))
