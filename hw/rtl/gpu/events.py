"""Messages of the node, to the event ring."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, records
from hw.rtl.fabric.layouts import MESSAGE, MESSAGE_BYTES, flit_layout
from hw.rtl.gpu.layouts import EVENT, INDEX_BITS, RING_SETTINGS, RING_STATE, acknowledgement_layout, record_layout

IN_FLIGHT = 7
"""Entries on their way to memory at most."""


def heard_layout(params: Params) -> data.StructLayout:
    """Return the layout of a message that arrives in this cycle, from a slice."""
    return data.StructLayout({"valid": 1, "slice": params.node.slice_bits, "message": MESSAGE})


class Events(wiring.Component):
    """Takes MESSAGE packets, and writes an entry of the event ring for each.

    Parameters
    ----------
    params
        Width of a flit.

    Interface
    ---------
    settings, state : In and Out, `RING_SETTINGS` and `RING_STATE`
        The registers of the event ring.
    flits : In, stream of `flit_layout(params)`
        MESSAGE packets.
    records : Out, stream of `record_layout(params, EVENT)`
    written : In, stream of `acknowledgement_layout(params)`, always ready
        An entry is in memory, or was refused.
    heard, managed : Out and In
        The message that has arrived in this cycle, as `heard_layout(params)`; somebody here answers it, and the entry
        says so.
    cut : In(1)
        The link is being reset: forget the part of a message that is here.
    dropped, event, failed : Out(1)
        A message finds no place, an entry is in memory, the ring fails, in this cycle.

    Latency and throughput
    ----------------------
    One cycle after the last flit of a message; a message in as many cycles as it has flits, if `records` go as fast.

    Ordering and stalls
    -------------------
    In order. A message waits for memory, and never for software: without a place it is dropped, and the next one that
    is written says so by LOST.

    Reset and errors
    ----------------
    Reset disables the ring. A doorbell that is no entry of the ring, or an entry that memory refuses, fails it. What
    was lost before it was enabled is not told.

    Invariants
    ----------
    None.

    Counters
    --------
    None here: `dropped` is to be counted.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "settings": In(RING_SETTINGS),
                "state": Out(RING_STATE),
                "flits": In(stream.Signature(flit_layout(params))),
                "records": Out(stream.Signature(record_layout(params, EVENT))),
                "written": In(stream.Signature(acknowledgement_layout(params), always_ready=True)),
                "heard": Out(heard_layout(params)),
                "managed": In(1),
                "cut": In(1),
                "dropped": Out(1),
                "event": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settings, state, flit = self.settings, self.state, self.flits.payload
        running, spent, phase, lost = (Signal(name=name) for name in ("running", "spent", "phase", "lost"))
        mask, tail, after = Signal(INDEX_BITS), Signal(INDEX_BITS), Signal(INDEX_BITS)
        in_flight = Signal(range(IN_FLIGHT + 1))
        m.d.comb += [
            mask.eq((1 << settings.log2_entries) - 1),
            after.eq((tail + 1) & mask),
            state.active.eq(running | (in_flight != 0)),
            self.event.eq(self.written.valid & ~self.written.payload.error),
            self.failed.eq(
                running
                & (
                    (self.written.valid & self.written.payload.error)
                    | (settings.head.write & (settings.head.data > mask))
                )
            ),
        ]

        # A message, flit by flit.
        parts = self._params.flits(MESSAGE_BYTES)
        words = Signal(data.ArrayLayout(len(flit.data), parts))
        kept = Signal.like(words)
        part = Signal(range(parts))
        message = Signal(MESSAGE)
        final, free, place, arrives, written = (
            Signal(name=name) for name in ("final", "free", "place", "arrives", "written_now")
        )
        m.d.comb += [
            words.eq(kept),
            words[parts - 1].eq(flit.data),
            message.eq(words.as_value()),
            final.eq(part == parts - 1),
            free.eq((~self.records.valid | self.records.ready) & (in_flight != IN_FLIGHT)),
            place.eq(running & (after != state.head)),
            self.flits.ready.eq(~final | free | ~place),
            arrives.eq(self.flits.valid & self.flits.ready & final),
            written.eq(arrives & place),
            self.dropped.eq(arrives & ~place),
            self.heard.valid.eq(arrives),
            self.heard.slice.eq(flit.slice),
            self.heard.message.eq(message),
        ]
        with m.If(self.flits.valid & self.flits.ready):
            m.d.sync += [kept[part].eq(flit.data), part.eq(Mux(final, 0, part + 1))]
        with m.If(self.cut):
            m.d.sync += part.eq(0)
        m.d.sync += in_flight.eq(in_flight + written - self.written.valid)
        with m.If(self.records.ready):
            m.d.sync += self.records.valid.eq(0)
        with m.If(self.dropped):
            m.d.sync += lost.eq(1)
        out = self.records.payload
        with m.If(written):
            m.d.sync += [
                self.records.valid.eq(1),
                out.address.eq(settings.completion + tail * records.EVENT.size),
                *(out.record[name].eq(message[name]) for name, _ in MESSAGE),
                out.record.flags.lost.eq(message.flags.lost | lost),
                out.record.flags.managed.eq(self.managed),
                out.record.phase.eq(phase),
                lost.eq(0),
                tail.eq(after),
                phase.eq(Mux(tail == mask, ~phase, phase)),
            ]
            if self._params.node.slices > 1:
                m.d.sync += out.record.slice.eq(flit.slice[: self._params.node.slice_bits])

        with m.If(settings.head.write):
            m.d.sync += state.head.eq(settings.head.data)
        with m.If(running), m.If(self.failed | ~settings.enable):
            m.d.sync += running.eq(0)
        with m.Elif(settings.enable & ~spent & (in_flight == 0)):
            m.d.sync += [
                running.eq(1),
                tail.eq(0),
                phase.eq(1),
                lost.eq(0),
                state.head.eq(0),
                state.failed.eq(0),
            ]
        with m.If(self.failed):
            m.d.sync += [state.failed.eq(1), spent.eq(1)]
        with m.If(~settings.enable):
            m.d.sync += spent.eq(0)
        return m
