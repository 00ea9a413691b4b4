"""One ring: whether it is served, and where it stands."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.rtl.gpu.layouts import INDEX_BITS, RING_SETTINGS, RING_STATE


class Ring(wiring.Component):
    """State of a submission ring and its completion ring.

    Both have as many entries, and every descriptor becomes one completion: the entry of the next descriptor is also
    the first entry of the completion ring that is not spoken for.

    Parameters
    ----------
    params
        Commands in flight.

    Interface
    ---------
    settings : In, `RING_SETTINGS`
    state : Out, `RING_STATE`
    running : Out(1)
        The ring is served; without it, nothing of it is to be written to memory.
    wants : Out(1)
        There is a descriptor, and room for its completion.
    next, completed : Out, index
        The entry to fetch next, and that of the next completion.
    phase : Out(1)
        Of the next completion.
    fetch, complete : In(1)
        A descriptor was fetched and has become a command; a completion goes to its entry.
    release : In(1)
        A command has left the table of contexts.
    fail : In(1)
        Memory has failed.
    fetching, telling : In(1)
        One of its descriptors is being fetched; the node has not taken all losses.
    lost : Out(1)
        The node is to be told, in this cycle.
    failing, ending : Out(1)
        The ring fails, or becomes inactive, in this cycle.

    Latency and throughput
    ----------------------
    One cycle.

    Ordering and stalls
    -------------------
    An `enable` waits until all that was under way before has ended.

    Reset and errors
    ----------------
    Reset disables the ring. A doorbell that is no entry of the ring, while it is enabled, fails it, as does `fail`. A
    ring that has failed stays out of service until it was disabled.

    Invariants
    ----------
    Part of 10 and 11: no more descriptors are fetched than there are entries for completions; a ring that is lost is
    told to the node, and is active until all of its commands have ended.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._commands = params.requester.commands
        flags_in = ("fetch", "complete", "release", "fail", "fetching", "telling")
        flags_out = ("running", "wants", "phase", "lost", "failing", "ending")
        super().__init__(
            {"settings": In(RING_SETTINGS), "state": Out(RING_STATE)}
            | {"next": Out(INDEX_BITS), "completed": Out(INDEX_BITS)}
            | {name: In(1) for name in flags_in}
            | {name: Out(1) for name in flags_out}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settings, state = self.settings, self.state
        mask = Signal(INDEX_BITS)
        outstanding = Signal(bits_for(self._commands))
        wrong, draining, spent = Signal(), Signal(), Signal()
        after_next = Signal(INDEX_BITS)
        m.d.comb += [
            mask.eq((1 << settings.log2_entries) - 1),
            wrong.eq(
                (settings.tail.write & (settings.tail.data > mask))
                | (settings.head.write & (settings.head.data > mask))
            ),
            after_next.eq((self.next + 1) & mask),
            self.wants.eq(self.running & (self.next != state.tail) & (after_next != state.head)),
            self.failing.eq(self.running & (wrong | self.fail)),
            self.lost.eq(settings.lose | self.failing | (self.running & ~settings.enable)),
            self.ending.eq(draining & ~self.fetching & ~self.telling & (outstanding == 0)),
            state.losing.eq(self.telling),
            state.active.eq(self.running | draining),
            state.outstanding.eq(outstanding),
        ]
        m.d.sync += outstanding.eq(outstanding + self.fetch - self.release)
        for doorbell in ("tail", "head"):
            with m.If(settings[doorbell].write):
                m.d.sync += state[doorbell].eq(settings[doorbell].data)
        with m.If(self.fetch):
            m.d.sync += self.next.eq(after_next)
        with m.If(self.complete):
            m.d.sync += [
                self.completed.eq((self.completed + 1) & mask),
                self.phase.eq(Mux(self.completed == mask, ~self.phase, self.phase)),
            ]

        with m.If(self.running), m.If(self.failing | ~settings.enable):
            m.d.sync += [self.running.eq(0), draining.eq(1)]
        with m.Elif(draining), m.If(self.ending):
            m.d.sync += draining.eq(0)
        with m.Elif(settings.enable & ~spent):
            m.d.sync += [
                self.running.eq(1),
                self.next.eq(0),
                self.completed.eq(0),
                self.phase.eq(1),
                state.tail.eq(0),
                state.head.eq(0),
                state.failed.eq(0),
            ]
        with m.If(self.failing):
            m.d.sync += [state.failed.eq(1), spent.eq(1)]
        with m.If(~settings.enable):
            m.d.sync += spent.eq(0)
        return m
