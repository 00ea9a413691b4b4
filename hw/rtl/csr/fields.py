"""The logic of one field, by its kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth import Const, Module, Mux, Signal, Value

from hw.rdl import Field, Kind


@dataclass(frozen=True, kw_only=True)
class Write:
    """What software does to a field: in the one cycle of `now`, `bits` are for those of its bits that are `strobed`.

    `bits` are 0 where they are not strobed.
    """

    now: Value
    strobed: Value
    bits: Value


def build(m: Module, f: Field, *, name: str, init: int, write: Write, sides: tuple[Any, Any]) -> Value:
    """Add the logic of `f` to `m`; return what it reads as.

    `sides` are the structures of its register in `software` and in `hardware`.
    """
    software, hardware = (
        None if side is None or f.name not in side.shape().members else side[f.name] for side in sides
    )
    if f.kind is Kind.CONSTANT:
        return Const(init, f.width)
    if f.kind is Kind.STATUS:
        return Value.cast(hardware)
    value = Signal(f.width, name=name, init=init)
    return _STATEFUL[f.kind](m, value, write, software, hardware)


def _stored(m: Module, value: Signal, write: Write, software: Any, hardware: Any) -> Value:
    with m.If(write.now):
        m.d.sync += value.eq(value & ~write.strobed | write.bits)
    if software is not None:
        m.d.comb += software.eq(value)
    return value


def _pulse(m: Module, value: Signal, write: Write, software: Any, hardware: Any) -> Value:
    m.d.sync += value.eq(Mux(write.now, write.bits, 0))
    m.d.comb += software.eq(value)
    return Const(0, len(value))


def _event(m: Module, value: Signal, write: Write, software: Any, hardware: Any) -> Value:
    m.d.sync += value.eq(value & ~Mux(write.now, write.bits, 0) | hardware)
    return value


def _counter(m: Module, value: Signal, write: Write, software: Any, hardware: Any) -> Value:
    total = Signal(len(value) + 1, name=f"{value.name}_total")
    m.d.comb += total.eq(value + hardware.increment)
    m.d.sync += value.eq(Mux(hardware.clear, 0, total[:-1] | total[-1].replicate(len(value))))
    return value


def _window(m: Module, value: Signal, write: Write, software: Any, hardware: Any) -> Value:
    keep = Signal(name=f"{value.name}_write")
    m.d.sync += keep.eq(write.now)
    with m.If(write.now):
        m.d.sync += value.eq(Value.cast(hardware) & ~write.strobed | write.bits)
    m.d.comb += [software.data.eq(value), software.write.eq(keep)]
    return Value.cast(hardware)


_STATEFUL: dict[Kind, Callable[..., Value]] = {
    Kind.STORED: _stored,
    Kind.PULSE: _pulse,
    Kind.EVENT: _event,
    Kind.COUNTER: _counter,
    Kind.WINDOW: _window,
}
