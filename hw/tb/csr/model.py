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


class Place(NamedTuple):
    """A field, where to find it in `Inputs`, and under which name its value is kept."""

    register: str
    field: Field
    key: str


class RegisterModel:
    """The registers of a map, with what they keep and what they show to hardware.

    - `software`: what hardware sees in this cycle; register in lower case to field to value.
    - `changed`: the registers of it that are not as in the cycle before.
    - `irq`: the interrupt in this cycle.
    """

    def __init__(self, registers: Mapping[str, Register], params: Params) -> None:
        self.registers = registers
        self._params = params
        self._at = {register.offset: register for register in registers.values()}
        self._places = {
            f"{r.name}.{f.name}": Place(r.name.lower(), f, f"{r.name}.{f.name}")
            for r in registers.values()
            for f in r.fields
        }
        places = self._places.values()
        self._events = [place for place in places if place.field.kind is Kind.EVENT]
        self._counters = [place for place in places if place.field.kind is Kind.COUNTER]
        self._interrupts = [(place.key, self._places[place.field.enable].key) for place in places if place.field.enable]
        self.reset()

    def reset(self) -> None:
        """As after reset."""
        self.irq = False
        self._kept = {key: place.field.value(self._params) for key, place in self._places.items()}
        self.software: dict[str, dict[str, Any]] = {}
        for key, (register, f, _) in self._places.items():
            if f.kind is Kind.WINDOW:
                self.software.setdefault(register, {})[f.name] = {"data": 0, "write": 0}
            elif f.kind is Kind.PULSE or (f.kind is Kind.STORED and f.shown):
                self.software.setdefault(register, {})[f.name] = self._kept[key]
        self.changed = set(self.software)
        self._passing: set[str] = set()

    def read(self, address: int, inputs: Inputs) -> tuple[int, int]:
        """RRESP and RDATA of a read in a cycle with these inputs."""
        register = self._at.get(address)
        if register is None:
            return SLVERR, 0
        return OKAY, sum(self._shown(f"{register.name}.{f.name}", inputs) << f.low for f in register.fields)

    def step(self, inputs: Inputs, write: Write | None) -> int | None:
        """Let a cycle with these inputs end, and a write in it; return the write's BRESP."""
        self.irq = any(self._kept[event] & self._kept[enable] for event, enable in self._interrupts)
        self.changed = self._passing
        for register in self._passing:
            for f in self.software[register].values():
                if isinstance(f, dict):
                    f["write"] = 0
            self._end_pulses(register)
        self._passing = set()
        response = None if write is None else self._write(write, inputs)
        for register, f, key in self._events:
            self._kept[key] |= inputs[register][f.name]
        for register, f, key in self._counters:
            count = inputs[register][f.name]
            if count["clear"]:
                self._kept[key] = 0
            elif count["increment"]:
                self._kept[key] = min(self._kept[key] + count["increment"], (1 << f.width) - 1)
        return response

    def _end_pulses(self, register: str) -> None:
        for f in self.registers[register.upper()].fields:
            if f.kind is Kind.PULSE:
                self.software[register][f.name] = 0

    def _shown(self, key: str, inputs: Inputs) -> int:
        """What a field reads as."""
        register, f, _ = self._places[key]
        if f.kind in (Kind.STATUS, Kind.WINDOW):
            value: int = inputs[register][f.name]
            return value
        return self._kept[key]

    def _refuses(self, register: Register | None, data: int, inputs: Inputs) -> bool:
        if register is None or not any(f.writable for f in register.fields):
            return True
        if register.locked and self._shown(register.locked, inputs):
            return True
        return bool(data & ~sum(f.mask for f in register.fields if f.writable))

    def _write(self, write: Write, inputs: Inputs) -> int:
        register = self._at.get(write.address)
        mask = sum(0xFF << 8 * lane for lane in range(4) if write.strobe >> lane & 1)
        data = write.data & mask
        if register is None or self._refuses(register, data, inputs):
            return SLVERR
        shown = self.software.get(register.name.lower(), {})
        for f in register.fields:
            key = f"{register.name}.{f.name}"
            bits, lanes = ((word & f.mask) >> f.low for word in (data, mask))
            if f.kind is Kind.EVENT:
                self._kept[key] &= ~bits
            elif f.kind is Kind.WINDOW:
                shown[f.name] = {"data": self._shown(key, inputs) & ~lanes | bits, "write": 1}
            elif f.kind is Kind.PULSE:
                shown[f.name] = bits
            elif f.kind is Kind.STORED:
                self._kept[key] = self._kept[key] & ~lanes | bits
                if f.shown:
                    shown[f.name] = self._kept[key]
        if shown:
            self.changed = self.changed | {register.name.lower()}
            self._passing = {register.name.lower()}
        return OKAY
