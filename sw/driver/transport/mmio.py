"""A node that is reached by its requesters: rings in memory, doorbells, interrupts (docs/requester.md)."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from hw.params.commands import Bind, Command, Completion
from hw.params.errors import InputError
from hw.params.params import Params
from hw.params.protocol import REGISTERS, RingId, Status
from hw.params.records import DESCRIPTOR, LOST
from hw.params.tasks import Task
from hw.rdl import register_map, requester_map
from sw.driver.arguments import time_of
from sw.driver.discovery import discover
from sw.driver.errors import DeviceError, RegisterError
from sw.driver.transport.administrator import Administrator
from sw.driver.transport.base import Arrival, Transport
from sw.driver.transport.bus import Bus
from sw.driver.transport.flights import Flight, Flights
from sw.driver.transport.notices import MessagesLost, RingFailed
from sw.driver.transport.outcomes import completed, told
from sw.driver.transport.registers import RegisterRules, refuse_locked
from sw.driver.transport.rings import EventRing, QueuePair, check_entries
from sw.driver.transport.unit import Unit

EVENTS = 64
"""Entries of an event ring."""

CYCLES, SECONDS = 10_000_000, 10.0
"""How long a command may take, unless ``set_timeout`` says otherwise: the former if the bus has a clock."""

LOOK = 64
"""Steps in which something arrives, after which the registers are looked at nevertheless."""

HAPPENINGS = ("completion", "event", "failed", "inactive")


@dataclass(slots=True, eq=False)
class Lane:
    """A ring: what waits for room, what the device has, by slot; ``dead``: out of service."""

    pair: QueuePair
    tags: set[int] = field(default_factory=set)
    waiting: deque[Flight] = field(default_factory=deque)
    flights: dict[int, Flight] = field(default_factory=dict)
    dead: bool = False


class MmioTransport(Transport):
    """Gives each ring of each port a queue pair; those that somebody has left in use are taken out of service first.

    Buffers are mapped where they are, from ``submit`` to the completion. When a ring is full, commands wait here, and
    tasks, with all behind them, when the requester has as many as it takes. Of
    administrative commands under REGISTERS the ADMIN registers take one at a time.

    A command that has no answer in time takes its ring out of service, as a failed ring: all that it has ends
    UNAVAILABLE, listeners hear ``RingFailed``, and nothing that comes later reaches anybody's memory. BIND of the ring
    under REGISTERS, or ``lose``, sets it up again.

    - ``entries``: of a ring; at first enough for all commands that a requester has in flight.
    - ``page_bytes``: map buffers in pages of this size, one by one, as memory that lies scattered.
    - ``interrupts``: without them, rings are looked at now and then.

    ``filled`` is told of each descriptor before the device can see it: cycle, ring, its tag for the device (the slot),
    and the tag of its command.

    InputError for sizes that there are none of, DeviceError for another device, or one that stays in use.
    """

    def __init__(
        self,
        params: Params,
        bus: Bus,
        *,
        entries: int | None = None,
        page_bytes: int | None = None,
        interrupts: bool = True,
    ) -> None:
        self.params = params
        self._closed = False
        self.filled: Callable[[int | None, RingId, int, int], None] | None = None
        self._bus = bus
        entries = 1 << params.requester.commands.bit_length() if entries is None else check_entries(entries)
        self._flights = Flights(bus, params, page_bytes)
        self._timeouts: dict[RingId | None, float] = {None: SECONDS if bus.cycle is None else CYCLES}
        self._arrived: list[Arrival] = []
        self._steps = 0
        self._rules = RegisterRules(register_map())
        slices = range(params.node.slices)
        self._slices = [Unit(bus, slice_, register_map()) for slice_ in slices]
        self._administrators = [Administrator(unit) for unit in self._slices]
        self._register_tags: set[int] = set()
        ports = range(params.tables.ports)
        self._units = [Unit(bus, len(slices) + port, requester_map(params)) for port in ports]
        for port, unit in enumerate(self._units):
            discover(unit.registers, params, unit.read, f" of port {port}")
        self._events = [EventRing(bus, unit, port, EVENTS) for port, unit in enumerate(self._units)]
        self._lanes = {
            ring: Lane(QueuePair(bus, self._units[ring.port], ring, entries, params))
            for port in ports
            for ring in (RingId(port, index) for index in range(params.tables.rings_per_port))
        }
        self._start()
        if interrupts:
            for unit in self._slices:
                unit.enable_interrupts(["admin"])
            for unit in self._units:
                unit.enable_interrupts(HAPPENINGS)

    @property
    def _queues(self) -> list[QueuePair | EventRing]:
        return [*self._events, *(lane.pair for lane in self._lanes.values())]

    def _start(self) -> None:
        """Set all rings up, or leave nothing behind."""
        stuck = next((queue for queue in self._queues if not self._bring_up(queue)), None)
        if stuck is not None:
            for queue in self._queues:
                queue.disable()
                queue.memory.close()
            raise DeviceError(f"{self._name(stuck)} stays in use after it was disabled, expected it to end")

    def read_register(self, offset: int, slice_: int = 0) -> int:
        self._rules.at(offset)
        return self._bus.read(slice_, offset)

    def write_register(self, offset: int, value: int, slice_: int = 0) -> None:
        register = self._rules.writable(offset, value)
        try:
            self._bus.write(slice_, offset, value)
        except RegisterError:
            if register.locked is None:
                raise
            refuse_locked(register)

    def counters(self, slice_: int = 0) -> dict[str, int]:
        unit = self._slices[slice_]
        return {each.statistic: unit.read(name) for name, each in unit.registers.items() if each.statistic}

    def set_timeout(self, timeout: float, ring: RingId | None = None) -> None:
        self._timeouts[ring] = time_of(timeout)

    @property
    def cycle(self) -> int | None:
        return self._bus.cycle

    @property
    def clock(self) -> float:
        cycle = self._bus.cycle
        return time.monotonic() if cycle is None else cycle

    def close(self) -> None:
        """Take the rings out of service and unmap all memory; what is under way has no completion any more."""
        if self._closed:
            return
        self._closed = True
        for queue in self._queues:
            queue.disable()
        for unit in self._units:
            unit.silence()
        self._bus.close()

    # Time.

    def _deadline(self, ring: RingId | None = None) -> float:
        return self.clock + self._timeouts.get(ring, self._timeouts[None])

    def _bring_up(self, queue: QueuePair | EventRing) -> bool:
        """Set a ring up, once it is inactive; whether it was so in time."""
        if queue.active:
            queue.disable()
        deadline = self._deadline()
        while queue.active or queue.losing:
            if self.clock > deadline:
                return False
            self._bus.wait()
        queue.enable()
        return True

    @staticmethod
    def _name(queue: QueuePair | EventRing) -> str:
        return f"{queue.ring}" if isinstance(queue, QueuePair) else f"the event ring of port {queue.port}"

    # Submission.

    def _queue(self, ring: RingId, tag: int, command: Command, into: memoryview | None, slice_: int) -> None:
        tags = self._register_tags if ring == REGISTERS else self._lanes[ring].tags
        if tag in tags:
            raise InputError(f"tag {tag} of {ring} is in use, expected one that has no command under way")
        if ring == REGISTERS:
            tags.add(tag)
            self._administrators[slice_].submit(tag, command)
            self._administer()
            return
        lane = self._lanes[ring]
        flight = self._flights.take(ring.port, tag, command, into, slice_)
        tags.add(tag)
        if flight is None:
            self._finish(lane, Completion(ring, tag, Status.INVALID))
        elif lane.dead:
            self._end(lane, [flight])
        else:
            lane.waiting.append(flight)
            self._send(lane)

    def _send(self, lane: Lane) -> None:
        """Give the device what waits, as long as its ring has room."""
        pair = lane.pair
        while lane.waiting and pair.room and not self._crowded(pair.ring.port, lane.waiting[0].command):
            flight = lane.waiting.popleft()
            slot = pair.take()
            if flight.keys:
                flight.fields["data"], area = pair.keys(slot)
                flight.fields["results"] = pair.results(slot)[0]
                area[: len(flight.keys)] = flight.keys
            flight.deadline = self._deadline(pair.ring)
            lane.flights[slot] = flight
            if self.filled is not None:
                self.filled(self.cycle, pair.ring, slot, flight.tag)
            try:
                pair.push(slot, DESCRIPTOR.pack(**flight.fields, tag=slot))
            except RegisterError as error:
                self._kill(lane, f"its doorbell was refused: {error}")

    def _crowded(self, port: int, command: Command) -> bool:
        """Whether it is a task and the requester has as many as leave two contexts to others: it would refuse it."""
        if not isinstance(command, Task):
            return False
        lanes = (lane for ring, lane in self._lanes.items() if ring.port == port)
        tasks = sum(isinstance(flight.command, Task) for lane in lanes for flight in lane.flights.values())
        return tasks >= self.params.requester.commands - 2

    def _administer(self) -> None:
        """Give the registers of each slice the next command; a ring that is out of service is set up before it is
        bound.

        BIND of one that the device does not let go of ends UNAVAILABLE, and is not sent.
        """
        for administrator in self._administrators:
            while (command := administrator.next) is not None:
                lane = self._lanes.get(command.ring) if isinstance(command, Bind) else None
                if lane is not None and lane.dead:
                    self._revive(lane)
                    if lane.dead:
                        self._tell_ended(administrator.refuse())
                        continue
                administrator.deadline = self._deadline()
                self._tell_ended(administrator.begin())

    def _tell_ended(self, ended: Iterable[tuple[int, Status]]) -> None:
        for tag, status in ended:
            self._register_tags.discard(tag)
            self._arrived.append(Completion(REGISTERS, tag, status))

    # Arrivals.

    def poll(self) -> list[Arrival]:
        while (arrived := self.step()) == []:
            continue
        return arrived or []

    def step(self) -> list[Arrival] | None:
        self._collect()
        self._steps += 1
        if not self._arrived:
            self._rest()
        elif self._steps % LOOK == 0:
            self._look()
        self._end_late()
        if not self._arrived and not self._outstanding:
            return None
        arrived, self._arrived = self._arrived, []
        return arrived

    @property
    def _outstanding(self) -> bool:
        busy = any(lane.flights or lane.waiting for lane in self._lanes.values())
        return busy or any(administrator.outstanding for administrator in self._administrators)

    def _collect(self) -> None:
        """Take in what is in memory, and send what waited for it."""
        for ring in self._events:
            for fields in ring.pull():
                self._arrived += self._told(ring.port, fields)
        for lane in self._lanes.values():
            if lane.flights:
                self._harvest(lane)
            self._send(lane)
        for administrator in self._administrators:
            self._tell_ended(administrator.ended())
        self._administer()

    @staticmethod
    def _told(port: int, fields: dict[str, int]) -> list[Arrival]:
        lost: list[Arrival] = [MessagesLost(port)] if fields["flags"] & LOST else []
        try:
            return [*lost, told(port, fields)]
        except ValueError:
            return [MessagesLost(port)]

    def _harvest(self, lane: Lane) -> None:
        """Take in the completions of a ring; one that is none ends its service."""
        try:
            for fields in lane.pair.pull():
                self._take_in(lane, fields)
        except RegisterError as error:
            self._kill(lane, f"its doorbell was refused: {error}")
        except (KeyError, ValueError):
            self._kill(lane, "the device has written a completion that is none")

    def _take_in(self, lane: Lane, fields: dict[str, int]) -> None:
        """A completion; KeyError or ValueError for one that is none."""
        slot, ring = fields["tag"], lane.pair.ring
        flight = lane.flights[slot]
        completion = completed(ring, flight.tag, flight.command, fields, lane.pair.results(slot)[1])
        if flight.own is not None:
            completion.data = bytes(flight.own[: completion.length])
        self._flights.release(ring.port, lane.flights.pop(slot))
        self._finish(lane, completion)

    def _finish(self, lane: Lane, completion: Completion) -> None:
        lane.tags.discard(completion.tag)
        self._arrived.append(completion)

    def _end(self, lane: Lane, flights: Iterable[Flight]) -> None:
        """Commands that the device will not answer."""
        for flight in flights:
            self._flights.release(lane.pair.ring.port, flight)
            self._finish(lane, Completion(lane.pair.ring, flight.tag, Status.UNAVAILABLE))

    def _rest(self) -> None:
        """Wait for the device."""
        self._bus.wait()
        self._look()
        self._collect()

    def _look(self) -> None:
        """Look in the registers for what has gone wrong."""
        for unit, administrator in zip(self._slices, self._administrators, strict=True):
            if administrator.outstanding:
                unit.happened(["admin"])
        for port, unit in enumerate(self._units):
            if "failed" in unit.happened(HAPPENINGS):
                self._repair(port)

    def _end_late(self) -> None:
        """Take rings out of service that have not answered in time; what has come is to be collected before."""
        now = self.clock
        for lane in self._lanes.values():
            late = next((flight for flight in lane.flights.values() if flight.deadline < now), None)
            if late is not None:
                unit_name = "seconds" if self._bus.cycle is None else "cycles"
                limit = self._timeouts.get(lane.pair.ring, self._timeouts[None])
                self._kill(lane, f"{late.command.opcode.name} had no answer in {limit:,} {unit_name}")
        for administrator in self._administrators:
            if administrator.deadline < now:
                self._tell_ended(administrator.give_up())

    # Rings out of service.

    def _repair(self, port: int) -> None:
        """Something of a port has failed."""
        ring = self._events[port]
        if ring.failed:
            self._arrived.append(MessagesLost(port))
            if not self._bring_up(ring):
                raise DeviceError(f"{self._name(ring)} stays in use after it was disabled, expected it to end")
        for lane in self._lanes.values():
            if lane.pair.ring.port == port and not lane.dead and lane.pair.failed:
                self._harvest(lane)
                if not lane.dead:
                    self._kill(lane, "memory has failed on the ring, or a doorbell was wrong")

    def _kill(self, lane: Lane, why: str) -> None:
        """Take a ring out of service: its commands end UNAVAILABLE."""
        lane.dead = True
        with suppress(RegisterError):
            lane.pair.disable()
        self._arrived.append(RingFailed(lane.pair.ring.port, lane.pair.ring, why))
        flights = [*lane.flights.values(), *lane.waiting]
        lane.flights.clear()
        lane.waiting.clear()
        self._end(lane, flights)

    def _revive(self, lane: Lane) -> None:
        """Set a ring up again; it stays out of service while the device still has commands of it, or refuses."""
        with suppress(RegisterError):
            lane.dead = not self._bring_up(lane.pair)

    def lose(self, ring: RingId) -> None:
        lane = self._lanes[ring]
        try:
            if not lane.dead:
                lane.pair.lose()
        except RegisterError as error:
            self._kill(lane, f"its loss was refused: {error}")
        while lane.flights or lane.waiting:
            self._collect()
            if lane.flights or lane.waiting:
                self._rest()
                self._end_late()
        deadline = self._deadline(ring)
        while not lane.dead and lane.pair.losing:
            self._rest()
            self._end_late()
            if deadline < self.clock:
                self._kill(lane, "its loss does not reach the node")
        if lane.dead:
            self._revive(lane)
