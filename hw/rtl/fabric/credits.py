"""Credits of a lane, which is told of each as it comes, over a wire that may lose words."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.fabric.words import Buffers, counts_layout, pulses_layout


class Credits(wiring.Component):
    """Counts credits that are given back here, and gives back here what was counted at the other end.

    A word has all that were given back since the link is up, so one that comes makes up for all that are lost.

    Parameters
    ----------
    sent, received
        The credits of who sends here, and of who sends to here.

    Interface
    ---------
    returned : In, `pulses_layout(received)`
        Credits that whoever receives here gives back.
    taken : Out, `counts_layout(received)`
        How many have been, modulo a power of two.
    heard, told : In(1), In(`counts_layout(sent)`)
        How many have been at the other end.
    given : Out, `pulses_layout(sent)`
        Credits for whoever sends here.

    Latency and throughput
    ----------------------
    One cycle each way; a credit of each channel a cycle.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    Reset begins at 0: both ends have to be reset.

    Invariants
    ----------
    Part of 10: `link.credits`.

    Counters
    --------
    None.
    """

    def __init__(self, *, sent: Buffers, received: Buffers):
        self._sent, self._received = sent, received
        super().__init__(
            {
                "returned": In(pulses_layout(received)),
                "taken": Out(counts_layout(received)),
                "heard": In(1),
                "told": In(counts_layout(sent)),
                "given": Out(pulses_layout(sent)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for channel in self._received:
            name = channel.name.lower()
            m.d.sync += self.taken[name].eq(self.taken[name] + self.returned[name])
        for channel in self._sent:
            name = channel.name.lower()
            due, done = (
                Signal.like(self.told[name], name=f"due_{name}"),
                Signal.like(self.told[name], name=f"done_{name}"),
            )
            with m.If(self.heard):
                m.d.sync += due.eq(self.told[name])
            owed = due != done
            m.d.sync += [done.eq(done + owed), self.given[name].eq(owed)]
        return m
