"""What a guard is, and a property without it."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from hw.formal.property import Method, Property
from hw.formal.prove import Outcome, Verdict
from hw.tb.mutate import mutate

HOLDERS = ("hw.rtl.", "hw.formal.properties.")
"""Modules that may hold the guarded class or function under its name."""

NEAR = 4
"""Cycles in which a failure is looked for where an open induction is sign enough."""


class Sign(Enum):
    """What shows that a property needs a guard.

    - `REPLAYED`: a claim fails, and in the simulator too, in the same cycle.
    - `FAILED`: a claim fails.
    - `OPEN`: a claim fails, or the induction does not close.
    """

    REPLAYED = 0
    FAILED = 1
    OPEN = 2


@dataclass(frozen=True)
class Guard:
    """A place in the source of `target`, which reads `text`; with `instead` in its place, `needs` is not proved.

    - `target`: a class or function, or a method of a class.
    - `sign`: what shows that.
    - `method`: how it is shown, if not by the method that proves the property.
    """

    name: str
    target: Any
    text: str
    instead: str
    needs: str
    sign: Sign = Sign.REPLAYED
    method: Method | None = None

    def needed(self, outcome: Outcome) -> bool:
        """Whether `outcome`, of the property without this guard, is the sign; no answer in time is none."""
        return outcome.verdict is Verdict.FAILED or (self.sign is Sign.OPEN and outcome.trace is not None)


@contextmanager
def removed(guard: Guard) -> Iterator[None]:
    """Let the hardware that is built be without `guard`.

    Whoever looks the target up by its name then finds the mutant; default arguments are looked up before.
    """
    target = guard.target
    *outer, name = target.__qualname__.split(".")
    mutant = mutate(target, guard.text, guard.instead)
    modules = [module for known, module in list(sys.modules.items()) if known.startswith(HOLDERS)]
    holders = [getattr(sys.modules[target.__module__], outer[0])] if outer else modules
    with ExitStack() as stack:
        for holder in holders:
            if getattr(holder, name, None) is target:
                stack.enter_context(patch.object(holder, name, mutant))
        yield


def without(guard: Guard, prop: Property) -> Property:
    """Return `prop`, the property that needs `guard`, of hardware without it."""

    def design() -> wiring.Component:
        with removed(guard):
            made = prop.design()
            fragment = Fragment.get(made.elaborate(None), None)
        vars(made)["elaborate"] = lambda platform: fragment  # its parts are looked up only when it is elaborated
        return made

    slug = re.sub(r"\W+", "-", guard.name)
    return replace(
        prop,
        name=f"{prop.name}-without-{slug}",
        design=design,
        method=guard.method or prop.method,
        search=NEAR if guard.sign is Sign.OPEN else prop.search,
    )
