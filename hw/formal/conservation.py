"""What goes in comes out: once, and within a bound."""

from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover
from amaranth.lib import wiring
from amaranth.lib.wiring import In


class Conservation(wiring.Component):
    """Claims that every item put in is offered once, within `wait` cycles without an offer, never more than `capacity`.

    A lost item would stay owed with no offer; a doubled or invented one would be offered while nothing is owed.

    Parameters
    ----------
    capacity
        Most items inside.
    wait
        Most cycles in a row in which an item is inside and none is offered.

    Interface
    ---------
    put : In
        An item goes in.
    offered : In
        An item is at the exit.
    taken : In
        An offered item leaves.

    Covers
    ------
    `capacity` items inside, and empty again after that.
    """

    def __init__(self, *, capacity: int, wait: int):
        self._capacity = capacity
        self._wait = wait
        super().__init__({"put": In(1), "offered": In(1), "taken": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        owed = Signal(range(self._capacity + 2))
        waited = Signal(range(self._wait + 2))
        filled = Signal()
        m.d.sync += owed.eq(owed + self.put - (self.offered & self.taken))
        with m.If((owed == 0) | self.offered):
            m.d.sync += waited.eq(0)
        with m.Elif(waited <= self._wait):
            m.d.sync += waited.eq(waited + 1)
        with m.If(owed == self._capacity):
            m.d.sync += filled.eq(1)
        m.d.comb += [
            Assert(~self.offered | (owed != 0), "an item that nobody put in"),
            Assert(owed <= self._capacity, "more items than places"),
            Assert(waited <= self._wait, "an item is lost or late"),
            Cover(filled & (owed == 0)),
        ]
        return m
