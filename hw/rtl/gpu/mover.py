"""The data of WRITEs, from memory to the link."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.params.protocol import ITEM_BITS
from hw.rtl.axi import Burst, is_error
from hw.rtl.fabric.layouts import Channel, flit_layout
from hw.rtl.gpu.layouts import (
    acknowledgement_layout,
    found_layout,
    memory_read,
    move_layout,
    walk_layout,
)
from hw.rtl.queue import Queue
from hw.rtl.two_port_sram import TwoPortSram


class Mover(wiring.Component):
    """Reads the data of WRITEs, a burst a segment, and sends it, a packet a segment.

    Parameters
    ----------
    params
        Segment and beat; `requester.write_segments` is the number of segments that are read ahead.

    Interface
    ---------
    moves : In, stream of `move_layout(params)`
        The WRITEs. Data begins at a multiple of a segment, and no WRITE has more segments than can be numbered.
    walks : Out, stream of `walk_layout()`
        Questions to a `PageWalker`.
    found : In, stream of `found_layout()`
        Its answers.
    axi : Out, `memory_read(params)`
        A burst for each segment, of the beats that hold its bytes. There is one ID.
    flits : Out, stream of `flit_layout(params)`
        DATA packets, with segments counted from the first of the WRITE. What they carry behind `count` bytes is what
        memory has there.
    ended : Out, stream of `acknowledgement_layout(params)`, always ready
        All flits of the WRITE of context `token` have left; `error`: memory has refused a beat or a page.

    Latency and throughput
    ----------------------
    From a move to its first ARVALID two cycles and those of the walk; two from RVALID to a flit. A burst in every
    third cycle, if a walk takes one; a beat a cycle, if what is read ahead covers the latency of memory.

    Ordering and stalls
    -------------------
    In order. Beats go into a ring that has room for all that was asked for, so RREADY is always high. The bursts of a
    WRITE do not wait for the flits of those before it.

    Reset and errors
    ----------------
    Reset forgets all; memory and walker have to be reset too. A beat that memory refuses is sent as zeros, and so is a
    segment whose page is in error.

    Invariants
    ----------
    Part of 10: every move has all its flits, and ends once, given that memory answers.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "moves": In(stream.Signature(move_layout(params))),
                "walks": Out(stream.Signature(walk_layout())),
                "found": In(stream.Signature(found_layout())),
                "axi": Out(memory_read(params, id_bits=1)),
                "flits": Out(stream.Signature(flit_layout(params))),
                "ended": Out(stream.Signature(acknowledgement_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, flit = self._params, flit_layout(self._params)
        m.submodules.order = order = Queue(
            data.StructLayout(
                {name: flit[name].shape for name in ("ring", "tag", "segment", "count")}
                | {
                    "slice": params.node.slice_bits,
                    "token": acknowledgement_layout(params)["token"].shape,
                    "last": range(params.segment_beats),
                    "end": 1,
                    "refused": 1,
                }
            ),
            depth=params.requester.write_segments,
        )
        self._ask(m, order)
        self._send(m, order)
        return m

    def _ask(self, m: Module, order: Queue) -> None:
        """Find and read each segment. A place in `order` stands for a segment of the ring."""
        params, axi, move = self._params, self.axi, Signal(move_layout(self._params))
        beat_shift, segment_shift = exact_log2(params.memory.beat_bytes), exact_log2(params.memory.segment_bytes)
        segment, entry = Signal(ITEM_BITS), order.i.payload
        rest = Signal(range(params.memory.segment_bytes))  # bytes of the last segment, less one
        free, end, asked = Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~axi.arvalid | axi.arready),
            end.eq(segment == (move.length - 1)[segment_shift:]),
            rest.eq(Mux(end, (move.length - 1)[:segment_shift], params.memory.segment_bytes - 1)),
            self.walks.payload.place.eq(move.place),
            self.walks.payload.segment.eq(segment),
            entry.slice.eq(move.slice),
            entry.ring.eq(move.ring),
            entry.tag.eq(move.tag),
            entry.token.eq(move.context),
            entry.segment.eq(segment),
            entry.count.eq(rest[:beat_shift] + 1),
            entry.last.eq(rest[beat_shift:]),
            entry.end.eq(end),
            entry.refused.eq(self.found.payload.error),
            axi.arid.eq(0),
            axi.arsize.eq(beat_shift),
            axi.arburst.eq(Burst.INCR),
        ]
        with m.If(axi.arready):
            m.d.sync += axi.arvalid.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.moves.ready.eq(1)
                m.d.sync += [move.eq(self.moves.payload), segment.eq(0)]
                with m.If(self.moves.valid):
                    m.next = "WALK"
            with m.State("WALK"):
                m.d.comb += self.walks.valid.eq(1)
                with m.If(self.walks.ready):
                    m.next = "FOUND"
            with m.State("FOUND"):
                m.d.comb += [
                    self.found.ready.eq(free & order.i.ready),
                    asked.eq(self.found.valid & self.found.ready),
                    order.i.valid.eq(asked),
                ]
                with m.If(asked):
                    m.d.sync += [
                        axi.arvalid.eq(~self.found.payload.error),
                        axi.araddr.eq(self.found.payload.address),
                        axi.arlen.eq(entry.last),
                        segment.eq(segment + 1),
                    ]
                    m.next = "WALK"
                    with m.If(end):
                        m.next = "IDLE"

    def _send(self, m: Module, order: Queue) -> None:
        """Fill the ring, and empty it into packets."""
        params, axi, flits, entry = self._params, self.axi, self.flits, order.o.payload
        size = params.requester.write_segments * params.segment_beats
        beat = data.StructLayout({"data": 8 * params.memory.beat_bytes, "error": 1})
        m.submodules.ring = ring = TwoPortSram(rows=size, width=beat.size)
        new, old = Signal(beat), data.View(beat, ring.read_data)
        write_row, read_row, there = Signal(range(size)), Signal(range(size)), Signal(range(size + 1))

        sent = Signal(range(params.segment_beats))
        send, read, last = Signal(), Signal(), Signal()
        m.d.comb += [
            axi.rready.eq(1),
            new.error.eq(is_error(axi.rresp)),
            new.data.eq(Mux(new.error, 0, axi.rdata)),
            ring.write.eq(axi.rvalid),
            ring.write_address.eq(write_row),
            ring.write_data.eq(new),
            send.eq(order.o.valid & (entry.refused | (there != 0)) & (~flits.valid | flits.ready)),
            read.eq(send & ~entry.refused),
            last.eq(sent == entry.last),
            order.o.ready.eq(send & last),
            ring.read.eq(read),
            ring.read_address.eq(read_row),
        ]
        m.d.sync += there.eq(there + axi.rvalid - read)
        with m.If(axi.rvalid):
            m.d.sync += write_row.eq(Mux(write_row == size - 1, 0, write_row + 1))
        with m.If(read):
            m.d.sync += read_row.eq(Mux(read_row == size - 1, 0, read_row + 1))

        # What the ring was read for stays on its output until it is taken.
        flit = Signal(flit_layout(params))
        token, end, refused = Signal.like(entry.token), Signal(), Signal()
        m.d.comb += [
            *(flits.payload[name].eq(flit[name]) for name, _ in flit_layout(params) if name != "data"),
            flits.payload.data.eq(Mux(refused, 0, old.data)),
        ]
        with m.If(send):
            m.d.sync += [
                flits.valid.eq(1),
                flit.channel.eq(Channel.DATA),
                flit.slice.eq(entry.slice),
                flit.ring.eq(entry.ring),
                flit.tag.eq(entry.tag),
                flit.segment.eq(entry.segment),
                flit.count.eq(Mux(last, entry.count, params.memory.beat_bytes)),
                flit.last.eq(last),
                token.eq(entry.token),
                end.eq(last & entry.end),
                refused.eq(entry.refused),
            ]
            m.d.sync += sent.eq(Mux(last, 0, sent + 1))
        with m.Elif(flits.ready):
            m.d.sync += flits.valid.eq(0)

        taken, failed, failed_now = Signal(), Signal(), Signal()
        m.d.comb += [
            taken.eq(flits.valid & flits.ready),
            failed_now.eq(failed | refused | old.error),
        ]
        m.d.sync += [
            self.ended.valid.eq(taken & end),
            self.ended.payload.token.eq(token),
            self.ended.payload.error.eq(failed_now),
        ]
        with m.If(taken):
            m.d.sync += failed.eq(failed_now & ~end)
