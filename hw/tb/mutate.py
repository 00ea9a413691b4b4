"""Mutants: a class with a seeded bug, to show that a check can fail."""

import inspect
import sys
import textwrap
from typing import TypeVar

AnyClass = TypeVar("AnyClass", bound=type)


def mutate(cls: AnyClass, good: str, bad: str) -> AnyClass:
    """Return `cls` with the one place in its source that reads `good` reading `bad`.

    Raises ValueError unless there is exactly one such place, so that a mutant cannot outlive the code it mutates.
    """
    source = textwrap.dedent(inspect.getsource(cls))
    if source.count(good) != 1:
        raise ValueError(f"{cls.__name__} has {source.count(good)} places that read {good!r}, expected one")
    namespace = dict(vars(sys.modules[cls.__module__]))
    exec(compile(source.replace(good, bad), f"<mutant of {cls.__name__}>", "exec"), namespace)
    mutant: AnyClass = namespace[cls.__name__]
    return mutant
