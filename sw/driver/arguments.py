"""What the driver may be called with: types above all, for the values of commands are judged by the device itself."""

from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeGuard, get_origin, get_type_hints

from hw.params import commands as c
from hw.params.commands import Command
from hw.params.errors import InputError
from hw.params.protocol import RingId
from hw.params.tasks import Flush, Put
from sw.driver.errors import BufferMismatch


def _kinds(hint: Any) -> tuple[type, ...]:
    """The classes that an annotation allows."""
    return hint.__args__ if isinstance(hint, UnionType) else (get_origin(hint) or hint,)


def _words(kind: type) -> str:
    """A class in messages, with what it has to hold."""
    if issubclass(kind, memoryview):
        return "memoryview of bytes"
    return f"{kind.__name__} of integers" if issubclass(kind, Sequence) and kind is not bytes else kind.__name__


_COMMANDS = [kind for kind in vars(c).values() if isinstance(kind, type) and issubclass(kind, Command)] + [Put, Flush]
_FIELDS = {kind: [(f.name, _kinds(get_type_hints(kind)[f.name])) for f in fields(kind)] for kind in _COMMANDS}


def _described(value: object) -> str:
    """The class of a value in messages; of a sequence, with those of what is in it."""
    inside = {type(part).__name__ for part in value} if isinstance(value, list | tuple) else ()
    return " of ".join(filter(None, [type(value).__name__, ", ".join(sorted(inside))]))


def is_number(value: object) -> TypeGuard[int]:
    """Whether a value is an integer; True and False are none here, nor are NumPy's."""
    return isinstance(value, int) and not isinstance(value, bool)


def _are_numbers(values: Iterable[object]) -> bool:
    """The same of many, without a call for each."""
    return all(issubclass(kind, int) and kind is not bool for kind in set(map(type, values)))


def is_plain(view: memoryview) -> bool:
    """Whether a view is a row of single bytes."""
    return view.itemsize == view.ndim == 1 and view.c_contiguous


def check_command(command: Command) -> None:
    """InputError for a field of another type than its declaration's, in one line."""
    if type(command) not in _FIELDS:
        raise InputError(f"{type(command).__name__} is no command, expected one of hw.params.commands")
    for name, kinds in _FIELDS[type(command)]:
        value = getattr(command, name)
        good = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        if isinstance(value, tuple) and name != "keys":
            good = good and _are_numbers(value)
        elif isinstance(value, memoryview):
            good = good and is_plain(value)
        elif name == "keys":
            good = good and _are_numbers(value)
        if not good:
            expected = " or ".join(map(_words, kinds))
            raise InputError(f"{command.opcode.name}: {name} is {_described(value)}, expected {expected}")


def check_destination(into: memoryview) -> None:
    """BufferMismatch unless a READ can be written to ``into``."""
    if not isinstance(into, memoryview) or into.readonly or not is_plain(into):
        raise BufferMismatch("expected a writable memoryview of bytes to read into, see memoryview.cast")


def ring_of(ring: object, rings: Container[RingId]) -> RingId:
    """A ring, of those that there are; InputError for another."""
    if isinstance(ring, tuple) and _are_numbers(ring) and ring in rings:
        return RingId(*ring)
    raise InputError(f"there is no ring {ring!r}, expected one of device.rings")


def time_of(timeout: object) -> float:
    """How long something may take, as a number of Python's; InputError for what is no time."""
    if isinstance(timeout, Real) and not isinstance(timeout, bool):
        with suppress(OverflowError):
            time = float(timeout)
            if time > 0:
                return int(timeout) if isinstance(timeout, Integral) else time
    raise InputError(f"timeout = {timeout!r}, expected more than 0 cycles or seconds")


def check_name(name: object, what: str) -> None:
    """InputError for a name that is no text."""
    if not isinstance(name, str):
        raise InputError(f"{what} is {type(name).__name__}, expected str")
