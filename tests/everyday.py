"""Which parameters of a test the everyday run takes."""

from collections.abc import Iterable
from typing import Any

import pytest


def everyday(names: Iterable[Any], *chosen: Any) -> list[Any]:
    """Return the parameters of a test: those that are `chosen` for every run, all for the nightly one.

    Raises AssertionError if one that is chosen is none of them.
    """
    every = list(names)
    assert set(chosen) <= set(every), f"{set(chosen) - set(every)} are no parameters"
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.nightly) for name in every]
