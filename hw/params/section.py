"""How a parameter is declared: value, range, unit and meaning in one place, checked on construction."""

from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from hw.params.errors import ParameterError


def param(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    power_of_two: bool = False,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field with its meaning, unit and legal range (inclusive), or the words that it may be."""
    about = {"doc": doc, "low": low, "high": high, "unit": unit, "power_of_two": power_of_two, "choices": choices}
    return field(default=default, metadata=about)


def expected(f: Field) -> str:
    """What a parameter takes, in words: 'a power of two from 16 to 128 (bytes)'."""
    if f.metadata["choices"]:
        return f"one of {', '.join(f.metadata['choices'])}"
    declared: Any = f.type
    kind = {int: "an integer", float: "a number", bool: "true or false"}[declared]
    if f.metadata["power_of_two"]:
        kind = "a power of two"
    low, high, unit = (f.metadata[name] for name in ("low", "high", "unit"))
    span = "" if low is None else f" from {low:,} to {high:,}"
    return kind + span + (f" ({unit})" if unit else "")


def check(name: str, f: Field, value: Any) -> None:
    """Raise ParameterError unless ``value`` is of the type and in the range of its declaration."""
    accepted: Any = (int, float) if f.type is float else f.type
    good = isinstance(value, accepted) and isinstance(value, bool) == (f.type is bool)
    if good and f.metadata["low"] is not None:
        good = f.metadata["low"] <= value <= f.metadata["high"]
    if good and f.metadata["power_of_two"]:
        good = value & (value - 1) == 0
    if good and f.metadata["choices"]:
        good = value in f.metadata["choices"]
    if not good:
        raise ParameterError(f"parameter {name} = {value!r}: expected {expected(f)}")


@dataclass(frozen=True, kw_only=True)
class Section:
    """Base of the groups of parameters; a subclass gives its ``section`` name and its fields."""

    section: ClassVar[str]

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            check(f"{self.section}.{f.name}", f, value)
            if f.type is float:
                object.__setattr__(self, f.name, float(value) + 0.0)  # one form of each number: no 1, no -0.0
