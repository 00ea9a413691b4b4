"""Answers of the node: what they say of a command, and the results of LOOKUPs."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, records
from hw.params.protocol import TAG_BITS, Status
from hw.rtl.fabric.layouts import RESPONSE, RESPONSE_BYTES, flit_layout
from hw.rtl.gpu.layouts import ASKED, COMPLETION, answer_layout, record_layout


class Finisher(wiring.Component):
    """Takes RESPONSE packets, tells the table of contexts, and writes the result of each key.

    Parameters
    ----------
    params
        Width of a flit.

    Interface
    ---------
    flits : In, stream of `flit_layout(params)`
        RESPONSE packets.
    answer_tag, answer_known, answered, answer_valid, answer, running : as of `Contexts`
    results : Out, stream of `record_layout(params, COMPLETION)`
        Results, each acknowledged with the number of its context.
    cut : In(1)
        The link is being reset: forget the part of a packet that is here.

    Latency and throughput
    ----------------------
    One cycle after the last flit of a packet; a flit a cycle, if `results` are taken as fast.

    Ordering and stalls
    -------------------
    In order. Stalls with `results`.

    Reset and errors
    ----------------
    Reset forgets what is in hand. An answer to no command, and a result of a key that the command does not have, are
    dropped; nothing is written for a ring that does not run. What ends a LOOKUP before a key is no result of that key.

    Invariants
    ----------
    Part of 10: an answer is taken for the command that has its tag, whole.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "flits": In(stream.Signature(flit_layout(params))),
                "answer_tag": Out(TAG_BITS),
                "answer_known": In(1),
                "answered": In(ASKED),
                "answer_valid": Out(1),
                "answer": Out(answer_layout(params)),
                "running": In(params.tables.rings_per_port),
                "results": Out(stream.Signature(record_layout(params, COMPLETION))),
                "cut": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        flit, answer, result, context = self.flits.payload, self.answer, self.results.payload, self.answered
        parts = self._params.flits(RESPONSE_BYTES)
        words = Signal(data.ArrayLayout(len(flit.data), parts))
        kept = Signal.like(words)
        part = Signal(range(parts))
        final = Signal()
        response = Signal(RESPONSE)
        m.d.comb += [
            words.eq(kept),
            words[parts - 1].eq(flit.data),
            response.eq(words.as_value()),
            final.eq(part == parts - 1),
        ]
        free, taken, writes, of_key = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            of_key.eq(response.status.matches(Status.HIT, Status.MISS, Status.PENDING)),
            free.eq(~self.results.valid | self.results.ready),
            self.flits.ready.eq(~final | free),
            taken.eq(self.flits.valid & self.flits.ready),
            self.answer_tag.eq(flit.tag),
            self.answer_valid.eq(taken & final & self.answer_known),
            answer.context.eq(flit.tag),
            answer.complete.eq(response.complete),
            answer.streamed.eq(response.streamed),
            answer.counted.eq(context.lookup & (response.item < context.count) & of_key),
            answer.hit.eq(response.status == Status.HIT),
            answer.written.eq((self.running >> context.ring)[0]),
            answer.outcome.status.eq(response.outcome),
            answer.outcome.named.eq(response.named & ~context.lookup),
            answer.outcome.given.eq(response.pinned & ~context.lookup),
            answer.outcome.count.eq(Mux(response.outcome == Status.OK, context.count, response.item)),
            answer.outcome.slot.eq(response.slot),
            answer.outcome.handle.eq(response.handle),
            writes.eq(self.answer_valid & answer.counted & answer.written),
        ]
        with m.If(taken):
            m.d.sync += [kept[part].eq(flit.data), part.eq(Mux(final, 0, part + 1))]
        with m.If(self.cut):
            m.d.sync += part.eq(0)
        with m.If(free):
            m.d.sync += [
                self.results.valid.eq(writes),
                result.token.eq(flit.tag),
                result.address.eq(context.results + response.item * records.COMPLETION.size),
                result.record.handle.eq(Mux(response.named, response.handle.as_value(), 0)),
                result.record.slot.eq(Mux(response.pinned, response.slot.as_value(), 0)),
                result.record.items.eq(response.item),
                result.record.status.eq(response.status),
                result.record.flags.named.eq(response.named),
                result.record.flags.given.eq(response.pinned),
            ]
        return m
