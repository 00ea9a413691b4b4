"""The invariants of the contract, checked at every operation against a ledger that is kept apart from the slice.

The ledger sees only the order log and what the ports are told; each status, handle and byte is judged by it. The
slice's own state is read for configuration, and for what is then compared.
"""

import google_crc32c

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Completion, Message
from hw.params.orderlog import Hand, Operation, Taken, Timer
from hw.params.protocol import RingId, Status
from pymodel.spec.check.audit import audit
from pymodel.spec.check.claims import Claims
from pymodel.spec.check.ledger import Ledger, Store
from pymodel.spec.check.violation import invariant
from pymodel.spec.core import Core


class Monitor:
    """Checks a slice; raises InvariantViolation with the invariant's number."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._operations = 0
        self._audit_every = max(1024, 4 * len(core.frames))
        self._forget()

    def _forget(self) -> None:
        self.ledger = Ledger(len(self._core.partitions), len(self._core.models))
        self._claims = Claims(self._core, self.ledger)

    def _readable(self, ring: RingId, owner: int) -> bool:
        reader, partition = self._core.rings[ring].partition, self._core.partitions[owner]
        return owner == reader.id or (partition.public and bool(reader.read_mask >> owner & 1))

    # Before and after each operation.

    def before(self, op: Operation) -> None:
        """Remember what an ALLOC is compared with."""
        if isinstance(op, Taken) and isinstance(op.command, c.Alloc) and op.ring in self._core.rings:
            self._claims.before(op.ring)

    def after(self, op: Operation, outputs: list[Completion | Message]) -> None:
        """Check what an operation touched; every now and then, everything."""
        if isinstance(op, Taken):
            self._taken(op, outputs)
        else:
            self._internal(op)
        for output in outputs:
            if isinstance(output, Completion):
                self._claims.completed(op, output)
        self._reading(op)
        if isinstance(op, log.Restarted):
            invariant(10, not self.ledger.outstanding, "commands outlive a restart")
            self._forget()
        self._operations += 1
        if self._operations % self._audit_every == 0:
            self.audit()

    def audit(self) -> None:
        """Compare all of the slice's state with itself and with the ledger."""
        audit(self._core, self.ledger)

    # What a command did as it was taken.

    def _taken(self, op: Taken, outputs: list[Completion | Message]) -> None:
        self.ledger.outstanding.setdefault((op.ring, op.tag), op.command)
        if any(isinstance(o, Completion) and o.status is Status.INVALID for o in outputs):
            return
        if isinstance(op.command, c.Lookup):
            self._looked(op, op.command, outputs)
        elif isinstance(op.command, c.Write):
            self._written(op, op.command)
        elif isinstance(op.command, c.Seal) and (op.ring, op.tag) in self._core.outstanding:
            self._sealing(op.ring, op.command)

    def _looked(self, op: Taken, command: c.Lookup, outputs: list[Completion | Message]) -> None:
        """One key of a LOOKUP: a HIT is the latest store of its key, rightly reachable; a MISS hides none."""
        result = self._core.outstanding.get((op.ring, op.tag))
        if result is None:
            result = next(o for o in outputs if isinstance(o, Completion))
        if len(result.statuses) <= op.item:
            return
        ledger, key = self.ledger, command.keys[op.item]
        status, handle, pin = result.statuses[op.item], result.handles[op.item], result.pins[op.item]
        store = None if handle is None else ledger.named(handle)
        invariant(7, handle is None or store is not None, "LOOKUP names {}, which is no block", handle)
        if store is not None:
            same = (store.model, store.key) == (command.model, key)
            invariant(2, same, "LOOKUP finds another key's block: {}", store)
            invariant(4, self._readable(op.ring, store.owner), "LOOKUP finds what it may not read: {}", store)
            invariant(4, ledger.alive(store), "LOOKUP finds a dead block: {}", store)
            invariant(1, store.sealed or status is not Status.HIT, "HIT of what is being written: {}", store)
        reader = self._core.rings[op.ring].partition.id
        others = [p.id for p in self._core.partitions if p.id != reader and self._readable(op.ring, p.id)]
        expected = ledger.look(reader, others, command.model, key)
        invariant(2, expected == (status, store), "LOOKUP answers {} and {}, expected {}", status, store, expected)
        if pin is not None:
            assert store is not None, "a pin comes with a HIT"
            unused = (op.ring, pin.slot) not in ledger.pins and ledger.fresh(op.ring, pin)
            invariant(5, unused, "{} of {} is given twice", pin, op.ring)
            ledger.pins[op.ring, pin.slot] = pin, store
            store.holds += 1

    def _written(self, op: Taken, command: c.Write) -> None:
        """One segment of a WRITE: appended, or without any effect."""
        store = self.ledger.stores.get(command.handle.frame)
        if store is None or self._core.frames[command.handle.frame].accepted == len(store.segments):
            return
        right = store.handle == command.handle and self.ledger.alive(store)
        invariant(7, right, "WRITE into {} by {}", store, command.handle)
        invariant(3, not store.sealed, "WRITE into a sealed block: {}", store)
        invariant(7, self.ledger.ring_of(store) == op.ring, "WRITE by {} into another ring's block: {}", op.ring, store)
        size = self._core.params.memory.segment_bytes
        invariant(3, command.segment + op.item == len(store.segments), "WRITE is no append: {}", store)
        data = bytes(command.data[op.item * size : (op.item + 1) * size])
        store.segments.append(data)
        store.crc = google_crc32c.extend(store.crc, data)
        self.ledger.written[store.session] += 1

    def _sealing(self, ring: RingId, command: c.Seal) -> None:
        """A SEAL that waits speaks for the whole block, in its owner's name."""
        store = self.ledger.named(command.handle)
        right = store is not None and self.ledger.alive(store) and self.ledger.ring_of(store) == ring
        invariant(7, right, "SEAL by {} of {}", ring, store)
        assert store is not None, "just checked"
        invariant(1, command.length == sum(map(len, store.segments)), "SEAL at another length: {}", store)
        invariant(2, command.crc == store.crc, "SEAL of other bytes than were written: {}", store)

    def _reading(self, op: Operation) -> None:
        """A READ that has just started is of a sealed block, or of landed segments of the ring's own session."""
        if isinstance(op, Taken) and isinstance(op.command, c.Read):
            name: tuple[RingId, int] | None = (op.ring, op.tag)
        elif isinstance(op, log.Step) and op.hand is Hand.PARKED:
            name = next((n for n in self._core.reads if n not in self.ledger.reads), None)
        else:
            return
        if name is None or name not in self._core.reads:
            return
        ring, _ = name
        command = self._core.reads[name].command
        store = self.ledger.named(command.handle)
        invariant(7, store is not None and self.ledger.alive(store), "READ of a dead block: {}", store)
        assert store is not None, "just checked"
        invariant(4, self._readable(ring, store.owner), "READ without the right to: {}", store)
        landed = self.ledger.ring_of(store) == ring and command.segment + command.count <= store.landed
        invariant(1, store.sealed or landed, "READ of segments that are not landed for {}: {}", ring, store)
        self.ledger.reads[name] = store
        store.holds += 1

    # What the slice did by itself.

    def _internal(self, op: Operation) -> None:
        ledger = self.ledger
        if isinstance(op, log.Landed):
            store = ledger.stores[op.frame]
            if store.landed == store.answered:
                store.landed += op.segments - (not op.ok)
            store.answered += op.segments
        elif isinstance(op, log.Sealed):
            self._sealed(ledger.stores[op.frame])
        elif isinstance(op, log.Drained):
            store = ledger.stores[op.frame]
            invariant(5, store.holds == 0, "a held frame is freed: {}", store)
            invariant(5, store.answered == len(store.segments), "a frame is freed with writes unanswered: {}", store)
            invariant(2, not ledger.alive(store), "a live block is freed: {}", store)
            ledger.vacate(op.frame)
            if store.handle.generation == (1 << self._core.params.tables.generation_bits) - 1:
                ledger.worn_out[self._core.pools.index(self._core.frames[op.frame].pool)] += 1
        elif isinstance(op, log.Lost):
            ledger.lost.add(op.ring)
        elif isinstance(op, log.Fenced):
            self._fenced(op.slot)
        elif isinstance(op, log.Expired) and op.timer is Timer.FENCE:
            ledger.end_session(op.slot)
        elif isinstance(op, log.Step) and op.hand is Hand.SESSIONS:
            _, ring = ledger.sessions[op.slot]
            if ring in ledger.lost or op.slot in ledger.fences:
                ledger.end_session(op.slot)
        elif isinstance(op, log.Step) and op.hand is Hand.PINS:
            assert op.ring is not None, "the hand over pins says whose"
            invariant(5, op.ring in ledger.lost, "a hand takes pins of {}, which is not lost", op.ring)
            _, store = ledger.pins.pop((op.ring, op.slot))
            store.holds -= 1

    def _sealed(self, store: Store) -> None:
        """The done bit: only with every byte in memory, and only for what is still reachable."""
        invariant(1, store.answered == len(store.segments), "a SEAL is decided before its writes are: {}", store)
        store.sealed = self.ledger.alive(store) and store.landed == len(store.segments)
        store.gone = not store.sealed

    def _fenced(self, slot: int) -> None:
        """All that the old ring counted is in memory before the new one may read and write."""
        name, ring = self.ledger.sessions[slot]
        invariant(11, ring not in self.ledger.lost, "{} of lost {} changes rings", name, ring)
        invariant(9, slot in self.ledger.fences, "{} changes rings before {} has answered", name, ring)
        count = self.ledger.fences.pop(slot)
        written = self.ledger.written.pop(name, 0)
        invariant(9, written == count, "{} changes rings after {} writes, not {}", name, written, count)
        for store in self.ledger.stores.values():
            moving = store.session == name and self.ledger.alive(store)
            landed = store.answered == len(store.segments)
            invariant(9, not moving or landed, "a session changes rings before this has landed: {}", store)
