"""The specification as a device with a clock and an order log: what stands in for RTL."""

from collections.abc import Callable, Iterable

from hw.params.commands import Completion
from hw.params.orderlog import Operation
from hw.params.params import Params
from pymodel.stimulus.scheduler import Policy
from scripts.replay.clocked import ClockedTransport
from sw.driver import SpecificationTransport
from sw.driver.transport import Arrival
from sw.driver.transport.recording import named


class Ticking(SpecificationTransport):
    """A random order of all that is possible; an operation takes two cycles, and moves a beat on one of two channels.

    ``lie`` may change what arrives.
    """

    def __init__(self, params: Params, seed: int = 0, lie: Callable[[Completion], None] = lambda _: None) -> None:
        super().__init__(params, seed, Policy.RANDOM, record=True)
        self._lie = lie
        self._logged = [0 for _ in self.logs]

    @property
    def _operations(self) -> int:
        return sum(len(log or ()) for log in self.logs)

    @property
    def cycle(self) -> int:
        return 2 * self._operations

    def beats(self) -> tuple[int, int]:
        """Beats moved."""
        return self._operations // 2, (self._operations + 1) // 2

    def news(self) -> list[Iterable[Operation]]:
        """Entries of each order log since the last call, as a recording has them."""
        logs = [log or [] for log in self.logs]
        fresh = [log[logged:] for log, logged in zip(logs, self._logged, strict=True)]
        self._logged = [len(log) for log in logs]
        return [map(named, each) for each in fresh]

    def poll(self) -> list[Arrival]:
        arrivals = super().poll()
        for arrival in arrivals:
            if isinstance(arrival, Completion):
                self._lie(arrival)
        return arrivals


def clocked(inner: Ticking) -> ClockedTransport:
    """What the command puts around a device with a clock."""
    return ClockedTransport(inner, inner.news, inner.beats)
