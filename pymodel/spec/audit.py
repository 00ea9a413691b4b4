"""The full audit: everything that is counted is counted again, every block compared with the ledger."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hw.params.protocol import FrameState
from pymodel.spec.core import Core
from pymodel.spec.state import NOBODY
from pymodel.spec.violation import invariant

if TYPE_CHECKING:
    from pymodel.spec.monitor import Monitor


def audit(core: Core, ledger: Monitor) -> None:
    """Raise InvariantViolation unless all of a slice's state agrees with itself and with the ledger."""
    _frames(core)
    _scopes(core)
    _holds(core)
    _blocks(core, ledger)
    invariant(10, core.outstanding.keys() == ledger.outstanding.keys(), "outstanding commands differ")


def _frames(core: Core) -> None:
    """Invariant 8: frames are conserved, in pools and in partitions."""
    for pool in core.pools:
        free = [frame for frame in pool.frames if frame.state is FrameState.FREE]
        invariant(8, len(pool.free) == len(set(map(id, pool.free))), "a frame is FREE twice")
        invariant(8, set(map(id, pool.free)) == set(map(id, free)), "the free list and the FREE frames differ")
    used = Counter(frame.partition.id for frame in core.frames if frame.partition is not NOBODY)
    for partition in core.partitions:
        invariant(
            8, partition.used == used[partition.id], "partition {} counts {} frames", partition.id, partition.used
        )
    indexed = 0
    for frame in core.frames:
        owned = frame.state not in (FrameState.FREE, FrameState.QUARANTINED)
        invariant(8, owned == (frame.partition is not NOBODY), "frame {} is {}", frame.index, frame.state.name)
        if frame.state in (FrameState.WRITING, FrameState.SEALED):
            indexed += 1
            invariant(6, core.cam.find(frame.tag) == frame.index, "frame {} is not under its tag", frame.index)
    invariant(6, len(core.cam) == indexed, "the index holds tags without a block")


def _scopes(core: Core) -> None:
    """Every scope counts its entries, live and stale."""
    linked = [f for f in core.frames if f.state in (FrameState.WRITING, FrameState.SEALED)]
    live = Counter((f.partition.id, f.partition.scope.alive(f.partition_stamp)) for f in linked)
    for partition in core.partitions:
        counted = (partition.scope.live, partition.scope.stale)
        invariant(4, counted == (live[partition.id, True], live[partition.id, False]), "partition {}", partition.id)
    live = Counter((f.tag.model, core.models[f.tag.model].scope.alive(f.model_stamp)) for f in linked)
    for model in core.models:
        counted = (model.scope.live, model.scope.stale)
        invariant(4, counted == (live[model.id, True], live[model.id, False]), "model {}", model.id)


def _holds(core: Core) -> None:
    """Invariant 5: every pin and every READ is counted in its frame, sessions in their rings."""
    pins = Counter(frame.index for ring in core.rings.values() for _, frame in ring.pins.items())
    reads = Counter(reading.frame.index for reading in core.reads.values())
    for frame in core.frames:
        invariant(5, frame.pins == pins[frame.index], "frame {} counts {} pins", frame.index, frame.pins)
        invariant(5, frame.reads == reads[frame.index], "frame {} counts {} reads", frame.index, frame.reads)
    sessions = Counter(session.ring.id for _, session in core.sessions.items())
    for ring in core.rings.values():
        invariant(11, ring.sessions == sessions[ring.id], "{} counts {} sessions", ring.id, ring.sessions)


def _blocks(core: Core, ledger: Monitor) -> None:
    """Invariants 3 and 4: each block is as alive as its store, and has its bytes until its frame is FREE."""
    for frame in core.frames:
        if frame.state in (FrameState.FREE, FrameState.QUARANTINED):
            continue
        store = ledger.stores[frame.index]
        invariant(3, frame.segments == store.segments, "frame {} has other bytes than {}", frame.index, store)
        if frame.state is not FrameState.DRAINING:
            sealed = frame.state is FrameState.SEALED
            invariant(1, sealed == store.sealed, "frame {} is {}, but {}", frame.index, frame.state.name, store)
            invariant(4, core.alive(frame) == ledger.alive(store), "frame {} is not as alive as {}", frame.index, store)
