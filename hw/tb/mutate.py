"""Mutants: a class or function with a seeded bug, to show that a check can fail."""

import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

Mutable = TypeVar("Mutable", bound=Callable[..., Any])


def mutate(target: Mutable, good: str, bad: str) -> Mutable:
    """Return the class or function `target` with the one place in its source that reads `good` reading `bad`.

    Raises ValueError unless there is exactly one such place, so that a mutant cannot outlive the code it mutates.
    """
    source = textwrap.dedent(inspect.getsource(target))
    if source.count(good) != 1:
        raise ValueError(f"{target.__name__} has {source.count(good)} places that read {good!r}, expected one")
    namespace = dict(vars(sys.modules[target.__module__]))
    exec(compile(source.replace(good, bad), f"<mutant of {target.__name__}>", "exec"), namespace)
    mutant: Mutable = namespace[target.__name__]
    return mutant
