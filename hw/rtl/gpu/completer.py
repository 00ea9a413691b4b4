"""Completions of commands that have ended."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.gpu.layouts import ADDRESS_BITS, COMPLETION, acknowledgement_layout, completed_layout, record_layout
from hw.rtl.gpu.rings import EVENT


class Completer(wiring.Component):
    """Writes the completion of each command that has ended to its ring, and gives its context back.

    Parameters
    ----------
    params
        Commands in flight.

    Interface
    ---------
    done : In, stream of `completed_layout(params)`
        Commands that have ended.
    running : In, a bit a ring
    completing, completion, phase : as of `Rings`
    records : Out, stream of `record_layout(params, COMPLETION)`
        Completions.
    written : In, stream of `acknowledgement_layout(params)`, always ready
        A completion is in memory, or was refused.
    released : Out, stream of `acknowledgement_layout(params)`, always ready
        A context is free.
    completed : Out(1)
        A completion is in memory, in this cycle.

    Latency and throughput
    ----------------------
    Two cycles; a completion every two cycles.

    Ordering and stalls
    -------------------
    Entries of a ring are given in the order of `done`. A context is released when memory has its completion.

    Reset and errors
    ----------------
    Reset forgets the completion in hand. For a ring that does not run nothing is written, and the context is released
    at once.

    Invariants
    ----------
    Part of 10: one completion for each command of a ring that runs.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        acknowledgements = stream.Signature(acknowledgement_layout(params), always_ready=True)
        super().__init__(
            {
                "done": In(stream.Signature(completed_layout(params))),
                "running": In(params.tables.rings_per_port),
                "completing": Out(EVENT),
                "completion": In(ADDRESS_BITS),
                "phase": In(1),
                "records": Out(stream.Signature(record_layout(params, COMPLETION))),
                "written": In(acknowledgements),
                "released": Out(acknowledgements),
                "completed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        done, out = self.done.payload, self.records.payload
        outcome = done.outcome
        runs, taken = Signal(), Signal()
        m.d.comb += [
            runs.eq((self.running >> done.ring)[0]),
            # A context that is released at once waits for the way that acknowledgements take.
            self.done.ready.eq(Mux(runs, ~self.records.valid, ~self.written.valid)),
            taken.eq(self.done.valid & self.done.ready),
            self.completing.valid.eq(taken & runs),
            self.completing.ring.eq(done.ring),
            self.completed.eq(self.written.valid & ~self.written.payload.error),
            self.released.valid.eq(self.written.valid | (taken & ~runs)),
            self.released.payload.token.eq(Mux(self.written.valid, self.written.payload.token, done.number)),
            self.released.payload.error.eq(self.written.valid & self.written.payload.error),
        ]
        with m.If(self.records.ready):
            m.d.sync += self.records.valid.eq(0)
        with m.If(self.completing.valid):
            m.d.sync += [
                self.records.valid.eq(1),
                out.address.eq(self.completion),
                out.token.eq(done.number),
                out.record.handle.eq(Mux(outcome.named, outcome.handle.as_value(), 0)),
                out.record.slot.eq(outcome.slot),
                out.record.tag.eq(done.tag),
                out.record.count.eq(Mux(done.lookup, done.hits, outcome.count)),
                out.record.items.eq(done.items),
                out.record.status.eq(outcome.status),
                out.record.flags.phase.eq(self.phase),
                out.record.flags.named.eq(outcome.named),
                out.record.flags.given.eq(outcome.given),
            ]
        return m
