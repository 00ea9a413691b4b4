"""The sending side of a link's end: what is not acknowledged is kept, and sent again."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.rtl.fabric.layouts import flit_layout
from hw.rtl.fabric.words import Buffers, answer_layout, flow_layout, number_bits, replay_rows
from hw.rtl.two_port_sram import TwoPortSram


class Replay(wiring.Component):
    """Gives words their flits: in order, and from the first that is not acknowledged again when one is missing.

    Parameters
    ----------
    params
        Width of a flit.
    sent
        The credits of who sends.

    Interface
    ---------
    valid, flit : In
        A flit comes; it is always taken.
    ask : In(1)
        A word is to be filled.
    joined : In(1)
        The other end takes flits.
    flow, carried : Out, `flow_layout(sent)`, `flit_layout(params)`
        What the word says, in the cycle after `ask`.
    answered, answer : In(1), In(`answer_layout(sent)`)
        What the other end says of the flits.
    again : In(1)
        Send from the first that is not acknowledged, whatever the other end says.
    replayed : Out(1)
        The other end says that a flit is missing, and has not said so before.
    advanced : Out(1)
        It says that it has a flit that it has not said that it has, or it has all.

    Latency and throughput
    ----------------------
    A flit can be in the word that is asked for in the cycle after it came. A flit a word.

    Ordering and stalls
    -------------------
    In order. When the other end misses one, it and all behind it are sent again, once: its answers to what was sent
    before that have the `turn` of before. A word that is asked for in the cycle in which this begins has no flit.

    Reset and errors
    ----------------
    Reset forgets all flits, and begins with number 0: both ends have to. More flits than credits are the sender's
    error.

    Invariants
    ----------
    Part of 10: `link.order`.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params, sent: Buffers):
        self._sent = sent
        self._flit = flit_layout(params)
        super().__init__(
            {
                "valid": In(1),
                "flit": In(self._flit),
                "ask": In(1),
                "joined": In(1),
                "flow": Out(flow_layout(sent)),
                "carried": Out(self._flit),
                "answered": In(1),
                "answer": In(answer_layout(sent)),
                "again": In(1),
                "replayed": Out(1),
                "advanced": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows, bits = replay_rows(self._sent), number_bits(self._sent)
        m.submodules.buffer = buffer = TwoPortSram(rows=rows, width=self._flit.size)
        end = Signal(bits)
        position = Signal(bits)
        kept = Signal(bits)
        first = Signal(bits)
        turn, goes, rewind = Signal(), Signal(), Signal()
        m.d.comb += [
            buffer.write.eq(self.valid),
            buffer.write_address.eq(end[: exact_log2(rows)]),
            buffer.write_data.eq(self.flit),
            buffer.read.eq(self.ask),
            buffer.read_address.eq(position[: exact_log2(rows)]),
            self.carried.eq(buffer.read_data),
            first.eq(Mux(self.answered, self.answer.number, kept)),
            self.replayed.eq(self.answered & self.answer.missing & (self.answer.turn == turn)),
            self.advanced.eq(self.answered & ((self.answer.number != kept) | (end == kept))),
            rewind.eq(self.replayed | self.again),
            goes.eq(self.ask & self.joined & (position != end) & ~rewind),
        ]
        m.d.sync += [
            end.eq(end + self.valid),
            kept.eq(first),
            position.eq(Mux(rewind, first, position + goes)),
            turn.eq(turn ^ rewind),
        ]
        with m.If(self.ask):
            m.d.sync += [self.flow.carries.eq(goes), self.flow.number.eq(position), self.flow.turn.eq(turn)]
        return m
