"""How many inserts a geometry of the block CAM refuses when a full pool is replaced at random."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hw.params import Params
from hw.params.toeplitz import diagonals, tag_bits

CHUNK = 100_000
"""Replacements between two reports of progress."""

NOWHERE = -1


class LoadedCam:
    """Places of all frames of a pool in a block CAM, under the hash family and the placement rule of the specification.

    `pymodel.spec.cam.BlockCam` is the judge; this does the same for a million tags a second.
    """

    def __init__(self, params: Params):
        cam, sets = params.cam, params.cam_sets
        self.words = -(-tag_bits(params) // 64)
        self.places: NDArray[np.int64] = np.full(params.frames, NOWHERE, np.int64)
        """Of each frame, (bank * sets + set) * ways + way, or NOWHERE."""
        self._tag_bits = tag_bits(params)
        self._masks = np.array(
            [
                [self._split(diagonal >> bit & (1 << self._tag_bits) - 1) for bit in range(sets.bit_length() - 1)]
                for diagonal in diagonals(params)
            ],
            np.uint64,
        ).reshape(cam.banks, sets.bit_length() - 1, self.words)
        self._taken = np.zeros((cam.banks, sets, cam.ways), np.bool_)

    def tags(self, rng: np.random.Generator, count: int) -> NDArray[np.uint64]:
        """Return random tags, a row each, lowest word first."""
        tags = rng.integers(0, 1 << 64, (count, self.words), np.uint64)
        tags[:, -1] &= np.uint64((1 << (self._tag_bits - 1) % 64 + 1) - 1)
        return tags

    def replace(self, frames: NDArray[np.int64], tags: NDArray[np.uint64]) -> int:
        """Take out what each frame holds, insert its new tag, and return how many inserts were refused."""
        return int(_replace(self._masks, self._taken, self.places, frames, tags))

    def _split(self, word: int) -> list[int]:
        return [word >> 64 * i & (1 << 64) - 1 for i in range(self.words)]


def refused(params: Params, *, seeds: int, replacements: int, progress: Callable[[int], Any]) -> int:
    """Return the inserts refused over all seeds: a pool is filled, then random frames of it are replaced.

    A frame whose insert was refused stays out until it is drawn again. `progress` hears of replacements done.
    """

    def one(seed: int) -> int:
        cam = LoadedCam(replace(params, cam=replace(params.cam, seed=seed)))
        rng = np.random.default_rng(seed)
        count = cam.replace(np.arange(params.frames), cam.tags(rng, params.frames))
        for begin in range(0, replacements, CHUNK):
            steps = min(CHUNK, replacements - begin)
            count += cam.replace(rng.integers(0, params.frames, steps), cam.tags(rng, steps))
            progress(steps)
        return count

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(one, range(seeds)))


@numba.njit(cache=True, nogil=True)
def _parity(word: Any) -> Any:
    for shift in (32, 16, 8, 4, 2, 1):
        word ^= word >> np.uint64(shift)
    return word & np.uint64(1)


@numba.njit(cache=True, nogil=True)
def _set_index(masks: Any, tag: Any) -> int:
    index = 0
    for bit in range(masks.shape[0]):
        word = np.uint64(0)
        for i in range(masks.shape[1]):
            word ^= masks[bit, i] & tag[i]
        index |= int(_parity(word)) << bit
    return index


@numba.njit(cache=True, nogil=True)
def _replace(masks: Any, taken: Any, places: Any, frames: Any, tags: Any) -> int:
    banks, sets, ways = taken.shape
    refusals = 0
    for step in range(len(frames)):
        place = places[frames[step]]
        if place != NOWHERE:
            taken.reshape(-1)[place] = False
        most, best, best_set = 0, 0, 0
        for bank in range(banks):
            index = _set_index(masks[bank], tags[step])
            free = ways - taken[bank, index].sum()
            if free > most:
                most, best, best_set = free, bank, index
        if most == 0:
            refusals += 1
            places[frames[step]] = NOWHERE
        else:
            way = np.argmin(taken[best, best_set])
            taken[best, best_set, way] = True
            places[frames[step]] = (best * sets + best_set) * ways + way
    return refusals
