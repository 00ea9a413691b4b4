"""The core of a slice: its bench, and the mutants that the same traffic must find."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import google_crc32c
import pytest
from amaranth.sim import SimulatorContext

from hw.params import commands as c
from hw.params.commands import Binding
from hw.params.protocol import REGISTERS, Handle, LookupMode, ModelState, PinId, Status
from hw.rtl.node import usage
from hw.rtl.node.cam import cam, reader
from hw.rtl.node.core import Core, allocation, blocks, control, core, emission, internal, notices, streaming, tables
from hw.rtl.node.core.tables import HANDS_EVERY
from hw.tb.core.settings import settings_of
from hw.tb.core.world import Script, Story, Turn, World
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from pymodel.spec import IllegalOperation, InvariantViolation
from pymodel.stimulus.traffic import Fault, Happen, Submit
from tests.everyday import everyday
from tests.hw.corebench import OTHER, RING, Telling, kept, play, small

BENCH = "hw.tb.core.bench"


def test_core(run_bench: Callable[..., None]) -> None:
    params = small()
    run_bench(Core(params), "core", BENCH, **settings_of(params), moves=600)


def test_core_in_the_amaranth_simulator() -> None:
    world = play(small(), 0, 150)
    assert len(world.statuses) > 20


def stored(length: int, bound: int) -> Generator[Turn, c.Completion, Handle]:
    """Begins service with one ring, and stores a block under key 7."""
    frames = small().pools[0].frames
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetPartition(0, quota=frames)
    yield REGISTERS, c.SetModel(0, ModelState.LIVE)
    yield REGISTERS, c.Bind(RING, 0)
    session = (yield RING, c.OpenSession()).session
    assert session is not None
    handle = (yield RING, c.Alloc(0, 7, bound, session)).handle
    assert handle is not None
    data = bytes(range(256)) * (length // 256 + 1)
    yield RING, c.Write(handle, 0, data[:length])
    yield RING, c.Seal(handle, length, google_crc32c.value(data[:length]))
    return handle


def pinned_again_and_again() -> Story:
    """One frame is hit by keys behind each other, and is held until the last pin is back."""
    yield from stored(512, 512)
    pins = (yield RING, c.Lookup(0, [7, 7, 7, 7], LookupMode.BITMAP, pin=True)).pins
    yield RING, c.Drop(0, 7)
    for pin in pins:
        if pin is not None:
            yield RING, c.Unpin(pin)


def written_too_long() -> Story:
    """A WRITE ends where its block's bound is, to the byte."""
    yield from stored(513, 514)
    session = (yield RING, c.OpenSession()).session
    assert session is not None
    handle = (yield RING, c.Alloc(0, 8, 600, session)).handle
    assert handle is not None
    yield RING, c.Write(handle, 0, bytes(601))
    yield RING, c.Write(handle, 1, bytes(88))


def full_of_what_is_read() -> Story:
    """The one block that a partition may have is wanted for another while it is read, again and again."""
    handle = yield from stored(512, 512)
    yield REGISTERS, c.SetPartition(0, quota=1)
    session = (yield RING, c.OpenSession()).session
    assert session is not None
    for key in range(8, 16):
        yield RING, c.Read(handle, 0, 1)
        claimed = yield RING, c.Alloc(0, key, 512, session)
        if claimed.status is Status.GRANTED and claimed.handle is not None:
            handle = claimed.handle
            yield RING, c.Write(handle, 0, bytes(512))
            yield RING, c.Seal(handle, 512, google_crc32c.value(bytes(512)))


def nowhere() -> Story:
    """Rings without a partition look up what is stored, and are told what a ring of an empty partition is."""
    yield from stored(512, 512)
    yield REGISTERS, c.SetPartition(1, quota=1)
    yield REGISTERS, c.Bind(OTHER, 1)
    lookups = [c.Lookup(0, [7, 8, 7], mode, pin=True) for mode in LookupMode]
    empty = []
    for lookup in lookups:
        empty.append((yield OTHER, lookup))
    for binding in Binding:
        yield REGISTERS, c.Bind(OTHER, binding)
        for lookup, expected in zip(lookups, empty, strict=True):
            got = yield OTHER, lookup
            if replace(got, tag=expected.tag) != expected:
                raise CheckError(f"{binding}: {got}, expected {expected}")
    yield REGISTERS, c.Bind(OTHER, 0)
    yield OTHER, c.Lookup(0, [7])


def told() -> Story:
    """Blocks of a public partition come and go in every way, and those of a private one; then all that could read."""
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetPartition(0, quota=2, public=True)
    yield REGISTERS, c.SetPartition(1, quota=1, read_mask=0b01)
    for model in (0, 1):
        yield REGISTERS, c.SetModel(model, ModelState.LIVE)
    yield REGISTERS, c.Bind(RING, 0)
    yield REGISTERS, c.Bind(OTHER, 1)
    for key in (7, 8, 9):
        handle = yield from kept(RING, key)
    yield Happen(Fault.READ_DAMAGED)
    yield OTHER, c.Read(handle, 0, 1)
    yield from kept(RING, 10, model=1)
    yield RING, c.Drop(1, 10)
    yield from kept(OTHER, 11)
    yield REGISTERS, c.DropPartition(1)
    yield from kept(OTHER, 12)
    yield REGISTERS, c.Retire(1)
    yield Happen(Fault.RING_LOST, OTHER)
    yield from kept(RING, 13)
    yield REGISTERS, c.DropPartition(0)
    yield REGISTERS, c.Retire(0)


SCRIPTS = {
    pinned_again_and_again: Script,
    written_too_long: Script,
    told: Script,
    nowhere: Script,
    full_of_what_is_read: Telling,
}


@pytest.mark.parametrize("story", SCRIPTS)
def test_stories(story: Callable[[], Story]) -> None:
    play(small(), script=SCRIPTS[story](story()))


@pytest.mark.parametrize(("good", "bad"), [("~misses | op.last", "1"), ("Mux(misses, Status.OK, refusal)", "refusal")])
def test_a_miss_that_tells_is_found(monkeypatch: pytest.MonkeyPatch, good: str, bad: str) -> None:
    monkeypatch.setattr(control, "admit", mutate(control.admit, good, bad))
    with pytest.raises((CheckError, IllegalOperation)):
        play(small(), script=Script(nowhere()))


def test_ports_are_told_of_all_that_they_could_read() -> None:
    world = play(small(), script=Script(told()))
    expected = {"STORED": 2 * 4 + 2 + 1, "EVICTED": 2, "DAMAGED": 2, "DROPPED": 2, "PARTITION": 2, "MODEL": 2 + 1}
    assert world.told_of == expected


def test_what_is_told_of_a_block_whose_key_is_lost_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = "content.found.eq(taken & ~lost(m, tag, word))", "content.found.eq(0)"
    monkeypatch.setattr(cam, "CamReader", mutate(reader.CamReader, good, bad))
    with pytest.raises(CheckError, match="'lost': 1"):
        play(small(), script=Script(told()))


class Restless(Script):
    """A story of RING; then RING is lost, and OTHER sends so many commands, one offered in every cycle."""

    def __init__(self, story: Story, command: c.Command, count: int) -> None:
        super().__init__(story)
        self.sent = 0
        self._command, self._count = command, count

    @property
    def busy(self) -> bool:
        """Whether OTHER is sending."""
        return 0 < self.sent <= self._count

    def next(self) -> Submit | Happen | None:
        """The next command or fault."""
        if not self.over:
            return super().next()
        self.sent += 1
        if self.sent == 1:
            return Happen(Fault.RING_LOST, RING)
        return Submit(OTHER, self.sent, self._command) if self.busy else None


def holding_much() -> Story:
    """The ring has sessions, every pin, a block that only they hold, and two that are being written."""
    yield from stored(512, 512)
    yield REGISTERS, c.Bind(OTHER, 0)
    session = (yield RING, c.OpenSession()).session
    assert session is not None
    yield RING, c.Lookup(0, [7] * small().tables.pins_per_ring, LookupMode.BITMAP, pin=True)
    yield RING, c.Drop(0, 7)
    for key in (8, 9):
        yield RING, c.Alloc(0, key, 512, session)


def forgotten_after(command: c.Command) -> int:
    """Lose a ring while commands come without pause: how many have been offered when nothing of it is left."""
    params = small()
    tables = params.tables
    allowed = HANDS_EVERY * (tables.pins_per_ring + tables.sessions + params.frames)
    traffic = Restless(holding_much(), command, 2 * allowed)
    held, gone = 0, 0

    def watch(_: SimulatorContext, world: World) -> None:
        nonlocal held, gone
        if traffic.busy and not gone:
            spec = world.follower.slice
            left = len(list(spec.possible())) + sum(spec.dead(frame) for frame in range(params.frames))
            held = max(held, left)
            gone = traffic.sent if held and not left else 0

    play(params, script=traffic, disturb=watch)
    assert held >= tables.pins_per_ring + 2 + 2
    assert 0 < gone <= allowed
    return gone


RESTLESS = (c.OpenSession(), c.Unpin(PinId(0, 0)), c.Lookup(0, [7, 8, 9, 10], LookupMode.BITMAP))


@pytest.mark.parametrize("command", RESTLESS, ids=lambda command: command.opcode.name)
def test_a_lost_ring_is_forgotten_while_operations_come_without_pause(command: c.Command) -> None:
    assert forgotten_after(command) > HANDS_EVERY * small().tables.pins_per_ring


def test_hands_that_starve_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal, "due", mutate(internal.due, "return ~t.failed", "return t.failed"))
    with pytest.raises(AssertionError):
        forgotten_after(RESTLESS[0])


MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "read of an unsealed block": (
        blocks,
        blocks.reading,
        "(~t.sealed & ~(mine & (end <= frame.landed)), Status.PENDING)",
        "(0, Status.PENDING)",
    ),
    "generation not compared": (
        core,
        tables.Tables,
        "& (self.op.handle.generation == frame.generation)",
        "",
    ),
    "model filter off": (
        core,
        tables.Tables,
        "self.scopes_alive.eq(self.partition_scopes.alive & self.model_scopes.alive)",
        "self.scopes_alive.eq(self.partition_scopes.alive)",
    ),
    "partition taken from the request": (
        control,
        control.admit,
        "t.look_up(ring.partition)",
        "t.look_up(op.partition)",
    ),
    "partition of a handle not compared": (blocks, blocks.by_handle, "(~own, Status.DENIED),", ""),
    "CRC not checked at seal": (blocks, blocks._seal, "with m.Elif(op.crc != frame.crc):", "with m.Elif(0):"),
    "pin not released": (blocks, blocks.unpin, "t.release_slot(t.pins)", ""),
    "second writer granted": (
        allocation,
        allocation.cases,
        "with m.Elif(t.found.hit & t.alive):",
        "with m.Elif(t.found.hit & t.alive & t.sealed):",
    ),
    "frame freed with a write outstanding": (
        blocks,
        blocks.drained,
        "(row.pins == 0) & (row.reads == 0) & (row.answered == row.accepted)",
        "(row.pins == 0) & (row.reads == 0)",
    ),
    "victim held by a READ": (core, tables.Tables, "(row.pins != 0) | (row.reads != 0)", "row.pins != 0"),
    "lookup forwarding missing": (
        streaming,
        streaming._judge,
        "with m.If(earlier.valid & (earlier.index == index)):",
        "with m.If(0):",
    ),
    "quota off by one": (
        usage,
        usage.Usage,
        "self.full.eq(used[self.query] >= asked.quota)",
        "self.full.eq(used[self.query] > asked.quota)",
    ),
    "write beyond the length": (blocks, blocks._write, "(end > frame.bound)", "0"),
    "told to who may not read": (emission, notices.Notices, "& readers.bit_select(ring.partition, 1)", ""),
    "told to who is lost": (emission, notices.Notices, "& ~ring.lost & readers", "& readers"),
    "told twice": (emission, notices.Notices, "under_way[2] & ~t.failing", "under_way[1:].any() & ~t.failing"),
    "key of another block": (core, tables.Tables, "self.arriving.place", "self.frame.place"),
    "told of a dead victim": (allocation, allocation.states, "when=t.scopes_alive", "when=1"),
    "lost ring goes on": (control, control.admit, "(lost, Status.UNAVAILABLE),", ""),
}
"""Name to where it is looked up, what it is, what is right and what is wrong."""


EVERYDAY = (
    "generation not compared",
    "lookup forwarding missing",
    "quota off by one",
    "told to who is lost",
)
"""The quickest to find, one of each kind; the others are found in nightly runs."""


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_has_its_place(name: str) -> None:
    _, target, good, bad = MUTANTS[name]
    assert mutate(target, good, bad)


@pytest.mark.parametrize("name", everyday(MUTANTS, *EVERYDAY))
def test_traffic_finds_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    mutant = mutate(target, good, bad)
    if target is usage.Usage:
        monkeypatch.setattr("hw.rtl.node.replacement.Usage", mutant)
    else:
        monkeypatch.setattr(where, target.__name__, mutant)
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        for story, script in SCRIPTS.items():
            play(small(), script=script(story()))
        for seed in range(6):
            play(small(), seed, 700)
