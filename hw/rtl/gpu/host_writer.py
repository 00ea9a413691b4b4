"""Writes to host memory, for several clients over one port."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.rtl.arbiter import next_in_turn
from hw.rtl.axi import Burst, is_error
from hw.rtl.gpu.layouts import acknowledgement_layout, host_id_layout, memory_write, write_beat_layout, write_layout
from hw.rtl.queue import Queue

AHEAD = 4
"""Bursts whose address is offered before all beats of those before them have left."""


class HostWriter(wiring.Component):
    """Sends the bursts of its clients to memory, and each acknowledgement to the client whose burst it was.

    Parameters
    ----------
    params
        Width of a beat; commands in flight.
    clients
        Number of clients.

    Interface
    ---------
    bursts : In, stream of `write_layout(params)`, one a client
        What to write.
    beats : In, stream of `write_beat_layout(params)`, one a client
        The beats of its bursts, as many as these say. They may not wait for any acknowledgement, nor for another
        client: beats leave in the order in which the bursts were taken.
    acknowledgements : Out, stream of `acknowledgement_layout(params)`, one a client, always ready
        One for each burst, when memory has it.
    axi : Out, `memory_write(params)`
        AWID is the number of the client, and above it the token.

    Latency and throughput
    ----------------------
    One cycle to AW, two to W, one from B; a burst a cycle, a beat a cycle.

    Ordering and stalls
    -------------------
    Clients with a burst take turns. Bursts of one client and token are written in order, others as memory likes. An
    address waits for beats only if `AHEAD` bursts wait for theirs, and beats never for an address. BREADY is always
    high.

    Reset and errors
    ----------------
    Reset forgets all; memory has to be reset too. SLVERR and DECERR become `error`.

    Invariants
    ----------
    Part of 10: each burst is acknowledged once, given that memory answers it.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params, *, clients: int):
        self._params = params
        self._clients = clients
        self._id = host_id_layout(params, clients)
        super().__init__(
            {
                "bursts": In(stream.Signature(write_layout(params))).array(clients),
                "beats": In(stream.Signature(write_beat_layout(params))).array(clients),
                "acknowledgements": Out(stream.Signature(acknowledgement_layout(params), always_ready=True)).array(
                    clients
                ),
                "axi": Out(memory_write(params, id_bits=self._id.size)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        client = range(max(2, self._clients))
        m.submodules.order = order = Queue(data.StructLayout({"client": client, "last": 8}), depth=AHEAD)

        # AW.
        asking = Cat(burst.valid for burst in self.bursts)
        turn = Signal(client)
        chosen = next_in_turn(m, asking, turn)
        burst = Array(burst.payload for burst in self.bursts)[chosen]
        free, take = Signal(), Signal()
        last = Signal(8)
        our_id = Signal(self._id)
        m.d.comb += [
            free.eq(~axi.awvalid | axi.awready),
            take.eq(free & order.i.ready & asking.any()),
            last.eq(burst.beats - 1),
            order.i.valid.eq(take),
            order.i.payload.client.eq(chosen),
            order.i.payload.last.eq(last),
            our_id.client.eq(chosen),
            our_id.token.eq(burst.token),
            axi.awsize.eq(exact_log2(self._params.memory.beat_bytes)),
            axi.awburst.eq(Burst.INCR),
        ]
        for i, bursts in enumerate(self.bursts):
            m.d.comb += bursts.ready.eq(take & (chosen == i))
        with m.If(free):
            m.d.sync += axi.awvalid.eq(take)
        with m.If(take):
            m.d.sync += [turn.eq(chosen), axi.awid.eq(our_id), axi.awaddr.eq(burst.address), axi.awlen.eq(last)]

        # W.
        sending = order.o.payload
        beat = Array(beats.payload for beats in self.beats)[sending.client]
        sent = Signal(8)
        move, ends = Signal(), Signal()
        m.d.comb += [
            move.eq(
                order.o.valid & Array(beats.valid for beats in self.beats)[sending.client] & (~axi.wvalid | axi.wready)
            ),
            ends.eq(sent == sending.last),
            order.o.ready.eq(move & ends),
        ]
        for i, beats in enumerate(self.beats):
            m.d.comb += beats.ready.eq(move & (sending.client == i))
        with m.If(move):
            m.d.sync += [
                axi.wvalid.eq(1),
                axi.wdata.eq(beat.data),
                axi.wstrb.eq(beat.strobe),
                axi.wlast.eq(ends),
                sent.eq(Mux(ends, 0, sent + 1)),
            ]
        with m.Elif(axi.wready):
            m.d.sync += axi.wvalid.eq(0)

        # B.
        their_id = Signal(self._id)
        ended = Signal(acknowledgement_layout(self._params))
        m.d.comb += [their_id.eq(axi.bid), axi.bready.eq(1)]
        m.d.sync += [ended.token.eq(their_id.token), ended.error.eq(is_error(axi.bresp))]
        for i, acknowledgements in enumerate(self.acknowledgements):
            m.d.sync += acknowledgements.valid.eq(axi.bvalid & (their_id.client == i))
            m.d.comb += acknowledgements.payload.eq(ended)
        return m
