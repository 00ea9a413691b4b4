"""A core whose partitions are isolated: they are told nothing of each other, and leaks are found."""

from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import google_crc32c
import pytest

from hw.params import commands as c
from hw.params.params import Params
from hw.params.protocol import REGISTERS, LookupMode, ModelState, RingId, Status
from hw.params.toeplitz import diagonals, pack_tag, set_index
from hw.rtl.node import fences, parking
from hw.rtl.node.cam import cam
from hw.rtl.node.core import Core, control, core, tables
from hw.tb.core.settings import settings_of
from hw.tb.core.world import NOT_OURS, Story
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from pymodel.spec import IllegalOperation, InvariantViolation
from pymodel.spec.check.independence import independent
from pymodel.stimulus.tenants import Tenants
from tests.everyday import everyday
from tests.hw.corebench import OTHER, RING, Telling, isolated, kept, play

BENCH = "hw.tb.core.bench"


@pytest.mark.nightly
def test_core(run_bench: Callable[..., None]) -> None:
    params = isolated()
    run_bench(Core(params), "core", BENCH, **settings_of(params), moves=600)


def apart(params: Params, seed: int, moves: int) -> int:
    """Play isolated partitions; the core's log must tell each the same without the others. How much they did."""
    world = play(params, seed, moves, Tenants(params, seed, without=NOT_OURS))
    return sum(independent(params, world.order, observer) for observer in range(params.tables.partitions))


@pytest.mark.parametrize("moves", [60, pytest.param(600, marks=pytest.mark.nightly)])
def test_isolated_partitions_are_told_nothing_of_each_other(moves: int) -> None:
    assert apart(isolated(), 0, moves) > moves // 2


def kept_apart() -> Story:
    """Isolated partitions ask for what others have, and use up what they have themselves; a public one is full."""
    beside = RingId(0, 1)
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetPartition(0, quota=4, read_mask=0b10)
    yield REGISTERS, c.SetPartition(1, pool=1, quota=3, public=True)
    yield REGISTERS, c.SetPartition(2, pool=3, quota=1)
    yield REGISTERS, c.SetModel(0, ModelState.LIVE)
    for ring, partition in ((RING, 0), (beside, 0), (OTHER, 1), (RingId(3, 0), 1)):
        yield REGISTERS, c.Bind(ring, partition)
    for key in (7, 8):
        yield from kept(OTHER, key)
    sessions = {}
    for ring in (RING, OTHER):
        sessions[ring] = []
        for _ in range(3):
            sessions[ring].append((yield ring, c.OpenSession()).session)
    handles = []
    for ring in (RING, OTHER):
        session = sessions[ring][0]
        assert session is not None and sessions[ring][2] is None
        handle = (yield ring, c.Alloc(0, 9, 512, session)).handle
        assert handle is not None
        handles.append(handle)
        yield ring, c.Read(handle, 0, 1, park=True)
        yield ring, c.Write(handle, 0, bytes(512))
        yield ring, c.Seal(handle, 512, google_crc32c.value(bytes(512)))
    mine, theirs = handles
    session, second = sessions[RING][:2]
    assert session is not None and second is not None
    for name in (session, session._replace(generation=5)):
        for command in (c.Alloc(0, 1, 1, name), c.CloseSession(name), c.Migrate(name), c.AnswerFence(name, 0)):
            yield OTHER, command
    for command in (c.Write(mine, 0, bytes(1)), c.Seal(mine, 1, 0), c.Abort(mine), c.Read(mine, 0, 1)):
        yield OTHER, command
    yield RING, c.Read(theirs, 0, 1)
    yield RING, c.Abort(theirs._replace(generation=5))
    assert sessions[OTHER][0] is not None
    yield OTHER, c.Alloc(0, 10, 512, sessions[OTHER][0])
    yield OTHER, c.Drop(0, 7)
    yield REGISTERS, c.SetPartition(1, pool=1, quota=3)
    yield beside, c.Migrate(session)
    yield beside, c.Migrate(second)
    yield RING, c.Lookup(0, [7, 8, 9], LookupMode.BITMAP)


def alike(partition: int, wanted: int) -> Iterator[int]:
    """Keys that a hash takes to the first set of every bank, in this partition's sets or, by their lowest bits, not."""
    params = isolated()
    sets = params.cam_sets // params.shares
    for key in islice(count(step=params.shares), 1000):
        tag = pack_tag(params, partition, 0, key)
        if wanted and not any(set_index(diagonal, tag, sets) for diagonal in diagonals(params)):
            wanted -= 1
            yield key


def crowded() -> Story:
    """Two partitions have as many blocks as there are places for keys that hash alike: each has such places."""
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetModel(0, ModelState.LIVE)
    places = isolated().cam.banks * isolated().cam.ways
    for ring, partition in ((RING, 0), (RingId(2, 0), 2)):
        yield REGISTERS, c.SetPartition(partition, pool=partition, quota=places)
        yield REGISTERS, c.Bind(ring, partition)
        for key in alike(partition, places):
            yield from kept(ring, key)


def test_isolated_partitions_ask_for_what_others_have() -> None:
    world = play(isolated(), script=Telling(kept_apart()))
    expected = {("ALLOC", Status.QUOTA), ("DROP", Status.DENIED), ("SET_PARTITION", Status.PENDING)}
    expected |= {
        ("BIND", Status.RANGE),
        ("MIGRATE", Status.DENIED),
        ("MIGRATE", Status.NO_SPACE),
        ("READ", Status.DENIED),
    }
    assert expected <= world.statuses.keys()


def test_isolated_partitions_crowd_each_other_out_of_no_set() -> None:
    world = play(isolated(), script=Telling(crowded()))
    assert world.told_of["STORED"] == 2 * isolated().cam.banks * isolated().cam.ways


LEAKS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "sessions of others asked for": (control, control.foreign, "(op.slot.slot[: len(t.share)] != mine)", "0"),
    "handles of others asked for": (control, control.foreign, "(owner != mine) &", "0 &"),
    "dropped in public": (control, control.foreign, "(op.kind == Kind.DROP) &", "0 &"),
    "evicted in public": (core, tables.Tables, "if self.params.strict:", "if False:"),
    "hidden from its readers": (
        control,
        control._set_partition,
        "(moves | (hides if t.params.strict else Const(0)))",
        "moves",
    ),
    "a port of others": (control, control._bind, "strange if t.params.strict else Const(0)", "Const(0)"),
    "a pool of others": (
        control,
        control._set_partition,
        "(limits.pool != op.partition) if t.params.strict else Const(0)",
        "Const(0)",
    ),
    "sets of others": (cam, cam._home_set, "tag[len(tag) - share_bits :]", "tag[:share_bits]"),
    "sessions of one share": (core, tables.Tables, "self.sessions.offer_table.eq(self.share)", ""),
    "parked in one share": (tables, parking.Parking, "slots.offer_table.eq(self.share),", ""),
    "fences are anybody's": (tables, fences.Fences, " & (self.share == i % self._params.shares)", ""),
}
"""Name to where it is looked up, what it is, what is right and what is wrong; the stories find them all."""


@pytest.mark.parametrize("name", everyday(LEAKS, "evicted in public"))
def test_isolated_stories_find_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = LEAKS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        for story in (kept_apart, crowded):
            play(isolated(), script=Telling(story()))
