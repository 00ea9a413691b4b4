"""A whole replay: the device is set up, requests are kept in flight, partitions, models and ports live and die."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from hw.params import ParameterError, Params
from hw.params.commands import Event, Fate, Message
from hw.params.protocol import FrameState, ModelState, RingId
from scripts.replay.ledger import Ledger
from scripts.replay.serve import Service, Steps
from scripts.replay.tally import History, Tally
from scripts.replay.timing import Visit
from scripts.replay.wear import Wear
from scripts.replay.workload import Request, Workload
from sw.driver import Device, DeviceError, Ticket, Transport

_SAMPLES = 200
"""How often the frames are counted in a run."""


def check_sessions(params: Params) -> None:
    """ParameterError when there are more requests in flight than sessions: a slice of few is good, but for this."""
    sessions, shares = params.tables.sessions // params.shares, params.shares
    if params.replay.in_flight > sessions:
        raise ParameterError(
            f"parameters contradict each other: replay.in_flight = {params.replay.in_flight}"
            f" exceeds tables.sessions = {params.tables.sessions}"
            + (f", {sessions} for each of {shares} isolated partitions" if shares > 1 else "")
        )


@dataclass(frozen=True, slots=True)
class Shares:
    """The pools that a replay uses, and of each what every partition in it may have and is sure of, in frames of each
    slice."""

    pools: tuple[int, ...]
    frames: tuple[int, ...]
    quotas: tuple[int, ...]
    guarantees: tuple[int, ...]
    sharers: int
    slices: int

    @classmethod
    def of(cls, params: Params) -> Shares:
        """Of the first pool whose frames hold a block; where partitions are isolated, of the pool of each."""
        replay = params.replay
        pools = [i for i, pool in enumerate(params.pools) if pool.frame_bytes >= replay.block_bytes][:1]
        if params.strict:
            pools = list(range(replay.partitions))
        sharers = 1 if params.strict else replay.partitions
        frames = [params.pools[pool].frames for pool in pools]
        quotas = [max(1, int(count * replay.quota)) for count in frames]
        guarantees = [int(count * (replay.guarantee / sharers)) for count in frames]
        return cls(tuple(pools), tuple(frames), tuple(quotas), tuple(guarantees), sharers, params.node.slices)

    def partition(self, number: int) -> tuple[int, int, int]:
        """Pool, quota and guarantee of a partition."""
        at = number % len(self.pools)
        return self.pools[at], self.quotas[at], self.guarantees[at]

    @property
    def capacity(self) -> int:
        """Most frames that all partitions may use together, in all slices."""
        each = sum(min(frames, self.sharers * quota) for frames, quota in zip(self.frames, self.quotas, strict=True))
        return self.slices * each


@dataclass(slots=True)
class _Job:
    """A request in flight."""

    request: Request
    steps: Steps
    begin: int | None
    waiting: list[Ticket] = field(default_factory=list)

    def resume(self) -> bool:
        """Go on as far as completions allow; False when the request has ended."""
        waiting = self.waiting
        while True:
            while waiting and waiting[-1].completion is not None:
                waiting.pop()
            if waiting:
                return True
            tickets = next(self.steps, None)
            if tickets is None:
                return False
            waiting.extend(tickets)


class Replay:
    """One run of a workload on one transport; holds all that was observed. Without ``epoch``, the device takes any."""

    def __init__(self, workload: Workload, params: Params, transport: Transport, *, epoch: int | None = None) -> None:
        check_sessions(params)
        self.shares = Shares.of(params)
        self.params = params
        self.workload = workload
        self.device = Device(transport)
        self.ledger = Ledger(params.replay.seed, params.replay.block_bytes)
        self.tallies = [Tally() for _ in range(params.replay.partitions)]
        self.history = History()
        self.wear = Wear(params.tables)
        self.service = Service(self.device, self.ledger, self.tallies, self.history, self.wear)
        self.visits: list[Visit] = []
        """Of a device with a clock, the requests in the order of their ends."""
        self.interrupted = False
        """Set it to end early."""
        self.stopped_at: int | None = None
        """The turn in which the run learnt of that: all that was decided follows from it."""
        self.stored_events = 0
        self.wall_seconds = 0.0
        self._set_up(epoch)
        self.epoch = self.device.read("EPOCH_HIGH") << 32 | self.device.read("EPOCH_LOW")

    def _set_up(self, epoch: int | None) -> None:
        replay, device, shares = self.params.replay, self.device, self.shares
        device.start(epoch)
        self.before = device.counters()
        device.listen(self._heard)
        for partition in range(replay.partitions):
            pool, quota, guarantee = shares.partition(partition)
            device.set_partition(partition, pool=pool, quota=quota, guarantee=guarantee)
        for model in range(replay.models):
            device.set_model(model, ModelState.LIVE)
        for port in range(replay.ports):
            self._bind(port)

    def _bind(self, port: int) -> None:
        for partition in range(self.params.replay.partitions):
            if port in self.params.ports_of(partition):
                self.device.bind(RingId(port, partition), partition)

    def _heard(self, message: Message) -> None:
        """Every port hears of every block of the partitions it has rings of: of these the first is believed."""
        if isinstance(message, Event) and message.port == self.params.ports_of(message.partition)[0]:
            self.ledger.event(message)
            if message.stored:
                self.stored_events += 1
            elif message.fate is Fate.EVICTED:
                self.tallies[message.partition].evictions += 1

    @property
    def complete(self) -> bool:
        """Whether every request has ended."""
        return len(self.history.references) == len(self.workload)

    def run(self, ended: Callable[[], None] = lambda: None, *, stop_at: int | None = None) -> None:
        """Serve all requests; ``ended`` is called after each. With ``stop_at``, stop in that turn."""
        begin, device = time.perf_counter(), self.device
        requests = iter(self.workload)
        events = self._events()
        every = max(1, len(self.workload) // _SAMPLES)
        active: list[_Job] = []
        started = 0
        self._sample()
        for turn in count():
            if turn == stop_at or (self.interrupted and not self.service.stop):
                self.service.stop, self.stopped_at = True, turn
            while not self.service.stop and len(active) < self.params.replay.in_flight:
                request = next(requests, None)
                if request is None:
                    break
                active.append(_Job(request, self.service.start(request), device.transport.cycle))
                active[-1].resume()
                started += 1
                while events and events[0][0] <= started:
                    events.pop(0)[1](started)
            if not active:
                break
            over = [job for job in active if not job.resume()]
            for job in over:
                active.remove(job)
                self._visited(job)
                ended()
            if over and len(self.history.references) // every > len(self.history.occupancy) - 1:
                self._sample()
            if not over and not device.progress():
                raise DeviceError("the device has nothing to do, but requests are waiting for it")
        while device.progress():
            pass
        self._sample()
        self.wall_seconds = time.perf_counter() - begin

    def _visited(self, job: _Job) -> None:
        end = self.device.transport.cycle
        if job.begin is not None and end is not None:
            ring = RingId(job.request.port, job.request.partition)
            self.visits.append(Visit(job.request.number, ring, job.begin, end))

    def _sample(self) -> None:
        counters = self.device.counters()
        states = (counters[f"frames_{state.name.lower()}"] for state in FrameState)
        self.history.occupancy.append((len(self.history.references), *states))

    # What is done to the device on the way.

    def _events(self) -> list[tuple[int, Callable[[int], None]]]:
        """(requests started, action), by time."""
        replay = self.params.replay
        planned = ((replay.retire_model_at, self._retire), (replay.lose_port_at, self._lose))
        events = [(max(1, round(at * len(self.workload))), action) for at, action in planned if at]
        return sorted(events, key=lambda event: event[0])

    def _retire(self, started: int) -> None:
        model = self.params.replay.models - 1
        self.device.set_model(model, ModelState.RETIRED)
        self.history.events.append((started, f"model {model} retired"))

    def _lose(self, started: int) -> None:
        """A port goes down and comes back once all that was under way there has ended UNAVAILABLE."""
        port = self.params.replay.ports - 1
        self.device.lose_port(port)
        while self.device.progress():
            pass
        self._bind(port)
        self.history.events.append((started, f"port {port} lost"))
