"""Reads from host memory, for several clients over one port."""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params
from hw.rtl.arbiter import next_in_turn
from hw.rtl.axi import Burst, is_error
from hw.rtl.gpu.layouts import memory_read, read_beat_layout, read_layout


class HostReader(wiring.Component):
    """Sends the bursts of its clients to memory, and each beat to the client that asked for it.

    Parameters
    ----------
    params
        Width of a beat.
    clients
        Number of clients.

    Interface
    ---------
    bursts : In, stream of `read_layout()`, one a client
        What to read. A client asks only for what it has room for.
    beats : Out, stream of `read_beat_layout(params)`, one a client, always ready
        The beats of its bursts.
    axi : Out, `memory_read(params)`
        ARID is the number of the client.

    Latency and throughput
    ----------------------
    One cycle each way; a burst a cycle, a beat a cycle.

    Ordering and stalls
    -------------------
    Clients with a burst take turns. The bursts of a client are answered in order, those of several as memory likes,
    also interleaved. Any number may be under way: memory decides when it takes another. RREADY is always high.

    Reset and errors
    ----------------
    Reset forgets a burst that memory has not taken; memory has to be reset too. SLVERR and DECERR mark their beat.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params, *, clients: int):
        self._params = params
        self._clients = clients
        super().__init__(
            {
                "bursts": In(stream.Signature(read_layout())).array(clients),
                "beats": Out(stream.Signature(read_beat_layout(params), always_ready=True)).array(clients),
                "axi": Out(memory_read(params, id_bits=bits_for(clients - 1))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        asking = Cat(burst.valid for burst in self.bursts)
        turn = Signal(range(max(2, self._clients)))
        chosen = next_in_turn(m, asking, turn)
        burst = Array(burst.payload for burst in self.bursts)[chosen]
        advance, take = Signal(), Signal()
        m.d.comb += [
            advance.eq(~axi.arvalid | axi.arready),
            take.eq(advance & asking.any()),
            axi.arsize.eq(exact_log2(self._params.memory.beat_bytes)),
            axi.arburst.eq(Burst.INCR),
            axi.rready.eq(1),
        ]
        for i, bursts in enumerate(self.bursts):
            m.d.comb += bursts.ready.eq(take & (chosen == i))
        with m.If(advance):
            m.d.sync += axi.arvalid.eq(take)
        with m.If(take):
            m.d.sync += [
                turn.eq(chosen),
                axi.arid.eq(chosen),
                axi.araddr.eq(burst.address),
                axi.arlen.eq(burst.beats - 1),
            ]

        beat = Signal(read_beat_layout(self._params))
        m.d.sync += [beat.data.eq(axi.rdata), beat.error.eq(is_error(axi.rresp)), beat.last.eq(axi.rlast)]
        for i, beats in enumerate(self.beats):
            m.d.sync += beats.valid.eq(axi.rvalid & (axi.rid == i))
            m.d.comb += beats.payload.eq(beat)
        return m
