"""What hardware sees of a register map, derived from the kinds of its fields."""

from collections.abc import Iterator, Mapping
from typing import Any

from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from hw.rdl import Field, Kind, Register


def software_signature(registers: Mapping[str, Register]) -> wiring.Signature:
    """Return what software tells hardware, from the registers' view: a structure a register, by its name in lower case.

    - stored fields that hardware sees, and pulses: the bits.
    - windows: `data`, whole, and `write` for the cycle in which it is to be kept.
    """
    return _signature(registers, _from_software)


def hardware_signature(registers: Mapping[str, Register]) -> wiring.Signature:
    """Return what hardware tells software, from the hardware's view: a structure a register, by its name in lower case.

    - status fields and windows: what is read.
    - events: bits to set.
    - counters: `increment`, and `clear`, which wins.
    """
    return _signature(registers, _from_hardware)


def _signature(registers: Mapping[str, Register], shapes: Any) -> wiring.Signature:
    layouts = {name.lower(): data.StructLayout(dict(shapes(register.fields))) for name, register in registers.items()}
    return wiring.Signature({name: Out(layout) for name, layout in layouts.items() if layout.size})


def _from_software(fields: tuple[Field, ...]) -> Iterator[tuple[str, Any]]:
    for f in fields:
        if f.kind is Kind.PULSE or (f.kind is Kind.STORED and f.shown):
            yield f.name, f.width
        elif f.kind is Kind.WINDOW:
            yield f.name, data.StructLayout({"data": f.width, "write": 1})


def _from_hardware(fields: tuple[Field, ...]) -> Iterator[tuple[str, Any]]:
    for f in fields:
        if f.kind in (Kind.STATUS, Kind.EVENT, Kind.WINDOW):
            yield f.name, f.width
        elif f.kind is Kind.COUNTER:
            yield f.name, data.StructLayout({"increment": f.increment_width, "clear": 1})
