"""The executable specification as a device, in this process."""

from collections import Counter
from operator import attrgetter

from hw.params import orderlog as log
from hw.params.commands import Command, Completion, SetEpoch
from hw.params.errors import InputError
from hw.params.orderlog import Timer
from hw.params.params import Params
from hw.params.protocol import REGISTER_TAG, REGISTERS, FrameState, RingId, Status
from pymodel.spec import Slice
from pymodel.spec.state import NOBODY
from pymodel.stimulus.scheduler import Scheduler
from sw.driver.transport.administration import command_of
from sw.driver.transport.base import Arrival, Transport
from sw.driver.transport.hash import HashMatrices
from sw.driver.transport.registers import RegisterFile, Window

PATIENCE = 100
"""How often ``step`` finds nothing to do before time passes, so that others can send something meanwhile."""


class SpecificationTransport(Transport):
    """Runs commands and internal operations in a seeded order. Time passes only when nothing else can happen:
    then the oldest parked READ or unanswered fence expires."""

    def __init__(self, params: Params, seed: int = 0) -> None:
        self.params = params
        self._slice = Slice(params)
        self._scheduler = Scheduler(self._slice, seed)
        self._hash = HashMatrices(params)
        self._registers = RegisterFile(
            params,
            {
                "CONTROL.start": self._start,
                "CONTROL.restart": self._restart,
                "ADMIN_COMMAND.go": self._administer,
                "ERROR_POP.pop": lambda: None,
            },
            {"CAM_HASH_DATA.value": Window(self._read_hash, self._write_hash)},
            self.counters,
        )
        self._registers.set("STATUS.ready", 1)
        self._into: dict[tuple[RingId, int], memoryview] = {}
        self._arrived: list[Arrival] = []
        self._idled = 0
        self._expires = True

    def read_register(self, offset: int) -> int:
        return self._registers.read(offset)

    def write_register(self, offset: int, value: int) -> None:
        self._registers.write(offset, value)

    def _start(self) -> None:
        get, core = self._registers.get, self._slice.core
        if core.epoch == 0:
            core.cam.rehash(self._hash.diagonals)
        self._take(SetEpoch(get("EPOCH_HIGH.high") << 32 | get("EPOCH_LOW.low")))
        self._registers.set("STATUS.started", int(core.epoch != 0))

    def _restart(self) -> None:
        self._arrived += self._scheduler.inject(log.Restarted())
        for ring in self._slice.core.rings:
            self._arrived += self._scheduler.flush(ring)
        self._registers.set("STATUS.started", 0)
        self._registers.set("INTERRUPT_STATUS.ready", 1)

    def _administer(self) -> None:
        """Run the command of the ADMIN registers; it has ended when the write of ``go`` has."""
        command = command_of(self._registers.get)
        self._registers.set("ADMIN_STATUS.status", Status.INVALID if command is None else self._take(command))
        self._registers.set("INTERRUPT_STATUS.admin", 1)

    def _take(self, command: Command) -> Status:
        """Take a command of the registers, ahead of all that is queued; returns how it ended."""
        status = Status.INVALID
        for output in self._scheduler.inject(log.Taken(REGISTERS, REGISTER_TAG, command)):
            if isinstance(output, Completion) and (output.ring, output.tag) == (REGISTERS, REGISTER_TAG):
                status = output.status
            else:
                self._arrived.append(output)
        return status

    def _read_hash(self) -> int:
        return self._hash.read(*self._hash_place())

    def _write_hash(self, value: int) -> None:
        self._hash.write(*self._hash_place(), value)

    def _hash_place(self) -> tuple[int, int]:
        return self._registers.get("CAM_HASH_SELECT.bank"), self._registers.get("CAM_HASH_SELECT.word")

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
                into = self._into.pop((arrival.ring, arrival.tag), None)
                if into is not None and len(into) == arrival.length:
                    into[:] = arrival.data
                elif into is not None and len(into) < arrival.length:
                    arrival.status, arrival.count, arrival.length, arrival.data = Status.RANGE, 0, 0, b""
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

    def counters(self) -> dict[str, int]:
        core = self._slice.core
        states = Counter(map(attrgetter("state"), core.frames))
        used = {
            "pins_used": sum(len(ring.pins) for ring in core.rings.values()),
            "sessions_used": len(core.sessions),
            "parked_used": len(core.parked),
        }
        return core.counters | {f"frames_{state.name.lower()}": states[state] for state in FrameState} | used

    def close(self) -> None:
        """Nothing is held."""
