"""When commands ran and memory channels moved data, of a device with a clock."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.params.commands import Command, Completion
from hw.params.protocol import REGISTERS, EngineOpcode, Opcode, RingId, Status
from sw.driver.transport import Arrival, Observer


class Span(NamedTuple):
    """A command, from before its doorbell until software saw its completion; in device cycles."""

    ring: RingId
    tag: int
    opcode: Opcode | EngineOpcode
    begin: int
    end: int
    status: Status

    @property
    def cycles(self) -> int:
        """Its latency."""
        return self.end - self.begin


class Sample(NamedTuple):
    """A look at the device: when, the beats that each memory channel has moved, the commands in flight until then."""

    cycle: int
    beats: tuple[int, ...]
    in_flight: int


class Visit(NamedTuple):
    """A request from its start to its end."""

    number: int
    ring: RingId
    begin: int
    end: int


class Timing(Observer):
    """Keeps the spans of all commands of rings, by their ends, and a sample for each poll.

    ``clock`` gives the device's cycle, ``beats`` what each of its memory channels has moved, read and written: those of
    the first of ``slices``, then of the next.
    """

    def __init__(self, clock: Callable[[], int], beats: Callable[[], Sequence[int]], slices: int = 1) -> None:
        self.spans: list[Span] = []
        self.samples: list[Sample] = []
        self.slices = slices
        self._clock = clock
        self._beats = beats
        self._open: dict[tuple[RingId, int], tuple[Opcode | EngineOpcode, int]] = {}

    def submitted(
        self, ring: RingId, tag: int, command: Command, into: memoryview | None, *, cycle: int | None, slice_: int
    ) -> None:
        if ring == REGISTERS:
            return
        assert cycle is not None, "a device that is timed has a clock"
        if not self.samples:
            self._sample(cycle)
        self._open[ring, tag] = command.opcode, cycle

    def polled(self, arrivals: Sequence[Arrival] | None) -> None:
        now = self._clock()
        self._sample(now)
        for arrival in arrivals or ():
            if isinstance(arrival, Completion) and arrival.ring != REGISTERS:
                opcode, begin = self._open.pop((arrival.ring, arrival.tag))
                self.spans.append(Span(arrival.ring, arrival.tag, opcode, begin, now, arrival.status))

    def _sample(self, cycle: int) -> None:
        self.samples.append(Sample(cycle, tuple(self._beats()), len(self._open)))

    def channel(self, number: int) -> str:
        """What a memory channel is called."""
        slice_, channel = divmod(number, len(self.samples[0].beats) // self.slices)
        return f"channel {channel}" if self.slices == 1 else f"slice {slice_}, channel {channel}"

    # Figures; hw.params.statistics says what each means.

    @property
    def cycles(self) -> int:
        """From the first command to the last completion."""
        return max((span.end for span in self.spans), default=0) - min((span.begin for span in self.spans), default=0)

    def latencies(self, opcode: Opcode | EngineOpcode) -> NDArray[np.int64]:
        """Of all commands of a kind, in cycles."""
        return np.array([span.cycles for span in self.spans if span.opcode is opcode], np.int64)

    @property
    def stall_cycles(self) -> int:
        """Over the intervals with commands in flight: their cycles, less the beats of the busiest channel of each."""
        stalled = 0
        for before, after in zip(self.samples, self.samples[1:], strict=False):
            if after.in_flight:
                moved = max(b - a for a, b in zip(before.beats, after.beats, strict=True))
                stalled += max(0, after.cycle - before.cycle - moved)
        return stalled


def utilisation(samples: Sequence[Sample], most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges of at most `most` intervals, in cycles, and beats per cycle by channel and interval."""
    cycles = np.array([sample.cycle for sample in samples])
    beats = np.array([sample.beats for sample in samples])
    edges = np.linspace(cycles[0], max(cycles[-1], cycles[0] + 1), min(most, len(samples)) + 1)
    moved = [np.diff(np.interp(edges, cycles, column)) for column in beats.T]
    return edges, np.array(moved) / np.diff(edges)
