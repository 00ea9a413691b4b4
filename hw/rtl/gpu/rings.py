"""The rings of a requester: which is served next, where its entries are, and what the node is told of it."""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params, records
from hw.params.protocol import RING_BITS
from hw.rtl.arbiter import next_in_turn
from hw.rtl.gpu.layouts import ADDRESS_BITS, INDEX_BITS, RING_SETTINGS, RING_STATE
from hw.rtl.gpu.ring import Ring

EVENT = data.StructLayout({"valid": 1, "ring": RING_BITS})
"""Something happens to a ring in this cycle."""


class Rings(wiring.Component):
    """All rings of a port.

    Parameters
    ----------
    params
        Number of rings, commands in flight.

    Interface
    ---------
    settings, states : In and Out, arrays of `RING_SETTINGS` and `RING_STATE`
        The registers.
    running : Out, a bit a ring
        It is served; nothing of any other ring is to be written to memory.
    wanting, turn : Out
        There is a descriptor to fetch, of ring `turn`.
    fetching, fetching_ring : In
        One of this ring is being fetched.
    descriptor : Out
        The address of the next descriptor of `fetching_ring`.
    fetched : In(1)
        It has become a command.
    completing : In, `EVENT`
        A completion goes to `completion`, with `phase`, if `valid`; both are of its ring at any time.
    completion, phase : Out
    released : In, `EVENT`
        A command has left the table of contexts.
    failures : In, an array of `EVENT`
        Memory has failed on something of a ring.
    losses : Out, stream of ring numbers
        The node is to be told that they are lost.
    loss_taken : In(1)
        The node has taken a loss off the link.
    cut : In(1)
        The link is being reset: the node knows of no ring any more.
    failed, inactive : Out(1)
        A ring fails or becomes inactive, in this cycle.

    Latency and throughput
    ----------------------
    Two cycles from a doorbell to `wanting`, two from a loss to `losses`.

    Ordering and stalls
    -------------------
    Rings with a descriptor and room take turns. A ring stays active until the node has taken its loss, so that the loss
    cannot meet a ring that was bound anew.

    Reset and errors
    ----------------
    Reset disables all rings and tells nobody; the link has to be reset too.

    Invariants
    ----------
    Part of 10 and 11, as `Ring`.

    Counters
    --------
    None.
    """

    FAILURES = 3
    """Who may find that memory has failed: the fetcher, results, completions."""

    def __init__(self, params: Params):
        self._params = params
        rings = params.tables.rings_per_port
        super().__init__(
            {
                "settings": In(data.ArrayLayout(RING_SETTINGS, rings)),
                "states": Out(data.ArrayLayout(RING_STATE, rings)),
                "running": Out(rings),
                "wanting": Out(1),
                "turn": Out(bits_for(max(1, rings - 1))),
                "fetching": In(1),
                "fetching_ring": In(RING_BITS),
                "descriptor": Out(ADDRESS_BITS),
                "fetched": In(1),
                "completing": In(EVENT),
                "completion": Out(ADDRESS_BITS),
                "phase": Out(1),
                "released": In(EVENT),
                "failures": In(data.ArrayLayout(EVENT, self.FAILURES)),
                "losses": Out(stream.Signature(RING_BITS)),
                "loss_taken": In(1),
                "cut": In(1),
                "failed": Out(1),
                "inactive": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rings = [Ring(self._params) for _ in range(self._params.tables.rings_per_port)]
        quiet = Signal()
        untold = Signal(len(rings))
        for i, ring in enumerate(rings):
            m.submodules[f"ring_{i}"] = ring
            fails = Cat(failure.valid & (failure.ring == i) for failure in self.failures)
            m.d.comb += [
                ring.settings.eq(self.settings[i]),
                self.states[i].eq(ring.state),
                self.running[i].eq(ring.running),
                ring.fetch.eq(self.fetched & (self.fetching_ring == i)),
                ring.complete.eq(self.completing.valid & (self.completing.ring == i)),
                ring.release.eq(self.released.valid & (self.released.ring == i)),
                ring.fail.eq(fails.any()),
                ring.fetching.eq(self.fetching & (self.fetching_ring == i)),
                ring.telling.eq(untold[i] | ~quiet),
            ]
        served, ended = self.fetching_ring, self.completing.ring

        def of(name: str, ring: Signal, width: int) -> Signal:
            value = Signal(width, name=f"{name}_of_ring")
            m.d.comb += value.eq(Array(getattr(each, name) for each in rings)[ring])
            return value

        submission, completion = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        wants = Signal(len(rings))
        m.d.comb += [
            submission.eq(Array(each.submission for each in self.settings)[served]),
            completion.eq(Array(each.completion for each in self.settings)[ended]),
            self.descriptor.eq(submission + of("next", served, INDEX_BITS) * records.DESCRIPTOR.size),
            self.completion.eq(completion + of("completed", ended, INDEX_BITS) * records.COMPLETION.size),
            self.phase.eq(of("phase", ended, 1)),
            wants.eq(Cat(ring.wants for ring in rings)),
            self.wanting.eq(wants.any()),
            self.turn.eq(next_in_turn(m, wants, self.fetching_ring)),
            self.failed.eq(Cat(ring.failing for ring in rings).any()),
            self.inactive.eq(Cat(ring.ending for ring in rings).any()),
        ]
        self._tell(m, rings, untold, quiet)
        return m

    def _tell(self, m: Module, rings: list[Ring], untold: Signal, quiet: Signal) -> None:
        """Offer each loss, and count those that the node has not taken."""
        link = self._params.link
        offered, losses = Signal(RING_BITS), self.losses
        untaken = Signal(bits_for(link.message_flits + 1))
        chosen, told = Signal(RING_BITS), Signal(len(rings))
        sent = losses.valid & losses.ready
        m.d.comb += [
            chosen.eq(next_in_turn(m, untold, offered)),
            losses.payload.eq(offered),
            quiet.eq(~losses.valid & (untaken == 0)),
        ]
        with m.If(sent):
            m.d.sync += losses.valid.eq(0)
        with m.Elif(~losses.valid & untold.any()):
            m.d.sync += [losses.valid.eq(1), offered.eq(chosen)]
            m.d.comb += told.eq(1 << chosen)
        m.d.sync += [
            untold.eq(untold & ~told | Cat(ring.lost for ring in rings)),
            untaken.eq(untaken + sent - self.loss_taken),
        ]
        with m.If(self.cut):
            m.d.sync += untaken.eq(0)
