"""Commands that have ended, for software or for engines."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.gpu.layouts import acknowledgement_layout, completed_layout, ended_layout, engine_owners


class Ender(wiring.Component):
    """Gives each command that has ended to whom it is of, and contexts back.

    Parameters
    ----------
    params
        Which engines there are.

    Interface
    ---------
    done, released : as of `Contexts`
    software : Out, stream of `completed_layout(params)`
        What needs a completion.
    completed : In, stream of `acknowledgement_layout(params)`, always ready
        Contexts of software's that are free.
    engines : Out, streams of `ended_layout(params)`, one an engine
        Its commands; their contexts are free. An engine takes them whatever else it waits for.

    Latency and throughput
    ----------------------
    None for software's, one cycle for others; a command a cycle.

    Ordering and stalls
    -------------------
    In the order of `done`. A context of an engine waits for the way that those of software take.

    Reset and errors
    ----------------
    Reset forgets the command in hand.

    Invariants
    ----------
    Part of 10: a command that ends is given to one.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._owners = engine_owners(params)
        ended = stream.Signature(ended_layout(params))
        acknowledgements = stream.Signature(acknowledgement_layout(params), always_ready=True)
        super().__init__(
            {
                "done": In(ended),
                "released": Out(acknowledgements),
                "software": Out(stream.Signature(completed_layout(params))),
                "completed": In(acknowledgements),
                "engines": Out(ended).array(len(self._owners)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        done, completed = self.done, self.completed
        foreign = Signal()
        if self._owners:
            m.d.comb += foreign.eq(done.payload.owner.matches(*self._owners))
        given = Signal()
        m.d.comb += [
            self.software.valid.eq(done.valid & ~foreign),
            *(self.software.payload[name].eq(done.payload[name]) for name, _ in self.software.payload.shape()),
            done.ready.eq(Mux(foreign, given, self.software.ready)),
            self.released.valid.eq(completed.valid | given),
            self.released.payload.token.eq(Mux(completed.valid, completed.payload.token, done.payload.number)),
            self.released.payload.error.eq(completed.valid & completed.payload.error),
        ]
        for owner, out in zip(self._owners, self.engines, strict=True):
            free = ~out.valid | out.ready
            with m.If(out.ready):
                m.d.sync += out.valid.eq(0)
            with m.If(done.valid & (done.payload.owner == owner) & ~completed.valid & free):
                m.d.comb += given.eq(1)
                m.d.sync += [out.valid.eq(1), out.payload.eq(done.payload)]
        return m
