"""Requesters and an administrator of a compiled slice who do what they are told, and note when it ended."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Command
from hw.params.params import Params
from hw.params.protocol import TAG_BITS, Handle, ModelState, RingId, SessionId, Status
from hw.rtl.fabric import Channel
from hw.tb.harness import Harness
from hw.tb.harness.simulation import records
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import administer
from hw.tb.slice.orders import REGISTER_MAP
from hw.tb.slice.packets import Answer, Beat, Packets

PATIENCE = 100_000
"""Cycles for whatever has been asked for."""

STEP = 50
"""Cycles of a call."""

STREAMED = (Status.OK, Status.POISON)
"""How a READ ends that has brought its data."""


@dataclass(slots=True)
class Reply:
    """What a command has brought: its answers, and the beats of a READ, each with the cycle it came in.

    - `command`, `tag`: what was asked for. `asked`: the cycle in which its first flit was on its link, if nothing else
      was sent then.
    """

    command: Command
    tag: int
    asked: int
    answers: list[Answer] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)

    @property
    def status(self) -> Status:
        """How the command has ended."""
        outcome = self.answers[-1].outcome
        assert outcome is not None, "a command that has ended has an outcome"
        return outcome

    @property
    def data(self) -> bytes:
        """What was read."""
        return b"".join(beat.data for beat in self.beats)

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come; the data of a READ may come behind its answer."""
        outcome = self.answers[-1].outcome if self.answers else None
        if isinstance(self.command, c.Read) and outcome in STREAMED:
            return bool(self.beats) and self.beats[-1].end and self.beats[-1].last
        return outcome is not None


class Software:
    """Sends commands in the cycles of one's choice, and hears what comes.

    - `beats`: of data that have come, for all READs.
    """

    def __init__(self, harness: Harness, params: Params):
        self.harness = harness
        self.beats = 0
        self._params, self._packets = params, Packets(params)
        self._tags = itertools.cycle(range(1 << TAG_BITS))
        self._replies: dict[tuple[RingId, int], Reply] = {}
        self._parts: dict[int, list[int]] = {}

    def administer(self, command: Command) -> Status | None:
        """Have a command done by way of the registers."""
        return administer(self.harness, command)

    def begin(self, *rings: RingId, pool: int = 0) -> None:
        """Bring the slice into service: a partition with a whole pool has these rings, and model 0 is LIVE."""
        partition = c.SetPartition(0, pool=pool, quota=self._params.pools[pool].frames)
        self.configure([partition, c.SetModel(0, ModelState.LIVE), *(c.Bind(ring, 0) for ring in rings)])

    def configure(self, settings: Sequence[Command]) -> None:
        """Bring the slice into service, with these settings."""
        while not self.status("ready"):
            self.harness.run(STEP)
        self.administer(c.SetEpoch(99))
        self.harness.run(STEP)
        for command in settings:
            status = self.administer(command)
            if status is not Status.OK:
                raise CheckError(f"{command} ended {status}")

    def status(self, name: str) -> bool:
        """A bit of STATUS."""
        register = REGISTER_MAP["STATUS"]
        return bool(self.harness.read_register(register.offset)[0] & register.field(name).mask)

    def send(self, ring: RingId, command: Command) -> Reply:
        """Hand a command to its link; the reply fills as cycles are run."""
        tag = next(self._tags)
        reply = self._replies[ring, tag] = Reply(command, tag, self.harness.cycle)
        flits = {
            Channel.REQUEST: self._packets.requests(ring, tag, command),
            Channel.DATA: self._packets.data(ring, tag, command),
        }
        for channel, words in flits.items():
            packed = b"".join(word.to_bytes(self.harness.flit_bytes, "little") for word in words)
            self.harness.send(ring.port, channel, packed)
        return reply

    def run(self, cycles: int) -> None:
        """Let so many cycles pass, and hear what has come."""
        self.harness.run(cycles)
        self.hear(range(self._params.tables.ports))

    def hear(self, ports: Iterable[int]) -> None:
        """Hear what has come to some ports, but for what they are told unasked."""
        for port in ports:
            for cycle, flit in records(self.harness.received(port), self.harness.flit_bytes):
                self._hear(port, cycle, flit)

    def ask(self, ring: RingId, command: Command) -> Reply:
        """Send a command and wait for its end. Raises CheckError if there is none."""
        reply = self.send(ring, command)
        end = self.harness.cycle + PATIENCE
        while not reply.ended:
            if self.harness.cycle >= end:
                raise CheckError(f"{command}: no end in {PATIENCE:,} cycles")
            self.run(STEP)
        return reply

    def session(self, ring: RingId) -> SessionId:
        """Open a session."""
        opened = self.ask(ring, c.OpenSession()).answers[0]
        if opened.slot is None:
            raise CheckError(f"OPEN_SESSION ended {opened.status}")
        return SessionId(*opened.slot)

    def allocate(self, ring: RingId, key: int, length: int, session: SessionId) -> Handle:
        """Claim a frame for a block of model 0."""
        granted = self.ask(ring, c.Alloc(0, key, length, session)).answers[0]
        if granted.handle is None or granted.status is not Status.GRANTED:
            raise CheckError(f"ALLOC ended {granted.status}")
        return granted.handle

    def store(self, ring: RingId, key: int, data: bytes) -> Handle:
        """Open a session, store a sealed block of model 0 in it, and close it."""
        session = self.session(ring)
        handle = self.allocate(ring, key, len(data), session)
        crc = google_crc32c.value(data)
        for command in (c.Write(handle, 0, data), c.Seal(handle, len(data), crc), c.CloseSession(session)):
            status = self.ask(ring, command).status
            if status is not Status.OK:
                raise CheckError(f"{command.opcode.name} ended {status}")
        return handle

    def _hear(self, port: int, cycle: int, flit: int) -> None:
        channel = self._packets.channel(flit)
        if channel is Channel.DATA:
            beat = self._packets.beat(port, flit)
            self.beats += 1
            self._note(beat, cycle).beats.append(beat)
            self._retire(beat)
        elif channel is Channel.RESPONSE:
            parts = self._parts.setdefault(port, [])
            parts.append(flit)
            if self._packets.ends(flit):
                answer = self._packets.answer(port, parts)
                parts.clear()
                self._note(answer, cycle).answers.append(answer)
                self._retire(answer)

    def _note(self, item: Answer | Beat, cycle: int) -> Reply:
        """The reply that something belongs to, with its cycle."""
        reply = self._replies[item.ring, item.tag]
        reply.cycles.append(cycle)
        return reply

    def _retire(self, item: Answer | Beat) -> None:
        """Forget the command of something, if it was the last."""
        if self._replies[item.ring, item.tag].ended:
            del self._replies[item.ring, item.tag]
