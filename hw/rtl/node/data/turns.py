"""Reads and writes on one memory channel, in batches: its data bus turns around seldom."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.rtl.shared import shared

READS = wiring.Signature({"waits": Out(1), "begins": Out(1), "busy": Out(1), "may": In(1)})
"""Reads of a channel: one waits to be let out, one is let out, one waits or is under way; they may be let out."""

WRITES = wiring.Signature({"waits": Out(1), "begins": Out(1), "presses": Out(1), "may": In(1)})
"""Writes of a channel: likewise, and `presses`: a batch waits, or one that holds up its port."""


@shared
class Turns(wiring.Component):
    """Says when a channel lets out bursts of reads, and when of writes.

    A requester waits for a read, and for no write before the last of its block. So reads go when they come; while
    there are any, writes wait for a batch: until `memory.turn_bursts` wait (of which one may be enough), or one has no
    buffer behind it, or one has waited for `params.turn_cycles`. Then they go, as many while a read waits, and so do
    reads in their turn. While there is one kind only, nothing waits.

    Parameters
    ----------
    params
        `memory.turn_bursts`, and what `turn_cycles` follows from.

    Interface
    ---------
    reads : In, `READS`
    writes : In, `WRITES`

    Latency and throughput
    ----------------------
    What may be let out follows a cycle behind what is said; a burst of one kind alone may be at once.

    Ordering and stalls
    -------------------
    A read that waits goes after `turn_bursts` writes at most. A write that waits goes when it has waited for
    `turn_cycles` and `turn_bursts` reads have gone since the last write, at the latest. Neither waits for anything
    else, but that memory takes the addresses of the other.

    Reset and errors
    ----------------
    Reset begins with reads.

    Invariants
    ----------
    Part of 10: neither kind starves.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__({"reads": In(READS), "writes": In(WRITES)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reads, writes = self.reads, self.writes
        most, patience = self._params.memory.turn_bursts, self._params.turn_cycles
        writing, quiet = Signal(), Signal(init=1)
        gone, waited = Signal(bits_for(most)), Signal(bits_for(patience))
        begins, enough, late = Signal(), Signal(), Signal()
        m.d.comb += [
            reads.may.eq(~writing),
            writes.may.eq(writing | quiet),
            begins.eq(Mux(writing, writes.begins, reads.begins)),
            enough.eq(gone + begins >= most),
            late.eq(waited == patience),
        ]
        m.d.sync += [
            quiet.eq(~reads.busy),
            gone.eq(Mux(enough, most, gone + begins)),
            waited.eq(Mux(writes.begins | ~writes.waits, 0, Mux(late, waited, waited + 1))),
        ]
        wanted = writes.waits & ~writes.begins & (writes.presses | late)
        with m.If(Mux(writing, ~writes.waits | (reads.waits & enough), wanted & (~reads.waits | enough))):
            m.d.sync += [writing.eq(~writing), gone.eq(0)]
        return m
