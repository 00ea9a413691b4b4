"""What surrounds a slice: requesters at its links, an administrator at its registers; knows no simulator."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Command, Completion, Message
from hw.params.orderlog import Hand, Operation, ReadDone, Sealed, Step, Taken
from hw.params.params import Params
from hw.params.protocol import REGISTER_TAG, REGISTERS, TAG_BITS, FrameState, RingId, Status
from hw.params.striping import Striping
from hw.rtl.fabric import Channel
from hw.rtl.node.layouts import Kind
from hw.tb.core.follower import Follower, Verdict
from hw.tb.core.messages import messages_of
from hw.tb.core.operations import Fields, ring_of
from hw.tb.core.world import NOT_OURS, Moves
from hw.tb.scoreboard import CheckError
from hw.tb.slice.aftermath import Aftermath
from hw.tb.slice.coverage import Coverage
from hw.tb.slice.latency import Latencies, Surroundings
from hw.tb.slice.messages import Told
from hw.tb.slice.packets import Answer, Beat, Packets
from pymodel.stimulus.traffic import Fault, Happen, Submit, Traffic

Name = tuple[RingId, int]
"""Ring and tag of a command."""


INTERNAL = frozenset(kind for kind in Kind if kind >= Kind.LANDED)
"""Entries of the log that are of no command, or of one that has been logged before."""


@dataclass(slots=True)
class Sent:
    """A command on its way, and all that is known of it.

    - `tag`: the one that the traffic knows it by.
    - `number`: which it is of those sent over links; `bindings`: how often its ring had been bound then.
    - `owed`: answers that the specification gives; `given`: those that the slice has given.
    - `beats`: what a READ has brought, `stored`: the segments that it is to bring; `brought`: it has brought all.
    - `ended`: how it has ended.
    """

    command: Command
    tag: int
    number: int
    bindings: int
    logged: bool = False
    owed: deque[Answer] = field(default_factory=deque)
    given: deque[Answer] = field(default_factory=deque)
    beats: list[Beat] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    brought: bool = False
    ended: Status | None = None


class World:
    """Makes packets, and holds what a slice says against the specification that follows its log.

    - `commands`: commands sent; `statuses`: how often each ended how; `compared`: bytes of READs;
      `placed`: bytes of sealed blocks that were looked for in memory.
    - `coverage`: what the commands have met.
    - `cycle`: of what is asked or said next, where somebody counts them; `latencies`: from one to another of these;
      `aftermath`: of lost rings; `around`: how late the requesters and memory may be.
    - `expired`: commands refused because their ring was bound anew; `forgotten`: commands that a lost port had not
      given to the core; `cut`: WRITEs that ended with their port, some of their data taken; `torn`: READs of which it
      brought some data.
    - `log`: the order log so far.
    - `told`: the messages of each port; compared in the end, because one may come before the log has its operation.
    """

    def __init__(
        self,
        params: Params,
        seed: int,
        *,
        script: Moves | None = None,
        happen: Callable[[Fault], None] = lambda fault: None,
        number: int = 0,
    ) -> None:
        self.params = params
        self.packets = Packets(params)
        self.traffic: Moves = script or Traffic(params, seed, without=NOT_OURS)
        self.follower = Follower(params, self._owe, self._heard, number=number)
        self.statuses: Counter[tuple[str, Status]] = Counter()
        self.coverage = Coverage(self.follower.slice.core)
        self.log: list[Operation] = []
        self.cycle = 0
        self.around = Surroundings(flit=0, memory=0)
        self.latencies = Latencies(params)
        self.aftermath = Aftermath(params, self.follower.slice.core)
        self.commands = self.compared = self.placed = self.expired = self.forgotten = self.cut = self.torn = 0
        self.told = [Told() for _ in range(params.tables.ports)]
        self._fresh: set[int] = set()
        self._overtaken: Counter[int] = Counter()
        self._happen_to = happen
        self._tags: Counter[RingId] = Counter()
        self._sent: dict[Name, Sent] = {}
        self._bindings: Counter[RingId] = Counter()
        self._orders: deque[Submit] = deque()
        self._order: Submit | None = None
        self._order_status: Status | None = None
        self._parts: dict[tuple[int, Channel], list[int]] = defaultdict(list)

    # What the slice is given.

    def ask(self) -> list[tuple[int, Channel, list[int]]]:
        """The traffic's next move, as (port, channel, flits) to send; nothing for what is not sent over a link."""
        move = self.traffic.next()
        if move is None:
            return []
        if isinstance(move, Happen):
            return self._happen(move)
        self.commands += 1
        command = move.command
        if move.ring == REGISTERS:
            self._orders.append(Submit(REGISTERS, move.tag, command))
            return []
        name = move.ring, self._tag(move.ring)
        self._sent[name] = Sent(command, move.tag, self.commands, self._bindings[move.ring])
        self.follower.commands[name] = command
        self.latencies.ask(name, command.opcode, self.cycle)
        data = self.packets.data(*name, command)
        packets = [(move.ring.port, Channel.REQUEST, self.packets.requests(*name, command))]
        return [*packets, (move.ring.port, Channel.DATA, data)] if data else packets

    def _tag(self, ring: RingId) -> int:
        """A tag that nothing of the ring has that is under way."""
        while (ring, self._tags[ring] % (1 << TAG_BITS)) in self._sent:
            self._tags[ring] += 1
        tag = self._tags[ring] % (1 << TAG_BITS)
        self._tags[ring] += 1
        return tag

    def _happen(self, move: Happen) -> list[tuple[int, Channel, list[int]]]:
        if move.fault is Fault.RING_LOST and move.ring is not None:
            return [(move.ring.port, Channel.MESSAGE, self.packets.loss(move.ring))]
        self._happen_to(move.fault)
        return []

    def lose_port(self, port: int) -> None:
        """A port has been lost, is at rest, and works again: what it had is gone, and what it owed does not come.

        Raises CheckError if the core still has a command of it.
        """
        core = self.follower.slice.core
        self.latencies.lose(port, self.cycle)
        self.torn += self.torn_at(port)
        for name in [each for each in self._sent if each[0].port == port]:
            sent = self._sent[name]
            if name in core.outstanding:
                raise CheckError(f"port {port} is at rest, but the core has {sent.command} of {name}")
            self._gone(name)
            if not sent.logged:
                self.forgotten += 1
                self.traffic.heard([Completion(name[0], sent.tag, Status.UNAVAILABLE)])
        for channel in Channel:
            self._parts.pop((port, channel), None)
        self.told[port].compare(0)
        self.told[port] = Told()
        if isinstance(self.traffic, Traffic):
            self.traffic.lose_port(port)

    def torn_at(self, port: int) -> int:
        """How many READs of a port have brought some of their data, but not all."""
        return sum(
            ring.port == port and bool(sent.beats) and not sent.brought for (ring, _), sent in self._sent.items()
        )

    def left(self, port: int) -> list[str]:
        """What there still is of the lost rings of a port."""
        core = self.follower.slice.core
        lost = {ring.id for ring in core.rings.values() if ring.lost and ring.id.port == port}
        left = [f"pins of {ring}" for ring in lost if len(core.rings[ring].pins)]
        left += [f"session {slot}" for slot, session in core.sessions.items() if session.ring.id in lost]
        left += [f"{name} is outstanding" for name in core.outstanding if name[0] in lost]
        writing = (frame for frame in core.frames if frame.state is FrameState.WRITING)
        return left + [f"frame {frame.index}" for frame in writing if self.follower.slice.dead(frame.index)]

    def order(self) -> Command | None:
        """The administrator's next command; it is to be asked for before the next is."""
        if self._order is not None or not self._orders:
            return None
        self._order = self._orders.popleft()
        self.follower.commands[REGISTERS, REGISTER_TAG] = self._order.command
        return self._order.command

    @property
    def decided(self) -> bool:
        """Whether the log has the administrator's command."""
        return self._order_status is not None

    def ordered(self, status: Status | None) -> None:
        """The administrator's command has ended; without a status, registers tell none."""
        if status is None:
            status = self._order_status
        if status is None or self._order_status is not status:
            raise CheckError(f"registers: {self._order} ended {status!r}, expected {self._order_status!r}")
        assert self._order is not None
        self.statuses[self._order.command.opcode.name, status] += 1
        self._order = self._order_status = None

    @property
    def busy(self) -> bool:
        """Whether anything has been asked that has not ended."""
        return bool(self._sent or self._orders or self._order)

    # What the slice says.

    def logged(self, entry: Fields) -> None:
        """The order log has one entry more."""
        name = ring_of(entry["stamp"]), entry["tag"]
        if Kind(entry["kind"]) not in INTERNAL and name not in self.follower.commands:
            raise CheckError(f"a command of {name} is in the log, but none of that name is under way")
        if Kind(entry["kind"]) not in INTERNAL:
            self._cover(name)
            if name in self._sent:
                self.latencies.take(name, self.cycle)
        op = self.follower.follow(entry)
        self.log.append(op)
        self.aftermath.follow(op, self.cycle, self.around)
        if isinstance(op, Taken) and isinstance(op.command, c.Write) and op.item and self._is_cut(op.ring):
            self.cut += 1
        if isinstance(op, Taken) and op.ring != REGISTERS:
            self._taken(op)
        elif isinstance(op, ReadDone):
            self._settle((op.ring, op.tag))
        elif isinstance(op, Sealed):
            self._fresh.add(op.frame)
        elif op == Step(Hand.PARKED, entry["slot"]):
            self._started(name)

    def _is_cut(self, ring: RingId) -> bool:
        """Whether a ring is lost."""
        return ring != REGISTERS and self.follower.slice.core.rings[ring].lost

    def _cover(self, name: Name) -> None:
        """Count the bin of a command that is about to be executed."""
        if name == (REGISTERS, REGISTER_TAG):
            assert self._order is not None
            self.coverage.take(REGISTERS, self._order.command)
        elif name in self._sent and not self._sent[name].logged:
            self.coverage.take(name[0], self._sent[name].command)

    def _taken(self, op: Taken) -> None:
        name = op.ring, op.tag
        if name not in self._sent:
            raise CheckError(f"{op.command} of {name} is in the log, but was answered before or never sent")
        sent = self._sent[name]
        if sent.number < self._overtaken[op.ring.port]:
            raise CheckError(f"{op.command} of {name} is in the log behind what its port was sent later")
        self._overtaken[op.ring.port] = sent.number
        sent.logged = True
        self._started(name)
        self._settle(name)

    def _started(self, name: Name) -> None:
        """If this is a READ that has just been started, what it is to bring is known."""
        started = self.follower.slice.core.reads.get(name)
        if started is not None:
            first, count = started.command.segment, started.command.count
            self.latencies.start(name, self.cycle)
            self._sent[name].stored = started.frame.segments[first : first + count]

    def received(self, port: int, flit: int) -> None:
        """A flit has come over a link."""
        channel = self.packets.channel(flit)
        if channel == Channel.DATA:
            self._beat(self.packets.beat(port, flit))
        elif channel in (Channel.RESPONSE, Channel.MESSAGE):
            parts = self._parts[port, channel]
            parts.append(flit)
            if self.packets.ends(flit):
                if channel == Channel.RESPONSE:
                    self._answered(self.packets.answer(port, parts))
                else:
                    self.told[port].given.append(self.packets.message(parts))
                parts.clear()
        else:
            raise CheckError(f"port {port}: a flit on {channel!r}, where nothing was expected")

    def _answered(self, answer: Answer) -> None:
        name = answer.ring, answer.tag
        sent = self._sent.get(name)
        if sent is None:
            raise CheckError(f"{answer}: nothing of that name is under way")
        if answer.outcome is not None:
            self.latencies.answer(name, self.cycle)
        rebound = self._bindings[answer.ring] != sent.bindings
        if rebound and not sent.logged and answer.outcome is Status.UNAVAILABLE:
            self.expired += 1
            self._gone(name)
            self.traffic.heard([Completion(answer.ring, sent.tag, Status.UNAVAILABLE)])
            return
        sent.given.append(answer)
        self._settle(name)

    def _beat(self, beat: Beat) -> None:
        name = beat.ring, beat.tag
        sent = self._sent.get(name)
        if sent is None or not isinstance(sent.command, c.Read) or sent.brought:
            raise CheckError(f"{beat}: no READ of that name is under way")
        sent.beats.append(beat)
        sent.brought = beat.last and beat.end
        self._settle(name)

    # Comparing.

    def _owe(self, verdict: Verdict) -> None:
        kind, ring, tag, item, status, outcome, handle, slot = verdict
        command = self.follower.commands[ring, tag]
        if isinstance(command, c.Bind) and status is Status.OK:
            self._bindings[command.ring] += 1
        if ring == REGISTERS:
            self._order_status = status
            return
        if outcome is not None or kind == "LOOKUP":
            self._sent[ring, tag].owed.append(Answer(ring, tag, item, status, outcome, handle, slot))
            self._settle((ring, tag))

    def _heard(self, outputs: list[Completion | Message]) -> None:
        """What the requesters are told, under the tags that the traffic knows."""
        for port, fields in messages_of(outputs):
            self.told[port].owed.append(fields)
        for output in outputs:
            if not isinstance(output, Completion):
                continue
            self.coverage.end(self.follower.commands[output.ring, output.tag], output)
            if output.ring != REGISTERS:
                self.latencies.end((output.ring, output.tag), self.cycle)
            known = self._order if output.ring == REGISTERS else self._sent[output.ring, output.tag]
            assert known is not None
            output.tag = known.tag
        self.traffic.heard(outputs)

    def _settle(self, name: Name) -> None:
        """Compare what can be compared of one command, and forget it when it is over."""
        sent = self._sent.get(name)
        if sent is None:
            return
        while sent.owed and sent.given:
            owed, given = sent.owed.popleft(), sent.given.popleft()
            if owed != given:
                raise CheckError(f"{sent.command}: expected {owed}, got {given}")
            if given.outcome is not None:
                sent.ended = given.outcome
        if sent.ended is None or (sent.stored and not sent.brought):
            return
        if sent.stored:
            self._compare(name, sent)
        if sent.owed or sent.given:
            raise CheckError(f"{name}: {sent} goes on after its end")
        self.statuses[sent.command.opcode.name, sent.ended] += 1
        self._gone(name)

    def _gone(self, name: Name) -> None:
        """Nothing of a command is under way any more."""
        del self._sent[name]
        del self.follower.commands[name]

    def _compare(self, name: Name, sent: Sent) -> None:
        """The bytes of a READ, segment by segment, with their trailers."""
        assert isinstance(sent.command, c.Read)
        segments: list[tuple[bytes, Beat]] = []
        data = b""
        for beat in sent.beats:
            data += beat.data
            if beat.last:
                segments.append((data, beat))
                data = b""
        if len(segments) != len(sent.stored):
            raise CheckError(f"READ {name}: {len(segments)} segments came, expected {len(sent.stored)}")
        for i, ((data, trailer), stored) in enumerate(zip(segments, sent.stored, strict=True)):
            if trailer.segment != sent.command.segment + i or trailer.end != (i == len(segments) - 1):
                raise CheckError(f"READ {name}: {trailer} is not segment {sent.command.segment + i} of {sent.command}")
            if trailer.ok and (data != stored or trailer.crc != google_crc32c.value(data)):
                raise CheckError(f"READ {name}: segment {trailer.segment} is not what was stored")
            self.compared += len(data)
        good = all(trailer.ok for _, trailer in segments)
        if sent.ended is not Status.UNAVAILABLE and good is not (sent.ended is Status.OK):
            raise CheckError(f"READ {name} ended {sent.ended!r}, its trailers say {good}")

    def compare_memory(self, read: Callable[[int, int, int], bytes]) -> None:
        """Raise CheckError unless what was sealed since the last call, and still is, lies in memory where it should.

        `read` gives what a channel holds at an address, so many bytes of a segment.
        """
        stripes = Striping(self.params)
        for index in self._fresh:
            frame = self.follower.slice.core.frames[index]
            for number, data in enumerate(frame.segments if frame.state is FrameState.SEALED else ()):
                if read(*stripes.locate(index, number), len(data)) != data:
                    raise CheckError(f"frame {index}, segment {number}: memory does not hold what was stored")
                self.placed += len(data)
        self._fresh.clear()

    def finish(self) -> None:
        """Raise CheckError unless everything was answered, and the specification's own audit holds."""
        if self._sent:
            raise CheckError(f"never completed: {list(self._sent.items())[:3]}")
        if self.busy:
            raise CheckError(f"never ordered: {self._order or self._orders[0]}")
        for told in self.told:
            told.compare(self.params.link.messages)
        left = list(self.follower.slice.core.outstanding)
        if left:
            raise CheckError(f"never completed: {left[:5]}")
        undone = next(self.follower.slice.possible(), None)
        if undone is not None:
            raise CheckError(f"never done: {undone}")
        self.follower.slice.monitor.audit()
