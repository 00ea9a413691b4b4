"""The executable specification as a device, in this process."""

from random import Random

from hw.params import orderlog as log
from hw.params.commands import Command, Completion
from hw.params.errors import InputError
from hw.params.orderlog import Operation, Timer
from hw.params.params import Params
from hw.params.protocol import REGISTER_TAG, REGISTERS, RingId, Status
from hw.params.tasks import Task
from pymodel.spec.state import NOBODY
from pymodel.stimulus.scheduler import Policy, Scheduler
from sw.driver.transport.base import Arrival
from sw.driver.transport.engines import Engines
from sw.driver.transport.specified import SpecifiedTransport

PATIENCE = 100
"""How often ``step`` finds nothing to do before time passes, so that others can send something meanwhile."""


class SpecificationTransport(SpecifiedTransport):
    """Runs commands and internal operations in a seeded order. Time passes only when nothing else can happen:
    then the oldest parked READ or unanswered fence expires. Slices that have something to do take turns at random.

    With ``record``, ``logs`` are the order logs of the slices so far, else each is None.
    """

    def __init__(self, params: Params, seed: int = 0, policy: Policy = Policy.EAGER, *, record: bool = False) -> None:
        super().__init__(params)
        self._schedulers = [
            Scheduler(each.slice, seed + number, policy, record=record) for number, each in enumerate(self._slices)
        ]
        self._alone = self._schedulers[0] if len(self._schedulers) == 1 else None
        self._random = Random(seed)
        self._engines = Engines(params)
        self._names: dict[tuple[RingId, int], int] = {}
        """Commands and tasks under way, and the slice of each."""
        self._into: dict[tuple[RingId, int], memoryview] = {}
        self._arrived: list[Arrival] = []
        self._idled = 0
        self._expires = True

    @property
    def logs(self) -> list[list[Operation] | None]:
        """The order logs so far."""
        return [scheduler.log for scheduler in self._schedulers]

    def _forget(self, slice_: int) -> None:
        """The restart of a slice is the loss of all ports at the others."""
        scheduler = self._schedulers[slice_]
        self._arrived += scheduler.inject(log.Restarted())
        for ring in self._slices[slice_].slice.core.rings:
            self._arrived += scheduler.flush(ring)
            for other in range(len(self._slices)):
                if other != slice_ and ring != REGISTERS:
                    self._lose(other, ring)

    def _take(self, slice_: int, command: Command) -> Status:
        """Take a command of the registers, ahead of all that is queued; returns how it ended."""
        status = Status.INVALID
        for output in self._schedulers[slice_].inject(log.Taken(REGISTERS, REGISTER_TAG, command)):
            if isinstance(output, Completion) and (output.ring, output.tag) == (REGISTERS, REGISTER_TAG):
                status = output.status
            else:
                self._arrived.append(output)
        return status

    def _queue(self, ring: RingId, tag: int, command: Command, into: memoryview | None, slice_: int) -> None:
        name = ring, tag
        if name in self._names:
            raise InputError(f"tag {tag} of {ring} is in use, expected one that has no command under way")
        first = self._engines.begin(ring, tag, command, slice_) if isinstance(command, Task) else command
        if first is not None:
            self._schedulers[slice_].submit(ring, tag, first)
        self._names[name] = slice_
        if into is not None:
            self._into[name] = into

    def poll(self) -> list[Arrival]:
        arrived: list[Arrival] = []
        while not arrived:
            scheduler = self._alone or self._turn()
            if self._arrived or self._engines.ended:
                arrived = self._collected()
            elif not scheduler.idle:
                self._arrived = scheduler.step()
            elif not self._expires or not self._expire():
                break
        for arrival in arrived:
            if isinstance(arrival, Completion):
                name = arrival.ring, arrival.tag
                self._names.pop(name, None)
                self._deliver(arrival, self._into.pop(name, None))
        return arrived

    def _collected(self) -> list[Arrival]:
        """What is for software: of engines, the ends of tasks alone; their next commands are given to the slices."""
        arrived: list[Arrival] = []
        for arrival in self._arrived:
            if isinstance(arrival, Completion) and self._engines.command(arrival.ring, arrival.tag) is not None:
                following = self._engines.go_on(arrival)
                if following is not None:
                    slice_ = self._names[arrival.ring, arrival.tag]
                    self._schedulers[slice_].submit(arrival.ring, arrival.tag, following)
            else:
                arrived.append(arrival)
        arrived += self._engines.ended
        self._arrived, self._engines.ended = [], []
        return arrived

    def _turn(self) -> Scheduler:
        """One of those that have something to do, if any has."""
        busy = [scheduler for scheduler in self._schedulers if not scheduler.idle]
        return self._random.choice(busy or self._schedulers)

    def step(self) -> list[Arrival] | None:
        self._expires = self._idled >= PATIENCE
        arrived = self.poll()
        self._expires = True
        self._idled = 0 if arrived else self._idled + 1
        cores = [each.slice.core for each in self._slices]
        return arrived if arrived or any(len(core.parked) or core.fenced for core in cores) else None

    def _expire(self) -> bool:
        """Let the oldest timer of a slice run out, if there is one."""
        for each, scheduler in zip(self._slices, self._schedulers, strict=True):
            core = each.slice.core
            for slot, _ in core.parked.items():
                self._arrived += scheduler.inject(log.Expired(Timer.PARKED_READ, slot))
                return True
            for slot in core.fenced:
                self._arrived += scheduler.inject(log.Expired(Timer.FENCE, slot))
                return True
        return False

    def lose(self, ring: RingId) -> None:
        for slice_ in range(len(self._slices)):
            self._lose(slice_, ring)

    def _lose(self, slice_: int, ring: RingId) -> None:
        held = self._slices[slice_].slice.core.rings[ring]
        if held.administrative or held.partition is not NOBODY:
            self._arrived += self._schedulers[slice_].inject(log.Lost(ring))
        self._arrived += self._schedulers[slice_].flush(ring)
