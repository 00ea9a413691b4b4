"""Host memory of the requester of a port."""

GUARD = 1 << 20
"""What mappings are apart, at least."""


class Refused(Exception):
    """Memory refuses an access."""


class Memory:
    """What the requester of a port reaches: the mapped bytes and nothing else.

    ``broken`` are addresses that memory fails at, for tests.
    """

    def __init__(self) -> None:
        self._regions: dict[int, tuple[memoryview, bool]] = {}
        self._next = GUARD
        self.broken: set[int] = set()

    def map(self, view: memoryview, writable: bool) -> int:
        """Give bytes an address, which is not given twice."""
        address = self._next
        self._next += -(-len(view) // 4096) * 4096 + GUARD
        self._regions[address] = view, writable
        return address

    def unmap(self, address: int) -> None:
        """Take it away."""
        del self._regions[address]

    @property
    def mapped(self) -> int:
        """How many mappings there are."""
        return len(self._regions)

    def read(self, address: int, size: int) -> bytes:
        """Bytes from an address on; Refused if they are not all there."""
        view, at = self._find(address, size, write=False)
        return bytes(view[at : at + size])

    def write(self, address: int, data: bytes) -> None:
        """Change bytes; Refused, and nothing changed, if they are not all there."""
        view, at = self._find(address, len(data), write=True)
        view[at : at + len(data)] = data

    def _find(self, address: int, size: int, *, write: bool) -> tuple[memoryview, int]:
        for base, (view, writable) in self._regions.items():
            if base <= address and address + size <= base + len(view) and (writable or not write):
                if any(address <= bad < address + size for bad in self.broken):
                    break
                return view, address - base
        raise Refused
