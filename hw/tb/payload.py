"""Payloads as Python values: packs and unpacks the flat vectors of emitted Verilog by the shapes in its signal map."""

from typing import Any


class Codec:
    """Packs and unpacks values of one shape, as `hw.rtl.emit.describe` writes it.

    A structure is a dictionary of all its fields, an array a list, anything else an integer.
    """

    def __init__(self, shape: dict[str, Any]):
        self.width: int = shape["width"]
        self._signed: bool = shape.get("signed", False)
        self._parts: list[tuple[Any, int, Codec]] = []
        self._container: type = dict
        if "fields" in shape:
            self._parts = [(name, part["offset"], Codec(part)) for name, part in shape["fields"].items()]
        elif "element" in shape:
            element = Codec(shape["element"])
            self._container = list
            self._parts = [(i, i * element.width, element) for i in range(shape["length"])]

        self._names = frozenset(name for name, _, _ in self._parts)

    def pack(self, value: Any) -> int:
        """Return the bits of `value`. Raises ValueError if it does not fit or does not name exactly all fields."""
        if not self._parts:
            low, high = (-1 << self.width - 1, 1 << self.width - 1) if self._signed else (0, 1 << self.width)
            if not low <= value < high:
                raise ValueError(f"{value} does not fit in {self.width} bits")
            return value & (1 << self.width) - 1
        names = range(len(value)) if self._container is list else value
        if len(names) != len(self._names) or not self._names.issuperset(names):
            raise ValueError(f"expected {[name for name, _, _ in self._parts]}, got {list(names)}")
        bits = 0
        for name, offset, part in self._parts:
            bits |= part.pack(value[name]) << offset
        return bits

    def unpack(self, bits: int) -> Any:
        """Return the value whose bits these are."""
        if not self._parts:
            return bits - (1 << self.width) if self._signed and bits >> self.width - 1 else bits
        parts = [(name, part.unpack(bits >> offset & (1 << part.width) - 1)) for name, offset, part in self._parts]
        return dict(parts) if self._container is dict else [value for _, value in parts]
