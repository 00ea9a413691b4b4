"""The system with both engines under load: every byte, every completion once; and what a loss in the midst leaves."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from hw.params import Params
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.params.sections import CamParams, LinkParams, MemoryParams, PoolParams, RequesterParams, TableParams
from hw.rdl import register_map
from hw.rtl.emit import Emission, emit
from hw.rtl.gpu import rings
from hw.rtl.gpu.prefetch import prefetch
from hw.rtl.gpu.prefetch.job import Job
from hw.rtl.gpu.ring import Ring
from hw.rtl.system import System
from hw.tb.harness import Memory
from hw.tb.harness.system import SystemHarness
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.system.bounds import cycles_to_cancel, cycles_to_cut
from hw.tb.system.mix import cancel, load, reach
from hw.tb.system.ring import RingSoftware, Stored
from hw.tb.system.world import World

PARAMS = Params(
    memory=MemoryParams(segment_bytes=512, beat_bytes=16, channels=1, latency_cycles=16, waiting_reads=4),
    link=LinkParams(commands=4, answers=16, heartbeat_cycles=256, silence_cycles=1 << 13),
    requester=RequesterParams(commands=12, prefetches=2, fills=4, fill_segments=2, window_segments=8, slots=2),
    cam=CamParams(banks=1, ways=16, sets=1),
    pools=(PoolParams(frame_bytes=4096, frames=12),),
    tables=TableParams(
        ports=2,
        rings_per_port=2,
        partitions=2,
        models=2,
        sessions=8,
        pins_per_ring=4,
        parked_reads=2,
        park_cycles=1 << 14,
        fence_cycles=1 << 14,
        lookup_keys=4,
        victims=2,
        scan_frames=4,
    ),
)
LINKED = replace(PARAMS, link=replace(PARAMS.link, replay=True, latency=8))
LATE = Memory(latency=20, jitter=30, reorder=True, interleave=True)
LOADED = 2_500
"""Cycles of a load before something is lost, at most."""

MOMENTS, ROUNDS = 200, 20
EXCUSES = frozenset({Status.STALE, Status.NO_SPACE, Status.MISS, Status.WRITE_ONCE, Status.UNAVAILABLE})
"""How commands of others may end while a ring is lost: its block is not pinned any more, its frames drain."""


def new_world(seed: int, params: Params = PARAMS, emission: Emission | None = None) -> World:
    print(f"seed {seed}")
    harness = SystemHarness(params, seed=seed, emission=emission, memory=LATE, host=LATE, hbm=LATE)
    return World(harness, params, seed)


def levels(world: World) -> dict[str, int]:
    """What is in use at the node."""
    names = {"pins": "USED_PINS", "sessions": "USED_SESSIONS", "parked": "USED_PARKED"}
    names["writing"] = "FRAMES_WRITING"
    return {name: world.harness.read_register(register_map()[register].offset)[0] for name, register in names.items()}


def rests(world: World, rings: int) -> None:
    """CheckError unless the node soon holds what so many idle rings hold, and requesters hold nothing."""
    wanted = {"pins": rings, "sessions": rings, "parked": 0, "writing": 0}
    world.until(lambda: levels(world) == wanted, f"node at rest ({wanted})")
    world.until(lambda: not any(ring.read("STATUS", "outstanding") for ring in world.rings), "requesters at rest")


def begin(world: World, *, cancels: bool = False) -> list[list[Stored]]:
    """A load on all rings."""
    return [load(ring, cancels=cancels) for ring in world.rings]


def some(world: World) -> None:
    """Some of the load is done; perhaps producers have filled their blocks."""
    for _ in range(world.random.randrange(LOADED)):
        world.step()
    for ring in world.rings:
        if world.random.random() < 0.5:
            reach(ring)


def recheck(world: World, puts: Iterable[list[Stored]]) -> None:
    """What PUTs have stored is read, by another ring, unless it was evicted meanwhile."""
    world.audit()
    for put, ring in zip(puts, reversed(world.rings), strict=True):
        for block in put:
            ring.read_back(block, (Status.OK, Status.STALE))
        ring.ring()
    world.settle()


def calm(world: World, *, cancels: bool = False) -> None:
    """A load that nothing disturbs."""
    puts = begin(world, cancels=cancels)
    some(world)
    for ring in world.rings:
        reach(ring)
    world.settle()
    recheck(world, puts)
    rests(world, len(world.rings))


def restarted(world: World) -> None:
    """The node restarts amid a load: all ends, nothing is left, and a new life begins."""
    begin(world)
    some(world)
    world.also = EXCUSES
    control = register_map()["CONTROL"]
    world.harness.write_register(control.offset, control.field("restart").mask)
    for ring in world.rings:
        reach(ring)
    world.within(cycles_to_cut, lambda: not any(ring.asked for ring in world.rings), "commands after a restart")
    world.audit()
    world.also = frozenset()
    rests(world, 0)
    world.serve()


def disabled(world: World) -> None:
    """A ring is disabled amid a load: nothing of it is written any more, nothing of it is left at the node."""
    puts = begin(world)
    some(world)
    world.also = EXCUSES
    lost = world.random.choice(world.rings)
    lost.write("CONTROL", 0)
    world.within(cycles_to_cut, lambda: not lost.read("STATUS", "active"), f"{lost.id} inactive")
    forget(lost)
    for ring in world.rings:
        reach(ring)
    world.settle()
    world.blocks.pop(lost.id)
    rests(world, len(world.rings) - 1)
    world.audit()
    lost.enable()
    world.also = frozenset()
    world.join(lost)
    recheck(world, puts)


def forget(ring: RingSoftware) -> None:
    """What has not completed does not any more; nothing of it may be written from now on."""
    ring.poll()
    for asked in ring.asked.values():
        ring.give(asked.places)
    ring.asked.clear()


def cancelled(world: World) -> None:
    """PREFETCHes are cancelled amid a load: both complete, then nothing of them is written any more."""
    puts = begin(world)
    some(world)
    for ring in world.rings:
        for tag in [tag for tag, asked in ring.asked.items() if asked.opcode == EngineOpcode.PREFETCH]:
            cancel(ring, tag)
        ring.ring()
        reach(ring)
    world.within(cycles_to_cancel, lambda: not any(map(prefetching, world.rings)), "cancelled PREFETCHes")
    world.settle()
    recheck(world, puts)
    rests(world, len(world.rings))


def prefetching(ring: RingSoftware) -> bool:
    """Whether a PREFETCH, or a CANCEL of one, is under way."""
    return any(asked.opcode in (EngineOpcode.PREFETCH, EngineOpcode.CANCEL) for asked in ring.asked.values())


LOSSES: dict[str, Callable[[World], None]] = {"restart": restarted, "reset": disabled, "cancel": cancelled}


def lose(world: World, name: str, moments: int) -> None:
    """So many losses, and the load that comes after them."""
    for _ in range(moments):
        LOSSES[name](world)
    calm(world)
    print(f"{moments} moments, {world.compared:,} bytes compared, longest wait {world.longest:,} of {world.bound:,}")
    assert world.compared


@pytest.mark.nightly
@pytest.mark.parametrize("params", [PARAMS, LINKED], ids=["wires", "links"])
def test_both_engines_and_software_share_a_requester(params: Params, seed: int) -> None:
    """Every command completes once, with every byte, while all of it is busy."""
    world = new_world(seed, params)
    for turn in range(ROUNDS):
        calm(world, cancels=turn % 2 == 1)
    print(f"{ROUNDS} rounds, {world.compared:,} bytes compared")
    for opcode in (Opcode.READ, EngineOpcode.PUT, EngineOpcode.PREFETCH, EngineOpcode.FLUSH):
        assert world.ended[opcode, Status.OK]


@pytest.mark.nightly
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_at_any_moment_leaves_nothing(name: str, seed: int) -> None:
    lose(new_world(seed), name, MOMENTS)


MUTANTS = (
    (rings, Ring, "| (self.running & ~settings.enable)", ""),
    (
        prefetch,
        Job,
        """m.If(arrivals.idle & ~steps.o.valid & ~reading):
                m.d.sync += self.busy.eq(0)
                m.next = "ANSWER"
""",
        """m.If(self.cancelled | (arrivals.idle & ~steps.o.valid & ~reading)):
                m.d.sync += self.busy.eq(0)
                m.next = "ANSWER"
                with m.If(self.cutting):
                    m.next = "IDLE"
""",
    ),
)
"""Seeded bugs, one for each loss and none of another's: a ring that is disabled and not told, a CANCEL that does not
wait for the last burst, a PREFETCH that is forgotten when it is cut off. One program has all of them."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_that_leaves_something_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, target, good, bad in MUTANTS:
        monkeypatch.setattr(module, target.__name__, mutate(target, good, bad))
    with pytest.raises(CheckError):
        lose(new_world(0, emission=emit(System(PARAMS), "system")), name, MOMENTS)
