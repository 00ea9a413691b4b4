"""Refusals in their order."""

from amaranth import Cat, Mux, Value
from amaranth.hdl import ValueLike


def first(*guards: tuple[ValueLike, ValueLike]) -> tuple[Value, Value]:
    """Return whether any guard's condition holds, and the status of the first that does."""
    status: ValueLike = guards[-1][1]
    for condition, given in reversed(guards[:-1]):
        status = Mux(condition, given, status)
    return Cat(condition for condition, _ in guards).any(), Value.cast(status)
