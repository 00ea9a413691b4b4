"""A transport with onlookers: they see what goes in and what comes out, and change nothing."""

from collections.abc import Sequence

from hw.params.commands import Command
from hw.params.protocol import RingId
from sw.driver.transport.base import Arrival, Transport


class Observer:
    """Sees one transport at work; each method may be left as it is."""

    def submitted(
        self, ring: RingId, tag: int, command: Command, into: memoryview | None, *, cycle: int | None, slice_: int
    ) -> None:
        """A command was submitted to a slice; ``cycle`` is from before that."""

    def wrote(self, offset: int, value: int, slice_: int) -> None:
        """A register was written."""

    def polled(self, arrivals: Sequence[Arrival] | None) -> None:
        """The device was polled, or took a step; data of READs is where it belongs.

        None when a step found nothing, and nothing outstanding either.
        """

    def counted(self, slice_: int) -> None:
        """The counters of a slice were read."""


class ObservedTransport(Transport):
    """``inner``, with observers that are told in their order."""

    def __init__(self, inner: Transport, observers: Sequence[Observer]) -> None:
        self.params = inner.params
        self._inner = inner
        self._observers = observers

    @property
    def cycle(self) -> int | None:
        return self._inner.cycle

    def read_register(self, offset: int, slice_: int = 0) -> int:
        return self._inner.read_register(offset, slice_)

    def write_register(self, offset: int, value: int, slice_: int = 0) -> None:
        self._inner.write_register(offset, value, slice_)
        for observer in self._observers:
            observer.wrote(offset, value, slice_)

    def _queue(self, ring: RingId, tag: int, command: Command, into: memoryview | None, slice_: int) -> None:
        cycle = self.cycle
        self._inner.submit(ring, tag, command, into, slice_=slice_)
        for observer in self._observers:
            observer.submitted(ring, tag, command, into, cycle=cycle, slice_=slice_)

    def poll(self) -> list[Arrival]:
        arrivals = self._inner.poll()
        for observer in self._observers:
            observer.polled(arrivals)
        return arrivals

    def step(self) -> list[Arrival] | None:
        arrivals = self._inner.step()
        for observer in self._observers:
            observer.polled(arrivals)
        return arrivals

    def set_timeout(self, timeout: float, ring: RingId | None = None) -> None:
        self._inner.set_timeout(timeout, ring)

    @property
    def clock(self) -> float | None:
        return self._inner.clock

    def lose(self, ring: RingId) -> None:
        self._inner.lose(ring)

    def counters(self, slice_: int = 0) -> dict[str, int]:
        counters = self._inner.counters(slice_)
        for observer in self._observers:
            observer.counted(slice_)
        return counters

    def close(self) -> None:
        self._inner.close()
