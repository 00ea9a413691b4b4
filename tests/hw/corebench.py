"""What tests of a core share: sizes, a world around it in the Amaranth simulator, and how stories begin."""

from collections.abc import Callable, Container, Generator
from dataclasses import replace
from typing import Any

import google_crc32c
from amaranth.sim import SimulatorContext

from hw.params import commands as c
from hw.params.params import Params
from hw.params.protocol import REGISTERS, Handle, ModelState, RingId, Status
from hw.params.rota import RotaParams
from hw.params.sections import CamParams, LinkParams, MemoryParams, PoolParams, TableParams
from hw.params.toeplitz import diagonals
from hw.rtl.emit import describe
from hw.rtl.node.core import Core
from hw.rtl.node.layouts import log_layout, notices_layout, operation_layout, verdict_layout
from hw.tb.core.rotation import Rotation
from hw.tb.core.world import Moves, Script, Turn, World
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError
from pymodel.stimulus.traffic import Happen, Submit
from tests.hw.simulate import Restart, simulate

SETTLED = 1_000
"""Idle cycles after which the hands of the core have found all there is."""


RING, OTHER = RingId(0, 0), RingId(1, 0)


def small(**tables: int) -> Params:
    """A slice small enough that every table is full now and then."""
    sizes = {
        "ports": 2,
        "rings_per_port": 2,
        "partitions": 2,
        "models": 2,
        "sessions": 3,
        "pins_per_ring": 3,
        "parked_reads": 2,
        "park_cycles": 150,
        "fences": 1,
        "fence_cycles": 400,
        "lookup_keys": 4,
        "victims": 3,
        "scan_frames": 4,
        "generation_bits": 6,
        "slot_generation_bits": 6,
        "stamp_bits": 2,
    }
    return Params(
        memory=MemoryParams(segment_bytes=512, beat_bytes=16),
        link=LinkParams(heartbeat_cycles=64, silence_cycles=300),
        cam=CamParams(banks=2, ways=2, sets=4),
        pools=(PoolParams(frame_bytes=4096, frames=7), PoolParams(frame_bytes=8192, frames=5)),
        tables=TableParams(**sizes | tables),
    )


def isolated() -> Params:
    """The same with four partitions that are isolated, the second public, and turns too short for any memory."""
    params = small()
    shares = {"partitions": 4, "ports": 4, "sessions": 8, "parked_reads": 4, "fences": 4}
    return replace(
        params,
        memory=replace(params.memory, channels=2, turn_bursts=1),
        cam=CamParams(banks=2, ways=2, sets=8),
        pools=tuple(PoolParams(frame_bytes=4096, frames=frames) for frames in (4, 3, 5, 4)),
        tables=replace(params.tables, isolation="strict", stamp_bits=8, **shares),
        rota=RotaParams(guard=64),
    )


Disturb = Callable[[SimulatorContext, World], None]
"""What happens to a core in each cycle, beside its traffic."""


def play(
    params: Params,
    seed: int = 0,
    moves: int = 0,
    script: Moves | None = None,
    disturb: Disturb | None = None,
    *,
    held_up: Container[int] = (),
    number: int = 0,
) -> World:
    """The bench's traffic, or a script, in the Amaranth simulator: slower, but without a compiler.

    The ports in `held_up` have no place for READs that were parked. `number` is that of the slice in its node.
    """
    dut = Core(params)
    operations, verdicts, log, notices = (
        Codec(describe(layout))
        for layout in (operation_layout(params), verdict_layout(), log_layout(), notices_layout(params))
    )
    world = World(params, seed, operations, script, number=number)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.number, number)
        ctx.set(dut.diagonals, diagonals(params))
        ctx.set(dut.verdicts.ready, 1)
        ctx.set(dut.log.ready, 1)
        await ctx.tick().until(dut.ready)
        offers: list[dict[str, Any]] = []
        left, idle = moves, 0
        rotation = Rotation(params) if params.strict else None
        while idle < SETTLED * (1 + params.shares if params.strict else 1):
            if not offers and (left or (script is not None and not moves)):
                world.ask()
                left -= bool(left)
            offers = offers or world.offer()
            ctx.set(dut.operations.valid, bool(offers))
            if offers:
                ctx.set(dut.operations.payload.as_value(), operations.pack(offers[0]))
            idle = 0 if offers or left else idle + 1
            if rotation is not None:
                now = rotation.now(offers[0] if offers else None)
                ctx.set(dut.rota, {"share": now.share, "left": now.left})
                ctx.set(dut.operations.valid, now.offered)
            if offers and ctx.get(dut.operations.ready) and ctx.get(dut.operations.valid):
                offers = offers[1:]
            if ctx.get(dut.log.valid):
                world.logged(log.unpack(ctx.get(dut.log.payload.as_value())))
            if ctx.get(dut.verdicts.valid):
                world.said(verdicts.unpack(ctx.get(dut.verdicts.payload.as_value())))
            if ctx.get(dut.messages.valid):
                world.told(notices.unpack(ctx.get(dut.messages.payload.as_value())))
            ctx.set(dut.may_resume, sum((port not in held_up) << port for port in range(params.tables.ports)))
            if disturb is not None:
                disturb(ctx, world)
            await ctx.tick()
        assert not ctx.get(dut.failed)
        world.finish()

    simulate(dut, bench)
    return world


def kept(ring: RingId, key: int, model: int = 0) -> Generator[Turn, c.Completion, Handle]:
    """A ring stores a block."""
    session = (yield ring, c.OpenSession()).session
    assert session is not None
    handle = (yield ring, c.Alloc(model, key, 512, session)).handle
    assert handle is not None
    yield ring, c.Write(handle, 0, bytes(512))
    yield ring, c.Seal(handle, 512, google_crc32c.value(bytes(512)))
    yield ring, c.CloseSession(session)
    return handle


def bound(ring: RingId) -> Generator[Turn, c.Completion, None]:
    """A ring is bound, once nothing of its past is left."""
    for _ in range(100):
        if (yield REGISTERS, c.Bind(ring, 0)).status is Status.OK:
            return
    raise CheckError(f"something of {ring} is left for ever")


def afresh() -> Generator[Turn, c.Completion, None]:
    """Service for RING and OTHER, which are bound anew: nothing of theirs is left, but for a block under key 7."""
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetPartition(0, quota=small().pools[0].frames)
    yield REGISTERS, c.SetModel(0, ModelState.LIVE)
    for ring in (RING, OTHER):
        yield from bound(ring)
    yield RING, c.Drop(0, 7)
    yield from kept(RING, 7)


class Telling(Script):
    """A story that waits for everything but its READs and migrations."""

    skips: tuple[type[c.Command], ...] = (c.Read, c.Migrate)

    def next(self) -> Submit | Happen | None:
        """The next command."""
        move = super().next()
        if isinstance(move, Submit) and isinstance(move.command, self.skips):
            self.heard([c.Completion(move.ring, move.tag)])
        return move
