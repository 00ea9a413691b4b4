"""Mutants: a class or function with a seeded bug, to show that a check can fail."""

import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

Mutable = TypeVar("Mutable", bound=Callable[..., Any])


def mutate(target: Mutable, good: str, bad: str) -> Mutable:
    """Return the class or function `target` with the one place in its source that reads `good` reading `bad`.

    The mutant looks names up in the module of `target`, as that does: what is patched there reaches it, too.

    Raises ValueError unless there is exactly one such place, so that a mutant cannot outlive the code it mutates.
    """
    source = textwrap.dedent(inspect.getsource(target))
    if source.count(good) != 1:
        raise ValueError(f"{target.__name__} has {source.count(good)} places that read {good!r}, expected one")
    made: dict[str, Any] = {}
    code = compile(source.replace(good, bad), f"<mutant of {target.__name__}>", "exec")
    exec(code, vars(sys.modules[target.__module__]), made)
    mutant: Mutable = made[target.__name__]
    return mutant
