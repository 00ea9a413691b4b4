"""Several streams of packets on one."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.arbiter import next_in_turn
from hw.rtl.fabric.layouts import flit_layout


class Merge(wiring.Component):
    """Passes packets of the slices of a node on, whole, one after the other, and says of each which it is from.

    Parameters
    ----------
    params
        Width of a flit, and `node.slices`.

    Interface
    ---------
    packets : In, stream of `flit_layout(params)`, one a slice
    flits : Out, stream of `flit_layout(params)`
        With `slice` filled in.

    Latency and throughput
    ----------------------
    None; a flit a cycle.

    Ordering and stalls
    -------------------
    In order for each slice. Slices that have a packet take turns. Once the first flit of a packet is offered, all other
    packets wait for its last: a slice that stops within one stops them, too.

    Reset and errors
    ----------------
    Reset forgets the packet under way: whoever gives and takes the flits has to be reset too.

    Invariants
    ----------
    Part of 10: what goes in comes out once.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._slices = params.node.slices
        flits = stream.Signature(flit_layout(params))
        super().__init__({"packets": In(flits).array(self._slices), "flits": Out(flits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        asking, out = Cat(packets.valid for packets in self.packets), self.flits
        turn, begun = Signal(range(self._slices)), Signal()
        next_turn, chosen = next_in_turn(m, asking, turn), Signal(range(self._slices))
        m.d.comb += [
            chosen.eq(Mux(begun, turn, next_turn)),
            out.valid.eq(asking.bit_select(chosen, 1)),
            out.payload.eq(Array(packets.payload for packets in self.packets)[chosen]),
            out.payload.slice.eq(chosen),
        ]
        for i, packets in enumerate(self.packets):
            m.d.comb += packets.ready.eq(out.ready & (chosen == i))
        with m.If(out.valid):
            m.d.sync += [turn.eq(chosen), begun.eq(~(out.ready & out.payload.last))]
        return m
