"""How one request is served: its prefix is read, everything else of it is stored."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Completion, LookupMode
from hw.params.protocol import Handle, Opcode, PinId, RingId, SessionId, Status
from scripts.replay.content import output_key
from scripts.replay.ledger import Block, Ledger, Store
from scripts.replay.tally import History, Tally
from scripts.replay.wear import Wear
from scripts.replay.workload import Request
from sw.driver import Client, Device, Ticket

Steps = Generator[Sequence[Ticket], None, None]
"""A request under way: yields the commands that it waits for, and is resumed when all of them have completed."""


NOT_STORED = (Status.EXISTS, Status.PENDING, Status.NO_SPACE, Status.QUOTA, Status.RETIRED)
"""What ALLOC answers, or a PUT, when a request is not to store a block, and goes on."""


class Stopped(Exception):
    """The request does not go on, because the run is to end."""


class Ended(Exception):
    """The request cannot go on: a command of it ended with ``status``."""

    def __init__(self, ticket: Ticket, status: Status) -> None:
        super().__init__(f"{ticket.opcode.name} {status.name}")
        self.opcode = ticket.opcode
        self.status = status


def done(ticket: Ticket, *allowed: Status) -> Completion:
    """The completion of a command that has ended; raises Ended for any status that is not allowed."""
    completion = ticket.completion
    assert completion is not None, "a request is resumed when its commands have completed"
    if completion.status not in allowed:
        raise Ended(ticket, completion.status)
    return completion


@dataclass(slots=True)
class Service:
    """Serves requests on one device; what they meet goes into ``tallies`` (by partition), ``ledger``, ``history``."""

    device: Device
    ledger: Ledger
    tallies: list[Tally]
    history: History
    wear: Wear
    clients: dict[RingId, Client] = field(default_factory=dict)
    stop: bool = False
    """Set it to end early: requests under way end after their next command."""
    unexpected: list[str] = field(default_factory=list)
    """Commands that ended as none should: not by a loss or a retirement."""

    @property
    def most_puts(self) -> int:
        """PUTs that a request has under way at most: a port takes those of all requests; 0 without write-back."""
        params = self.device.params
        fair = max(1, (params.requester.commands - 2) // params.replay.in_flight)
        return min(params.requester.slots, fair)

    def start(self, request: Request) -> Steps:
        """Serve ``request``. Nothing of it is left when it ends, whatever befell it."""
        return _Visit(self, request).run()

    def client(self, ring: RingId) -> Client:
        """The client of a ring; rings are made as they are first used."""
        return self.clients.get(ring) or self.clients.setdefault(ring, Client(self.device, ring))


class _Visit:
    """The state of one request under way."""

    def __init__(self, service: Service, request: Request) -> None:
        self.request = request
        self._service = service
        self._ledger = service.ledger
        self._client = service.client(RingId(request.port, request.partition))
        self._tally = service.tallies[request.partition]
        self._bytes = service.device.params.replay.block_bytes
        self._most_keys = service.device.params.tables.lookup_keys
        self._pins: list[PinId] = []
        self._session: SessionId | None = None
        self._retired = False
        self._hits = self._prefix = self._pending = 0

    def run(self) -> Steps:
        tally, request = self._tally, self.request
        self._ledger.references += len(request.keys)
        try:
            yield from self._open()
            prefix = yield from self._read_prefix()
            outputs = [output_key(request.number, block) for block in range(request.output_blocks)]
            blocks = [*((key, False) for key in request.keys[prefix:]), *((key, True) for key in outputs)]
            store = self._put if self._service.most_puts else self._store
            yield from store(blocks)
        except Stopped:
            yield from self._leave()
            return
        except Ended as ended:
            tally.failed_requests += 1
            if ended.status not in (Status.STALE, Status.UNAVAILABLE) and not self._worn_out(ended):
                self._service.unexpected.append(f"request {request.number}: {ended}")
        yield from self._leave()
        tally.requests += 1
        tally.block_lookups += len(request.keys)
        tally.block_hits += self._hits
        tally.prefix_hits += self._prefix
        tally.pending_lookups += self._pending
        tally.retired_requests += self._retired
        self._service.history.add(request.number, len(request.keys), self._hits, self._prefix)

    def _open(self) -> Steps:
        opening = self._client.submit(c.OpenSession(), root=self.request.root)
        yield (opening,)
        self._session = done(opening, Status.OK).session
        if self._session is not None:
            self._service.wear.session(self._session)

    def _worn_out(self, ended: Ended) -> bool:
        """Whether the device had no slot for lack of generations: as it should, and nothing to report as wrong."""
        wear = self._service.wear
        if ended.status is not Status.NO_SPACE:
            return False
        if ended.opcode is Opcode.OPEN_SESSION:
            return wear.sessions > 0
        return ended.opcode is Opcode.LOOKUP and wear.no_pins(self._client.ring)

    def _go_on(self) -> None:
        """Raises Stopped when the run is to end."""
        if self._service.stop:
            raise Stopped

    def _leave(self) -> Steps:
        """Return what is held; on a ring that was lost it is gone already, and the device says so."""
        leaving = [self._client.submit(c.Unpin(pin)) for pin in self._pins]
        if self._session is not None:
            leaving.append(self._client.submit(c.CloseSession(self._session)))
        yield leaving

    def _read_prefix(self) -> Generator[Sequence[Ticket], None, int]:
        """Look all keys up, read the leading run of hits; returns its length."""
        keys, tally = self.request.keys, self._tally
        position = 0
        while position < len(keys):
            self._go_on()
            leading = self._prefix == position
            chunk = keys[position : position + self._most_keys]
            command = c.Lookup(self.request.model, chunk, LookupMode.BITMAP, pin=leading)
            looking = self._client.submit(command, root=self.request.root)
            yield (looking,)
            result = done(looking, Status.OK, Status.NO_SPACE)
            for pin in result.pins:
                if pin is not None:
                    self._service.wear.pin(self._client.ring, pin)
            stuck = result.status is Status.NO_SPACE and not (result.statuses or self._pins)
            if stuck and self._service.wear.no_pins(self._client.ring):
                raise Ended(looking, result.status)
            run = self._run(result) if leading else 0
            self._pins += (pin for pin in result.pins[:run] if pin is not None)
            self._hits += result.count
            self._prefix += run
            self._pending += result.statuses.count(Status.PENDING)
            stores = [
                self._ledger.hit(self.request.number, handle, self.request.partition, self.request.model, key)
                for key, status, handle in zip(chunk, result.statuses, result.handles, strict=False)
                if status is Status.HIT
            ]
            yield [self._client.submit(c.Unpin(pin)) for pin in result.pins[run:] if pin is not None]
            yield from self._read([store for store in stores[:run] if store is not None])
            position += len(result.statuses)
            if result.status is Status.NO_SPACE:
                tally.cut_lookups += 1
                yield from self._unpin()
        return self._prefix

    def _run(self, result: Completion) -> int:
        """Length of the leading run of hits."""
        for length, status in enumerate(result.statuses):
            if status is not Status.HIT:
                return length
        return len(result.statuses)

    def _read(self, stores: list[Store]) -> Steps:
        """Read blocks whole, and compare them."""
        buffers = [bytearray(self._bytes) for _ in stores]
        reading = [
            self._client.read(store.handle, memoryview(buffer)) for store, buffer in zip(stores, buffers, strict=True)
        ]
        yield reading
        for ticket, store, buffer in zip(reading, stores, buffers, strict=True):
            done(ticket, Status.OK)
            self._tally.bytes_read += self._bytes
            self._ledger.check(self.request.number, store, buffer)

    def _unpin(self) -> Steps:
        """Return the pins held so far, to make room."""
        returning = [self._client.submit(c.Unpin(pin)) for pin in self._pins]
        self._pins.clear()
        yield returning
        for ticket in returning:
            done(ticket, Status.OK)

    def _store(self, blocks: Sequence[tuple[int, bool]]) -> Steps:
        """Store blocks, by their keys and whether they are of the output, one after the other."""
        for key, output in blocks:
            self._go_on()
            assert self._session is not None, "opened first"
            allocating = self._client.submit(c.Alloc(self.request.model, key, self._bytes, self._session))
            yield (allocating,)
            answer = done(allocating, Status.GRANTED, *NOT_STORED)
            if answer.status is Status.GRANTED:
                assert answer.handle is not None, "a granted block has a handle"
                yield from self._fill(answer.handle, key, output)
            else:
                self._not_stored(answer, key)

    def _put(self, blocks: Sequence[tuple[int, bool]]) -> Steps:
        """The same by PUTs, so many at a time that a port never has more than it takes."""
        request, most = self.request, self._service.most_puts
        for at in range(0, len(blocks), most):
            self._go_on()
            assert self._session is not None, "opened first"
            some = [((request.partition, request.model, key), output) for key, output in blocks[at : at + most]]
            data = [self._ledger.offered(block, output=output) for block, output in some]
            putting = [
                self._client.write_back(self._session, request.model, key, its)
                for ((_, _, key), _), its in zip(some, data, strict=True)
            ]
            yield putting
            for ticket, (block, output) in zip(putting, some, strict=True):
                self._has_put(ticket, block, output)
            for ticket in putting:
                done(ticket, Status.OK, *NOT_STORED)

    def _has_put(self, ticket: Ticket, block: Block, output: bool) -> None:
        """A PUT has ended; how it failed, if it has, is for others to say."""
        answer = ticket.completion
        assert answer is not None, "a request is resumed when its commands have completed"
        sealed = answer.handle if answer.status is Status.OK else None
        self._ledger.answered(block, sealed)
        if sealed is not None:
            self._service.wear.frame(sealed)
            self._tally.bytes_written += self._bytes
            self._stored(output)
        elif answer.status in NOT_STORED:
            self._not_stored(answer, block[-1])

    def _stored(self, output: bool) -> None:
        """A block of this request is sealed."""
        self._tally.stored_blocks += 1
        self._tally.decode_blocks += output

    def _not_stored(self, answer: Completion, key: int) -> None:
        """The node has a block already, or takes none."""
        request, tally = self.request, self._tally
        match answer.status:
            case Status.EXISTS:
                tally.existing_blocks += 1
                self._ledger.hit(request.number, answer.handle, request.partition, request.model, key)
            case Status.PENDING:
                tally.pending_blocks += 1
            case Status.NO_SPACE:
                tally.refused_no_space += 1
            case Status.QUOTA:
                tally.refused_quota += 1
            case Status.RETIRED:
                tally.refused_retired += 1
                self._retired = True

    def _fill(self, handle: Handle, key: int, output: bool) -> Steps:
        """Write a granted block and seal it."""
        request, client = self.request, self._client
        self._service.wear.frame(handle)
        data = self._ledger.granted(handle, request.partition, request.model, key, output=output)
        writing = client.submit(c.Write(handle, 0, data))
        sealing = client.submit(c.Seal(handle, len(data), google_crc32c.value(data)))
        yield (writing, sealing)
        done(writing, Status.OK)
        self._tally.bytes_written += len(data)
        done(sealing, Status.OK)
        self._stored(output)
