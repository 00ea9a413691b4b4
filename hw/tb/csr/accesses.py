"""Random accesses that are most often good, and else wrong in the ways that matter."""

from collections.abc import Mapping
from random import Random

from hw.rdl import Register
from hw.tb.csr.model import Write

PAGE = 1 << 12


class RandomAccesses:
    """Addresses and writes for a map of registers."""

    def __init__(self, registers: Mapping[str, Register], rng: Random) -> None:
        self._registers = {register.offset: register for register in registers.values()}
        self._offsets = list(self._registers)
        self._rng = rng

    def address(self) -> int:
        """Most often that of a register, else one close by, misaligned, or anywhere."""
        offset = self._rng.choice(self._offsets)
        return self._rng.choice([offset] * 8 + [offset ^ 1 << self._rng.randrange(12), self._rng.randrange(PAGE) & ~3])

    def write(self) -> Write:
        """Most often what may be written there, else with one bit too many, or anything; most often all bytes."""
        address = self.address()
        register = self._registers.get(address)
        good = self._rng.getrandbits(32) & (register.mask(writable=True) if register else 0)
        data = self._rng.choice([good] * 4 + [good | 1 << self._rng.randrange(32), self._rng.getrandbits(32)])
        return Write(address, data, self._rng.choice([15] * 4 + [self._rng.randrange(16)]))
