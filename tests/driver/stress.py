"""Random operations of many threads on one device, with rings lost at any moment, and what must be true of all of it.

Every thread draws its operations from a seed of its own; in which order the threads come is up to the machine, so a
run can be repeated in what is asked, not in what follows.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import length_hint
from random import Random
from threading import Semaphore, Thread
from typing import Any

from driverbench import FRAMES, PARAMS, Rig
from stress_judge import Judge
from stress_worker import Worker

from hw.params import commands as c
from hw.params.protocol import RingId, Status, tags
from sw.driver import Client, Device
from sw.driver.transport import MmioTransport, RingFailed
from sw.driver.transport.loopback import LoopbackBus
from sw.driver.transport.verilator import VerilatorBus

PARTITIONS = {RingId(0, 0): 0, RingId(1, 0): 0, RingId(0, 1): 1, RingId(1, 1): 2}
WORKERS = [RingId(0, 0), RingId(0, 0), RingId(1, 0), RingId(0, 1), RingId(0, 1), RingId(1, 1)]
"""The ring of each thread: some have one for themselves, some share one, some share a partition."""

HANG = 600.0
"""Seconds without a single operation after which a run counts as hung; a device that stops is found by its clock."""


class Stress:
    """A device that threads work on; ``run`` ends with the first thing that is wrong, or the device is as at first."""

    def __init__(self, bus: LoopbackBus | VerilatorBus, seed: int, **options: Any) -> None:
        print(f"seed {seed}, which gives the operations, not the order of threads")
        self.bus = bus
        self.transport = MmioTransport(PARAMS, bus, **options)
        self.mapped = bus.mapped
        self.rig = Rig(Device(self.transport))
        self.device = self.rig.device
        self.judge = Judge()
        self.workers = [
            Worker(self.device, self.judge, ring, PARTITIONS[ring], f"{seed} {number}")
            for number, ring in enumerate(WORKERS)
        ]
        self.random = Random(f"{seed} losses")
        self.moves = Semaphore(0)
        self.done = 0
        self.over = False
        self.lost = 0
        self.failures: list[BaseException] = []

    def run(self, operations: int) -> Counter[tuple[str, Status]]:
        """So many operations, all threads together; returns how they ended."""
        share = operations // len(WORKERS)
        threads = [self._thread(self._work, worker, share) for worker in self.workers]
        losses = self._thread(self.lose)
        with often_switched():
            for thread in [*threads, losses]:
                thread.start()
            for thread in threads:
                self._join(thread)
            self.over = True
            self.moves.release(1000)
            self._join(losses)
        if self.failures:
            raise self.failures[0]
        self.finish()
        return self.judge.statuses

    def _thread(self, target: Callable[..., None], *args: Any) -> Thread:
        def guarded() -> None:
            try:
                target(*args)
            except BaseException as error:
                self.failures.append(error)
                self.over = True

        return Thread(target=guarded, daemon=True)

    def _join(self, thread: Thread) -> None:
        while thread.is_alive():
            before = self.done
            thread.join(HANG)
            if thread.is_alive() and self.done == before:
                raise AssertionError(f"no thread has done anything in {HANG} s") from next(iter(self.failures), None)

    def _work(self, worker: Worker, operations: int) -> None:
        for _ in range(operations):
            if self.over:
                return
            worker.step()
            self.moves.release()
            self.done += 1

    # Losses.

    def lose(self) -> None:
        """Reset rings, and whole ports, and bind them again, all the time."""
        while True:
            for _ in range(self.random.randint(5, 60)):
                self.moves.acquire()
            if self.over:
                return
            self.lose_some()
            self.lost += 1

    def lose_some(self) -> None:
        """Reset a ring, or a port. Until they are bound again, rings do nothing."""
        ring, whole = self.random.choice(list(PARTITIONS)), self.random.random() < 0.3
        rings = [each for each in PARTITIONS if each == ring or (whole and each.port == ring.port)]
        with self.judge.losses.during(*rings):
            if whole:
                self.device.lose_port(ring.port)
            else:
                self.device.reset(ring)
            for each in rings:
                status = Client(self.device, each).drop(0, 0)
                assert status is Status.UNAVAILABLE, f"{each} is lost, and yet a command of it ends {status.name}"
                self.device.bind(each, PARTITIONS[each])

    # The end.

    def finish(self) -> None:
        """Give back what is held, then what is left is lost with its ring; in the end nothing of it is anywhere."""
        self.judge.finish()
        for worker in self.workers:
            worker.give_back()
        self.nothing_is_held("sessions are closed, and pins returned")
        for ring in PARTITIONS:
            self.leave(ring)
        for ring in PARTITIONS:
            self.device.reset(ring)
        self.nothing_is_held("rings are reset")
        failed = [message for message in self.rig.heard if isinstance(message, RingFailed)]
        assert not failed, failed

    def nothing_is_held(self, when: str) -> None:
        """Nothing is left of any command: not in the node, a requester, or the driver."""
        for _ in range(self.device.patience):
            self.rig.settle()
            counters = self.rig.counters()
            if counters["frames_draining"] == 0:
                break
        held = ("pins_used", "sessions_used", "parked_used", "frames_writing", "frames_draining")
        left = {name: counters[name] for name in held if counters[name]}
        assert not left, f"{when}: {left}"
        frames = sum(count for name, count in counters.items() if name.startswith("frames_"))
        assert frames == FRAMES, f"{when}: {frames} frames"
        assert self.bus.mapped == self.mapped, f"{when}: {self.bus.mapped} mappings, expected {self.mapped}"
        assert not self.device._tickets, f"{when}: {self.device._tickets}"
        for ring, given in self.device._tags.items():
            free = length_hint(given._fresh) + len(given._freed)
            used = len(tags(ring)) - free
            assert not used, f"{when}: {used} tags of {ring} are not free"
        for ring, lane in self.transport._lanes.items():
            pair = lane.pair
            assert not (lane.tags or lane.waiting or lane.flights or pair._places), f"{when}: {lane}"
            assert sorted(pair._free) == list(range(pair.entries)), f"{when}: slots of {ring}: {pair._free}"
            outstanding = pair._unit.get(f"{pair.name}STATUS.outstanding")
            assert outstanding == 0, f"{when}: {outstanding} commands of {ring} are outstanding"

    def leave(self, ring: RingId) -> None:
        """A session with a block that is being written, and a pin, as a process leaves them that dies."""
        client = Client(self.device, ring)
        session = client.open()
        assert client.put(session, 0, 99, b"left").stored
        assert client.lookup(0, [99], pin=True).status is Status.HIT
        assert client.run(c.Alloc(0, 100 + ring.port, 600, session)).status is Status.GRANTED


@contextmanager
def often_switched() -> Iterator[None]:
    """Python gives threads their turns a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
