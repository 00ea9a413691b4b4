"""Agents of AXI channels with flat signals: a source and a sink, each with a pace of its own."""

from collections import deque
from collections.abc import Mapping

from hw.tb.bench import Bench
from hw.tb.pace import Pace, always
from hw.tb.scoreboard import CheckError

LITE_FIELDS = {
    "aw": ("addr", "prot"),
    "w": ("data", "strb"),
    "b": ("resp",),
    "ar": ("addr", "prot"),
    "r": ("data", "resp"),
}
"""The channels of AXI4-Lite, with the fields of each."""

Offer = Mapping[str, int]
"""What is offered on a channel: field to value."""


class ChannelSource:
    """Offers queued transfers of a channel in order, when its pace allows, and noise in between.

    A channel is named by the prefix of its signals, as in `axi__aw`; a transfer is a dictionary of all its fields.
    """

    def __init__(self, bench: Bench, channel: str, fields: tuple[str, ...], pace: Pace = always):
        self.bench = bench
        self._rng = bench.rng(channel)
        self._pace = pace(self._rng)
        self._valid = getattr(bench.dut, f"{channel}valid")
        self._ready = getattr(bench.dut, f"{channel}ready")
        self._fields = {field: getattr(bench.dut, f"{channel}{field}") for field in fields}
        self._queue: deque[dict[str, int]] = deque()
        self._offering = self._fired = False
        bench.add(self)

    @property
    def pending(self) -> int:
        """Number of transfers not yet taken."""
        return len(self._queue) + self._offering

    def send(self, **transfer: int) -> None:
        """Queue a transfer."""
        self._queue.append(transfer)

    def drive(self) -> None:
        """Keep the offer until it is taken, then make the next or none."""
        if self._offering and not self._fired:
            return
        self._offering = next(self._pace) and not self.bench.in_reset and bool(self._queue)
        transfer = self._queue.popleft() if self._offering else None
        for field, signal in self._fields.items():
            signal.value = self._rng.getrandbits(len(signal)) if transfer is None else transfer[field]
        self._valid.value = self._offering

    def sample(self) -> None:
        """See whether the offer is taken."""
        self._fired = self._offering and bool(self._ready.value)

    def reset(self) -> None:
        """Withdraw the offer and everything queued."""
        self._queue.clear()
        self._offering = False


class ChannelSink:
    """Accepts transfers of a channel when its pace allows, whether or not something is offered."""

    def __init__(self, bench: Bench, channel: str, pace: Pace = always):
        self._rng = bench.rng(channel)
        self._pace = pace(self._rng)
        self._ready = getattr(bench.dut, f"{channel}ready")
        bench.add(self)

    def set_pace(self, pace: Pace) -> None:
        """Go on at another pace."""
        self._pace = pace(self._rng)

    def drive(self) -> None:
        """Be ready or not."""
        self._ready.value = next(self._pace)

    def sample(self) -> None:
        """Nothing to see."""

    def reset(self) -> None:
        """Nothing is under way."""


class ChannelWatch:
    """Follows a channel, cycle by cycle; checks that an offer stands unchanged until it is taken."""

    def __init__(self, channel: str):
        self._channel = channel
        self._standing: Offer | None = None

    def follow(self, offer: Offer | None, ready: bool) -> tuple[bool, bool]:
        """Return whether what is offered in this cycle was not before, and whether it is taken. Raises CheckError."""
        if self._standing is not None and offer != self._standing:
            raise CheckError(f"{self._channel}: offer {self._standing} became {offer} before it was taken")
        new = offer is not None and self._standing is None
        taken = offer is not None and ready
        self._standing = None if taken else offer
        return new, taken

    def reset(self) -> None:
        """An offer need not survive reset."""
        self._standing = None
