"""The hash matrices of the block CAM as the data window of the registers shows them."""

from hw.params.params import Params
from hw.params.toeplitz import diagonal_bits, diagonals


class HashMatrices:
    """The diagonals of every bank, in words of 32 bits; at first as ``cam.seed`` gives them."""

    def __init__(self, params: Params) -> None:
        self.diagonals = diagonals(params)
        self._ones = (1 << diagonal_bits(params)) - 1

    def read(self, bank: int, word: int) -> int:
        """A word of a bank; 0 where there is none."""
        return self.diagonals[bank] >> 32 * word & 0xFFFFFFFF if bank < len(self.diagonals) else 0

    def write(self, bank: int, word: int, value: int) -> None:
        """Change it, if there is one."""
        if bank < len(self.diagonals):
            mask = (0xFFFFFFFF << 32 * word) & self._ones
            self.diagonals[bank] = self.diagonals[bank] & ~mask | value << 32 * word & mask
