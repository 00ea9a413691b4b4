"""Devices for the tests of the driver: the same on every transport, two tenants and one public partition."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hw.params import Params
from hw.params.commands import Message
from hw.params.protocol import Handle, ModelState, RingId, Status
from hw.params.sections import CamParams, MemoryParams, NodeParams, PoolParams, RequesterParams, TableParams
from sw.driver import Client, Device, SpecificationTransport, Transport
from sw.driver.client import Buffer
from sw.driver.transport import Bus, MmioTransport
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.verilator import VerilatorBus

BUSES: dict[str, Callable[[Params, int], Bus]] = {
    "loopback": LoopbackBus,
    "verilator": lambda params, seed: VerilatorBus(params, seed=seed),
}
"""Every bus that has requesters behind it, made from parameters and a seed."""


def mmio(params: Params, seed: int) -> Transport:
    """Rings, on a device in this process."""
    return MmioTransport(params, LoopbackBus(params, seed))


def scattered(params: Params, seed: int) -> Transport:
    """The same, with short rings, buffers page by page, and no interrupts."""
    bus = LoopbackBus(params, seed)
    return MmioTransport(params, bus, entries=8, page_bytes=params.memory.segment_bytes, interrupts=False)


def verilator(params: Params, seed: int) -> Transport:
    """Rings, on the RTL."""
    return MmioTransport(params, VerilatorBus(params, seed=seed))


def of_two(params: Params) -> Params:
    """Two slices, each of these parameters, with blocks where their keys say."""
    return replace(params, node=NodeParams(slices=2, home="key"))


def two_slices(params: Params, seed: int) -> Transport:
    """Two slices of the specification."""
    return SpecificationTransport(of_two(params), seed)


def two_behind_rings(params: Params, seed: int) -> Transport:
    """The same, behind rings."""
    return mmio(of_two(params), seed)


TRANSPORTS: dict[str, Callable[[Params, int], Transport]] = {
    "specification": SpecificationTransport,
    "mmio": mmio,
    "scattered": scattered,
    "verilator": verilator,
    "two slices": two_slices,
    "two behind rings": two_behind_rings,
}
"""Every transport, made from parameters and a seed; all tests of this folder run on each."""

SEVERAL = {"one_slice": "frames, sessions and messages of two slices are twice as many, or where the keys say"}
LACKS: dict[str, dict[str, str]] = {
    "verilator": {
        "asleep": "RTL works whenever its clock runs",
        "patient": "a thousand waits of a thousand cycles each",
        "rebuilt": "each of these devices takes a minute to compile; the drivers are the others, in the test before",
    },
    "two slices": SEVERAL,
    "two behind rings": SEVERAL,
}
"""What the device of a transport does not have: markers of the tests that need it, each with a reason to skip."""

SEGMENT = 512
FRAME = 4096
FRAMES = 8
PARAMS = Params(
    memory=MemoryParams(segment_bytes=SEGMENT, beat_bytes=16, channels=2, latency_cycles=16),
    requester=RequesterParams(commands=16),
    cam=CamParams(banks=1, ways=16, sets=1),
    pools=(PoolParams(frame_bytes=FRAME, frames=FRAMES),),
    tables=TableParams(
        ports=2,
        rings_per_port=2,
        partitions=4,
        models=2,
        sessions=4,
        pins_per_ring=4,
        parked_reads=2,
        park_cycles=1 << 14,
        fence_cycles=1 << 14,
        lookup_keys=8,
        victims=2,
        scan_frames=4,
    ),
)
"""Small enough to fill; the block CAM takes any keys."""

Connect = Callable[..., Transport]
"""Makes a transport, of ``PARAMS`` unless told otherwise; it is closed when the test ends."""


@dataclass
class Rig:
    """A device in service, with a client on each ring.

    ``one`` and ``far`` share partition 0 on two ports, ``two`` has partition 1, ``public`` has partition 2, which
    partition 0 may read.
    """

    device: Device
    heard: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.device.listen(self.heard.append)
        self.configure()
        self.one, self.far, self.two, self.public = (
            Client(self.device, ring) for ring in (RingId(0, 0), RingId(1, 0), RingId(0, 1), RingId(1, 1))
        )

    def configure(self) -> None:
        """Start, and say who may do what."""
        device = self.device
        device.start()
        device.set_partition(0, quota=FRAMES, read_mask=0b100)
        device.set_partition(1, quota=FRAMES)
        device.set_partition(2, quota=FRAMES, public=True)
        for model in range(2):
            device.set_model(model, ModelState.LIVE)
        for ring, partition in ((RingId(0, 0), 0), (RingId(1, 0), 0), (RingId(0, 1), 1), (RingId(1, 1), 2)):
            device.bind(ring, partition)
        self.heard.clear()

    def counters(self) -> dict[str, int]:
        """The device's counters."""
        return self.device.counters()

    def settle(self) -> None:
        """Let the device work until it has nothing to do."""
        while self.device.progress():
            pass


def store(client: Client, key: int, data: Buffer = b"kv" * 300, model: int = 0) -> Handle:
    """A sealed block."""
    with client.session() as session:
        put = client.put(session, model, key, data)
    assert put.status is Status.GRANTED and put.handle is not None
    return put.handle
