"""What may be done with registers, and the register file of transports without register hardware behind them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn

from hw.params.params import Params
from hw.rdl import Kind, Register, register_map
from sw.driver.arguments import is_number
from sw.driver.errors import RegisterError


class Window(NamedTuple):
    """How a field that the device keeps is read and written."""

    read: Callable[[], int]
    write: Callable[[int], None]


class RegisterRules:
    """Refuses accesses that a register map does not allow, before anything is asked of a device."""

    def __init__(self, registers: Mapping[str, Register]) -> None:
        self._registers = {register.offset: register for register in registers.values()}

    def at(self, offset: int) -> Register:
        """The register at a byte offset; RegisterError where there is none."""
        if offset not in self._registers:
            end = max(self._registers) + 4
            raise RegisterError(f"register offset {offset:#x}: nothing there, expected a multiple of 4 below {end:#x}")
        return self._registers[offset]

    def writable(self, offset: int, value: int) -> Register:
        """The register at ``offset``, if ``value`` may be written to it while it is not locked; else RegisterError."""
        register = self.at(offset)
        if not is_number(value):
            raise RegisterError(f"register {register.name}: value is {type(value).__name__}, expected int")
        writable = register.mask(writable=True)
        if not writable:
            raise RegisterError(f"register {register.name}: is read-only, {value:#x} was written")
        if not 0 <= value < 1 << 32 or value & ~writable:
            raise RegisterError(
                f"register {register.name}: {value:#x} sets reserved or read-only bits, expected bits of {writable:#x}"
            )
        return register


def refuse_locked(register: Register) -> NoReturn:
    """RegisterError for a write to a register that was locked."""
    raise RegisterError(f"register {register.name}: is locked while {register.locked} is not 0")


class RegisterFile:
    """Registers as SystemRDL describes them, by the rules of the register hardware.

    - ``pulses``: called when a self-clearing bit is written, by ``REGISTER.field``.
    - ``windows``: the fields that the device keeps, by ``REGISTER.field``.
    - ``statistics``: the device's counters, asked for at each read of one.
    - ``registers``: the map; those of a slice if it is not given.
    """

    def __init__(
        self,
        params: Params,
        pulses: Mapping[str, Callable[[], None]],
        windows: Mapping[str, Window],
        statistics: Callable[[], Mapping[str, int]],
        registers: Mapping[str, Register] | None = None,
    ) -> None:
        self._map = register_map() if registers is None else registers
        self._rules = RegisterRules(self._map)
        self._values = {register.offset: register.reset(params) for register in self._map.values()}
        self._pulses = pulses
        self._windows = windows
        self._statistics = statistics

    def read(self, offset: int) -> int:
        """The value of the register at ``offset``."""
        register = self._rules.at(offset)
        if register.statistic is not None:
            return min(self._statistics()[register.statistic], register.fields[0].mask)
        word = self._values[offset]
        for f in register.fields:
            if f.kind is Kind.WINDOW:
                word |= self._windows[f"{register.name}.{f.name}"].read() << f.low
        return word

    def write(self, offset: int, value: int) -> None:
        """Write the register at ``offset``; nothing changes when any bit of ``value`` may not be written."""
        register = self._rules.writable(offset, value)
        if register.locked is not None and self.get(register.locked):
            refuse_locked(register)
        for f in register.fields:
            if f.kind is Kind.STORED:
                self._values[offset] = self._values[offset] & ~f.mask | value & f.mask
            elif f.kind is Kind.EVENT:
                self._values[offset] &= ~(value & f.mask)
        for f in register.fields:
            name = f"{register.name}.{f.name}"
            if f.kind is Kind.WINDOW:
                self._windows[name].write((value & f.mask) >> f.low)
            elif f.kind is Kind.PULSE and value & f.mask:
                self._pulses[name]()

    def set(self, name: str, value: int) -> None:
        """Change ``REGISTER.field`` from the hardware's side."""
        offset, low, mask = self._place(name)
        self._values[offset] = self._values[offset] & ~mask | value << low & mask

    def get(self, name: str) -> int:
        """The value of ``REGISTER.field``."""
        offset, low, mask = self._place(name)
        return (self._values[offset] & mask) >> low

    def _place(self, name: str) -> tuple[int, int, int]:
        register, _, field = name.partition(".")
        found = self._map[register]
        f = found.field(field)
        return found.offset, f.low, f.mask
