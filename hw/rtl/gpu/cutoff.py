"""The end of what is in flight when the node restarts, and of data that belongs to nothing."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import TAG_BITS
from hw.rtl.fabric.layouts import Channel, flit_layout
from hw.rtl.queue import Queue

DEPTH = 2
"""Flits that are held for the `Placer`: what it is offered is never taken back, also if the link is reset."""


class Cutoff(wiring.Component):
    """Hands the data of READs to the `Placer`, and cleans up when the link is reset.

    Then the segment under way is cut short, so that its burst ends, and a mark is sent behind it, the last of a READ of
    which nothing is written: when the `Placer` has taken that, every burst that there will be is issued. Now commands
    without an answer may end.

    Parameters
    ----------
    params
        Width of a flit.

    Interface
    ---------
    restarting : In(1)
        Both ends of the link are reset.
    arriving : In, stream of `flit_layout(params)`
        DATA packets, off the link.
    data_tag, data_known : as of `Contexts`
    flits : Out, stream of `flit_layout(params)`
        What the `Placer` gets.
    ended : In(1)
        The `Placer` has taken the last flit of a READ.
    cutting : Out(1)
        What commands send goes nowhere, no data is written any more, and all READs are known. Nothing is fetched,
        unless the node is `away`.
    abandon : Out(1)
        Commands without an answer may end.
    away : Out(1)
        All that was under way has ended, and both ends of the link are still reset: no command begins (the breaker is
        open).
    idle : In(1)
        No command is in hand or under way.

    Latency and throughput
    ----------------------
    One cycle; a flit a cycle.

    Ordering and stalls
    -------------------
    In order. `cutting` begins in the cycle of `restarting`, and ends after it when all was `idle` once.

    Reset and errors
    ----------------
    Reset empties it; the `Placer` has to be reset too. Packets of no READ that is under way are dropped.

    Invariants
    ----------
    Part of 10: the `Placer` gets whole packets.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        flits = stream.Signature(flit_layout(params))
        super().__init__(
            {
                "restarting": In(1),
                "arriving": In(flits),
                "data_tag": Out(TAG_BITS),
                "data_known": In(1),
                "flits": Out(flits),
                "ended": In(1),
                "cutting": Out(1),
                "abandon": Out(1),
                "away": Out(1),
                "idle": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = Queue(flit_layout(self._params), depth=DEPTH)
        wiring.connect(m, queue.o, wiring.flipped(self.flits))
        arriving, flit = self.arriving.payload, queue.i.payload
        inside, good, keep = Signal(), Signal(), Signal()
        tag = Signal(TAG_BITS)
        under_way = Signal()
        owed = Signal(8)
        put = queue.i.valid & queue.i.ready
        m.d.comb += [
            self.data_tag.eq(arriving.tag),
            keep.eq(Mux(inside, good, self.data_known)),
            self.cutting.eq(under_way | self.restarting),
        ]
        m.d.sync += owed.eq(owed + (put & flit.last & flit.end) - self.ended)
        with m.If(self.arriving.valid & self.arriving.ready):
            m.d.sync += [inside.eq(~arriving.last), good.eq(keep), tag.eq(arriving.tag)]

        with m.FSM():
            with m.State("PASS"):
                m.d.comb += [
                    flit.eq(arriving),
                    queue.i.valid.eq(self.arriving.valid & keep & ~self.restarting),
                    self.arriving.ready.eq((queue.i.ready | ~keep) & ~self.restarting),
                ]
                with m.If(self.restarting):
                    m.d.sync += under_way.eq(1)
                    m.next = "MARK"
                    with m.If(inside & good):
                        m.next = "CUT"
                    m.d.sync += inside.eq(0)

            with m.State("CUT"):
                m.d.comb += [queue.i.valid.eq(1), flit.channel.eq(Channel.DATA), flit.tag.eq(tag), flit.last.eq(1)]
                with m.If(queue.i.ready):
                    m.next = "MARK"

            with m.State("MARK"):
                m.d.comb += [queue.i.valid.eq(1), flit.channel.eq(Channel.DATA), flit.last.eq(1), flit.end.eq(1)]
                with m.If(queue.i.ready):
                    m.next = "WAIT"

            with m.State("WAIT"), m.If(owed == 0):
                m.next = "ABANDON"

            with m.State("ABANDON"):
                m.d.comb += self.abandon.eq(1)
                with m.If(self.idle):
                    m.next = "AWAY"

            with m.State("AWAY"):
                m.d.comb += self.away.eq(self.restarting)
                with m.If(~self.restarting):
                    m.d.sync += under_way.eq(0)
                    m.next = "PASS"
        return m
