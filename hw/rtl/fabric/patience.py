"""When a link sends again by itself, and when it is given up."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Patience(wiring.Component):
    """Counts the cycles, and the times that was sent again, without progress.

    Parameters
    ----------
    timer_cycles
        Without progress for so long, flits are sent again.
    tries
        How often that is done, for this or another reason, without progress.

    Interface
    ---------
    up : In(1)
        The link is up here: else nothing is counted.
    advanced : In(1)
        There is progress: the other end says that it has more than before, or all.
    replayed : In(1)
        Flits are sent again because the other end asks.
    again : Out(1)
        Send them again.
    give_up : Out(1)
        The link is given up.

    Latency and throughput
    ----------------------
    `again` every `timer_cycles`, and in the next time but `tries` of them `give_up`.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    Reset forgets.

    Invariants and counters
    -----------------------
    Part of 10: a link that carries nothing does not stay up. None.
    """

    def __init__(self, *, timer_cycles: int, tries: int):
        self._timer_cycles, self._tries = timer_cycles, tries
        super().__init__({"up": In(1), "advanced": In(1), "replayed": In(1), "again": Out(1), "give_up": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        waited, tried = Signal(range(self._timer_cycles)), Signal(range(self._tries + 1))
        late, over = waited == self._timer_cycles - 1, tried == self._tries
        m.d.comb += [
            self.again.eq(self.up & late & ~self.advanced & ~self.replayed),
            self.give_up.eq(self.up & over & (late | self.replayed) & ~self.advanced),
        ]
        m.d.sync += waited.eq(waited + 1)
        with m.If(~self.up | self.advanced):
            m.d.sync += [waited.eq(0), tried.eq(0)]
        with m.Elif(self.replayed | late):
            m.d.sync += [waited.eq(0), tried.eq(tried + 1)]
        return m
