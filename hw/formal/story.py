"""Situations that are reached by a story: inputs that a simulator follows, where a solver would search for too long."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from amaranth import ClockDomain, Module
from amaranth.hdl import Fragment
from amaranth.hdl._ast import Property  # statements have no public way in
from amaranth.sim import Simulator

from hw.formal.trace import checks


@dataclass(frozen=True)
class Step:
    """One thing that happens: which, with what fields, and what the stand-ins say meanwhile (else 0).

    With `at_once`, the next follows without a pause.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    open: Mapping[str, Any] = field(default_factory=dict)
    at_once: bool = False


Story = tuple[Step, ...]


class Player(Protocol):
    """A design that can follow a story."""

    async def follow(self, ctx: Any, step: Step) -> None:
        """Drive the inputs for as long as the step takes."""


def missed(design: Any, story: Story) -> list[str]:
    """Follow `story` and return the places of covers that it does not reach.

    Raises ValueError if a rule of the surroundings or a claim is broken on the way.
    """
    fragment = Fragment.get(design, None)
    found = list(checks(fragment, covers=True))
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.design = fragment
    left = {place for kind, place, _ in found if kind is Property.Kind.Cover}
    flags = [flag for _, _, flag in found]

    async def play(ctx: Any) -> None:
        ctx.set(sync.rst, 1)
        await ctx.tick()
        ctx.set(sync.rst, 0)
        for step in story:
            await design.follow(ctx, step)

    async def watch(ctx: Any) -> None:
        cycle = 0
        async for _, _, *values in ctx.tick().sample(*flags):
            cycle += 1
            for (kind, place, _), value in zip(found, values, strict=True):
                if kind is Property.Kind.Cover:
                    if value and cycle > 1:
                        left.discard(place)
                elif not value and cycle > 1:
                    raise ValueError(f"cycle {cycle}: the story breaks the {kind.value} at {place}")

    simulator = Simulator(m)
    simulator.add_clock(1e-9)
    simulator.add_testbench(play)
    simulator.add_testbench(watch, background=True)
    simulator.run()
    return sorted(left)
