"""What a register map promises, cycle by cycle."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hw.params import Params
from hw.rdl import Field, Kind, Register

OKAY, SLVERR = 0, 2

Inputs = Mapping[str, Mapping[str, Any]]
"""What hardware shows in a cycle: register in lower case to field to value."""


class Write(NamedTuple):
    """A write as it is on the bus."""

    address: int
    data: int
    strobe: int


class RegisterModel:
    """The registers of a map, with what they keep and what they show to hardware."""

    def __init__(self, registers: Mapping[str, Register], params: Params) -> None:
        self.registers = registers
        self._params = params
        self._at = {register.offset: register for register in registers.values()}
        self.reset()

    def reset(self) -> None:
        """As after reset."""
        self.irq = False
        self._kept = {(r.name, f.name): f.value(self._params) for r in self.registers.values() for f in r.fields}
        self._pulses: dict[tuple[str, str], int] = {}
        self._windows = {
            (r.name, f.name): 0 for r in self.registers.values() for f in r.fields if f.kind is Kind.WINDOW
        }
        self._window: Register | None = None

    def read(self, address: int, inputs: Inputs) -> tuple[int, int]:
        """RRESP and RDATA of a read in a cycle with these inputs."""
        register = self._at.get(address)
        if register is None:
            return SLVERR, 0
        return OKAY, sum(self._shown(register, f, inputs) << f.low for f in register.fields)

    def step(self, inputs: Inputs, write: Write | None) -> int | None:
        """Let a cycle with these inputs end, and a write in it; return the write's BRESP."""
        self.irq = any(
            self._kept[r.name, f.name] & self._named(f.enable, inputs)
            for r in self.registers.values()
            for f in r.fields
            if f.enable
        )
        cleared: dict[tuple[str, str], int] = {}
        self._pulses, self._window = {}, None
        response = None if write is None else self._write(write, inputs, cleared)
        for register in self.registers.values():
            for f in register.fields:
                name = register.name, f.name
                if f.kind is Kind.EVENT:
                    self._kept[name] &= ~cleared.get(name, 0)
                    self._kept[name] |= inputs[register.name.lower()][f.name]
                elif f.kind is Kind.COUNTER:
                    count = inputs[register.name.lower()][f.name]
                    total = min(self._kept[name] + count["increment"], (1 << f.width) - 1)
                    self._kept[name] = 0 if count["clear"] else total
        return response

    def software(self) -> dict[str, dict[str, Any]]:
        """What hardware sees in this cycle: register in lower case to field to value."""
        shown: dict[str, dict[str, Any]] = {}
        for register in self.registers.values():
            for f in register.fields:
                name = register.name, f.name
                if f.kind is Kind.PULSE:
                    shown.setdefault(register.name.lower(), {})[f.name] = self._pulses.get(name, 0)
                elif f.kind is Kind.STORED and f.shown:
                    shown.setdefault(register.name.lower(), {})[f.name] = self._kept[name]
                elif f.kind is Kind.WINDOW:
                    window = {"data": self._windows[name], "write": self._window is register}
                    shown.setdefault(register.name.lower(), {})[f.name] = window
        return shown

    def _shown(self, register: Register, f: Field, inputs: Inputs) -> int:
        if f.kind is Kind.PULSE:
            return 0
        if f.kind in (Kind.STATUS, Kind.WINDOW):
            value: int = inputs[register.name.lower()][f.name]
            return value
        return self._kept[register.name, f.name]

    def _named(self, name: str, inputs: Inputs) -> int:
        register, _, field = name.partition(".")
        return self._shown(self.registers[register], self.registers[register].field(field), inputs)

    def _write(self, write: Write, inputs: Inputs, cleared: dict[tuple[str, str], int]) -> int:
        register = self._at.get(write.address)
        mask = sum(0xFF << 8 * lane for lane in range(4) if write.strobe >> lane & 1)
        data = write.data & mask
        if register is None or not any(f.writable for f in register.fields):
            return SLVERR
        if register.locked and self._named(register.locked, inputs):
            return SLVERR
        if data & ~sum(f.mask for f in register.fields if f.writable):
            return SLVERR
        for f in register.fields:
            name = register.name, f.name
            bits, lanes = ((word & f.mask) >> f.low for word in (data, mask))
            if f.kind is Kind.STORED:
                self._kept[name] = self._kept[name] & ~lanes | bits
            elif f.kind is Kind.PULSE:
                self._pulses[name] = bits
            elif f.kind is Kind.EVENT:
                cleared[name] = bits
            elif f.kind is Kind.WINDOW:
                self._windows[name] = self._shown(register, f, inputs) & ~lanes | bits
                self._window = register
        return OKAY
