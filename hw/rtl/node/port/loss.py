"""What is lost at a port: rings, as its requester says, or all of them with the port."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import RING_BITS


class Loss(wiring.Component):
    """Tells the core of lost rings, and takes a port that is lost out of service and back into it.

    A port that is lost is `down`: the core is told of every ring, then the port comes to rest, then it is reset, and
    stays so until the other end of its link has been reset too.

    Parameters
    ----------
    params
        Number of rings.

    Interface
    ---------
    silent : In(1)
        The requester says nothing any more.
    renewed : In(1)
        The other end of the link is reset. A port in service is lost when this rises.
    hold : In(1)
        The slice restarts, which is no loss.
    asked : In, stream of ring numbers
        Rings that the requester has lost.
    resting : In(1)
        Nothing of the port is under way.
    losses : Out, stream of ring numbers
        What the core is told.
    lost : Out(1)
        The port is lost, in this cycle.
    down : Out(1)
        From the cycle after `lost` on: the port takes nothing off its link, and puts nothing onto it.
    told : Out(1)
        The core has been told of all rings.
    renew : Out(1)
        The port is at rest, and to be reset as long as this is high.

    Latency and throughput
    ----------------------
    A ring a cycle, if the core takes them as fast.

    Ordering and stalls
    -------------------
    What the requester has said of its rings is withdrawn by the loss of the port, which says it of all of them.

    Reset and errors
    ----------------
    Reset puts the port into service.

    Invariants and counters
    -----------------------
    Part of 11. None.
    """

    def __init__(self, params: Params):
        self._rings = params.tables.rings_per_port
        rings = stream.Signature(RING_BITS)
        flags_in, flags_out = ("silent", "renewed", "hold", "resting"), ("lost", "down", "told", "renew")
        super().__init__(
            {"asked": In(rings), "losses": Out(rings)}
            | {name: In(1) for name in flags_in}
            | {name: Out(1) for name in flags_out}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ring, losses = Signal(range(self._rings)), self.losses
        renewed_before, seen = Signal(), Signal()
        m.d.sync += renewed_before.eq(self.renewed)
        m.d.comb += losses.payload.eq(Mux(self.down, ring, self.asked.payload))
        with m.If(self.renewed):
            m.d.sync += seen.eq(1)
        with m.FSM():
            with m.State("UP"):
                m.d.comb += [
                    losses.valid.eq(self.asked.valid),
                    self.asked.ready.eq(losses.ready),
                    self.lost.eq((self.silent | (self.renewed & ~renewed_before)) & ~self.hold),
                ]
                m.d.sync += seen.eq(self.renewed)
                with m.If(self.lost):
                    m.d.sync += [self.down.eq(1), ring.eq(0)]
                    m.next = "TELL"

            with m.State("TELL"):
                m.d.comb += losses.valid.eq(1)
                with m.If(losses.ready):
                    m.d.sync += ring.eq(ring + 1)
                    with m.If(ring == self._rings - 1):
                        m.next = "REST"

            with m.State("REST"):
                m.d.comb += self.told.eq(1)
                with m.If(self.resting):
                    m.next = "DOWN"

            with m.State("DOWN"):
                m.d.comb += [self.told.eq(1), self.renew.eq(1)]
                with m.If(seen):
                    m.d.sync += self.down.eq(0)
                    m.next = "UP"
        return m
