"""How the two ends of a link agree that both begin anew."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.fabric.words import Phase


class Join(wiring.Component):
    """Says of one end of a link whether it is up, so that nothing of before is taken for new.

    Whoever goes down listens to nobody for a round trip. By then the other end has heard, or missed, all that was said
    before, and whatever comes was said in knowledge of what can still come. After that it needs to hear that the other
    end is down too, or has been and now waits.

    Parameters
    ----------
    quiet_cycles
        A round trip: from the last cycle of a phase to the last one in which something comes that was said before the
        other end can have heard of its end.

    Interface
    ---------
    hold : In(1)
        Whoever uses the link is being reset.
    heard, said : In(1), In(Phase)
        A word comes, in which the other end says its phase.
    give_up : In(1)
        There is no use in going on.
    phase : Out(Phase)
        What this end says.
    up : Out(1)
        The link is up here.
    joined : Out(1)
        And the other end is known to be up too.
    lost : Out(1)
        The link was up, and who uses it does not know yet that it is not: until `hold` is high.

    Latency and throughput
    ----------------------
    An end is up a round trip and a half after both are free to be, if no word is lost.

    Ordering and stalls
    -------------------
    DOWN, to INIT when the other is heard to be DOWN, to UP when it is heard to be INIT or UP. An end that is UP and
    hears that the other is DOWN goes down too. `hold` keeps an end DOWN.

    Reset and errors
    ----------------
    Reset is as good as `hold`: the other end may go on, and hears of it. A word that is lost delays, and no more.

    Invariants
    ----------
    What an end hears in one time of being up was said in one such time of the other end, and of no other has that heard
    anything meanwhile (`link.join`).

    Counters
    --------
    None.
    """

    def __init__(self, *, quiet_cycles: int):
        self._quiet_cycles = quiet_cycles
        super().__init__(
            {
                "hold": In(1),
                "heard": In(1),
                "said": In(Phase),
                "give_up": In(1),
                "phase": Out(Phase),
                "up": Out(1),
                "joined": Out(1),
                "lost": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        quiet = Signal(range(self._quiet_cycles + 1), init=self._quiet_cycles)
        heard_up = Signal()
        m.d.comb += [
            heard_up.eq(self.heard & (self.said == Phase.UP)),
            self.up.eq(self.phase == Phase.UP),
        ]
        m.d.sync += quiet.eq(Mux(self.phase == Phase.DOWN, quiet - (quiet != 0), self._quiet_cycles))
        m.d.sync += self.joined.eq((self.joined | heard_up) & (self.phase != Phase.DOWN))
        with m.If(self.hold):
            m.d.sync += [self.phase.eq(Phase.DOWN), self.lost.eq(0), self.joined.eq(0)]
        with m.Else(), m.Switch(self.phase):
            with m.Case(Phase.DOWN), m.If(self.heard & (quiet == 0) & ~self.lost):
                with m.If(self.said == Phase.DOWN):
                    m.d.sync += self.phase.eq(Phase.INIT)
                with m.Elif(self.said == Phase.INIT):
                    m.d.sync += self.phase.eq(Phase.UP)
            with m.Case(Phase.INIT), m.If(self.heard & (self.said != Phase.DOWN)):
                m.d.sync += self.phase.eq(Phase.UP)
            with m.Case(Phase.UP), m.If(self.give_up | (self.heard & (self.said == Phase.DOWN))):
                m.d.sync += [self.phase.eq(Phase.DOWN), self.lost.eq(1), self.joined.eq(0)]
        return m
