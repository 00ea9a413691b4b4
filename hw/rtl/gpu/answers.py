"""Answers to commands, of the node and of engines."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.gpu.layouts import answer_layout, engine_owners


class Answers(wiring.Component):
    """Tells the table of contexts what the node, or an engine, has answered.

    Parameters
    ----------
    params
        Which engines there are.

    Interface
    ---------
    node_valid, node : In, `answer_layout(params)`
        The node has answered, in this cycle.
    engines : In, streams of `answer_layout(params)`, one an engine
        Ends of their tasks.
    answer_valid, answer : as of `Contexts`

    Latency and throughput
    ----------------------
    Within the cycle; an answer a cycle.

    Ordering and stalls
    -------------------
    The node's answers come first, then those of the first engine. An engine waits at most as long as both have some in
    each cycle: for an answer a command, which takes several.

    Reset and errors
    ----------------
    It has no state.

    Invariants
    ----------
    Part of 10: no answer is lost.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        answer = answer_layout(params)
        super().__init__(
            {
                "node_valid": In(1),
                "node": In(answer),
                "engines": In(stream.Signature(answer)).array(len(engine_owners(params))),
                "answer_valid": Out(1),
                "answer": Out(answer),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        taken = self.node_valid
        m.d.comb += [self.answer_valid.eq(self.node_valid), self.answer.eq(self.node)]
        for source in self.engines:
            with m.If(~taken & source.valid):
                m.d.comb += [source.ready.eq(1), self.answer_valid.eq(1), self.answer.eq(source.payload)]
            taken = taken | source.valid
        return m
