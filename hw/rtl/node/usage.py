"""How many frames each partition uses, may use, and is guaranteed."""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params.params import Params
from hw.rtl.node.layouts import limits_layout


class Usage(wiring.Component):
    """Counts frames by partition; says who may take a FREE frame, and whose block goes when there is none.

    Parameters
    ----------
    params
        Pools and the number of partitions.

    Interface
    ---------
    set, index, limits : In
        Configure partition `index`.
    gain, gain_index : In
        The partition has one frame more.
    lose, lose_index : In
        The partition has one frame less.
    quarantine, quarantine_pool : In
        A frame of the pool leaves service.
    query : In
        A partition; its answers stand from the next cycle.
    limits_of, used : Out
        What it was given, and how many frames it uses.
    configured : Out(1)
        It has been configured since reset.
    full : Out(1)
        It is at its quota, or above.
    entitled : Out(1)
        It may take a FREE frame, quota aside: below its guarantee, or borrowing what nobody is guaranteed.
    donor : Out
        The partition of the same pool that is furthest above its guarantee (ties: lowest), or else itself.
    promised : Out
        Frames of the pool in `limits` that partitions other than `index` are guaranteed.

    Latency and throughput
    ----------------------
    A gain and a loss a cycle (of different partitions, or they cancel). Answers one cycle after the query.

    Ordering and stalls
    -------------------
    Changes take effect in the order of cycles. `set` alone in its cycle.

    Reset and errors
    ----------------
    Reset forgets all partitions. The pool of a partition changes only while it uses no frame.

    Invariants
    ----------
    Invariant 8.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        index = bits_for(params.tables.partitions - 1)
        count = bits_for(params.frames)
        super().__init__(
            {
                "set": In(1),
                "index": In(index),
                "limits": In(limits_layout(params)),
                "gain": In(1),
                "gain_index": In(index),
                "lose": In(1),
                "lose_index": In(index),
                "quarantine": In(1),
                "quarantine_pool": In(bits_for(len(params.pools) - 1)),
                "query": In(index),
                "limits_of": Out(limits_layout(params)),
                "used": Out(count),
                "configured": Out(1),
                "full": Out(1),
                "entitled": Out(1),
                "donor": Out(index),
                "promised": Out(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        partitions, pools = params.tables.partitions, len(params.pools)
        count = bits_for(params.frames)
        serving = Signal(data.ArrayLayout(count, pools), init=[pool.frames for pool in params.pools])
        with m.If(self.quarantine):
            m.d.sync += serving[self.quarantine_pool].eq(serving[self.quarantine_pool] - 1)

        configured = Signal(partitions)
        limits = Signal(data.ArrayLayout(limits_layout(params), partitions))
        used = Signal(data.ArrayLayout(count, partitions))
        borrowed = Signal(data.ArrayLayout(count, pools))
        promised = Signal(data.ArrayLayout(count, pools))

        # Frames above the guarantee, and whether there are any.
        above = Signal(data.ArrayLayout(count, partitions))
        excess = Signal(partitions)
        for p in range(partitions):
            m.d.comb += [
                excess[p].eq(used[p] > limits[p].guarantee),
                above[p].eq(Mux(excess[p], used[p] - limits[p].guarantee, 0)),
            ]

        asked = Signal(limits_layout(params))
        m.d.comb += asked.eq(limits[self.query])
        m.d.sync += [
            self.limits_of.eq(asked),
            self.used.eq(used[self.query]),
            self.configured.eq(configured.bit_select(self.query, 1)),
            self.full.eq(used[self.query] >= asked.quota),
            self.entitled.eq(
                (used[self.query] < asked.guarantee)
                | (borrowed[asked.pool] + promised[asked.pool] < serving[asked.pool])
            ),
            self.donor.eq(self._furthest(m, asked.pool, configured, limits, above)),
        ]

        # What is borrowed follows every change, so that nothing is added up when it is asked for.
        own = limits[self.index]
        same_pool = configured.bit_select(self.index, 1) & (own.pool == self.limits.pool)
        m.d.comb += self.promised.eq(promised[self.limits.pool] - Mux(same_pool, own.guarantee, 0))
        gaining, losing = limits[self.gain_index], limits[self.lose_index]
        borrows = self.gain & (used[self.gain_index] >= gaining.guarantee)
        repays = self.lose & excess.bit_select(self.lose_index, 1)
        idle = self.gain & self.lose & (self.gain_index == self.lose_index)
        with m.If(self.set):
            was = Mux(configured.bit_select(self.index, 1), above[self.index], 0)
            now = Mux(used[self.index] > self.limits.guarantee, used[self.index] - self.limits.guarantee, 0)
            with m.If(configured.bit_select(self.index, 1)):
                m.d.sync += promised[own.pool].eq(promised[own.pool] - own.guarantee)
            m.d.sync += [
                promised[self.limits.pool].eq(self.promised + self.limits.guarantee),
                borrowed[self.limits.pool].eq(borrowed[self.limits.pool] - was + now),
                limits[self.index].eq(self.limits),
                configured.bit_select(self.index, 1).eq(1),
            ]
        with m.Elif(~idle):
            with m.If(self.gain):
                m.d.sync += used[self.gain_index].eq(used[self.gain_index] + 1)
            with m.If(self.lose):
                m.d.sync += used[self.lose_index].eq(used[self.lose_index] - 1)
            with m.If(borrows & ~(repays & (gaining.pool == losing.pool))):
                m.d.sync += borrowed[gaining.pool].eq(borrowed[gaining.pool] + 1)
            with m.If(repays & ~(borrows & (gaining.pool == losing.pool))):
                m.d.sync += borrowed[losing.pool].eq(borrowed[losing.pool] - 1)
        return m

    def _furthest(self, m: Module, pool: Signal, configured: Signal, limits: Signal, above: Signal) -> Signal:
        """A tree of comparisons; the query itself stands in where nobody is above."""
        best = [
            (Mux(configured[p] & (limits[p].pool == pool), above[p], 0), Const(p, self.query.shape()))
            for p in range(self._params.tables.partitions)
        ]
        while len(best) > 1:
            pairs = []
            for low, high in zip(best[::2], best[1::2], strict=False):
                amount, index = Signal.like(above[0]), Signal.like(self.query)
                wins = high[0] > low[0]
                m.d.comb += [amount.eq(Mux(wins, high[0], low[0])), index.eq(Mux(wins, high[1], low[1]))]
                pairs.append((amount, index))
            best = pairs + (best[-1:] if len(best) % 2 else [])
        amount, index = best[0]
        return Mux(amount == 0, self.query, index)
