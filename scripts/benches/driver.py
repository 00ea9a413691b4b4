"""The driver: where its time goes beside the specification, and how often its transports call per key."""

import gc
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

from hw.params import InputError, Params
from hw.params.commands import LookupMode
from hw.params.protocol import ModelState, RingId
from hw.params.sections import MemoryParams, PoolParams, TableParams
from scripts.benches import Figure, Result
from sw.driver import Client, Device, MmioTransport, SpecificationTransport, Transport
from sw.driver.transport.loopback import LoopbackBus

SIZE = 4096
"""Bytes of a block."""

PARAMS = Params(
    memory=MemoryParams(segment_bytes=SIZE),
    pools=(PoolParams(frame_bytes=SIZE, frames=2048),),
    tables=TableParams(ports=1, rings_per_port=1, lookup_keys=1024),
)
FEW, MANY = 100, 1_000
"""Keys of a batch."""

_LAYERS = {
    "sw.driver.client": "client",
    "sw.driver.steps": "client",
    "sw.driver.transport.loopback": "specification",
    "sw.driver.transport": "transport",
    "sw.driver": "device",
    "pymodel": "specification",
}
"""The layer of a package or module, the first that fits. What is elsewhere is of the layer that calls it."""

LAYERS = ("client", "device", "transport", "specification")


class Profile:
    """Seconds and Python calls of each layer, within ``with`` blocks; calls cost more than without it.

    Garbage is not collected meanwhile: that may call others, wherever it comes.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._known: dict[str, str | None] = {}
        self._owners = ["outside"]
        self._since = 0.0
        self._collects = True

    def __enter__(self) -> None:
        self._owners = ["outside"]
        self._collects = gc.isenabled()
        gc.disable()
        self._since = time.perf_counter()
        sys.setprofile(self._event)

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(None)
        if self._collects:
            gc.enable()

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        """A call or a return: from here on, time is another layer's."""
        now = time.perf_counter()
        self.seconds[self._owners[-1]] += now - self._since
        if event == "call":
            owner = self._layer(frame.f_globals["__name__"]) or self._owners[-1]
            self._owners.append(owner)
            self.calls[owner] += 1
        elif event == "return" and len(self._owners) > 1:
            self._owners.pop()
        self._since = time.perf_counter()

    def _layer(self, module: str) -> str | None:
        if module not in self._known:
            fitting = (layer for name, layer in _LAYERS.items() if f"{module}.".startswith(f"{name}."))
            self._known[module] = next(fitting, None)
        return self._known[module]

    @property
    def total(self) -> float:
        """Seconds of all layers."""
        return sum(self.seconds[layer] for layer in LAYERS)

    def share(self, layer: str) -> float:
        """Part of the time that is a layer's, in percent."""
        return 100 * self.seconds[layer] / self.total


def run(trace: str | None, *, turns: int = 20) -> Result:
    """Profiles the client on the specification: all keys hit, blocks have 4 KiB; of `turns` the quickest counts.

    Time is counted under the profiler, which charges for every Python call: read shares as orders of size. Calls are
    exact: those of the transport, and of what it calls outside of all layers, from one batch size to the next. Those of
    rings are counted on the device that is in the same process.
    """
    if trace is not None:
        raise InputError(f"--trace {trace}: benchmark driver takes no trace")
    profiles = _profiles(SpecificationTransport(PARAMS), turns)
    figures = [
        Figure.at_most(f"Python calls in the transport per key of {MANY:,}, {name}", calls, "1/key", target=0, limit=0)
        for name, calls in (
            ("specification", calls_per_key(SpecificationTransport(PARAMS))),
            ("rings", calls_per_key(MmioTransport(PARAMS, LoopbackBus(PARAMS)))),
        )
    ]
    for name, profile in profiles.items():
        figures.append(Figure(name=f"{name}, profiled", value=1e6 * profile.total, unit="us"))
        figures += [Figure(name=f"{name}: {layer}", value=profile.share(layer), unit="%") for layer in LAYERS]
    return Result(figures=figures, input="specification, blocks of 4 KiB, all keys hit", seed=0, params=[PARAMS])


def calls_per_key(transport: Transport) -> float:
    """Python calls of a transport that each key of a LOOKUP costs, beyond those of the command."""
    with Device(transport) as device:
        client, _ = _filled(device)
        calls = []
        for keys in (FEW, MANY):
            profile = Profile()
            with profile:
                client.lookup(0, range(keys), mode=LookupMode.BITMAP)
            calls.append(profile.calls["transport"])
    return (calls[1] - calls[0]) / (MANY - FEW)


def _filled(device: Device) -> tuple[Client, bytes]:
    """A client whose partition has a block under each key of the largest batch; and what is in each of them."""
    device.start(epoch=1)
    device.set_partition(0, quota=PARAMS.frames)
    device.set_model(0, ModelState.LIVE)
    client, data = Client(device, RingId(0, 0)), bytes(SIZE)
    device.bind(client.ring, 0)
    with client.session() as session:
        for key in range(MANY):
            client.put(session, 0, key, data)
    return client, data


def _profiles(transport: Transport, turns: int) -> dict[str, Profile]:
    """A profile of each operation: of its quickest turn."""
    with Device(transport) as device:
        client, data = _filled(device)
        session, out = client.open(), bytearray(SIZE)
        (handle,) = client.lookup(0, [0]).handles
        assert handle is not None
        operations: dict[str, Callable[[int], object]] = {
            "lookup of 1 key": lambda turn: client.lookup(0, [turn]),
            f"lookup of {FEW} keys": lambda turn: client.lookup(0, range(FEW)),
            f"lookup of {MANY:,} keys": lambda turn: client.lookup(0, range(MANY)),
            "put": lambda turn: client.put(session, 0, MANY + turn, data),
            "get": lambda turn: client.get(handle, out),
        }
        profiles = {}
        for name, operation in operations.items():
            tries = [Profile() for _ in range(turns)]
            for turn, profile in enumerate(tries):
                with profile:
                    operation(turn)
            profiles[name] = min(tries, key=lambda profile: profile.total)
        return profiles
