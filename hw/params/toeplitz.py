"""The hash family of the block CAM: Toeplitz matrices over GF(2), one per bank.

A matrix is given by its diagonals, one integer of ``key bits + index bits - 1`` bits; bit i of the index is the parity
of the tag under the diagonals shifted right by i. The family is 2-universal (Mansour, Nisan and Tiwari, 1993), costs
one XOR tree per index bit in hardware, and its diagonals are what the registers hold.
"""

from collections.abc import Iterator

from hw.params.params import Params
from hw.params.protocol import KEY_BITS


def tag_bits(params: Params) -> int:
    """Width of a tag: partition, model and key."""
    return KEY_BITS + (params.tables.models - 1).bit_length() + (params.tables.partitions - 1).bit_length()


def pack_tag(params: Params, partition: int, model: int, key: int) -> int:
    """The word that the CAM compares, whole: partition above model above key."""
    model_bits = (params.tables.models - 1).bit_length()
    return (partition << model_bits | model) << KEY_BITS | key


def _splitmix64(state: int) -> Iterator[int]:
    """Steele, Lea and Flood, 'Fast splittable pseudorandom number generators', 2014."""
    mask = (1 << 64) - 1
    while True:
        state = state + 0x9E3779B97F4A7C15 & mask
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        yield z ^ z >> 31


def diagonal_bits(params: Params) -> int:
    """Width of the diagonals of a matrix."""
    return tag_bits(params) + max(1, (params.cam_sets - 1).bit_length()) - 1


def diagonals(params: Params) -> list[int]:
    """The diagonals of each bank's matrix, expanded from ``cam.seed``."""
    width = diagonal_bits(params)
    words = _splitmix64(params.cam.seed)
    banks = []
    for _ in range(params.cam.banks):
        bits = 0
        for _ in range(0, width, 64):
            bits = bits << 64 | next(words)
        banks.append(bits & ((1 << width) - 1))
    return banks


def home_set(params: Params, diagonal: int, tag: int) -> int:
    """The set of a bank that ``tag`` belongs to. Where partitions are isolated the upper bits are the partition's."""
    sets = params.cam_sets // params.shares
    share = (tag >> tag_bits(params) - (params.tables.partitions - 1).bit_length()) % params.shares
    return share * sets + set_index(diagonal, tag, sets)


def set_index(diagonal: int, tag: int, sets: int) -> int:
    """The hash of ``tag``, below ``sets``, which is a power of two."""
    return sum(((diagonal >> i & tag).bit_count() & 1) << i for i in range(sets.bit_length() - 1))
