"""A queue between two streams."""

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out


class Queue(wiring.Component):
    """A queue in a memory.

    Parameters
    ----------
    shape
        Of a payload.
    depth
        Number of payloads that it holds; at least 2.
    passing
        What finds it empty passes within the cycle.

    Attributes
    ----------
    level
        Number of payloads that it holds now.

    Interface
    ---------
    i : In, stream
        What goes in.
    o : Out, stream
        What comes out.

    Latency and throughput
    ----------------------
    One cycle through an empty queue, or none if it is `passing`; one payload a cycle.

    Ordering and stalls
    -------------------
    First in, first out. There is no combinational path from one side to the other, but from `i` to `o` if it is
    `passing`.

    Reset and errors
    ----------------
    Reset empties it.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, shape: Any, *, depth: int, passing: bool = False):
        self._shape = shape
        self._depth = depth
        self._passing = passing
        self.level = Signal(range(depth + 1))
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rows = rows = memory.Memory(shape=self._shape, depth=self._depth, init=[])
        write = rows.write_port()
        read = rows.read_port(transparent_for=(write,))

        held = self.level
        head, tail = Signal(range(self._depth)), Signal(range(self._depth))
        put, take = Signal(), Signal()
        next_head = Signal.like(head)
        m.d.comb += [
            self.i.ready.eq(held != self._depth),
            self.o.valid.eq(held != 0),
            self.o.payload.eq(read.data),
            put.eq(self.i.valid & self.i.ready),
            take.eq((held != 0) & self.o.ready),
            next_head.eq(Mux(take, Mux(head == self._depth - 1, 0, head + 1), head)),
            write.en.eq(put),
            write.addr.eq(tail),
            write.data.eq(self.i.payload),
            read.en.eq(1),
            read.addr.eq(next_head),
        ]
        if self._passing:
            with m.If(held == 0):
                m.d.comb += [
                    self.o.valid.eq(self.i.valid),
                    self.o.payload.eq(self.i.payload),
                    put.eq(self.i.valid & ~self.o.ready),
                ]
        m.d.sync += [head.eq(next_head), held.eq(held + put - take)]
        with m.If(put):
            m.d.sync += tail.eq(Mux(tail == self._depth - 1, 0, tail + 1))
        return m
