"""The scopes of partitions or of models: who is alive, and the death of all at once."""

from enum import IntEnum

from amaranth import Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for


class ScopeOp(IntEnum):
    """What happens to a scope."""

    NONE = 0
    ENTER = 1
    LEAVE = 2
    BUMP = 3


def scope_layout(stamp_bits: int, frames: int) -> data.StructLayout:
    """Return the layout of one scope; the fields are those of `pymodel.spec.scope.Scope`."""
    count = bits_for(frames)
    return data.StructLayout(
        {"generation": stamp_bits, "live": count, "stale": count, "bumps": stamp_bits, "closed": 1}
    )


class ScopeTable(wiring.Component):
    """A table of scopes: everything under one entry dies in one step.

    Parameters
    ----------
    entries
        Number of scopes.
    stamp_bits
        Width of the stamp that frames carry.
    frames
        Most frames that can be under one scope.

    Interface
    ---------
    ready : Out(1)
        The initialising sweep has passed: every scope is empty, in generation 0.
    query, query_stamp : In
        A scope, and a frame's stamp under it.
    alive : Out(1)
        A frame with `query_stamp` is alive.
    closed : Out(1)
        The scope takes no new use.
    op, index, stamp : In
        What happens to scope `index` at the end of this cycle; `stamp` is the leaving frame's.
    generation : Out
        The stamp that an entering frame gets.
    dirty : Out(1)
        Some scope has dead frames under it: the sweep over frames has work.

    Latency and throughput
    ----------------------
    Answers within the cycle; one operation a cycle, seen by the next.

    Ordering and stalls
    -------------------
    Operations take effect in the order of cycles. While `ready` is low, nothing may be asked.

    Reset and errors
    ----------------
    Reset begins the sweep. LEAVE of a frame that never entered is the user's error.

    Invariants
    ----------
    Invariant 4: a stamp does not come back while a dead frame may still carry it; the scope closes instead.

    Counters
    --------
    None.
    """

    def __init__(self, *, entries: int, stamp_bits: int, frames: int):
        self._entries = entries
        self._layout = scope_layout(stamp_bits, frames)
        index = bits_for(entries - 1)
        super().__init__(
            {
                "ready": Out(1),
                "query": In(index),
                "query_stamp": In(stamp_bits),
                "alive": Out(1),
                "closed": Out(1),
                "op": In(ScopeOp),
                "index": In(index),
                "stamp": In(stamp_bits),
                "generation": Out(stamp_bits),
                "dirty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = table = memory.Memory(shape=self._layout, depth=self._entries, init=[])
        asked = table.read_port(domain="comb")
        current = table.read_port(domain="comb")
        write = table.write_port()

        m.d.comb += [
            asked.addr.eq(self.query),
            self.alive.eq(~asked.data.closed & (asked.data.generation == self.query_stamp)),
            self.closed.eq(asked.data.closed),
            current.addr.eq(self.index),
            self.generation.eq(current.data.generation),
        ]

        old, new = current.data, Signal(self._layout)
        next_generation = Signal.like(old.generation)
        died = Signal.like(old.stale)
        last = Signal()
        m.d.comb += [
            next_generation.eq(old.generation + 1),
            died.eq(old.stale + old.live),
            last.eq(old.stale == 1),
            new.eq(old),
        ]
        with m.Switch(self.op):
            with m.Case(ScopeOp.ENTER):
                m.d.comb += new.live.eq(old.live + 1)
            with m.Case(ScopeOp.LEAVE):
                with m.If(~old.closed & (self.stamp == old.generation)):
                    m.d.comb += new.live.eq(old.live - 1)
                with m.Else():
                    m.d.comb += new.stale.eq(old.stale - 1)
                    with m.If(last):
                        m.d.comb += [new.bumps.eq(0), new.closed.eq(0)]
                        with m.If(old.closed):
                            m.d.comb += new.generation.eq(next_generation)
            with m.Case(ScopeOp.BUMP):
                m.d.comb += [new.stale.eq(died), new.live.eq(0)]
                with m.If(~old.closed & (died == 0)):
                    m.d.comb += new.generation.eq(next_generation)
                with m.Elif(~old.closed & ~old.bumps.all()):
                    m.d.comb += [new.generation.eq(next_generation), new.bumps.eq(old.bumps + 1)]
                with m.Else():
                    m.d.comb += new.closed.eq(1)

        sweep = Signal(range(self._entries))
        m.d.comb += [
            write.en.eq((self.op != ScopeOp.NONE) | ~self.ready),
            write.addr.eq(self.index),
            write.data.eq(new),
        ]
        with m.If(~self.ready):
            m.d.comb += [write.addr.eq(sweep), write.data.eq(0)]
            m.d.sync += sweep.eq(sweep + 1)
            with m.If(sweep == self._entries - 1):
                m.d.sync += [sweep.eq(0), self.ready.eq(1)]

        # Scopes with dead frames, counted.
        dirty = Signal(range(self._entries + 1))
        m.d.comb += self.dirty.eq(dirty != 0)
        with m.If(self.ready & (self.op != ScopeOp.NONE)):
            m.d.sync += dirty.eq(dirty + (new.stale != 0) - (old.stale != 0))
        return m
