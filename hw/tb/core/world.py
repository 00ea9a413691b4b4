"""What surrounds a core: rings with traffic on one side, data path and memory on the other; knows no simulator."""

from collections import Counter, deque
from collections.abc import Generator, Sequence
from itertools import count
from random import Random
from typing import Protocol

from hw.params import commands as c
from hw.params.commands import Command, Completion, Message
from hw.params.orderlog import Operation
from hw.params.params import Params
from hw.params.protocol import RingId, Status
from hw.rtl.node.layouts import Kind
from hw.tb.core.follower import Follower, Verdict, verdict
from hw.tb.core.messages import messages_of, what_of
from hw.tb.core.operations import Encoder, Fields, stamp
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError
from pymodel.stimulus.traffic import Fault, Happen, Submit, Traffic

NOT_OURS = ("expire_parked", "expire_fence", "restart")
"""Moves of the traffic that hardware makes itself, and that the log has no entry for."""


class Moves(Protocol):
    """What a world is driven by."""

    @property
    def over(self) -> bool:
        """Whether there will be no more moves."""

    def next(self) -> Submit | Happen | None:
        """The next move; None when there is none for now."""

    def heard(self, outputs: Sequence[Completion | Message]) -> None:
        """Learn from what the ports are told."""


Turn = tuple[RingId, Command] | Happen
"""What a story yields: a command, for which it is sent the completion, or what happens before its next command."""

Story = Generator[Turn, Completion, None]


class Script:
    """Traffic that follows a script."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._tags = count()
        self._next: Turn | None = next(story)
        self._waits_for: tuple[RingId, int] | None = None

    @property
    def over(self) -> bool:
        """Whether the story has been told."""
        return self._next is None and self._waits_for is None

    def next(self) -> Submit | Happen | None:
        """The next command, once the one before has ended."""
        if self._next is None:
            return None
        if isinstance(self._next, Happen):
            happens, self._next = self._next, next(self._story)
            return happens
        (ring, command), self._next = self._next, None
        self._waits_for = (ring, next(self._tags))
        return Submit(*self._waits_for, command)

    def heard(self, outputs: Sequence[Completion | Message]) -> None:
        """Go on with the story."""
        for output in outputs:
            if isinstance(output, Completion) and (output.ring, output.tag) == self._waits_for:
                self._waits_for = None
                self._next = self._send(output)

    def _send(self, output: Completion) -> Turn | None:
        try:
            return self._story.send(output)
        except StopIteration:
            return None


class World:
    """Makes operations, and holds what the core says against the specification that follows its log.

    A stored segment lands, a started READ ends, some operations later, well or badly as the traffic asks. The items of
    a WRITE wait for each other's verdicts, as a port does. `statuses` and `told_of` count what was compared; `order` is
    the log so far.
    """

    def __init__(
        self, params: Params, seed: int, operations: Codec, script: Moves | None = None, *, number: int = 0
    ) -> None:
        self.statuses: Counter[tuple[str, Status]] = Counter()
        self.traffic: Moves = script or Traffic(params, seed, without=NOT_OURS)
        self.follower = Follower(params, self._owe, self._heard, number=number)
        self.told_of: Counter[str] = Counter()
        self.order: list[Operation] = []
        self._random = Random(f"{seed}/world")
        self._encoder = Encoder(params, operations)
        self._queues: dict[RingId, deque[list[Fields]]] = {}
        self._asked: dict[tuple[RingId, int], Command] = {}
        self._unanswered: Counter[int] = Counter()
        self._reads: list[tuple[RingId, int, int]] = []
        self._writing: dict[RingId, int] = {}
        self._losses: deque[Fields] = deque()
        self._owed: deque[Verdict] = deque()
        self._said: deque[Verdict] = deque()
        self._to_tell: deque[tuple[int, Fields]] = deque()
        self._told: deque[tuple[int, Fields]] = deque()
        self._failing = self._damaged = False

    # What the core is given.

    def ask(self) -> None:
        """The traffic's next move."""
        move = self.traffic.next()
        if move is None:
            return
        if isinstance(move, Happen):
            self._happen(move)
            return
        command = move.command
        self._asked[move.ring, move.tag] = self.follower.commands[move.ring, move.tag] = command
        items = self._encoder.command(move.ring, move.tag, command)
        queue = self._queues.setdefault(move.ring, deque())
        queue.extend([items] if isinstance(command, c.Lookup) else [[item] for item in items])

    def _happen(self, move: Happen) -> None:
        if move.fault is Fault.RING_LOST and move.ring is not None:
            self._losses.append(self._encoder.blank(Kind.LOST) | {"ring": stamp(move.ring)})
        elif move.fault is Fault.WRITE_FAILED:
            self._failing = True
        elif move.fault is Fault.READ_DAMAGED:
            self._damaged = True

    def offer(self) -> list[Fields]:
        """The next operations, without others between them; none when nobody has anything to say."""
        if self._losses:
            return [self._losses.popleft()]
        waiting = [ring for ring, queue in self._queues.items() if queue and ring not in self._writing]
        landing = [frame for frame, count in self._unanswered.items() if count]
        if not (waiting or landing or self._reads):
            return []
        weights = [4 * len(waiting), 2 * len(landing), 2 * len(self._reads)]
        who = self._random.choices(["ring", "landing", "read"], weights)[0]
        if who == "landing":
            return [self._land(self._random.choice(landing))]
        if who == "read":
            return [self._finish(self._reads.pop(self._random.randrange(len(self._reads))))]
        ring = self._random.choice(waiting)
        items = self._queues[ring].popleft()
        if items[0]["kind"] == Kind.WRITE and not items[0]["last"]:
            self._writing[ring] = items[0]["tag"]
        return items

    def _land(self, frame: int) -> Fields:
        count = self._random.randint(1, self._unanswered[frame])
        self._unanswered[frame] -= count
        fields = self._encoder.blank(Kind.LANDED) | {"count": count, "ok": int(not self._failing)}
        fields["handle"] |= {"frame": frame}
        self._failing = False
        return fields

    def _finish(self, read: tuple[RingId, int, int]) -> Fields:
        ring, tag, frame = read
        fields = self._encoder.blank(Kind.READ_DONE) | {"stamp": stamp(ring), "tag": tag, "ok": int(not self._damaged)}
        fields["handle"] |= {"frame": frame}
        self._damaged = False
        return fields

    # What the core says: verdict and log entry of an operation, in either order.

    def logged(self, entry: Fields) -> None:
        """The core's log has one entry more."""
        self.order.append(self.follower.follow(entry))
        self._settle()

    def said(self, fields: Fields) -> None:
        """The core gives a verdict."""
        self._said.append(verdict(fields))
        self._settle()

    def told(self, said: Fields) -> None:
        """The core tells some ports something."""
        ports, notice = said["ports"], said["notice"]
        if notice["lost"]:
            raise CheckError(f"messages: {notice} is lost, and nothing in the CAM is")
        self._told.extend((port, notice["message"]) for port in range(ports.bit_length()) if ports >> port & 1)
        self._compare_messages()

    def _heard(self, outputs: list[Completion | Message]) -> None:
        self._to_tell.extend(messages_of(outputs))
        self._compare_messages()
        self.traffic.heard(outputs)

    def _compare_messages(self) -> None:
        """Message by message, whoever comes first: the core waits for its log, not with its messages."""
        while self._told and self._to_tell:
            told, expected = self._told.popleft(), self._to_tell.popleft()
            if told != expected:
                raise CheckError(
                    f"messages: expected {expected}, got {told} (entry {self.follower.entries} of the log)"
                )
            self.told_of[what_of(told[1])] += 1

    def _owe(self, expected: Verdict) -> None:
        self._owed.append(expected)

    def _settle(self) -> None:
        while self._said and self._owed:
            said, owed = self._said.popleft(), self._owed.popleft()
            if said != owed:
                raise CheckError(f"verdicts: expected {owed}, got {said} (entry {self.follower.entries} of the log)")
            self.statuses[said[0], said[4]] += 1
            self._act(said)

    def _act(self, said: Verdict) -> None:
        """The data path's part: store what was accepted, start what may be read, give up what was refused."""
        kind, ring, tag, _, status, outcome, _, _ = said
        complete = outcome is not None
        command = self._asked.get((ring, tag))
        if self._writing.get(ring) == tag:
            del self._writing[ring]
        if isinstance(command, c.Write) and status is Status.OK:
            self._unanswered[command.handle.frame] += 1
        elif isinstance(command, c.Read) and not complete and status is Status.OK:
            self._reads.append((ring, tag, command.handle.frame))
        if isinstance(command, c.Write) and complete and kind == "WRITE":
            queue = self._queues.get(ring)
            while queue and queue[0][0]["tag"] == tag:
                queue.popleft()

    def finish(self) -> None:
        """Raise CheckError unless everything was answered, and the specification's own audit holds."""
        if self._said or self._owed:
            raise CheckError(f"without a match: said {list(self._said)[:3]}, owed {list(self._owed)[:3]}")
        if self._told or self._to_tell:
            raise CheckError(f"messages: told {list(self._told)[:3]}, to be told {list(self._to_tell)[:3]}")
        left = list(self.follower.slice.core.outstanding)
        if left:
            raise CheckError(f"never completed: {left[:5]}")
        if not self.statuses:
            raise CheckError("nothing was compared")
        undone = next(self.follower.slice.possible(), None)
        if undone is not None:
            raise CheckError(f"never done: {undone}")
        self.follower.slice.monitor.audit()
