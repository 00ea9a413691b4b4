"""The full audit: everything that is counted is counted again, every block compared with the ledger."""

from collections import Counter

from hw.params.protocol import FrameState
from pymodel.spec.cam import Tag
from pymodel.spec.check.ledger import Ledger
from pymodel.spec.check.violation import invariant
from pymodel.spec.core import Core
from pymodel.spec.state import NOBODY


def audit(core: Core, ledger: Ledger) -> None:
    """Raise InvariantViolation unless all of a slice's state agrees with itself and with the ledger."""
    _frames(core, ledger)
    _scopes(core)
    _holds(core, ledger)
    _blocks(core, ledger)
    _commands(core, ledger)


def _frames(core: Core, ledger: Ledger) -> None:
    """Invariant 8: frames are conserved, in pools and in partitions."""
    owners = {frame.index: frame.partition.id for frame in core.frames if frame.partition is not NOBODY}
    invariant(8, owners == ledger.owners, "frames are of {}, expected {}", owners, ledger.owners)
    for index, pool in enumerate(core.pools):
        free = [frame for frame in pool.frames if frame.state is FrameState.FREE]
        invariant(8, len(pool.free) == len(set(map(id, pool.free))), "a frame is FREE twice")
        invariant(8, set(map(id, pool.free)) == set(map(id, free)), "the free list and the FREE frames differ")
        worn_out = sum(frame.state is FrameState.QUARANTINED for frame in pool.frames)
        invariant(8, pool.quarantined == worn_out, "{} frames are QUARANTINED, not {}", worn_out, pool.quarantined)
        invariant(8, worn_out == ledger.worn_out[index], "{} frames are worn out, not {}", ledger.worn_out, worn_out)
    used = Counter(owners.values())
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


def _holds(core: Core, ledger: Ledger) -> None:
    """Invariant 5: every pin and every READ is counted in its frame; sessions are in the ledger and in their rings."""
    pins = [(frame.index, ring.id, slot) for ring in core.rings.values() for slot, frame in ring.pins.items()]
    expected = {(store.handle.frame, *name) for name, (_, store) in ledger.pins.items()}
    invariant(5, set(pins) == expected, "the pin tables hold {}, expected {}", pins, expected)
    pinned = Counter(frame for frame, _, _ in pins)
    reads = Counter(reading.frame.index for reading in core.reads.values())
    for frame in core.frames:
        invariant(5, frame.pins == pinned[frame.index], "frame {} counts {} pins", frame.index, frame.pins)
        invariant(5, frame.reads == reads[frame.index], "frame {} counts {} READs", frame.index, frame.reads)
    open_now = {slot: (core.sessions.name(slot), session.ring.id) for slot, session in core.sessions.items()}
    invariant(9, open_now == ledger.sessions, "sessions are {}, expected {}", open_now, ledger.sessions)
    sessions = Counter(ring for _, ring in open_now.values())
    for ring in core.rings.values():
        invariant(11, ring.sessions == sessions[ring.id], "{} counts {} sessions", ring.id, ring.sessions)


def _blocks(core: Core, ledger: Ledger) -> None:
    """Invariants 1 to 4: each block is as alive as its store, and has its bytes until its frame is FREE."""
    for frame in core.frames:
        if frame.state in (FrameState.FREE, FrameState.QUARANTINED):
            continue
        store = ledger.stores[frame.index]
        invariant(3, frame.segments == store.segments, "frame {} has other bytes than {}", frame.index, store)
        invariant(1, frame.landed == store.landed, "frame {} has landed {}, but {}", frame.index, frame.landed, store)
        if frame.state is FrameState.DRAINING:
            invariant(2, not ledger.alive(store), "frame {} drains, but {}", frame.index, store)
        else:
            sealed = frame.state is FrameState.SEALED
            invariant(1, sealed == store.sealed, "frame {} is {}, but {}", frame.index, frame.state, store)
            invariant(4, core.alive(frame) == ledger.alive(store), "frame {} is not as alive as {}", frame.index, store)
    for name, store in ledger.latest.items():
        if ledger.alive(store):
            invariant(2, core.cam.find(Tag(*name)) == store.handle.frame, "the index has lost {}", store)


def _commands(core: Core, ledger: Ledger) -> None:
    """Invariant 10: every command that has not completed waits for something that will come, and for one thing."""
    waiting = [
        *core.unfinished,
        *core.reads,
        *((parked.ring.id, parked.tag) for _, parked in core.parked.items()),
        *(frame.sealing for frame in core.frames if frame.sealing),
        *((s.fence.target.id, s.fence.tag) for s in core.fenced.values() if s.fence),
    ]
    invariant(10, len(waiting) == len(set(waiting)), "a command waits twice: {}", waiting)
    invariant(10, set(waiting) == core.outstanding.keys(), "{} are outstanding, but {} wait", core.outstanding, waiting)
    invariant(10, core.outstanding.keys() == ledger.outstanding.keys(), "outstanding commands differ")
