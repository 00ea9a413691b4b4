"""A requester, as docs/requester.md describes it, without a clock."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from hw.params.commands import Command, Completion, Message
from hw.params.params import Params
from hw.params.protocol import KEY_BYTES, TAG_BITS, EngineOpcode, Opcode, RingId, Status
from hw.params.records import (
    ALIGNMENT,
    COMPLETION,
    DESCRIPTOR,
    EVENT,
    LOST,
    PAGE_SHIFTS,
    PHASE,
    SCATTERED,
)
from hw.rdl import requester_map
from sw.driver.transport.descriptors import command_of, task_of
from sw.driver.transport.engines import Engines
from sw.driver.transport.loopback.memory import Memory, Refused
from sw.driver.transport.loopback.written import message_of, names_of
from sw.driver.transport.registers import RegisterFile, Window

TASKS = frozenset(EngineOpcode)
"""Opcodes that are for engines."""


@dataclass(slots=True, eq=False)
class Queue:
    """What the requester knows of a ring. Entries are counted from the time it was enabled.

    ``armed``: it has been disabled since it was last set up, or it never was.
    """

    index: int
    armed: bool = True
    enabled: bool = False
    active: bool = False
    failed: bool = False
    fetched: int = 0
    tail: int = 0
    written: int = 0
    head: int = 0
    contexts: set[int] = field(default_factory=set)


class Requester:
    """The requester of one port. ``give``, which has the slice last, and ``lose`` reach its node; ``answer`` and
    ``tell`` come from there.

    Time passes for it in ``fetch``: it takes all descriptors that it has room for.
    """

    def __init__(
        self,
        params: Params,
        port: int,
        give: Callable[[RingId, int, Command, int], None],
        lose: Callable[[RingId], None],
    ) -> None:
        self.memory = Memory()
        self._params = params
        self._port = port
        self._give = give
        self._lose = lose
        self._queues = [Queue(index) for index in range(params.tables.rings_per_port)]
        self._contexts: dict[int, tuple[Queue, dict[str, int], bool]] = {}
        self._engines = Engines(params)
        self._uses: Counter[int] = Counter()
        self._events = Queue(0)
        self._lost = False
        pulses: dict[str, Callable[[], None]] = {}
        windows = {"EVENT_HEAD.head": self._doorbell("EVENT_", self._events, "head")}
        for queue in self._queues:
            name = f"RING{queue.index}_"
            pulses[f"{name}CONTROL.lose"] = partial(self._ring_lost, queue)
            windows[f"{name}TAIL.tail"] = self._doorbell(name, queue, "tail")
            windows[f"{name}HEAD.head"] = self._doorbell(name, queue, "head")
        self.registers = RegisterFile(params, pulses, windows, dict, requester_map(params))

    # Registers.

    def write(self, offset: int, value: int) -> None:
        """Write a register, and do what follows from it."""
        self.registers.write(offset, value)
        for queue in self._queues:
            self._settle(queue)
        events, enable = self._events, bool(self.registers.get("EVENT_CONTROL.enable"))
        if enable and not events.enabled:
            events.written = events.head = 0
            events.failed = self._lost = False
        events.enabled = events.active = enable
        self._show("EVENT_", events)

    def _doorbell(self, name: str, queue: Queue, which: str) -> Window:
        def ring(value: int) -> None:
            entries, before = self._entries(name), getattr(queue, which)
            if value < entries:
                setattr(queue, which, before + (value - before) % entries)
            else:
                self._fail(queue)

        return Window(lambda: getattr(queue, which) % self._entries(name), ring)

    def _entries(self, name: str) -> int:
        return 1 << self.registers.get(name + "SIZE.log2_entries")

    def _show(self, name: str, queue: Queue) -> None:
        self.registers.set(name + "STATUS.active", int(queue.active))
        self.registers.set(name + "STATUS.failed", int(queue.failed))

    def _settle(self, queue: Queue) -> None:
        """What follows from ``enable``, and from the end of a command."""
        name = f"RING{queue.index}_"
        enable = bool(self.registers.get(name + "CONTROL.enable"))
        if queue.enabled and not enable:
            self._stop(queue)
        if queue.active and not queue.enabled and not queue.contexts:
            queue.active = False
            self._happens("inactive")
        if not enable:
            queue.armed = True
        elif queue.armed and not queue.active:
            queue.fetched = queue.tail = queue.written = queue.head = 0
            queue.enabled, queue.active, queue.failed, queue.armed = True, True, False, False
        self._show(name, queue)
        self.registers.set(name + "STATUS.outstanding", len(queue.contexts))

    def _happens(self, what: str) -> None:
        self.registers.set(f"INTERRUPT_STATUS.{what}", 1)

    def _count(self, what: str) -> None:
        name = f"COUNT_{what}.count"
        self.registers.set(name, self.registers.get(name) + 1)

    # Loss and failure.

    def _ring(self, queue: Queue) -> RingId:
        return RingId(self._port, queue.index)

    def _ring_lost(self, queue: Queue) -> None:
        self._lose(self._ring(queue))

    def _stop(self, queue: Queue) -> None:
        queue.enabled = False
        self._lose(self._ring(queue))

    def _fail(self, queue: Queue) -> None:
        if not queue.enabled or queue.failed:
            return
        queue.failed = True
        self._happens("failed")
        if queue is self._events:
            self._show("EVENT_", queue)
        else:
            self._stop(queue)
            self._settle(queue)

    # Fetch and send.

    def fetch(self) -> None:
        """Take descriptors of all rings in turn, as long as there are any that there is room for."""
        while any([self._fetch(queue) for queue in self._queues]):
            pass

    def _fetch(self, queue: Queue) -> bool:
        name = f"RING{queue.index}_"
        unread = queue.written - queue.head + len(queue.contexts)
        if not queue.enabled or queue.failed or queue.fetched == queue.tail or unread >= self._entries(name) - 1:
            return False
        free = next((number for number in range(self._params.requester.commands) if number not in self._contexts), None)
        if free is None:
            return False
        at = self._base(name, "SUBMISSION") + queue.fetched % self._entries(name) * DESCRIPTOR.size
        try:
            fields = DESCRIPTOR.unpack(self.memory.read(at, DESCRIPTOR.size))
        except Refused:
            self._fail(queue)
            return True
        queue.fetched += 1
        self._count("FETCHED")
        self._contexts[free] = queue, fields, False
        queue.contexts.add(free)
        self._send(free, queue, fields)
        self._settle(queue)
        return True

    def _base(self, name: str, kind: str) -> int:
        get = self.registers.get
        return get(f"{name}{kind}_HIGH.high") << 32 | get(f"{name}{kind}_LOW.low") << 7

    def _send(self, number: int, queue: Queue, fields: dict[str, int]) -> None:
        refusal = self._judge(fields)
        if refusal is not None:
            self._count("REFUSED")
            self._complete(number, {"status": refusal})
            return
        data, bad = b"", False
        if fields["opcode"] == Opcode.LOOKUP:
            data, bad = self._keys(fields["data"], fields["count"] * KEY_BYTES)
        elif fields["opcode"] in (Opcode.WRITE, EngineOpcode.PUT):
            data = bytes(fields["length"])
            try:
                data = b"".join(self.memory.read(at, size) for at, size in self._places(fields, len(data)))
            except Refused:
                bad = True
        self._contexts[number] = queue, fields, bad
        task, ring = task_of(fields, data), self._ring(queue)
        if task is None:
            command = command_of(fields, data)
        else:
            command = self._engines.begin(ring, number, task, fields["slice"], refused=bad)
        if command is not None:
            self._begin(number, command)
        elif task is None:
            self._complete(number, {"status": Status.INVALID})
        self._end_tasks()

    def _begin(self, number: int, command: Command) -> None:
        """Give the node the command of a context, or the next one of its task."""
        queue, fields, _ = self._contexts[number]
        self._uses[number] += 1
        self._give(self._ring(queue), self._tag(number), command, fields["slice"])

    def _end_tasks(self) -> None:
        """Complete what engines have done."""
        while self._engines.ended:
            each = self._engines.ended.pop(0)
            self._complete(each.tag, {"status": each.status, "count": each.count} | names_of(each.handle, None))

    def _keys(self, address: int, length: int) -> tuple[bytes, bool]:
        """The keys of a LOOKUP, up to the first beat that memory refuses, if it refuses any."""
        keys, size = b"", self._params.memory.beat_bytes
        try:
            while len(keys) < length:
                keys += self.memory.read(address + len(keys), min(size, length - len(keys)))
        except Refused:
            return keys, True
        return keys, False

    def _tag(self, number: int) -> int:
        uses = self._uses[number] << (self._params.requester.commands - 1).bit_length()
        return (uses | number) % (1 << TAG_BITS)

    def _judge(self, fields: dict[str, int]) -> Status | None:
        """What the requester refuses by itself."""
        opcode, size = fields["opcode"], self._params.memory.segment_bytes
        if opcode in TASKS:
            tasks = sum(its["opcode"] in TASKS for _, its, _ in self._contexts.values())
            if tasks > self._params.requester.commands - 2:
                return Status.NO_SPACE
        if opcode == Opcode.LOOKUP:
            aligned = (fields["data"] | fields["results"]) % ALIGNMENT == 0
            good = aligned and fields["count"] <= self._params.tables.lookup_keys
            return None if good else Status.INVALID
        if opcode not in (Opcode.WRITE, Opcode.READ, EngineOpcode.PUT):
            return None
        if fields["flags"] & SCATTERED:
            shift = fields["page_shift"]
            good = fields["data"] % ALIGNMENT == 0 and shift in PAGE_SHIFTS and 1 << shift >= size
        else:
            good = fields["data"] % size == 0
        if not good:
            return Status.INVALID
        most = max(pool.frame_bytes for pool in self._params.pools)
        return Status.RANGE if opcode != Opcode.READ and fields["length"] > most else None

    def _places(self, fields: dict[str, int], length: int) -> list[tuple[int, int]]:
        """Address and size of each segment of some bytes; Refused for a page that is not aligned."""
        size, found = self._params.memory.segment_bytes, []
        for at in range(0, length, size):
            address = fields["data"] + at
            if fields["flags"] & SCATTERED:
                page, offset = divmod(at, 1 << fields["page_shift"])
                address = int.from_bytes(self.memory.read(fields["data"] + 8 * page, 8), "little") + offset
                if address % size:
                    raise Refused
            found.append((address, min(size, length - at)))
        return found

    # What comes from the node.

    def answer(self, completion: Completion) -> None:
        """The node has ended a command."""
        number = completion.tag % (1 << (self._params.requester.commands - 1).bit_length())
        queue, fields, bad = self._contexts[number]
        if self._engines.command(completion.ring, number) is not None:
            following = self._engines.go_on(replace(completion, tag=number))
            if following is not None:
                self._begin(number, following)
            self._end_tasks()
            return
        outcome = {"status": completion.status, "count": completion.count}
        outcome |= names_of(completion.handle, completion.session)
        mute = not queue.enabled
        try:
            if completion.statuses and not mute:
                outcome["items"] = self._results(fields["results"], completion)
        except Refused:
            self._fail(queue)
        if fields["opcode"] == Opcode.READ and completion.status is Status.OK:
            outcome["slot"] = completion.length
            if completion.length > fields["length"]:
                outcome = {"status": Status.RANGE, "slot": completion.length}
            if not mute:
                bad = not self._place(fields, completion.data[: fields["length"]])
        if bad:
            kept: dict[int, tuple[str, ...]] = {Opcode.LOOKUP: ("items", "count"), Opcode.WRITE: ("count",)}
            names = kept.get(fields["opcode"], ())
            outcome = {"status": Status.INVALID} | {name: outcome.get(name, 0) for name in names}
        self._complete(number, outcome)

    def _results(self, address: int, completion: Completion) -> int:
        each = zip(completion.statuses, completion.handles, completion.pins, strict=True)
        for item, (status, handle, pin) in enumerate(each):
            record = COMPLETION.pack(status=status, items=item, **names_of(handle, pin))
            self.memory.write(address + item * COMPLETION.size, record)
        return len(completion.statuses)

    def _place(self, fields: dict[str, int], data: bytes) -> bool:
        """Put the data of a READ where it goes; False if memory refuses any of it."""
        at = 0
        try:
            for address, size in self._places(fields, len(data)):
                self.memory.write(address, data[at : at + size])
                at += size
        except Refused:
            return False
        return True

    def _complete(self, number: int, outcome: dict[str, int]) -> None:
        queue, fields, _ = self._contexts.pop(number)
        queue.contexts.discard(number)
        name = f"RING{queue.index}_"
        if queue.enabled:
            entries = self._entries(name)
            phase = PHASE * (queue.written // entries % 2 == 0)
            outcome = outcome | {"flags": outcome.get("flags", 0) | phase, "tag": fields["tag"]}
            at = self._base(name, "COMPLETION") + queue.written % entries * COMPLETION.size
            try:
                self.memory.write(at, COMPLETION.pack(**outcome))
                queue.written += 1
                self._happens("completion")
            except Refused:
                self._fail(queue)
        self._settle(queue)

    def tell(self, message: Message) -> None:
        """The node tells the port something."""
        events, entries = self._events, self._entries("EVENT_")
        if not events.enabled or events.failed or events.written - events.head >= entries - 1:
            self._lost = True
            self._count("DROPPED")
            return
        fields = message_of(message)
        fields["flags"] = fields.get("flags", 0) | LOST * self._lost
        phase = int(events.written // entries % 2 == 0)
        at = self._base("EVENT_", "BASE") + events.written % entries * EVENT.size
        try:
            self.memory.write(at, EVENT.pack(**fields, phase=phase))
        except Refused:
            self._fail(events)
            return
        self._lost = False
        events.written += 1
        self._happens("event")
