"""Agents of Amaranth streams (`valid`, `ready`, `payload`): a monitor, a source and a sink."""

from collections import deque
from collections.abc import Callable
from typing import Any

from hw.tb.bench import Bench
from hw.tb.pace import Pace, always
from hw.tb.scoreboard import CheckError


class Monitor:
    """Base of all that watches the design: it samples, and never drives."""

    def __init__(self, bench: Bench):
        self.bench = bench
        bench.add(self)

    def drive(self) -> None:
        """Nothing: a monitor only watches."""

    def sample(self) -> None:
        """Read the settled signals of this cycle."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget the cycle before."""


class StreamMonitor(Monitor):
    """Watches one stream: reports each transfer, and checks that an offer stands unchanged until it is taken.

    - `fired`: the edge at the end of the cycle sampled last transfers a payload.
    - `listeners`: called with the payload of every transfer.
    - `transfers`, `first_cycle`, `last_cycle`: number of transfers, and when the first and the last of them was.
    """

    def __init__(self, bench: Bench, name: str):
        super().__init__(bench)
        self.name = name
        self.fired = False
        self.transfers = 0
        self.first_cycle = 0
        self.last_cycle = 0
        self.listeners: list[Callable[[Any], None]] = []
        self._valid = getattr(bench.dut, f"{name}__valid")
        self._ready = getattr(bench.dut, f"{name}__ready", None)  # none: always ready
        self._payload = getattr(bench.dut, f"{name}__payload")
        self._codec = bench.codec(f"{name}__payload")
        self._offer: int | None = None

    def sample(self) -> None:
        """Check the offer and report the transfer, if there is one."""
        valid = not self.bench.in_reset and bool(self._valid.value)
        offer = int(self._payload.value) if valid else None
        if self._offer not in (None, offer):
            was, now = self._show(self._offer), self._show(offer)
            raise CheckError(f"{self.name}: offer {was} became {now} before it was taken (cycle {self.bench.cycle})")
        self.fired = valid and (self._ready is None or bool(self._ready.value))
        self._offer = None if self.fired else offer
        if offer is not None and self.fired:
            self.last_cycle = self.bench.cycle
            self.first_cycle = self.first_cycle if self.transfers else self.bench.cycle
            self.transfers += 1
            payload = self._codec.unpack(offer)
            for listener in self.listeners:
                listener(payload)

    def check_full_rate(self) -> None:
        """Raise CheckError unless there was a transfer in every cycle from the first to the last."""
        cycles = self.last_cycle - self.first_cycle + 1
        if self.transfers != cycles:
            raise CheckError(f"{self.name}: {self.transfers} transfers took {cycles} cycles")

    def reset(self) -> None:
        """An offer need not survive reset."""
        self._offer = None

    def _show(self, offer: int | None) -> str:
        return "nothing" if offer is None else repr(self._codec.unpack(offer))


class Source:
    """Initiator of a stream: offers queued payloads in order, when its pace allows, and noise in between."""

    def __init__(self, bench: Bench, name: str, pace: Pace = always):
        self.monitor = StreamMonitor(bench, name)
        self.bench = bench
        self._rng = bench.rng(name)
        self._pace = pace(self._rng)
        self._valid = getattr(bench.dut, f"{name}__valid")
        self._payload = getattr(bench.dut, f"{name}__payload")
        self._codec = bench.codec(f"{name}__payload")
        self._queue: deque[int] = deque()
        self._offering: bool | None = None
        bench.add(self)

    @property
    def pending(self) -> int:
        """Number of payloads not yet transferred."""
        return len(self._queue) + bool(self._offering)

    def set_pace(self, pace: Pace) -> None:
        """Go on at another pace."""
        self._pace = pace(self._rng)

    def send(self, payload: Any) -> None:
        """Queue one payload."""
        self._queue.append(self._codec.pack(payload))

    def drive(self) -> None:
        """Keep the offer until it is taken, then make the next or none."""
        if self._offering and not self.monitor.fired:
            return
        offer = next(self._pace) and not self.bench.in_reset and bool(self._queue)
        if offer:
            self._payload.value = self._queue.popleft()
        elif offer != self._offering:
            self._payload.value = self._rng.getrandbits(self._codec.width)
        if offer != self._offering:
            self._valid.value = offer
        self._offering = offer

    def sample(self) -> None:
        """Nothing: the monitor has sampled."""

    def reset(self) -> None:
        """Withdraw the offer and everything queued."""
        self._queue.clear()
        self._offering = None


class Sink:
    """Target of a stream: accepts when its pace allows, whether or not something is offered."""

    def __init__(self, bench: Bench, name: str, pace: Pace = always):
        self.monitor = StreamMonitor(bench, name)
        self._rng = bench.rng(name)
        self._pace = pace(self._rng)
        self._ready = getattr(bench.dut, f"{name}__ready")
        bench.add(self)

    def set_pace(self, pace: Pace) -> None:
        """Go on at another pace."""
        self._pace = pace(self._rng)

    def drive(self) -> None:
        """Be ready or not."""
        self._ready.value = next(self._pace)

    def sample(self) -> None:
        """Nothing: the monitor has sampled."""

    def reset(self) -> None:
        """Nothing is under way."""
