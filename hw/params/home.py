"""The home map: which slice of a node has a block. The requester computes it; the node does not look.

Linear over GF(2), as the hashes of the CAM's banks are (`hw.params.toeplitz`), and of other rows than these: within a
slice the sets are used as evenly as in a node that is one. Fixed, so that a key has its home for as long as a node has
so many slices.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from hw.params.params import Params
from hw.params.protocol import KEY_BITS, KEY_BYTES
from hw.params.toeplitz import set_index

DIAGONALS = 0x58D3B303B040EEFFB25368F11A7DC34D9
"""Of the Toeplitz matrix, one for each bit of a key and of the number of a slice, up to 16 of these: arbitrary bits."""


class Home:
    """The home map of one set of parameters.

    By "root" the block goes where the first block of its chain goes, so that a session meets one slice; by "key", each
    block where its own key says, so that a session meets them all.
    """

    def __init__(self, params: Params) -> None:
        self._slices = params.node.slices
        self._by_root = params.node.home == "root"

    def slice_of(self, key: int, *, root: int) -> int:
        """The slice that the block with this key belongs to; `root` is the key of the first block of its chain."""
        return self.slice_of_word(root if self._by_root else key)

    def slice_of_word(self, word: int) -> int:
        """The slice that this key has, whatever decides: balanced over random keys, sequences and common prefixes."""
        return set_index(DIAGONALS, word, self._slices)

    def slices_of_words(self, words: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The same for many keys: a row each of `KEY_BYTES` bytes, as a LOOKUP has them in memory."""
        return np.bitwise_xor.reduce(self._by_byte[np.arange(KEY_BYTES), words], axis=1)

    @cached_property
    def _by_byte(self) -> npt.NDArray[np.uint8]:
        """What each value of each byte of a key adds."""
        values = [[self.slice_of_word(value << shift) for value in range(256)] for shift in range(0, KEY_BITS, 8)]
        return np.array(values, dtype=np.uint8)
