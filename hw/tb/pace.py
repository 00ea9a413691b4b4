"""When an agent is willing: generators of idle cycles for sources and of backpressure for sinks.

A pace takes a random generator and yields, cycle by cycle, whether the agent may start (source) or accept (sink).
"""

from collections.abc import Callable, Iterator
from itertools import islice, repeat
from random import Random
from typing import TypeAlias

Pace: TypeAlias = Callable[[Random], Iterator[bool]]


def always(_: Random) -> Iterator[bool]:
    """Every cycle: no idle cycles, no backpressure."""
    return repeat(True)


def never(_: Random) -> Iterator[bool]:
    """No cycle at all: silence, or a complete stall."""
    return repeat(False)


def randomly(probability: float) -> Pace:
    """Each cycle by itself, with the given probability."""

    def pace(rng: Random) -> Iterator[bool]:
        while True:
            yield rng.random() < probability

    return pace


def bursts(longest_on: int, longest_off: int) -> Pace:
    """Runs of willing and unwilling cycles, each of a random length from 1 to the longest."""

    def pace(rng: Random) -> Iterator[bool]:
        while True:
            yield from repeat(True, rng.randint(1, longest_on))
            yield from repeat(False, rng.randint(1, longest_off))

    return pace


def moods(longest: int) -> Pace:
    """Each for up to so many cycles, in an order left to chance: willing, unwilling, now and then, in runs."""

    def pace(rng: Random) -> Iterator[bool]:
        while True:
            mood = rng.choice((always, never, randomly(rng.random()), bursts(rng.randint(1, 64), rng.randint(1, 64))))
            yield from islice(mood(rng), rng.randint(1, longest))

    return pace
