"""The sending end of a lane."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.arbiter import next_in_turn
from hw.rtl.fabric.layouts import Channel, flit_layout, lane


class Transmitter(wiring.Component):
    """Sends flits of several channels over one lane, each channel against the credits it has.

    Parameters
    ----------
    params
        Width of a flit.
    buffers
        For each channel that is sent, the flits that the receiver has room for.

    Interface
    ---------
    request, response, data, message : In, stream of `flit_layout(params)`
        One for each channel in `buffers`; whatever their `channel` says, they are sent as what they are.
    lane : Out, `lane(params)`

    Latency and throughput
    ----------------------
    One cycle; a flit a cycle.

    Ordering and stalls
    -------------------
    In order for each channel; channels with a flit and a credit take turns. A channel without credits stops itself
    alone. `ready` depends on the `valid` of all channels.

    Reset and errors
    ----------------
    Reset restores all credits: the receiver has to be reset too.

    Invariants
    ----------
    Part of 10: never more flits of a channel under way or waiting than its receiver has room for.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params, buffers: dict[Channel, int]):
        self._params = params
        self._buffers = buffers
        flits = In(stream.Signature(flit_layout(params)))
        super().__init__({channel.name.lower(): flits for channel in buffers} | {"lane": Out(lane(params))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inputs = [getattr(self, channel.name.lower()) for channel in self._buffers]
        left = [Signal(range(size + 1), init=size, name=f"left_{c.name.lower()}") for c, size in self._buffers.items()]
        asking = Signal(len(inputs))
        turn = Signal(range(len(inputs)))
        m.d.comb += asking.eq(Cat(flits.valid & (count != 0) for flits, count in zip(inputs, left, strict=True)))
        chosen = next_in_turn(m, asking, turn)
        m.d.sync += [self.lane.valid.eq(asking.any()), turn.eq(chosen)]
        for i, (channel, flits, count) in enumerate(zip(self._buffers, inputs, left, strict=True)):
            sent = Signal(name=f"sent_{channel.name.lower()}")
            m.d.comb += [sent.eq(asking[i] & (chosen == i)), flits.ready.eq(sent)]
            m.d.sync += count.eq(count - sent + self.lane.credits[channel.value])
            with m.If(sent):
                m.d.sync += [self.lane.flit.eq(flits.payload), self.lane.flit.channel.eq(channel)]
        return m
