"""A wire that does what wires do: it is late, flips bits, loses pieces, has bad spells, and is cut."""

from collections import deque
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class Piece(NamedTuple):
    """What is on the wire in a cycle, as in `hw.rtl.fabric.words.wire`."""

    valid: int
    first: int
    bits: int


NOTHING = Piece(0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What goes wrong on a wire.

    - `flip`: probability, for each piece, that some of its bits are flipped: 1 to `bits` of them, the marks included.
    - `lose`: probability that it is lost.
    - `spell`, `length`: probability, each cycle, that a bad spell begins, of so many cycles at most, in which every
      other piece is flipped or lost.
    - `cut`: everything is lost.
    """

    flip: float = 0.0
    bits: int = 5
    lose: float = 0.0
    spell: float = 0.0
    length: int = 0
    cut: bool = False


QUIET = Trouble()


class NoisyWire:
    """One direction: a piece goes in every cycle, and one comes out, `latency` cycles later, or in the same.

    `trouble` may be changed at any time; `hit` counts the pieces that were not passed on as they came.
    """

    def __init__(self, *, latency: int, width: int, random: Random):
        self._under_way: deque[Piece] = deque([NOTHING] * latency)
        self._width = width
        self._random = random
        self._bad = 0
        self.trouble = QUIET
        self.hit = 0

    def fill(self, pieces: list[Piece]) -> None:
        """Let these be under way, as many as the wire is long."""
        self._under_way = deque(pieces[: len(self._under_way)])

    def step(self, piece: Piece) -> Piece:
        """Return what comes out in the cycle in which `piece` goes in."""
        self._under_way.append(self._spoil(piece))
        return self._under_way.popleft()

    def _spoil(self, piece: Piece) -> Piece:
        trouble, chance = self.trouble, self._random.random
        if trouble.spell and chance() < trouble.spell:
            self._bad = self._random.randint(1, trouble.length)
        in_spell = self._bad > 0
        self._bad -= in_spell
        if not piece.valid:
            return piece
        if trouble.cut or (trouble.lose and chance() < trouble.lose) or (in_spell and chance() < 0.25):
            self.hit += 1
            return NOTHING
        if (trouble.flip and chance() < trouble.flip) or (in_spell and chance() < 0.33):
            self.hit += 1
            return self._flip(piece, self._random.randint(1, trouble.bits))
        return piece

    def _flip(self, piece: Piece, count: int) -> Piece:
        first, bits = piece.first, piece.bits
        for place in self._random.sample(range(-1, self._width), count):
            if place < 0:
                first ^= 1
            else:
                bits ^= 1 << place
        return Piece(1, first, bits)
