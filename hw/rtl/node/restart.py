"""A restart by register: all state is forgotten once memory owes nothing."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params
from hw.params.striping import Striping
from hw.rtl.node.layouts import segments_bits


class Restart(wiring.Component):
    """Counts what the data path has under way, and resets the slice when that is nothing.

    Parameters
    ----------
    params
        What can be under way at most.

    Interface
    ---------
    begin : In(1)
    written, landed : In
        So many segments have gone to the data path, one a port at most; so many have landed.
    read, done : In
        A READ has gone to the data path; so many READs are done, one a share at most.
    moving : In(1)
        Data of accepted segments is on its way to the data path.
    restarting : Out(1)
        From the cycle after `begin` to the end of `reset`: nothing new is begun.
    reset : Out(1)
        For one cycle.

    Latency and throughput
    ----------------------
    The memory's latency, and what is under way.

    Ordering and stalls
    -------------------
    Memory that does not answer holds the restart up: a burst that is forgotten would answer the next one's.

    Reset and errors
    ----------------
    Reset means that nothing is under way.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._ports = params.tables.ports
        self._writes = 1 << Striping(params).number_bits + 1
        self._reads = self._ports * params.memory.waiting_reads
        super().__init__(
            {
                "begin": In(1),
                "written": In(bits_for(self._ports)),
                "landed": In(segments_bits(params) + exact_log2(params.shares)),
                "read": In(1),
                "done": In(bits_for(params.shares)),
                "moving": In(1),
                "restarting": Out(1),
                "reset": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        writes, reads = Signal(bits_for(self._writes)), Signal(bits_for(self._reads))
        m.d.sync += [writes.eq(writes + self.written - self.landed), reads.eq(reads + self.read - self.done)]
        with m.If(self.begin):
            m.d.sync += self.restarting.eq(1)
        with m.If(self.restarting & (writes == 0) & (reads == 0) & ~self.moving):
            m.d.sync += self.reset.eq(1)
        with m.If(self.reset):
            m.d.sync += [self.reset.eq(0), self.restarting.eq(0)]
        return m
