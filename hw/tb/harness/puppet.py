"""A stand-in for a top that breaks the rules of its interfaces, to show that the models find it."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring

Drives = Mapping[str, int]
"""What outputs show for a cycle, by the names of ports with dots: `memory.0.awvalid`. All others are 0."""


class Puppet(wiring.Component):
    """Has the ports of a top, and plays one of some scenes on them.

    A write to register `4 * i` of unit 0 begins scene number `i`, in the cycle after its address and data, without an
    answer; `wready` and `awready` are always high.

    Parameters
    ----------
    top
        Whose ports it has.
    scenes
        What the outputs show, cycle by cycle.
    """

    def __init__(self, top: wiring.Component, scenes: Sequence[Sequence[Drives]]):
        self._scenes = scenes
        super().__init__(top.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scene = Signal(range(len(self._scenes)))
        step = Signal(range(max(map(len, self._scenes)) + 1))
        playing = Signal()
        axi = self.axi[0] if self.signature.members["axi"].dimensions else self.axi
        m.d.comb += [axi.awready.eq(1), axi.wready.eq(1)]
        with m.If(axi.awvalid):
            m.d.sync += [scene.eq(axi.awaddr[2:]), step.eq(0), playing.eq(1)]
        with m.If(playing):
            m.d.sync += step.eq(step + 1)
            with m.Switch(scene):
                for i, drives in enumerate(self._scenes):
                    with m.Case(i), m.Switch(step):
                        for at, shown in enumerate(drives):
                            with m.Case(at):
                                m.d.comb += [self._port(name).eq(value) for name, value in shown.items()]
                        with m.Default():
                            m.d.sync += playing.eq(0)
        return m

    def _port(self, name: str) -> Any:
        """The member of that path."""
        member: Any = self
        for part in name.split("."):
            member = member[int(part)] if part.isdecimal() else getattr(member, part)
        return member
