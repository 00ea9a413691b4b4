"""cocotb tests of `hw.rtl.node.core`."""

from collections import Counter, deque
from dataclasses import replace
from typing import Any

import cocotb

from hw.params import commands as c
from hw.params.params import Params
from hw.params.protocol import RingId, Status
from hw.params.toeplitz import diagonals
from hw.rtl.node.layouts import Kind
from hw.tb.bench import Bench
from hw.tb.core.follower import Follower, Verdict, verdict
from hw.tb.core.operations import Encoder, Fields, stamp
from hw.tb.core.settings import params_of
from hw.tb.pace import Pace, always, bursts, randomly
from hw.tb.scoreboard import CheckError, Scoreboard
from hw.tb.stream import Sink, Source
from pymodel.spec.traffic import Fault, Happen, Traffic

LATER = ("migrate", "answer", "expire_parked", "expire_fence", "restart")
"""Moves of the traffic that the core has no answer to yet."""

AHEAD = 2
"""Operations queued before the core takes them: more would only make the order stiffer."""


class CoreBench(Bench):
    """Traffic on one side; on the other, verdicts held against the specification that follows the core's log.

    What data path and memory do is done here: a stored segment lands, a started READ ends, some cycles later, well or
    badly as the traffic asks.
    """

    def __init__(self, dut: Any, *, idle: Pace = always, backpressure: Pace = always):
        super().__init__(dut)
        self.params: Params = params_of(self.settings)
        self.random = self.rng("world")
        self.traffic = Traffic(self.params, self.seed, without=LATER)
        self.encoder = Encoder(self.params, self.codec("operations__payload"))
        self.source = Source(self, "operations", idle)
        self.verdicts = Sink(self, "verdicts", backpressure)
        self.log = Sink(self, "log", backpressure)
        self.board = self.add_scoreboard(Scoreboard("verdicts"))
        self.statuses: Counter[Status] = Counter()
        self.evictions = 0
        self._reset_model()
        dut.diagonals.value = self._diagonals()
        self.log.monitor.listeners.append(self._logged)
        self.verdicts.monitor.listeners.append(self._said)

    def _reset_model(self) -> None:
        self.follower = Follower(self.params, self._owed, self.traffic.heard)
        self.queues: dict[RingId, deque[list[Fields]]] = {}
        self.asked: dict[tuple[RingId, int], c.Command] = {}
        self.unanswered: Counter[int] = Counter()
        self.writing: dict[RingId, int] = {}
        self.reads: list[tuple[RingId, int, int]] = []
        self._early: deque[Verdict] = deque()
        self._failing = self._damaged = False

    def _diagonals(self) -> int:
        codec = self.codec("diagonals")
        return codec.pack(diagonals(self.params))

    # What the core says. Verdict and log entry of an operation come in either order.

    def _owed(self, expected: Verdict) -> None:
        self.board.expect(expected)
        self._settle()

    def _said(self, fields: Fields) -> None:
        self._early.append(verdict(fields))
        self._settle()

    def _settle(self) -> None:
        while self._early and self.board.outstanding:
            said = self._early.popleft()
            self.board.observe(said)
            self.statuses[said[4]] += 1
            self._act(said)

    def _act(self, said: Verdict) -> None:
        """The data path's part: store what was accepted, start what may be read."""
        kind, ring, tag, _, status, complete, _, _ = said
        command = self.asked.get((ring, tag))
        if self.writing.get(ring) == tag:
            del self.writing[ring]
        if isinstance(command, c.Write) and status is Status.OK:
            self.unanswered[command.handle.frame] += 1
        elif isinstance(command, c.Read) and not complete:
            self.reads.append((ring, tag, command.handle.frame))
        if isinstance(command, c.Write) and complete and kind == "WRITE":
            queue = self.queues.get(ring)
            while queue and queue[0][0]["tag"] == tag:
                queue.popleft()

    def _logged(self, entry: Fields) -> None:
        self.follower.follow(entry)

    # What the world does.

    def ask(self) -> None:
        """The traffic's next move."""
        move = self.traffic.next()
        if isinstance(move, Happen):
            self._happen(move)
            return
        command = move.command
        if isinstance(command, c.Read):
            command = replace(command, park=False)
        self.asked[move.ring, move.tag] = self.follower.commands[move.ring, move.tag] = command
        items = self.encoder.command(move.ring, move.tag, command)
        queue = self.queues.setdefault(move.ring, deque())
        queue.extend([items] if isinstance(command, c.Lookup) else [[item] for item in items])

    def _happen(self, move: Happen) -> None:
        if move.fault is Fault.RING_LOST and move.ring is not None:
            self.source.send(self.encoder.blank(Kind.LOST) | {"ring": stamp(move.ring)})
        elif move.fault is Fault.WRITE_FAILED:
            self._failing = True
        elif move.fault is Fault.READ_DAMAGED:
            self._damaged = True

    def offer(self) -> None:
        """Queue one more operation, of some ring or of memory."""
        waiting = [ring for ring, queue in self.queues.items() if queue and ring not in self.writing]
        landing = [frame for frame, count in self.unanswered.items() if count]
        choices = [("ring", 4 * len(waiting)), ("land", 2 * len(landing)), ("read", 2 * len(self.reads))]
        what = self.random.choices([name for name, _ in choices], [weight for _, weight in choices])[0]
        if what == "ring":
            ring = self.random.choice(waiting)
            for item in self.queues[ring].popleft():
                self.source.send(item)
                if item["kind"] == Kind.WRITE.value and not item["last"]:
                    self.writing[ring] = item["tag"]
        elif what == "land":
            self._land(self.random.choice(landing))
        else:
            self._finish(self.reads.pop(self.random.randrange(len(self.reads))))

    def _land(self, frame: int) -> None:
        count = self.random.randint(1, self.unanswered[frame])
        self.unanswered[frame] -= count
        fields = self.encoder.blank(Kind.LANDED) | {"count": count, "ok": int(not self._failing)}
        fields["handle"] |= {"frame": frame}
        self._failing = False
        self.source.send(fields)

    def _finish(self, read: tuple[RingId, int, int]) -> None:
        ring, tag, frame = read
        fields = self.encoder.blank(Kind.READ_DONE) | {"stamp": stamp(ring), "tag": tag, "ok": int(not self._damaged)}
        fields["handle"] |= {"frame": frame}
        self._damaged = False
        self.source.send(fields)

    @property
    def busy(self) -> bool:
        """Whether there is something to offer."""
        asking = any(queue for ring, queue in self.queues.items() if ring not in self.writing)
        return bool(asking or self.reads or any(self.unanswered.values()))

    async def run(self, commands: int) -> None:
        """So many moves of the traffic, and then all that is left."""
        for _ in range(commands):
            self.ask()
            while self.busy and self.source.pending < AHEAD:
                self.offer()
            await self.until(lambda: self.source.pending < AHEAD)
            if self.random.random() < 0.2:
                await self.cycles(self.random.randrange(40))
        while True:
            while self.busy and self.source.pending < AHEAD:
                self.offer()
            await self.until(lambda: self.source.pending == 0)
            await self.cycles(200)
            if not self.busy and not self.source.pending:
                break
        self._check_end()

    def _check_end(self) -> None:
        """Conservation: nothing is outstanding, and the specification's own audit holds."""
        if self._early:
            raise CheckError(f"verdicts without a log entry: {list(self._early)[:3]}")
        core = self.follower.slice.core
        left = {name: result for name, result in core.outstanding.items()}
        if left:
            raise CheckError(f"never completed: {list(left)[:5]}")
        self.follower.slice.monitor.audit()


PACES: dict[str, Pace] = {"always": always, "half": randomly(0.5), "bursts": bursts(20, 20)}


@cocotb.test()
@cocotb.parametrize(idle=["always", "bursts"], backpressure=["always", "half"])
async def random_operations(dut: Any, idle: str, backpressure: str) -> None:
    """Traffic of all rings: every status, frame, slot and generation is the specification's."""
    async with CoreBench(dut, idle=PACES[idle], backpressure=PACES[backpressure]) as bench:
        await bench.run(bench.settings["commands"])
