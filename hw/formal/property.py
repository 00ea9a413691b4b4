"""What a property is, and the ways to prove one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from amaranth.lib import wiring

from hw.formal.story import Story


class Method(Protocol):
    """A way to prove: a mode, a depth and an engine of sby."""

    mode: str
    engine: str

    @property
    def depth(self) -> int: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Induction:
    """For all time: true in the first cycles, and never first false after `depth` cycles of being true."""

    depth: int
    mode = "prove"
    engine = "smtbmc bitwuzla"

    def __str__(self) -> str:
        return f"k-induction, k = {self.depth}"


@dataclass(frozen=True)
class Pdr:
    """For all time: abc finds the missing invariant by itself. Good at control, bad at arithmetic and parities."""

    mode = "prove"
    engine = "abc pdr"
    depth = 1

    def __str__(self) -> str:
        return "PDR"


@dataclass(frozen=True)
class Bounded:
    """In the first `depth` cycles only, the first one in reset; `reason` says why that is enough, or all there is."""

    depth: int
    reason: str
    mode = "bmc"
    engine = "smtbmc bitwuzla"

    def __str__(self) -> str:
        return f"bounded, k = {self.depth}"


@dataclass(frozen=True, kw_only=True)
class Property:
    """One claim about the hardware.

    - `name`: `group.claim`, as on the command line.
    - `shows`: the invariant (docs/specification.md, invariants) or the rule that it is about, in words.
    - `design`: makes the component to prove. All its members are inputs, and all inputs are free, reset too: before the
      first reset every register and memory holds anything; claims and covers count from the cycle after it.
    - `method`: how it is proved.
    - `cover`: cycles within which every `Cover` in the design must be reachable, or a story that reaches them.
    - `search`: cycles within which a failure is looked for when an induction does not close.
    """

    name: str
    shows: str
    design: Callable[[], wiring.Component]
    method: Method
    cover: int | Story
    search: int = 32
