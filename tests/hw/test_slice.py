"""The slice: in cocotb, compiled, at length; and the mutants that the same traffic must find."""

import sys
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import google_crc32c
import pytest

from hw.params import LARGE
from hw.params import commands as c
from hw.params.params import Params
from hw.params.protocol import REGISTERS, LookupMode, ModelState, RingId
from hw.params.sections import CamParams, LinkParams, MemoryParams, PoolParams, TableParams
from hw.rtl.emit import describe, emit
from hw.rtl.node import dispatch
from hw.rtl.node import slice as top
from hw.rtl.node.data import write_lane, write_path
from hw.rtl.node.layouts import Kind, log_layout
from hw.rtl.node.port import loss, port, reader, watch
from hw.rtl.node.slice import Slice
from hw.tb.core.settings import settings_of
from hw.tb.core.world import Script, Story
from hw.tb.harness.harness import Harness, Links, Memory
from hw.tb.mutate import mutate
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import CompiledWorld, Loss
from hw.tb.slice.world import World
from pymodel.spec import IllegalOperation, InvariantViolation
from pymodel.stimulus.traffic import Traffic
from tests.hw.corebench import Telling, kept, small

BENCH = "hw.tb.slice.bench"
LATE = Memory(latency=30, jitter=20, reorder=True, interleave=True, answer_willing=0.8, data_willing=0.8)
SLOW = Links(idle=0.2, backpressure=0.3, latency=3)


def wide() -> Params:
    """Four ports and channels; a command and four keys a flit; little runs at once, generations and stamps run out."""
    return Params(
        memory=MemoryParams(segment_bytes=1024, beat_bytes=64, channels=4, latency_cycles=40, waiting_reads=3),
        link=LinkParams(response_flits=4, data_flits=8),
        cam=CamParams(banks=1, ways=24, sets=1),
        pools=(PoolParams(frame_bytes=4096, frames=12), PoolParams(frame_bytes=16384, frames=8)),
        tables=TableParams(
            ports=4,
            rings_per_port=2,
            partitions=3,
            models=3,
            sessions=6,
            pins_per_ring=4,
            parked_reads=4,
            park_cycles=300,
            fences=2,
            fence_cycles=800,
            lookup_keys=12,
            victims=4,
            scan_frames=4,
            generation_bits=5,
            slot_generation_bits=8,
            stamp_bits=1,
        ),
    )


SHAPES = {"small": small, "wide": wide}


def test_bench(run_bench: Callable[..., None]) -> None:
    params = small()
    run_bench(Slice(params), "slice", BENCH, **settings_of(params), moves=200)


LIFE = 5_000
"""Commands of a world: in a small slice, generations and slots run out after some thousands."""


def follow(params: Params, seed: int, commands: int) -> list[World]:
    """Worlds that share so many commands, in turn in a hurry and with everything late."""
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_slice.py")
    paces: tuple[dict[str, Any], ...] = ({}, {"memory": LATE, "links": SLOW})
    worlds = []
    for i in range(commands // LIFE):
        world = CompiledWorld(params, seed + i, **paces[i % len(paces)])
        world.play(LIFE)
        world.harness.close()
        worlds.append(world.world)
    assert sum(each.placed for each in worlds), "no block was looked for in memory"
    assert sum(each.compared for each in worlds), "no bytes were compared"
    return worlds


@pytest.mark.nightly
def test_bytes_in_a_wrong_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Harness, "memory_bytes", lambda self, channel, address, length: bytes(length))
    with pytest.raises(CheckError, match="memory does not hold what was stored"):
        follow(small(), 0, LIFE)


def test_compiled_slice_equals_the_specification(seed: int) -> None:
    follow(small(), seed, 10_000)


class Hasty(Telling):
    """A story that waits for no session."""

    skips = (c.OpenSession,)


def test_commands_that_overtake_each_other_at_their_port_are_found() -> None:
    def impatient() -> Story:
        for _ in range(2):
            yield RingId(0, 0), c.OpenSession()

    world = World(small(), 0, script=Hasty(impatient()))
    entry = Codec(describe(log_layout())).unpack(0) | {"kind": Kind.OPEN_SESSION.value}
    assert world.ask()
    assert world.ask()
    world.logged(entry | {"tag": 1})
    with pytest.raises(CheckError, match="behind what its port was sent later"):
        world.logged(entry | {"tag": 0})


def deaf(heard: list[CompiledWorld]) -> Story:
    """A requester reads a block, takes nothing for a while in which its partition dies often, and then listens."""
    ring = RingId(0, 0)
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetPartition(0, quota=2)
    yield REGISTERS, c.SetModel(0, ModelState.LIVE)
    yield REGISTERS, c.Bind(ring, 0)
    handle = yield from kept(ring, 7)
    yield ring, c.Read(handle, 0, 1)
    heard[0].harness.links = Links(backpressure=1.0)
    for _ in range(2 * small().link.messages):
        yield REGISTERS, c.DropPartition(0)
    heard[0].harness.links = Links()
    for _ in range(4):
        yield REGISTERS, c.SetModel(0, ModelState.LIVE)
    yield REGISTERS, c.Retire(0)


def listen() -> World:
    """The world of a requester that is deaf for a while."""
    worlds: list[CompiledWorld] = []
    worlds.append(CompiledWorld(small(), 0, script=Script(deaf(worlds))))
    worlds[0].play(10 + 2 * small().link.messages + 5)
    return worlds[0].world


def test_a_requester_that_takes_no_messages_loses_some_and_is_told() -> None:
    told, others = listen().told
    assert told.lost > small().link.messages // 2
    assert [lost for lost, _ in told.given] == [False] * (len(told.given) - 1) + [True]
    assert not others.owed


def stored_and_read(length: int) -> Story:
    """Begins service with rings of two ports; one stores a block, and both read it, by key, from its middle too."""
    writer, reader = RingId(0, 0), RingId(LARGE.tables.ports - 1, LARGE.tables.rings_per_port - 1)
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetPartition(63, quota=LARGE.frames)
    yield REGISTERS, c.SetModel(255, ModelState.LIVE)
    yield REGISTERS, c.Bind(writer, 63)
    yield REGISTERS, c.Bind(reader, 63)
    session = (yield writer, c.OpenSession()).session
    assert session is not None
    handle = (yield writer, c.Alloc(255, 7, length, session)).handle
    assert handle is not None
    data = Random(0).randbytes(length)
    yield writer, c.Write(handle, 0, data)
    yield writer, c.Seal(handle, length, google_crc32c.value(data))
    found = yield reader, c.Lookup(255, [7, 8], LookupMode.BITMAP, pin=True)
    assert [status.name for status in found.statuses] == ["HIT", "MISS"]
    segments = LARGE.segments(length)
    yield reader, c.Read(handle, 0, segments)
    yield writer, c.Read(handle, segments // 2, segments - segments // 2)
    yield reader, c.Unpin(found.pins[0])
    yield writer, c.Drop(255, 7)


@pytest.mark.nightly
def test_large_runs() -> None:
    length = 40 * LARGE.memory.segment_bytes + 777
    world = CompiledWorld(LARGE, 0, script=Script(stored_and_read(length)))
    world.play(14)
    assert world.world.compared == length + 20 * LARGE.memory.segment_bytes + 777


RARE = (
    "restart",
    "malformed",
    "drop_partition",
    "retire",
    "set_partition",
    "set_model",
    "set_epoch",
    "lose_ring",
    "bind",
)
"""Moves that keep rings from doing much between two losses of their port; `lose_ports` binds them anew itself."""


def lose_ports(seed: int, moments: int, **world: Any) -> World:
    """A world whose ports are lost at so many moments."""
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_slice.py -k lost")
    params = small()
    compiled = CompiledWorld(params, seed, script=Traffic(params, seed, without=RARE), **world)
    losses = compiled.lose_ports(moments)
    compiled.harness.close()
    done = compiled.world
    print(f"at most {Loss(*map(max, zip(*losses, strict=True)))}, {done.cut} WRITEs and {done.torn} READs cut off")
    return done


def test_of_a_port_that_is_lost_nothing_is_left(seed: int) -> None:
    worlds = [lose_ports(seed, 30), lose_ports(seed, 30, memory=LATE, links=SLOW)]
    assert sum(world.cut + world.torn for world in worlds), "no port was lost in the middle of anything"


@pytest.mark.nightly
def test_at_a_thousand_moments_nothing_is_left(seed: int) -> None:
    worlds = [lose_ports(seed, 500), lose_ports(seed, 500, memory=LATE, links=SLOW)]
    assert sum(world.cut for world in worlds), "no port was lost in the middle of a WRITE"
    assert sum(world.torn for world in worlds), "no port was lost in the middle of a READ"


LOSS_MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "silence is not noticed": (port, watch.Watch, "begun & (count == self._cycles)", "0"),
    "one ring is lost": (port, loss.Loss, "ring == self._rings - 1", "ring == 0"),
    "a WRITE that was begun is forgotten": (port, reader.CommandReader, "with m.If(item == 0):", "with m.If(1):"),
    "a port at rest has parked READs": (
        top,
        port.Port,
        "(owed == 0) & (parked == 0)",
        "(owed == 0)",
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", LOSS_MUTANTS)
def test_losses_find_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = LOSS_MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    emission = emit(Slice(small()), "slice")
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        for seed in range(4):
            lose_ports(seed, 200, emission=emission)


MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "ring of another command": (port, reader.CommandReader, "ring.eq(flit.ring),", "ring.eq(ring),"),
    "refused data is kept": (
        port,
        reader.CommandReader,
        "move.keep.eq(self.verdict.status == Status.OK)",
        "move.keep.eq(1)",
    ),
    "READs that wait on are counted twice": (
        port,
        reader.CommandReader,
        "| self.resumed) - ends - self.stays)",
        "| self.resumed) - ends)",
    ),
    "refused data is not dropped": (port, reader.CommandReader, 'm.next = "DROP"', "end()"),
    "keys of two LOOKUPs mixed": (
        top,
        dispatch.Dispatch,
        "together.eq((op.kind == Kind.LOOKUP) & ~op.last & ~expired)",
        "together.eq(0)",
    ),
    "told to every port": (
        sys.modules[__name__],
        Slice,
        "core.messages.valid & core.messages.payload.ports[i]",
        "core.messages.valid",
    ),
    "segments of two ports mixed": (
        write_path,
        write_lane.WriteLane,
        "with m.If(shown == i):",
        "with m.If(turns.o.payload == i):",
    ),
}
"""Name to where it is looked up, what it is, what is right and what is wrong."""


@pytest.mark.parametrize("name", [*LOSS_MUTANTS, *MUTANTS])
def test_mutant_has_its_place(name: str) -> None:
    _, target, good, bad = {**LOSS_MUTANTS, **MUTANTS}[name]
    assert mutate(target, good, bad)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_traffic_finds_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    params = replace(small(), memory=replace(small().memory, waiting_reads=3))
    emission = emit(Slice(params), "slice")
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        for seed in range(4):
            CompiledWorld(params, seed, memory=LATE, links=SLOW, emission=emission).play(4_000)
