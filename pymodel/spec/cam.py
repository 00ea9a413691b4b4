"""The block CAM: (partition, model, key) to frame, and where each tag is placed."""

from collections.abc import Sequence
from typing import NamedTuple

from hw.params.params import Params
from hw.params.toeplitz import diagonals, home_set, pack_tag


class Tag(NamedTuple):
    """What is compared, whole."""

    partition: int
    model: int
    key: int


class Place(NamedTuple):
    """A slot of the CAM."""

    bank: int
    set: int
    way: int


class BlockCam:
    """Hashed banks of sets of ways; a tag is in one place at most. Knows nothing of states and scopes.

    Lookup is by content, so a dictionary answers it; the geometry decides where a new tag goes, and whether it can.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        self._diagonals = diagonals(params)
        self._ways: dict[tuple[int, int], list[Tag | None]] = {}
        self._index: dict[Tag, tuple[Place, int]] = {}

    def rehash(self, diagonals: Sequence[int]) -> None:
        """Take other hash matrices into use, one a bank; only while nothing is stored."""
        assert not self._index, "tags are stored under the matrices in use"
        self._diagonals = list(diagonals)

    def find(self, tag: Tag) -> int | None:
        """The frame stored under ``tag``."""
        entry = self._index.get(tag)
        return None if entry is None else entry[1]

    def place(self, tag: Tag) -> Place | None:
        """Where ``tag`` would go: the emptiest of its sets (ties: lowest bank), its lowest free way."""
        word = pack_tag(self._params, *tag)
        best: Place | None = None
        most = 0
        for bank, diagonal in enumerate(self._diagonals):
            index = home_set(self._params, diagonal, word)
            ways = self._set(bank, index)
            free = ways.count(None)
            if free > most:
                most = free
                best = Place(bank, index, ways.index(None))
        return best

    def insert(self, tag: Tag, place: Place, frame: int) -> None:
        """Store ``tag`` in a free place."""
        self._set(place.bank, place.set)[place.way] = tag
        self._index[tag] = place, frame

    def remove(self, tag: Tag) -> Place:
        """Forget ``tag``; returns the place it leaves."""
        place, _ = self._index.pop(tag)
        self._set(place.bank, place.set)[place.way] = None
        return place

    def where(self, tag: Tag) -> Place:
        """The place of a stored tag."""
        return self._index[tag][0]

    def at(self, place: Place) -> Tag | None:
        """The tag stored at a place."""
        return self._set(place.bank, place.set)[place.way]

    def __len__(self) -> int:
        return len(self._index)

    def _set(self, bank: int, index: int) -> list[Tag | None]:
        return self._ways.setdefault((bank, index), [None] * self._params.cam.ways)
