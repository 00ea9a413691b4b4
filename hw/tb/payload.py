"""Payloads as Python values: packs and unpacks the flat vectors of emitted Verilog by the shapes in its signal map."""

from typing import Any


class Codec:
    """Packs and unpacks values of one shape, as `hw.rtl.emit.describe` writes it.

    A structure is a dictionary of all its fields, an array a list, anything else an integer.
    """

    def __init__(self, shape: dict[str, Any]):
        self.width: int = shape["width"]
        self._signed: bool = shape.get("signed", False)
        self._parts: list[tuple[Any, int, int, Codec]] = []
        self._container: type = dict
        if "fields" in shape:
            each = ((name, part["offset"], Codec(part)) for name, part in shape["fields"].items())
            self._parts = [(name, offset, (1 << part.width) - 1, part) for name, offset, part in each]
        elif "element" in shape:
            element = Codec(shape["element"])
            self._container = list
            mask = (1 << element.width) - 1
            self._parts = [(i, i * element.width, mask, element) for i in range(shape["length"])]
        self._names = frozenset(name for name, *_ in self._parts)
        self._plain = not (self._parts or self._signed)

    def pack(self, value: Any) -> int:
        """Return the bits of `value`. Raises ValueError if it does not fit or does not name exactly all fields."""
        if not self._parts:
            low, high = (-1 << self.width - 1, 1 << self.width - 1) if self._signed else (0, 1 << self.width)
            if not low <= value < high:
                raise ValueError(f"{value} does not fit in {self.width} bits")
            return value & (1 << self.width) - 1
        names = range(len(value)) if self._container is list else value
        if len(names) != len(self._names) or not self._names.issuperset(names):
            raise ValueError(f"expected {[name for name, *_ in self._parts]}, got {list(names)}")
        bits = 0
        for name, offset, mask, part in self._parts:
            each = value[name]
            bits |= (each if part._plain and 0 <= each <= mask else part.pack(each)) << offset
        return bits

    def unpack(self, bits: int) -> Any:
        """Return the value whose bits these are."""
        if not self._parts:
            return bits - (1 << self.width) if self._signed and bits >> self.width - 1 else bits
        parts = {
            name: bits >> offset & mask if part._plain else part.unpack(bits >> offset & mask)
            for name, offset, mask, part in self._parts
        }
        return parts if self._container is dict else list(parts.values())
