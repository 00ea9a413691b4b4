"""What stands around a unit under proof: the unit's own ports, free."""

from amaranth import Module
from amaranth.lib import wiring

from hw.formal.internals import open_up


class Harness(wiring.Component):
    """Has the ports of `unit` and connects them through; a subclass adds rules, claims and covers in `claim`.

    Parameters
    ----------
    unit
        The component under proof.

    Interface
    ---------
    The unit's own: its inputs are the free inputs of the proof.

    Attributes
    ----------
    registers
        The unit's registers by name, while `claim` runs.
    """

    def __init__(self, unit: wiring.Component):
        self.unit = unit
        super().__init__(unit.signature)

    def claim(self, m: Module) -> None:
        """Add what is claimed, required and covered to `m`."""
        raise NotImplementedError

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit, self.registers = open_up(self.unit)
        wiring.connect(m, wiring.flipped(self), self.unit)
        self.claim(m)
        return m
