"""The receiving end of a lane."""

from amaranth import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.fabric.layouts import Channel, flit_layout, lane
from hw.rtl.queue import Queue


class Receiver(wiring.Component):
    """Takes the flits of a lane into a buffer for each channel, and returns a credit for each that leaves it.

    Parameters
    ----------
    params
        Width of a flit.
    buffers
        For each channel that is received, the flits that there is room for; the sender has as many credits.

    Interface
    ---------
    lane : In, `lane(params)`
    taken : Out(1)
        The flit on the lane goes into its buffer.
    request, response, data, message : Out, stream of `flit_layout(params)`
        One for each channel in `buffers`.

    Latency and throughput
    ----------------------
    One cycle; a flit a cycle. A credit comes back in the cycle after its flit was taken.

    Ordering and stalls
    -------------------
    In order for each channel. Channels do not wait for each other.

    Reset and errors
    ----------------
    Reset empties the buffers: the sender has to be reset too. A flit without a credit, or of a channel that is not
    received, is the sender's error, and is lost.

    Invariants
    ----------
    Part of 10: what was sent against a credit comes out once.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params, buffers: dict[Channel, int]):
        self._params = params
        self._buffers = buffers
        flits = Out(stream.Signature(flit_layout(params)))
        super().__init__(
            {channel.name.lower(): flits for channel in buffers} | {"lane": In(lane(params)), "taken": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        taken = []
        for channel, size in self._buffers.items():
            name = channel.name.lower()
            output = getattr(self, name)
            m.submodules[name] = queue = Queue(flit_layout(self._params), depth=size)
            wiring.connect(m, queue.o, wiring.flipped(output))
            m.d.comb += [
                queue.i.valid.eq(self.lane.valid & (self.lane.flit.channel == channel)),
                queue.i.payload.eq(self.lane.flit),
            ]
            m.d.sync += self.lane.credits[channel.value].eq(output.valid & output.ready)
            taken.append(queue.i.valid & queue.i.ready)
        m.d.comb += self.taken.eq(Cat(taken).any())
        return m
