"""The home map: balanced whatever keys look like, the same for one key and many, and apart from the CAM's hashes."""

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from hw.params import DEFAULT, load_params
from hw.params import home as homes
from hw.params.home import DIAGONALS, Home
from hw.params.params import Params
from hw.params.protocol import KEY_BITS, KEY_BYTES
from hw.params.toeplitz import diagonals, tag_bits

KEYS = 20_000


def of(slices: int, home: str = "key") -> Params:
    return load_params(None, [f"node.slices={slices}", f"node.home={home}"])


def random_keys(rng: Random) -> list[int]:
    return [rng.getrandbits(KEY_BITS) for _ in range(KEYS)]


def sequential_keys(rng: Random) -> list[int]:
    first = rng.getrandbits(KEY_BITS - 20)
    return list(range(first, first + KEYS))


def keys_with_a_prefix(rng: Random) -> list[int]:
    prefix = rng.getrandbits(96) << 32
    return [prefix | rng.getrandbits(32) for _ in range(KEYS)]


def keys_with_a_suffix(rng: Random) -> list[int]:
    suffix = rng.getrandbits(96)
    return [rng.getrandbits(32) << 96 | suffix for _ in range(KEYS)]


KINDS: list[Callable[[Random], list[int]]] = [random_keys, sequential_keys, keys_with_a_prefix, keys_with_a_suffix]


def worst(slices: int, keys: list[int]) -> float:
    """How many standard deviations of a sample the slice is away that is furthest from its share."""
    home = Home(of(slices))
    octets = np.frombuffer(b"".join(key.to_bytes(KEY_BYTES, "little") for key in keys), np.uint8)
    counts = np.bincount(home.slices_of_words(octets.reshape(-1, KEY_BYTES)), minlength=slices)
    assert len(counts) == slices
    share = 1 / slices
    return float(max(abs(counts - len(keys) * share)) / math.sqrt(len(keys) * share * (1 - share)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slices", [2, 4, 16])
def test_every_slice_has_its_share(kind: Callable[[Random], list[int]], slices: int, seed: int) -> None:
    print(f"seed {seed}")
    assert worst(slices, kind(Random(seed))) < 5


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_map_that_is_not_balanced_is_found(
    kind: Callable[[Random], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that looks at 16 bits of a key only: those in the middle."""
    monkeypatch.setattr(homes, "set_index", lambda diagonal, word, sets: (word >> 56) % sets)
    assert worst(4, kind(Random(0))) > 100


def test_many_keys_have_the_homes_that_each_has() -> None:
    rng = Random(0)
    keys = [0, (1 << KEY_BITS) - 1, *(rng.getrandbits(KEY_BITS) for _ in range(500))]
    home = Home(of(16))
    octets = np.array([list(key.to_bytes(KEY_BYTES, "little")) for key in keys], np.uint8)
    assert home.slices_of_words(octets).tolist() == [home.slice_of(key, root=0) for key in keys]


def test_the_policy_says_what_decides() -> None:
    rng = Random(0)
    chains = [[rng.getrandbits(KEY_BITS) for _ in range(20)] for _ in range(20)]
    for policy, met in (("root", 1), ("key", 4)):
        home = Home(of(4, policy))
        slices = [{home.slice_of(key, root=chain[0]) for key in chain} for chain in chains]
        assert {len(each) for each in slices} <= set(range(1, met + 1))
        assert set.union(*slices) == set(range(4)), "sessions together meet all slices"
        assert max(map(len, slices)) == met


def test_a_node_of_one_slice_has_every_key() -> None:
    assert Home(DEFAULT).slice_of(1 << 127 | 12345, root=7) == 0


def rank(rows: list[int]) -> int:
    """How many rows are independent over GF(2)."""
    reduced: list[int] = []
    for row in rows:
        left = row
        for other in reduced:
            left = min(left, left ^ other)
        if left:
            reduced.append(left)
    return len(reduced)


def test_within_a_slice_the_banks_hash_as_well_as_ever() -> None:
    """The slice and the set of a key are independent: no row of the home map is made of rows of a bank's hash."""
    params = of(16)
    mask = (1 << KEY_BITS) - 1
    assert tag_bits(params) > KEY_BITS
    home = [DIAGONALS >> i & mask for i in range(4)]
    set_bits = params.cam_sets.bit_length() - 1
    for diagonal in diagonals(params):
        bank = [diagonal >> i & mask for i in range(set_bits)]
        assert rank(bank + home) == set_bits + 4
