"""The executable specification as a device, in this process."""

from hw.params import orderlog as log
from hw.params.commands import Command, Completion
from hw.params.errors import InputError
from hw.params.orderlog import Operation, Timer
from hw.params.params import Params
from hw.params.protocol import REGISTER_TAG, REGISTERS, RingId, Status
from pymodel.spec.state import NOBODY
from pymodel.stimulus.scheduler import Policy, Scheduler
from sw.driver.transport.base import Arrival
from sw.driver.transport.specified import SpecifiedTransport

PATIENCE = 100
"""How often ``step`` finds nothing to do before time passes, so that others can send something meanwhile."""


class SpecificationTransport(SpecifiedTransport):
    """Runs commands and internal operations in a seeded order. Time passes only when nothing else can happen:
    then the oldest parked READ or unanswered fence expires.

    With ``record``, ``log`` is the order log so far, else None.
    """

    def __init__(self, params: Params, seed: int = 0, policy: Policy = Policy.EAGER, *, record: bool = False) -> None:
        super().__init__(params)
        self._scheduler = Scheduler(self._slice, seed, policy, record=record)
        self._into: dict[tuple[RingId, int], memoryview] = {}
        self._arrived: list[Arrival] = []
        self._idled = 0
        self._expires = True

    @property
    def log(self) -> list[Operation] | None:
        """The order log so far."""
        return self._scheduler.log

    def _forget(self) -> None:
        self._arrived += self._scheduler.inject(log.Restarted())
        for ring in self._slice.core.rings:
            self._arrived += self._scheduler.flush(ring)

    def _take(self, command: Command) -> Status:
        """Take a command of the registers, ahead of all that is queued; returns how it ended."""
        status = Status.INVALID
        for output in self._scheduler.inject(log.Taken(REGISTERS, REGISTER_TAG, command)):
            if isinstance(output, Completion) and (output.ring, output.tag) == (REGISTERS, REGISTER_TAG):
                status = output.status
            else:
                self._arrived.append(output)
        return status

    def _queue(self, ring: RingId, tag: int, command: Command, into: memoryview | None) -> None:
        try:
            self._scheduler.submit(ring, tag, command)
        except ValueError as error:
            raise InputError(str(error)) from None
        if into is not None:
            self._into[ring, tag] = into

    def poll(self) -> list[Arrival]:
        while not self._arrived:
            if not self._scheduler.idle:
                self._arrived = self._scheduler.step()
            elif not self._expires or not self._expire():
                break
        arrived, self._arrived = self._arrived, []
        for arrival in arrived:
            if isinstance(arrival, Completion):
                self._deliver(arrival, self._into.pop((arrival.ring, arrival.tag), None))
        return arrived

    def step(self) -> list[Arrival] | None:
        self._expires = self._idled >= PATIENCE
        arrived = self.poll()
        self._expires = True
        self._idled = 0 if arrived else self._idled + 1
        core = self._slice.core
        return arrived if arrived or len(core.parked) or core.fenced else None

    def _expire(self) -> bool:
        """Let the oldest timer run out, if there is one."""
        core = self._slice.core
        for slot, _ in core.parked.items():
            self._arrived += self._scheduler.inject(log.Expired(Timer.PARKED_READ, slot))
            return True
        for slot in core.fenced:
            self._arrived += self._scheduler.inject(log.Expired(Timer.FENCE, slot))
            return True
        return False

    def lose(self, ring: RingId) -> None:
        held = self._slice.core.rings[ring]
        if held.administrative or held.partition is not NOBODY:
            self._arrived += self._scheduler.inject(log.Lost(ring))
        self._arrived += self._scheduler.flush(ring)
