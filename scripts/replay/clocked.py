"""A device with a clock and an order log behind the driver, recorded and timed."""

from collections.abc import Callable, Iterable, Sequence

from hw.params.orderlog import Operation
from scripts.replay.timing import Timing
from sw.driver import Transport
from sw.driver.transport import ObservedTransport, Observer, Recorder


class ClockedTransport(ObservedTransport):
    """``inner``, which has a clock.

    - `logs`: gives the entries of the order log of each slice since it was last asked.
    - `beats`: gives what each of its memory channels has moved.
    - `observer`: what `logs` has to see of the driver, if anything.
    """

    def __init__(
        self,
        inner: Transport,
        logs: Callable[[], Sequence[Iterable[Operation]]],
        beats: Callable[[], Sequence[int]],
        observer: Observer | None = None,
    ) -> None:
        slices = inner.params.node.slices
        self.recorder = Recorder(logs, slices)
        self.timing = Timing(self._now, beats, slices)
        super().__init__(inner, [*([observer] if observer else []), self.recorder, self.timing])

    def _now(self) -> int:
        cycle = self.cycle
        assert cycle is not None, "it has a clock"
        return cycle
