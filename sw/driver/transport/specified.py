"""What transports on the executable specification share: registers, hash matrices and counters, in this process."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from hw.params.commands import Command, Completion, SetEpoch
from hw.params.params import Params
from hw.params.protocol import FrameState, Status
from pymodel.spec import Slice
from sw.driver.transport.administration import command_of
from sw.driver.transport.base import Transport
from sw.driver.transport.hash import HashMatrices
from sw.driver.transport.registers import RegisterFile, Window


class SpecifiedSlice:
    """A slice of the specification behind registers.

    ``take`` has a command of the registers taken now, and returns how it ended; ``forget`` has the slice restarted now.
    """

    def __init__(
        self, params: Params, number: int, take: Callable[[Command], Status], forget: Callable[[], None]
    ) -> None:
        self.slice = Slice(params, index=number)
        self._take = take
        self._forget = forget
        self._hash = HashMatrices(params)
        self.registers = RegisterFile(
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
        self.registers.set("STATUS.ready", 1)

    def _start(self) -> None:
        get, core = self.registers.get, self.slice.core
        if core.epoch == 0:
            core.cam.rehash(self._hash.diagonals)
        self._take(SetEpoch(get("EPOCH_HIGH.high") << 32 | get("EPOCH_LOW.low")))
        self.registers.set("STATUS.started", int(core.epoch != 0))

    def _restart(self) -> None:
        self._forget()
        self.registers.set("STATUS.started", 0)
        self.registers.set("INTERRUPT_STATUS.ready", 1)

    def _administer(self) -> None:
        """Run the command of the ADMIN registers; it has ended when the write of ``go`` has."""
        command = command_of(self.registers.get)
        self.registers.set("ADMIN_STATUS.status", Status.INVALID if command is None else self._take(command))
        self.registers.set("INTERRUPT_STATUS.admin", 1)

    def _read_hash(self) -> int:
        return self._hash.read(*self._hash_place())

    def _write_hash(self, value: int) -> None:
        self._hash.write(*self._hash_place(), value)

    def _hash_place(self) -> tuple[int, int]:
        return self.registers.get("CAM_HASH_SELECT.bank"), self.registers.get("CAM_HASH_SELECT.word")

    def counters(self) -> dict[str, int]:
        """Its COUNTERS and LEVELS."""
        core = self.slice.core
        states = Counter(map(attrgetter("state"), core.frames))
        used = {
            "pins_used": sum(len(ring.pins) for ring in core.rings.values()),
            "sessions_used": len(core.sessions),
            "parked_used": len(core.parked),
        }
        return core.counters | {f"frames_{state.name.lower()}": states[state] for state in FrameState} | used


class SpecifiedTransport(Transport):
    """Slices of the specification behind registers; when they take what is left to those who know the order."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self._slices = [
            SpecifiedSlice(params, number, partial(self._take, number), partial(self._forget, number))
            for number in range(params.node.slices)
        ]

    @abstractmethod
    def _take(self, slice_: int, command: Command) -> Status:
        """Have a command of the registers taken now; returns how it ended."""

    @abstractmethod
    def _forget(self, slice_: int) -> None:
        """Have the slice restarted now."""

    @staticmethod
    def _deliver(completion: Completion, into: memoryview | None) -> None:
        """Put the data of a READ where it belongs: RANGE if it is longer than that."""
        if into is None:
            return
        if len(into) == completion.length:
            into[:] = completion.data
        elif len(into) < completion.length:
            completion.status, completion.count, completion.length, completion.data = Status.RANGE, 0, 0, b""

    def read_register(self, offset: int, slice_: int = 0) -> int:
        return self._slices[slice_].registers.read(offset)

    def write_register(self, offset: int, value: int, slice_: int = 0) -> None:
        self._slices[slice_].registers.write(offset, value)

    def counters(self, slice_: int = 0) -> dict[str, int]:
        return self._slices[slice_].counters()

    def close(self) -> None:
        """Nothing is held."""
