"""The register file of transports without register hardware behind them."""

from collections.abc import Callable

from hw.params.params import Params
from hw.rdl import Register, register_map
from sw.driver.errors import RegisterError


class RegisterFile:
    """Registers as kvnode.rdl describes them; ``pulses`` are called when a self-clearing bit is written."""

    def __init__(self, params: Params, pulses: dict[str, Callable[[], None]]) -> None:
        self._registers = {register.offset: register for register in register_map().values()}
        self._values = {offset: register.reset(params) for offset, register in self._registers.items()}
        self._pulses = pulses

    def _at(self, offset: int) -> Register:
        if offset not in self._registers:
            end = max(self._registers) + 4
            raise RegisterError(f"register offset {offset:#x}: nothing there, expected a multiple of 4 below {end:#x}")
        return self._registers[offset]

    def read(self, offset: int) -> int:
        """The value of the register at ``offset``."""
        self._at(offset)
        return self._values[offset]

    def write(self, offset: int, value: int) -> None:
        """Write the register at ``offset``; nothing changes when any bit of ``value`` may not be written."""
        register = self._at(offset)
        writable = register.mask(writable=True)
        if not writable:
            raise RegisterError(f"register {register.name}: is read-only, {value:#x} was written")
        if not 0 <= value < 1 << 32 or value & ~writable:
            raise RegisterError(
                f"register {register.name}: {value:#x} sets reserved or read-only bits, expected bits of {writable:#x}"
            )
        pulse = sum(f.mask for f in register.fields if f.pulse)
        self._values[offset] = self._values[offset] & ~writable | value & ~pulse
        for f in register.fields:
            if f.pulse and value & f.mask:
                self._pulses[f"{register.name}.{f.name}"]()

    def set(self, register: str, field: str, value: int) -> None:
        """Change a field from the hardware's side."""
        target = register_map()[register]
        f = next(f for f in target.fields if f.name == field)
        self._values[target.offset] = self._values[target.offset] & ~f.mask | value << f.low & f.mask

    def get(self, register: str) -> int:
        """The value of a register by name."""
        return self._values[register_map()[register].offset]
