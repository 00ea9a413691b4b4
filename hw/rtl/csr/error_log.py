"""The error log: the first errors, kept until software has read them."""

from amaranth import Module
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.csr.layouts import ERROR_ENTRY


class ErrorLog(wiring.Component):
    """A queue that drops what comes when it is full: the first error is the one that explains the others.

    Parameters
    ----------
    entries
        Entries that it keeps.

    Interface
    ---------
    errors : In, stream of `ERROR_ENTRY`
        Errors as they happen.
    oldest : Out, `ERROR_ENTRY`
        The oldest entry, if `valid`.
    valid : Out, 1 bit
        There is an entry.
    pop : In, 1 bit
        Drop the oldest entry, if there is one.
    logged, lost : Out, 1 bit
        An error is kept, or lost, in this cycle.

    Latency and throughput
    ----------------------
    One error a cycle; seen at most two cycles later.

    Ordering and stalls
    -------------------
    In order; never stalls its source.

    Reset and errors
    ----------------
    Reset empties it; a restart of the slice does not.

    Invariants, counters
    --------------------
    None.
    """

    def __init__(self, *, entries: int):
        self._entries = entries
        super().__init__(
            {
                "errors": In(stream.Signature(ERROR_ENTRY)),
                "oldest": Out(ERROR_ENTRY),
                "valid": Out(1),
                "pop": In(1),
                "logged": Out(1),
                "lost": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=ERROR_ENTRY.size, depth=self._entries)
        m.d.comb += [
            self.errors.ready.eq(1),
            queue.w_en.eq(self.errors.valid),
            queue.w_data.eq(self.errors.payload),
            queue.r_en.eq(self.pop),
            self.oldest.eq(queue.r_data),
            self.valid.eq(queue.r_rdy),
            self.logged.eq(self.errors.valid & queue.w_rdy),
            self.lost.eq(self.errors.valid & ~queue.w_rdy),
        ]
        return m
