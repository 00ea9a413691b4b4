"""The invariants of the contract, checked at every operation against a ledger that is kept apart from the slice.

The ledger sees only the order log and what the ports are told. It counts partition and model lives without wrapping,
remembers every store's bytes, and judges each status, handle and byte by them; it reads the slice's own state for
configuration, and for what it then compares.
"""

from dataclasses import dataclass, field

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Command, Completion, Message
from hw.params.orderlog import Hand, Operation, Taken, Timer
from hw.params.protocol import Handle, ModelState, PinId, RingId, SessionId, Status
from pymodel.spec import audit
from pymodel.spec.core import Core
from pymodel.spec.violation import invariant


@dataclass(slots=True, eq=False)
class Store:
    """One block as its writer stored it."""

    handle: Handle
    owner: int
    model: int
    key: int
    session: SessionId
    lives: tuple[int, int]
    segments: list[bytes] = field(default_factory=list)
    answered: int = 0
    landed: int = 0
    sealed: bool = False
    gone: bool = False


class Monitor:
    """Checks a slice; raises InvariantViolation with the invariant's number."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._operations = 0
        self._audit_every = max(1024, 4 * len(core.frames))
        self._forget()

    def _forget(self) -> None:
        self.stores: dict[int, Store] = {}
        self.latest: dict[tuple[int, int, int], Store] = {}
        self.partition_lives = [0] * len(self._core.partitions)
        self.model_lives = [0] * len(self._core.models)
        self.sessions: dict[int, tuple[SessionId, RingId]] = {}
        self.lost: set[RingId] = set()
        self.pins: dict[tuple[RingId, PinId], Store] = {}
        self.reads: dict[tuple[RingId, int], Store] = {}
        self.outstanding: dict[tuple[RingId, int], Command] = {}
        self._used = 0
        self._borrowed = 0

    # The ledger's own view.

    def alive(self, store: Store) -> bool:
        """Whether a store is reachable: nothing it is under has died since it was granted."""
        lives = (self.partition_lives[store.owner], self.model_lives[store.model])
        if store.gone or lives != store.lives:
            return False
        return store.sealed or self.ring_of(store) is not None

    def ring_of(self, store: Store) -> RingId | None:
        """The ring that a store's session is bound to, while both live."""
        name, ring = self.sessions.get(store.session.slot, (None, None))
        return ring if name == store.session and ring not in self.lost else None

    def _named(self, handle: Handle) -> Store | None:
        store = self.stores.get(handle.frame)
        return store if store is not None and store.handle == handle else None

    def _partition(self, ring: RingId) -> int:
        return self._core.rings[ring].partition.id

    def _readable(self, ring: RingId, owner: int) -> bool:
        partitions = self._core.partitions
        reader = partitions[self._partition(ring)]
        return owner == reader.id or (partitions[owner].public and bool(reader.read_mask >> owner & 1))

    # Before and after each operation.

    def before(self, op: Operation) -> None:
        """Remember what an ALLOC is compared with."""
        if isinstance(op, Taken) and isinstance(op.command, c.Alloc):
            self._used, self._borrowed = self._holdings(op.ring)

    def _holdings(self, ring: RingId) -> tuple[int, int]:
        """Frames used by the ring's partition, and borrowed in its pool."""
        partition = self._core.rings[ring].partition
        return partition.used, self._core.replacement.borrowed(partition.pool)

    def after(self, op: Operation, outputs: list[Completion | Message]) -> None:
        """Check what an operation touched; every now and then, everything."""
        if isinstance(op, Taken):
            self.outstanding.setdefault((op.ring, op.tag), op.command)
            if isinstance(op.command, c.Lookup):
                self._looked(op, op.command, outputs)
            elif isinstance(op.command, c.Write):
                self._written(op, op.command)
        else:
            self._internal(op)
        for output in outputs:
            if isinstance(output, Completion):
                command = self.outstanding.pop((output.ring, output.tag), None)
                invariant(
                    10, command is not None, "{} tag {} completes, but is not outstanding", output.ring, output.tag
                )
                assert command is not None, "just checked"
                self._completed(op, command, output)
        self._reading(op)
        if isinstance(op, log.Restarted):
            invariant(10, not self.outstanding, "commands outlive a restart")
            self._forget()
        self._operations += 1
        if self._operations % self._audit_every == 0:
            audit.audit(self._core, self)

    def _looked(self, op: Taken, command: c.Lookup, outputs: list[Completion | Message]) -> None:
        """One key of a LOOKUP: a HIT is the latest store of its key, rightly reachable; a MISS hides none."""
        result = self._core.outstanding.get((op.ring, op.tag))
        if result is None:
            result = next(o for o in outputs if isinstance(o, Completion))
        if len(result.statuses) <= op.item:
            return
        status, handle, pin = result.statuses[op.item], result.handles[op.item], result.pins[op.item]
        own = self.latest.get((self._partition(op.ring), command.model, command.keys[op.item]))
        own_alive = own is not None and self.alive(own)
        if status is Status.HIT:
            assert handle is not None, "a HIT has a handle"
            store = self._named(handle)
            invariant(7, store is not None, "HIT names {}, which is no block", handle)
            assert store is not None, "just checked"
            same = (store.model, store.key) == (command.model, command.keys[op.item])
            invariant(2, same, "HIT of another block's key: {}", store)
            invariant(1, store.sealed, "HIT of a block that is not sealed: {}", store)
            invariant(4, self._readable(op.ring, store.owner), "HIT without the right to read: {}", store)
            invariant(4, self.alive(store), "HIT of a dead block: {}", store)
            invariant(2, self.latest[store.owner, store.model, store.key] is store, "HIT of an old store: {}", store)
        else:
            found = own_alive and own is not None and (own.sealed or status is not Status.PENDING)
            invariant(2, not found, "{} for a key that is stored: {}", status.name, own)
        if pin is not None:
            invariant(5, (op.ring, pin) not in self.pins, "{} of {} is given twice", pin, op.ring)
            assert handle is not None, "a pin comes with a HIT"
            self.pins[op.ring, pin] = self.stores[handle.frame]

    def _written(self, op: Taken, command: c.Write) -> None:
        """One segment of a WRITE: appended, or without any effect."""
        frame = self._core.frames[command.handle.frame] if command.handle.frame < len(self._core.frames) else None
        store = None if frame is None else self.stores.get(frame.index)
        if frame is None or store is None or frame.accepted == len(store.segments):
            return
        invariant(7, store.handle == command.handle and self.alive(store), "WRITE into {} by {}", store, command.handle)
        invariant(3, not store.sealed, "WRITE into a sealed block: {}", store)
        invariant(7, self.ring_of(store) == op.ring, "WRITE by {} into a block of another ring: {}", op.ring, store)
        size = self._core.params.memory.segment_bytes
        invariant(3, command.segment + op.item == len(store.segments), "WRITE is no append: {}", store)
        store.segments.append(bytes(command.data[op.item * size : (op.item + 1) * size]))

    def _internal(self, op: Operation) -> None:
        if isinstance(op, log.Landed):
            store = self.stores[op.frame]
            if store.landed == store.answered:
                store.landed += op.segments - (not op.ok)
            store.answered += op.segments
        elif isinstance(op, log.Lost):
            self.lost.add(op.ring)
        elif isinstance(op, log.Fenced):
            name, _ = self.sessions[op.slot]
            session = self._core.sessions.at(op.slot)
            assert session is not None, "a fenced session is in the table"
            self.sessions[op.slot] = (name, session.ring.id)
        elif isinstance(op, log.Expired) and op.timer is Timer.FENCE:
            del self.sessions[op.slot]
        elif isinstance(op, log.Step) and op.hand is Hand.SESSIONS:
            if self._core.sessions.at(op.slot) is None:
                del self.sessions[op.slot]
        elif isinstance(op, log.Step) and op.hand is Hand.PINS:
            assert op.ring is not None, "the hand over pins says whose"
            invariant(5, op.ring in self.lost, "a hand takes pins of {}, which is not lost", op.ring)
            del self.pins[next(n for n in self.pins if n[0] == op.ring and n[1].slot == op.slot)]

    def _reading(self, op: Operation) -> None:
        """A READ that has just started is of a sealed block, or of landed segments of the ring's own session."""
        if isinstance(op, Taken) and isinstance(op.command, c.Read):
            name: tuple[RingId, int] | None = (op.ring, op.tag)
        elif isinstance(op, log.Step) and op.hand is Hand.PARKED:
            name = next((n for n in self._core.reads if n not in self.reads), None)
        else:
            return
        if name is None or name not in self._core.reads:
            return
        ring, _ = name
        command = self._core.reads[name].command
        store = self._named(command.handle)
        invariant(7, store is not None and self.alive(store), "READ of a dead block: {}", store)
        assert store is not None, "just checked"
        invariant(4, self._readable(ring, store.owner), "READ without the right to: {}", store)
        landed = self.ring_of(store) == ring and command.segment + command.count <= store.landed
        invariant(1, store.sealed or landed, "READ of segments that are not landed for {}: {}", ring, store)
        self.reads[name] = store

    def _completed(self, op: Operation, command: Command, result: Completion) -> None:
        """What a status claims has happened, and rightly so."""
        if isinstance(command, c.Alloc):
            self._allocated(command, result)
        elif isinstance(command, c.Seal):
            self._decided(command, result.status)
        elif isinstance(command, c.Read):
            self._read(op, command, result)
        elif result.status is Status.OK:
            self._done(command, result)

    def _allocated(self, command: c.Alloc, result: Completion) -> None:
        ring, status = result.ring, result.status
        if status not in (Status.GRANTED, Status.EXISTS, Status.PENDING) or result.handle is None:
            return
        block = (self._partition(ring), command.model, command.key)
        current = self.latest.get(block)
        if status is not Status.GRANTED:
            found = current is not None and self.alive(current) and current.handle == result.handle
            found = found and current is not None and current.sealed == (status is Status.EXISTS)
            invariant(6, found, "{} for a key whose latest store is {}", status.name, current)
            return
        invariant(6, current is None or not self.alive(current), "a second writer is granted beside {}", current)
        invariant(4, self._core.models[command.model].state is ModelState.LIVE, "a model that is not live is written")
        old = self.stores.get(result.handle.frame)
        if old is not None:
            held = old in self.pins.values() or old in self.reads.values()
            invariant(5, not held, "a held frame is reused: {}", old)
            invariant(3, old.answered == len(old.segments), "a frame is reused with writes unanswered: {}", old)
            invariant(7, old.handle != result.handle, "a handle comes back: {}", old)
            old.gone = True
        used, borrowed = self._holdings(ring)
        partition = self._core.partitions[block[0]]
        invariant(8, used <= max(partition.quota, self._used), "partition {} grows beyond its quota", partition.id)
        lendable = self._core.replacement.lendable(partition.pool)
        invariant(8, borrowed <= max(lendable, self._borrowed), "partition {} borrows what is guaranteed", partition.id)
        lives = (self.partition_lives[block[0]], self.model_lives[block[1]])
        store = Store(result.handle, *block, command.session, lives)
        self.stores[result.handle.frame] = self.latest[block] = store

    def _decided(self, command: c.Seal, status: Status) -> None:
        store = self._named(command.handle)
        if status in (Status.CRC, Status.MEM_ERROR):
            assert store is not None, "only a block that was there can fail its seal"
            store.gone = True
        elif status is Status.OK:
            invariant(7, store is not None and self.alive(store), "SEAL of a dead block: {}", store)
            assert store is not None, "just checked"
            invariant(1, store.landed == len(store.segments), "sealed before it has landed: {}", store)
            invariant(1, command.length == sum(map(len, store.segments)), "sealed at another length: {}", store)
            store.sealed = True

    def _read(self, op: Operation, command: c.Read, result: Completion) -> None:
        store = self.reads.pop((result.ring, result.tag), None)
        end = command.segment + command.count
        if result.status is Status.OK:
            assert store is not None, "a READ that ends has started"
            wanted = b"".join(store.segments[command.segment : end])
            invariant(2, result.data == wanted, "READ returns other bytes than were stored: {}", store)
        elif result.status is Status.POISON:
            assert store is not None, "a READ that ends has started"
            store.gone = True
        elif result.status is Status.PENDING and isinstance(op, Taken):
            asked = self._named(command.handle)
            mine = asked is not None and self.ring_of(asked) == result.ring and self.alive(asked)
            invariant(9, not (mine and asked is not None and end <= asked.landed), "own landed bytes wait: {}", asked)

    def _done(self, command: Command, result: Completion) -> None:
        ring = result.ring
        if isinstance(command, c.Unpin):
            invariant(5, self.pins.pop((ring, command.pin), None) is not None, "{} returns a pin it has not", ring)
        elif isinstance(command, c.Abort):
            store = self._named(command.handle)
            rightly = store is not None and self.alive(store) and not store.sealed and self.ring_of(store) == ring
            invariant(7, rightly, "ABORT by {} of {}", ring, store)
            assert store is not None, "just checked"
            store.gone = True
        elif isinstance(command, c.Drop):
            store = self.latest.get((self._partition(ring), command.model, command.key))
            invariant(7, store is not None and self.alive(store), "DROP of a dead block: {}", store)
            assert store is not None, "just checked"
            store.gone = True
        elif isinstance(command, c.OpenSession):
            assert result.session is not None, "an opened session has a name"
            self.sessions[result.session.slot] = (result.session, ring)
        elif isinstance(command, c.CloseSession):
            del self.sessions[command.session.slot]
        elif isinstance(command, c.DropPartition):
            self.partition_lives[command.partition] += 1
        elif isinstance(command, c.Retire):
            self.model_lives[command.model] += 1
        elif isinstance(command, c.Bind):
            self._bound(command.ring)

    def _bound(self, ring: RingId) -> None:
        self.lost.discard(ring)
        left: list[object] = [name for name in (*self.pins, *self.reads, *self.outstanding) if name[0] == ring]
        left += [name for name, bound in self.sessions.values() if bound == ring]
        invariant(11, not left, "{} changes hands with {} left of it", ring, left)
