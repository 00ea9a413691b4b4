"""Codes that protect a memory word: single error correction, double error detection (SECDED), for any data width.

The code is Hsiao's ('A class of optimal minimum odd-weight-column SEC-DED codes', IBM Journal of Research and
Development 14, 1970): all columns of the check matrix differ and have odd weight, so that a syndrome of odd weight is
a single error and one of even weight is a double error; light columns and balanced rows make small, shallow XOR trees.

A codeword is an integer: the data in the low bits, the check bits above. A column is an integer too: bit r is row r.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import combinations


class Error(Enum):
    """What a word turned out to be."""

    NONE = "a codeword"
    CORRECTED = "a codeword but for one bit, which was mended"
    UNCORRECTABLE = "further from any codeword: its content is lost"


@dataclass(frozen=True)
class Code:
    """A systematic linear code, given by the columns of its check matrix; without check bits, no code at all.

    - `data_bits`, `check_bits`: width of the two parts of a codeword.
    - `columns`: one for each bit of a codeword.
    """

    data_bits: int
    check_bits: int
    columns: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Width of a codeword."""
        return self.data_bits + self.check_bits

    @property
    def tolerance(self) -> int:
        """Number of flipped bits that a codeword survives."""
        return 1 if self.check_bits else 0

    def rows(self) -> tuple[int, ...]:
        """For each check bit the mask of the codeword bits whose parity must be even."""
        return tuple(
            sum((column >> row & 1) << bit for bit, column in enumerate(self.columns)) for row in range(self.check_bits)
        )

    def syndrome(self, word: int) -> int:
        """The sum of the columns of all bits set: 0 for a codeword."""
        return sum(((word & row).bit_count() & 1) << i for i, row in enumerate(self.rows()))

    def encode(self, data: int) -> int:
        """The codeword of `data`."""
        return data | self.syndrome(data) << self.data_bits

    def decode(self, word: int) -> tuple[int, Error]:
        """The codeword that `word` comes from, and what was wrong with it; an uncorrectable word is left alone."""
        syndrome = self.syndrome(word)
        if not syndrome:
            return word, Error.NONE
        if syndrome in self.columns:
            return word ^ 1 << self.columns.index(syndrome), Error.CORRECTED
        return word, Error.UNCORRECTABLE


@cache
def secded(data_bits: int) -> Code:
    """The SECDED code of a width: for one bit, four copies of it.

    Columns of weight 3 first, then 5 and so on; within a weight always the one that adds least to the heaviest rows.
    """
    check_bits = 3
    while 1 << check_bits - 1 < data_bits + check_bits:
        check_bits += 1
    load = [0] * check_bits
    columns: list[int] = []
    for weight in range(3, check_bits + 1, 2):
        candidates = list(combinations(range(check_bits), weight))
        while candidates and len(columns) < data_bits:
            lightest = min(candidates, key=lambda rows: (sum(load[row] ** 2 for row in rows), rows))
            candidates.remove(lightest)
            columns.append(sum(1 << row for row in lightest))
            for row in lightest:
                load[row] += 1
    return Code(data_bits, check_bits, (*columns, *(1 << row for row in range(check_bits))))


def uncoded(data_bits: int) -> Code:
    """The data itself, unprotected."""
    return Code(data_bits, 0, (0,) * data_bits)
