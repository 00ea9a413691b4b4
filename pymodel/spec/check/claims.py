"""What a completion claims has happened, and whether it rightly has: judged by the ledger."""

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Command, Completion
from hw.params.orderlog import Operation, Taken
from hw.params.protocol import ModelState, RingId, Status
from pymodel.spec.check.ledger import Ledger, Store
from pymodel.spec.check.violation import invariant
from pymodel.spec.core import Core


class Claims:
    """Checks every completion, and enters into the ledger what it says."""

    def __init__(self, core: Core, ledger: Ledger) -> None:
        self._core = core
        self._ledger = ledger
        self._used = 0
        self._borrowed = 0

    def before(self, ring: RingId) -> None:
        """Remember what an ALLOC is compared with."""
        self._used, self._borrowed, _ = self._holdings(self._partition(ring))

    def _partition(self, ring: RingId) -> int:
        return self._core.rings[ring].partition.id

    def _holdings(self, partition: int) -> tuple[int, int, int]:
        """Frames used by a partition, those that are borrowed in its pool, and the most that may be."""
        core, ledger = self._core, self._ledger
        if partition < 0:
            return 0, 0, 0
        pool = core.partitions[partition].pool
        sharers = [p for p in core.partitions if p.pool is pool]
        borrowed = sum(max(0, ledger.used[p.id] - p.guarantee) for p in sharers)
        in_service = len(pool.frames) - ledger.worn_out[core.pools.index(pool)]
        return ledger.used[partition], borrowed, in_service - sum(p.guarantee for p in sharers)

    def completed(self, op: Operation, result: Completion) -> None:
        """A command ends, for ``op`` was executed."""
        command = self._ledger.outstanding.pop((result.ring, result.tag), None)
        invariant(10, command is not None, "{} tag {} completes, but is not outstanding", result.ring, result.tag)
        if result.status is Status.INVALID:
            return
        if isinstance(command, c.Alloc):
            self._allocated(command, result)
        elif isinstance(command, c.Seal):
            self._decided(op, command, result)
        elif isinstance(command, c.Read):
            self._read(op, command, result)
        elif isinstance(command, c.Unpin):
            self._unpinned(command, result)
        elif isinstance(command, c.Bind):
            self._bound(command.ring, result)
        elif result.status is Status.OK and command is not None:
            self._done(command, result)

    def _allocated(self, command: c.Alloc, result: Completion) -> None:
        ring, status, ledger = result.ring, result.status, self._ledger
        if status not in (Status.GRANTED, Status.EXISTS, Status.PENDING) or result.handle is None:
            return
        block = (self._partition(ring), command.model, command.key)
        current = ledger.find(*block)
        if status is not Status.GRANTED:
            found = current is not None and current.handle == result.handle
            found = found and current is not None and current.sealed == (status is Status.EXISTS)
            invariant(6, found, "{} for a key whose live store is {}", status, current)
            return
        invariant(6, current is None, "a second writer is granted beside {}", current)
        invariant(4, self._core.models[command.model].state is ModelState.LIVE, "a model that is not live is written")
        old = ledger.stores.get(result.handle.frame)
        if old is not None:
            invariant(5, old.holds == 0, "a held frame is reused: {}", old)
            invariant(5, old.answered == len(old.segments), "a frame is reused with writes unanswered: {}", old)
            invariant(9, old.sealed or not ledger.alive(old), "a block is evicted while it is written: {}", old)
            invariant(7, old.handle != result.handle, "a handle comes back: {}", old)
            old.gone = True
        ledger.occupy(result.handle.frame, block[0])
        used, borrowed, lendable = self._holdings(block[0])
        quota = self._core.partitions[block[0]].quota
        invariant(8, used <= max(quota, self._used), "partition {} grows beyond its quota", block[0])
        fair = borrowed <= max(lendable, self._borrowed)
        invariant(8, fair, "partition {} borrows what is guaranteed", block[0])
        lives = (ledger.partition_lives[block[0]], ledger.model_lives[block[1]])
        store = Store(result.handle, *block, command.session, lives)
        invariant(7, ledger.ring_of(store) == ring, "{} writes in {}, which it does not own", ring, command.session)
        ledger.stores[result.handle.frame] = ledger.latest[block] = store

    def _decided(self, op: Operation, command: c.Seal, result: Completion) -> None:
        store = self._ledger.named(command.handle)
        if result.status in (Status.OK, Status.MEM_ERROR):
            invariant(1, isinstance(op, log.Sealed), "SEAL ends {} by {}", result.status, op)
            sealed = store is not None and store.sealed
            invariant(1, sealed == (result.status is Status.OK), "SEAL ends {} for {}", result.status, store)
        elif result.status is Status.CRC:
            right = store is not None and self._ledger.alive(store) and self._ledger.ring_of(store) == result.ring
            invariant(7, right, "SEAL by {} kills {}", result.ring, store)
            assert store is not None, "just checked"
            invariant(2, command.crc != store.crc, "the CRC of {} was right", store)
            store.gone = True

    def _read(self, op: Operation, command: c.Read, result: Completion) -> None:
        store = self._ledger.reads.pop((result.ring, result.tag), None)
        end = command.segment + command.count
        if store is not None:
            store.holds -= 1
            if isinstance(op, log.ReadDone) and not op.ok:
                store.gone = True
        if result.status is Status.OK:
            invariant(7, store is not None, "a READ ends that never started: {}", command)
            assert store is not None, "just checked"
            wanted = b"".join(store.segments[command.segment : end])
            invariant(2, result.data == wanted, "READ returns other bytes than were stored: {}", store)
        elif result.status is Status.PENDING and isinstance(op, Taken):
            asked = self._ledger.named(command.handle)
            mine = asked is not None and self._ledger.ring_of(asked) == result.ring and self._ledger.alive(asked)
            waits = mine and asked is not None and (asked.sealed or end <= asked.landed)
            invariant(9, not waits, "own landed bytes wait: {}", asked)

    def _unpinned(self, command: c.Unpin, result: Completion) -> None:
        name = (result.ring, command.pin.slot)
        pin, store = self._ledger.pins.get(name, (None, None))
        if result.status is Status.OK:
            invariant(5, store is not None and pin == command.pin, "{} returns {}, which it has not", *name)
            assert store is not None, "just checked"
            del self._ledger.pins[name]
            store.holds -= 1
        elif result.status is Status.STALE:
            invariant(5, pin != command.pin, "{} cannot return {}", result.ring, pin)

    def _bound(self, ring: RingId, result: Completion) -> None:
        """A ring that changes hands is lost first, also when it is the one that asks, and has nothing left."""
        if result.status is Status.PENDING or (result.status is Status.UNAVAILABLE and ring == result.ring):
            self._ledger.lost.add(ring)
        if result.status is not Status.OK:
            return
        self._ledger.lost.discard(ring)
        left: list[object] = [
            name for name in (*self._ledger.pins, *self._ledger.reads, *self._ledger.outstanding) if name[0] == ring
        ]
        left += [name for name, bound in self._ledger.sessions.values() if bound == ring]
        invariant(11, not left, "{} changes hands with {} left of it", ring, left)

    def _done(self, command: Command, result: Completion) -> None:
        ring, ledger = result.ring, self._ledger
        if isinstance(command, c.Abort):
            store = ledger.named(command.handle)
            right = store is not None and ledger.alive(store) and not store.sealed and ledger.ring_of(store) == ring
            invariant(7, right, "ABORT by {} of {}", ring, store)
            assert store is not None, "just checked"
            store.gone = True
        elif isinstance(command, c.Drop):
            store = ledger.find(self._partition(ring), command.model, command.key)
            invariant(7, store is not None, "DROP of a dead block")
            assert store is not None, "just checked"
            store.gone = True
        elif isinstance(command, c.OpenSession):
            assert result.session is not None, "an opened session has a name"
            unused = result.session.slot not in ledger.sessions and ledger.fresh(None, result.session)
            invariant(7, unused, "{} is given twice", result.session)
            ledger.sessions[result.session.slot] = (result.session, ring)
        elif isinstance(command, c.CloseSession):
            own = ledger.sessions.get(command.session.slot) == (command.session, ring)
            invariant(7, own, "{} closes {}, which it does not own", ring, command.session)
            ledger.end_session(command.session.slot)
        elif isinstance(command, c.AnswerFence):
            ledger.fences[command.session.slot] = command.writes
        elif isinstance(command, c.Migrate):
            ledger.sessions[command.session.slot] = (command.session, ring)
        elif isinstance(command, c.DropPartition):
            ledger.partition_lives[command.partition] += 1
        elif isinstance(command, c.Retire):
            ledger.model_lives[command.model] += 1
