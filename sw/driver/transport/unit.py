"""The registers of one unit on a bus, by name."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from hw.params.errors import InputError
from hw.rdl import Register
from sw.driver.errors import RegisterError
from sw.driver.transport.bus import Bus


class Unit:
    """Reads and writes registers by their names, and fields as ``REGISTER.field``."""

    def __init__(self, bus: Bus, unit: int, registers: Mapping[str, Register]) -> None:
        self.registers = registers
        self._bus = bus
        self._unit = unit

    def read(self, register: str) -> int:
        """The value of a register."""
        return self._bus.read(self._unit, self.registers[register].offset)

    def write(self, register: str, value: int) -> None:
        """Write a register; RegisterError if the device refuses."""
        self._bus.write(self._unit, self.registers[register].offset, value)

    def get(self, name: str) -> int:
        """The value of a field."""
        register, _, field = name.partition(".")
        f = self.registers[register].field(field)
        return (self.read(register) & f.mask) >> f.low

    def word(self, values: Mapping[str, int]) -> dict[str, int]:
        """The words of the registers that fields make up, the others 0; InputError for a value that is too large."""
        words: dict[str, int] = {}
        for name, value in values.items():
            register, _, field = name.partition(".")
            f = self.registers[register].field(field)
            if not 0 <= value < 1 << f.width:
                raise InputError(f"{name} = {value}, expected a number of {f.width} bits")
            words[register] = words.get(register, 0) | value << f.low
        return words

    def put(self, words: Mapping[str, int]) -> None:
        """Write some registers, in order."""
        for register, value in words.items():
            self.write(register, value)

    def enable_interrupts(self, causes: Iterable[str]) -> None:
        """Interrupt for these causes too."""
        fields = {f.name: f for f in self.registers["INTERRUPT_ENABLE"].fields}
        wanted = sum(fields[cause].mask for cause in causes)
        self.write("INTERRUPT_ENABLE", self.read("INTERRUPT_ENABLE") | wanted)

    def happened(self, causes: Iterable[str]) -> set[str]:
        """Which of some causes have happened since the last time; they interrupt no longer."""
        fields = {f.name: f for f in self.registers["INTERRUPT_STATUS"].fields}
        status = self.read("INTERRUPT_STATUS")
        found = {cause for cause in causes if status & fields[cause].mask}
        if found:
            self.write("INTERRUPT_STATUS", sum(fields[cause].mask for cause in found))
        return found

    def silence(self) -> None:
        """Interrupt no more, if the device still listens."""
        with suppress(RegisterError):
            self.write("INTERRUPT_ENABLE", 0)
