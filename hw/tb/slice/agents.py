"""The requester's end of a link, and the administrator at the registers, in cocotb."""

from collections import deque
from collections.abc import Callable
from itertools import cycle
from typing import Any

from hw.params.params import Params
from hw.rtl.fabric.layouts import Channel, from_node_buffers, to_node_buffers
from hw.tb.axi import LITE_FIELDS, ChannelSink, ChannelSource
from hw.tb.bench import Bench
from hw.tb.pace import Pace, always
from hw.tb.scoreboard import CheckError
from hw.tb.slice.orders import Access, Order
from hw.tb.slice.packets import Packets
from hw.tb.stream import Monitor


class LinkEnd:
    """Sends queued flits against credits, channels in turn, or that it is there, and takes what comes into buffers.

    - `idle`: when it sends; `backpressure`: when it takes a flit out of a buffer, and so returns a credit.
    - `listeners`: called with each flit that has come, when it is taken out.
    """

    def __init__(self, bench: Bench, params: Params, port: int, idle: Pace = always, backpressure: Pace = always):
        self.bench = bench
        self.listeners: list[Callable[[int, int], None]] = []
        self._port = port
        self._to_node, self._from_node = (
            {part: getattr(bench.dut, f"links__{port}__{lane}__{part}") for part in ("valid", "flit", "credits")}
            for lane in ("to_node", "from_node")
        )
        self._codec = bench.codec(f"links__{port}__to_node__flit")
        self._sizes, self._rooms = to_node_buffers(params), from_node_buffers(params)
        self._heartbeat, self._quiet = params.link.heartbeat_cycles, 0
        self._packets = Packets(params)
        rng = bench.rng(f"link {port}")
        self._willing, self._taking = idle(rng), backpressure(rng)
        self._queues: dict[Channel, deque[int]] = {}
        self._turn = cycle(Channel)
        self.reset()
        bench.add(self)

    @property
    def pending(self) -> int:
        """Flits not yet sent."""
        return sum(map(len, self._queues.values()))

    def send(self, channel: Channel, flits: list[int]) -> None:
        """Queue flits."""
        self._queues[channel].extend(flits)

    def reset(self) -> None:
        """Forget everything; all credits are back."""
        self._queues = {channel: deque() for channel in self._sizes}
        self._credits = dict(self._sizes)
        self._buffers: dict[Channel, deque[int]] = {channel: deque() for channel in self._rooms}

    def drive(self) -> None:
        """Send a flit, and return a credit for one that is taken."""
        self._quiet += 1
        if 0 < self._heartbeat <= self._quiet and not self._queues[Channel.MESSAGE]:
            self.send(Channel.MESSAGE, self._packets.heartbeat(self._port))
        flit = self._choose() if next(self._willing) and not self.bench.in_reset else None
        self._to_node["valid"].value = flit is not None
        if flit is not None:
            self._to_node["flit"].value = flit
        credits = 0
        for channel, buffer in self._buffers.items():
            if next(self._taking) and buffer:
                credits |= 1 << channel
                taken = buffer.popleft()
                for listener in self.listeners:
                    listener(self._port, taken)
        self._from_node["credits"].value = credits

    def _choose(self) -> int | None:
        for channel, _ in zip(self._turn, Channel, strict=False):
            if self._queues.get(channel) and self._credits[channel]:
                self._credits[channel] -= 1
                self._quiet = 0
                return self._queues[channel].popleft()
        return None

    def sample(self) -> None:
        """Take credits, and a flit into its buffer."""
        if self.bench.in_reset:
            return
        credits = int(self._to_node["credits"].value)
        for channel, size in self._sizes.items():
            self._credits[channel] += credits >> channel & 1
            if self._credits[channel] > size:
                raise CheckError(f"port {self._port}: a credit too many on channel {channel}")
        if self._from_node["valid"].value:
            flit = int(self._from_node["flit"].value)
            channel = Channel(self._codec.unpack(flit)["channel"])
            if len(self._buffers.get(channel, ())) >= self._rooms.get(channel, 0):
                raise CheckError(f"port {self._port}: a flit on channel {channel} without a credit")
            self._buffers[channel].append(flit)


class RegisterMaster(Monitor):
    """Does the accesses of one order after the other."""

    def __init__(self, bench: Bench, pace: Pace = always):
        self._sources = {
            channel: ChannelSource(bench, f"axi__{channel}", LITE_FIELDS[channel], pace)
            for channel in ("aw", "w", "ar")
        }
        for channel in ("b", "r"):
            ChannelSink(bench, f"axi__{channel}", pace)
        super().__init__(bench)
        self._answers = {
            channel: {part: getattr(bench.dut, f"axi__{channel}{part}") for part in ("valid", "ready", "resp")}
            for channel in ("b", "r")
        }
        self._order: Order | None = None
        self._end: Callable[[Any], None] = lambda status: None

    @property
    def busy(self) -> bool:
        """Whether an order is under way."""
        return self._order is not None

    def begin(self, order: Order, end: Callable[[Any], None]) -> None:
        """Do the accesses of an order; `end` is called with what it returns."""
        self._order, self._end = order, end
        self._access(next(order))

    def _access(self, access: Access) -> None:
        offset, word = access
        if word is None:
            self._sources["ar"].send(addr=offset, prot=0)
        else:
            self._sources["aw"].send(addr=offset, prot=0)
            self._sources["w"].send(data=word, strb=15)

    def sample(self) -> None:
        """An access that ends is followed by the next."""
        for channel, signals in self._answers.items():
            if self._order is None or not (signals["valid"].value and signals["ready"].value):
                continue
            if signals["resp"].value:
                raise CheckError(f"registers: response {int(signals['resp'].value)} on {channel}")
            word = int(self.bench.dut.axi__rdata.value) if channel == "r" else 0
            try:
                self._access(self._order.send(word))
            except StopIteration as stop:
                self._order = None
                self._end(stop.value)
