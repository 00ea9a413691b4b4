"""What goes wrong in a slice is told to who asked, ends its block, and is in the error log: see docs/slice.md."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import google_crc32c
import pytest

from hw.params import commands as c
from hw.params.protocol import REGISTERS, FrameState, Handle, ModelState, RingId, SessionId, Status
from hw.params.registers import ErrorKind
from hw.params.striping import Striping
from hw.rtl.csr.control import LOGGED_ERRORS
from hw.rtl.emit import Emission, emit
from hw.rtl.node import reports
from hw.rtl.node import slice as top
from hw.rtl.node.data import read_bank, read_lane
from hw.rtl.node.slice import Slice
from hw.tb.core.world import Script, Turn
from hw.tb.harness.simulation import Simulation
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import CompiledWorld
from hw.tb.slice.orders import REGISTER_MAP
from hw.tb.slice.packets import Packets
from pymodel.spec import IllegalOperation, InvariantViolation
from pymodel.stimulus.traffic import Fault, Happen
from tests.hw.corebench import small

PARAMS = small()
STRIPES = Striping(PARAMS)
RING, OTHER = RingId(0, 1), RingId(1, 0)
SEGMENTS, BEATS = STRIPES.sizes[0], PARAMS.segment_beats
DATA = bytes(range(256)) * (PARAMS.pools[0].frame_bytes // 256)
CRC = google_crc32c.value(DATA)
COMMANDS = 10_000
"""More than any story has."""

SOME_SEGMENTS = (0, SEGMENTS // 2, SEGMENTS - 1)

Act = Generator[Turn, c.Completion, None]


class Entry(NamedTuple):
    """An entry of the error log; what its kind does not have is 0."""

    kind: ErrorKind
    port: int = 0
    ring: int = 0
    frame: int = 0
    code: int = 0


def error_log(harness: Simulation) -> list[Entry]:
    """Read the error log, and empty it."""
    entry, frame, pop = (REGISTER_MAP[name] for name in ("ERROR_ENTRY", "ERROR_FRAME", "ERROR_POP"))
    found = []
    while (word := harness.read_register(entry.offset)[0]) & entry.field("valid").mask:
        named = {name: (word & (field := entry.field(name)).mask) >> field.low for name in ("port", "ring", "code")}
        kind = ErrorKind((word & entry.field("kind").mask) >> entry.field("kind").low)
        found.append(Entry(kind, frame=harness.read_register(frame.offset)[0], **named))
        harness.write_register(pop.offset, 1)
    return found


class Tale:
    """Tells a story to a compiled slice, judged by the specification, and what the error log has in the end."""

    def __init__(self, story: "Story", emission: Emission | None) -> None:
        self.expected: list[Entry] = []
        self.compiled = CompiledWorld(PARAMS, 0, script=Script(self._begin(story)), emission=emission)
        self.compiled.play(COMMANDS)
        self.logged = error_log(self.compiled.harness)

    def _begin(self, story: "Story") -> Act:
        """Service for two rings of one partition."""
        yield REGISTERS, c.SetEpoch(99)
        yield REGISTERS, c.SetPartition(0, quota=PARAMS.pools[0].frames)
        yield REGISTERS, c.SetModel(0, ModelState.LIVE)
        for ring in (RING, OTHER):
            yield REGISTERS, c.Bind(ring, 0)
        session = (yield RING, c.OpenSession()).session
        assert session is not None
        yield from story(self, session)

    def channel(self, handle: Handle, segment: int) -> int:
        """The memory channel that has a segment; no two of a block share one."""
        channels = [STRIPES.locate(handle.frame, i)[0] for i in range(SEGMENTS)]
        assert len(set(channels)) == SEGMENTS
        return channels[segment]

    def state(self, handle: Handle) -> FrameState:
        """What has become of a block's frame, which the registers that count frames are compared with in the end."""
        return self.compiled.world.follower.slice.core.frames[handle.frame].state


Story = Callable[[Tale, SessionId], Act]


def tell(story: Story, *, emission: Emission | None = None) -> Tale:
    """Tell a story, whose entries have to be in the error log, and nothing else."""
    tale = Tale(story, emission)
    assert tale.logged == tale.expected
    return tale


def begun(key: int, session: SessionId) -> Generator[Turn, c.Completion, Handle]:
    """A block of a whole frame."""
    handle = (yield RING, c.Alloc(0, key, len(DATA), session)).handle
    assert handle is not None
    return handle


def stored(key: int, session: SessionId) -> Generator[Turn, c.Completion, Handle]:
    """The same, written and sealed."""
    handle = yield from begun(key, session)
    yield RING, c.Write(handle, 0, DATA)
    assert (yield RING, c.Seal(handle, len(DATA), CRC)).status is Status.OK
    return handle


def gone(key: int, handle: Handle) -> Act:
    """Nobody finds the block, reads it or ends it."""
    for ring in (RING, OTHER):
        assert (yield ring, c.Lookup(0, [key])).statuses == [Status.MISS]
        assert (yield ring, c.Read(handle, 0, 1)).status is Status.STALE
    assert (yield RING, c.Seal(handle, len(DATA), CRC)).status is Status.STALE


def refused_writes(segments: Iterable[int]) -> Story:
    """Memory answers the burst of a segment with SLVERR, in one block after the other."""

    def story(tale: Tale, session: SessionId) -> Act:
        for key, segment in enumerate(segments):
            handle = yield from begun(key, session)
            tale.compiled.harness.fail_writes(tale.channel(handle, segment), 1)
            assert (yield RING, c.Write(handle, 0, DATA)).status is Status.OK
            assert (yield RING, c.Seal(handle, len(DATA), CRC)).status is Status.MEM_ERROR
            assert tale.state(handle) is FrameState.DRAINING
            tale.expected.append(Entry(ErrorKind.MEM_ERROR, frame=handle.frame))
            yield from gone(key, handle)
            assert tale.state(handle) is FrameState.FREE

    return story


def refused_reads(beats: Iterable[tuple[int, int]]) -> Story:
    """Memory answers one beat, of (segment, beat), with SLVERR, though its bytes are right; the block is pinned. Others
    are none the worse for it."""

    def story(tale: Tale, session: SessionId) -> Act:
        other = yield from stored(1 << 100, session)
        for key, (segment, beat) in enumerate(beats):
            handle = yield from stored(key, session)
            pin = (yield OTHER, c.Lookup(0, [key], pin=True)).pins[0]
            assert pin is not None
            tale.compiled.harness.fail_reads(tale.channel(handle, segment), 1, beat=beat)
            assert (yield OTHER, c.Read(handle, 0, SEGMENTS)).status is Status.POISON
            tale.expected.append(Entry(ErrorKind.POISON, *OTHER, handle.frame))
            yield from gone(key, handle)
            assert tale.state(handle) is FrameState.DRAINING
            yield OTHER, c.Unpin(pin)
            assert (yield OTHER, c.Read(other, 0, SEGMENTS)).status is Status.OK
            assert tale.state(handle) is FrameState.FREE

    return story


def damaged(tale: Tale, session: SessionId) -> Act:
    """A bit flips in memory; the pin that is left holds the frame."""
    handle = yield from stored(0, session)
    yield RING, c.Lookup(0, [0], pin=True)
    tale.compiled.harness.spoil(tale.channel(handle, 3), 1)
    assert (yield OTHER, c.Read(handle, 0, SEGMENTS)).status is Status.POISON
    tale.expected.append(Entry(ErrorKind.POISON, *OTHER, handle.frame))
    yield from gone(0, handle)
    assert tale.state(handle) is FrameState.DRAINING


def changed_under_way(tale: Tale, session: SessionId) -> Act:
    """The CRC to seal is not that of the bytes; the frame is not 0."""
    yield from stored(0, session)
    handle = yield from begun(1, session)
    assert handle.frame
    yield RING, c.Write(handle, 0, DATA)
    assert (yield RING, c.Seal(handle, len(DATA), CRC ^ 1)).status is Status.CRC
    tale.expected.append(Entry(ErrorKind.CRC, *RING, handle.frame))
    yield from gone(1, handle)
    assert tale.state(handle) is FrameState.FREE


class Cut(Packets):
    """Says of each WRITE that all of its last segment comes."""

    def requests(self, ring: RingId, tag: int, command: c.Command) -> list[int]:
        """The REQUEST flits of a command."""
        if isinstance(command, c.Write):
            segments = self._params.segments(len(command.data))
            command = replace(command, data=DATA[: segments * self._params.memory.segment_bytes])
        return super().requests(ring, tag, command)


def cut_short(tale: Tale, session: SessionId) -> Act:
    """The data of a WRITE ends early: what came is accepted, and what was meant cannot be sealed. No fault of a slice:
    nothing is logged, but for the CRC of who then says that this was all."""
    tale.compiled.world.packets = Cut(PARAMS)
    size = PARAMS.memory.segment_bytes
    for missing in (1, 16, size - 1, size + 1):
        handle = yield from begun(0, session)
        assert (yield RING, c.Write(handle, 0, DATA[:-missing])).status is Status.OK
        assert (yield RING, c.Seal(handle, len(DATA), CRC)).status is Status.INCOMPLETE
        assert tale.state(handle) is FrameState.WRITING
        assert (yield OTHER, c.Lookup(0, [0])).statuses == [Status.PENDING]
        assert (yield RING, c.Abort(handle)).status is Status.OK
        yield from gone(0, handle)
        assert tale.state(handle) is FrameState.FREE
    handle = yield from begun(0, session)
    yield RING, c.Write(handle, 0, DATA[:-1])
    assert (yield RING, c.Seal(handle, len(DATA) - 1, CRC)).status is Status.CRC
    tale.expected.append(Entry(ErrorKind.CRC, *RING, handle.frame))
    yield from gone(0, handle)


def lost(tale: Tale, session: SessionId) -> Act:
    """A ring is lost, and a block of its partition is none the worse for it."""
    yield from stored(0, session)
    yield Happen(Fault.RING_LOST, OTHER)
    tale.expected.append(Entry(ErrorKind.LOST, *OTHER))
    for _ in range(3):
        assert (yield RING, c.Lookup(0, [0])).statuses == [Status.HIT]


STORIES: tuple[Story, ...] = (damaged, changed_under_way, cut_short, lost)

EVERY_BEAT = [(beat % SEGMENTS, beat) for beat in range(BEATS)]
"""Each beat of a burst once, and each segment of a block."""

SOME_BEATS = [(segment, beat) for segment in SOME_SEGMENTS for beat in (0, BEATS // 2, BEATS - 1)]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_what_goes_wrong_is_told_and_logged(story: Story) -> None:
    assert tell(story).expected


def test_a_write_that_memory_refuses_is_told_and_logged() -> None:
    tell(refused_writes(SOME_SEGMENTS))


@pytest.mark.parametrize("first", range(0, BEATS, LOGGED_ERRORS))
def test_a_read_that_memory_refuses_in_any_beat_is_told_and_logged(first: int) -> None:
    assert len(tell(refused_reads(EVERY_BEAT[first : first + LOGGED_ERRORS])).expected) == LOGGED_ERRORS


def test_a_port_that_falls_silent_is_logged() -> None:
    def story(tale: Tale, session: SessionId) -> Act:
        yield from stored(0, session)

    tale = tell(story)
    harness = tale.compiled.harness
    harness.fall_silent(OTHER.port)
    harness.run(2 * PARAMS.link.silence_cycles)
    assert harness.down(OTHER.port)
    assert sorted(error_log(harness)) == [Entry(ErrorKind.LOST, *OTHER), Entry(ErrorKind.LINK, port=OTHER.port)]


MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "a failed write is not reported": (
        top,
        reports.Reports,
        "entry.kind.matches(Kind.LANDED, Kind.READ_DONE)",
        "entry.kind.matches(Kind.READ_DONE)",
    ),
    "a failed read is not reported": (
        top,
        reports.Reports,
        "entry.kind.matches(Kind.LANDED, Kind.READ_DONE)",
        "entry.kind.matches(Kind.LANDED)",
    ),
    "a wrong CRC has no frame": (top, reports.Reports, "second.frame.eq(verdict.frame),", ""),
    "only the last beat counts": (
        read_lane,
        read_bank.ReadBank,
        "any_error = error[slot] | beat.error",
        "any_error = beat.error",
    ),
    "the last beat does not count": (
        read_lane,
        read_bank.ReadBank,
        "note.data.error.eq(any_error)",
        "note.data.error.eq(error[slot])",
    ),
    "an error sticks to its buffer": (read_lane, read_bank.ReadBank, "error[oldest].eq(0),", ""),
}
"""Name to where it is looked up, what it is, what is right and what is wrong."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    emission = emit(Slice(PARAMS), "slice")
    with pytest.raises((AssertionError, CheckError, IllegalOperation, InvariantViolation)):
        for story in (*STORIES, refused_writes(SOME_SEGMENTS), refused_reads(SOME_BEATS)):
            tell(story, emission=emission)
