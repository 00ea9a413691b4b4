"""A device with a clock and an order log behind the driver, recorded and timed."""

from collections.abc import Callable, Iterable, Sequence

from hw.params.orderlog import Operation
from scripts.replay.timing import Timing
from sw.driver import Transport
from sw.driver.transport import ObservedTransport, Observer, Recorder


class ClockedTransport(ObservedTransport):
    """``inner``, which has a clock.

    - `log`: gives the entries of its order log since it was last asked.
    - `beats`: gives what each of its memory channels has moved.
    - `observer`: what `log` has to see of the driver, if anything.
    """

    def __init__(
        self,
        inner: Transport,
        log: Callable[[], Iterable[Operation]],
        beats: Callable[[], Sequence[int]],
        observer: Observer | None = None,
    ) -> None:
        self.recorder = Recorder(log)
        self.timing = Timing(self._now, beats)
        super().__init__(inner, [*([observer] if observer else []), self.recorder, self.timing])

    def _now(self) -> int:
        cycle = self.cycle
        assert cycle is not None, "it has a clock"
        return cycle
