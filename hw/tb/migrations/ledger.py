"""What two rings that share a session have been told, and what they may be told because of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hw.params import commands as c
from hw.params.commands import Command, Completion
from hw.params.protocol import Handle, RingId, SessionId, Status
from pymodel.spec.check.violation import invariant

REFUSALS = (Status.STALE, Status.DENIED, Status.PENDING, Status.RANGE, Status.WRITE_ONCE)
"""What a ring is told that has no right to what it asks for; WRITE_ONCE of what is sealed."""


@dataclass(slots=True, eq=False)
class Block:
    """A block of the session, in bytes that the rings have agreed on.

    - `told`: segments that a ring has been told to be accepted; `firm`: those that a fence has passed.
    - `doubtful`: memory may have failed to store some of it.
    """

    handle: Handle
    key: int
    data: bytes
    told: int = 0
    firm: int = 0
    sealed: bool = False
    dead: bool = False
    doubtful: bool = False


class Asked(NamedTuple):
    """A command under way, and what was known when it was sent.

    - `tenure`: how often the session had moved; `owned`: by this ring; `returning`: it was to move to this ring.
    - `firm`, `sealed`, `dead`: of the block that it names.
    """

    ring: RingId
    command: Command
    block: Block | None
    tenure: int
    owned: bool
    returning: bool
    firm: int
    sealed: bool
    dead: bool


@dataclass
class Ledger:
    """Judges by what was said to the two rings alone; raises InvariantViolation.

    Whoever feeds it has compared that with what the hardware said: statuses, and bytes of READs.

    - `ring`: who has the session; `former`: who had it before; `alive`: there is one.
    - `told`: segments that its ring has been told to be accepted; `answered`: how many it has said that there are.
    - `lost`: rings that are lost, until they are bound again; what happens at a loss is known only then.
    - `reads`: READs that were judged, by why.
    """

    segment_bytes: int
    session: SessionId | None = None
    ring: RingId | None = None
    former: RingId | None = None
    alive: bool = False
    tenure: int = 0
    told: int = 0
    answered: int | None = None
    lost: set[RingId] = field(default_factory=set)
    blocks: list[Block] = field(default_factory=list)
    asked: dict[tuple[RingId, int], Asked] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)

    def of(self, *, sealed: bool = False) -> list[Block]:
        """The blocks that are alive, sealed or not."""
        return [block for block in self.blocks if not block.dead and block.sealed is sealed]

    def sends(self, ring: RingId, tag: int, command: Command, block: Block | None) -> None:
        """A ring sends a command, about a block if it is about one."""
        moving = any(isinstance(a.command, c.Migrate) and a.ring == ring for a in self.asked.values())
        known = (block.firm, block.sealed, block.dead) if block is not None else (0, False, False)
        self.asked[ring, tag] = Asked(ring, command, block, self.tenure, ring == self.ring, moving, *known)

    def hears(self, result: Completion) -> Asked:
        """A command has ended; the ends are heard in the order of the log."""
        asked = self.asked.pop((result.ring, result.tag))
        status = result.status
        if status is Status.UNAVAILABLE:
            invariant(10, asked.ring in self.lost, "{} ended UNAVAILABLE, and its ring is not lost", asked.command)
        if isinstance(asked.command, c.Read):
            self._read(asked, result)
        elif isinstance(asked.command, c.Lookup):
            self._looked(asked, status)
        elif status is not Status.UNAVAILABLE:
            self._changed(asked, result)
        if isinstance(asked.command, c.Migrate):
            self._moved(asked, status)
        return asked

    def loses(self, handle: Handle) -> None:
        """A sealed block has gone."""
        for block in self.blocks:
            block.dead |= block.handle == handle

    def ends(self) -> None:
        """The session has died, and with it what is not sealed."""
        self.alive, self.answered = False, None
        for block in self.of():
            block.dead = True

    def under_way(self, ring: RingId) -> int:
        """Segments of WRITEs of a ring that have not ended."""
        return sum(self._segments(asked.command) for asked in self._writes() if asked.ring == ring)

    def _writes(self, block: Block | None = None) -> Iterator[Asked]:
        for asked in self.asked.values():
            if isinstance(asked.command, c.Write) and (block is None or asked.block is block):
                yield asked

    def _segments(self, command: Command) -> int:
        assert isinstance(command, c.Write)
        return -(-len(command.data) // self.segment_bytes)

    def writing(self, block: Block) -> bool:
        """Whether a WRITE of the block is under way."""
        return any(True for _ in self._writes(block))

    # Judging.

    def _had(self, asked: Asked) -> bool:
        """Whether the ring has had the session while its command was under way: there are but two."""
        return asked.owned or asked.ring == self.ring or self.tenure > asked.tenure + 1

    def _same(self, command: c.Read, block: Block, data: bytes) -> None:
        first, size = command.segment, self.segment_bytes
        right = block.data[first * size : (first + command.count) * size]
        invariant(2, data == right, "{} brought other bytes than were stored", command)

    def _read(self, asked: Asked, result: Completion) -> None:
        command, block, status = asked.command, asked.block, result.status
        assert isinstance(command, c.Read) and block is not None
        owns, lost = asked.ring == self.ring, bool(self.lost & {asked.ring, self.ring})
        if status is Status.OK:
            invariant(1, not asked.dead, "{} of a dead block", command)
            invariant(1, block.sealed or self._had(asked), "{} by a ring that had not the session", command)
            self._same(command, block, result.data)
            self.reads["sealed" if block.sealed else "unsealed"] += 1
        elif asked.dead:
            self.reads["dead"] += 1
            invariant(7, lost or status is Status.STALE, "{} of a dead block ended {}", command, status)
        elif block.dead or lost:
            return
        else:
            moved = owns and asked.owned and asked.tenure == self.tenure and command.segment + command.count
            promised = asked.sealed or (moved and moved <= asked.firm and not block.doubtful)
            invariant(9, not promised, "{} of what was accepted before the fence ended {}", command, status)

    def _looked(self, asked: Asked, status: Status) -> None:
        block = asked.block
        assert block is not None
        if self.lost & {asked.ring, self.ring}:
            return
        if asked.dead:
            invariant(4, status is Status.MISS, "LOOKUP of a dead block ended {}", status)
        elif not block.dead:
            right = (Status.HIT,) if asked.sealed else (Status.HIT, Status.PENDING)
            invariant(4, status in right, "LOOKUP of a block ended {}", status)

    def _changed(self, asked: Asked, result: Completion) -> None:
        """Only who has the session changes anything; who had it before is told that it is STALE."""
        ring, command, block, status = asked.ring, asked.command, asked.block, result.status
        acts = isinstance(command, c.Alloc | c.Write | c.Seal | c.Abort | c.CloseSession | c.AnswerFence)
        stranger = not self._had(asked)
        if acts and stranger:
            invariant(9, status in REFUSALS, "{} by a ring that had not the session ended {}", command, status)
        still = asked.tenure == self.tenure and self.alive and not self.lost and not (block and block.sealed)
        returning = asked.returning or any(
            isinstance(other.command, c.Migrate) and other.ring == ring for other in self.asked.values()
        )
        if acts and stranger and still and ring == self.former and not returning:
            invariant(9, status is Status.STALE, "{} by the former ring ended {}", command, status)
        match command:
            case c.OpenSession() if status is Status.OK:
                self.session, self.ring, self.former, self.alive = result.session, ring, None, True
                self.told, self.answered = 0, None
                self.tenure += 1
            case c.Write():
                assert block is not None
                block.told += result.count
                if ring == self.ring:
                    self.told += result.count
            case c.Seal():
                assert block is not None
                self._sealed(block, status)
            case c.Abort() | c.Drop() if status is Status.OK:
                assert block is not None
                block.dead = True
            case c.CloseSession() if status is Status.OK:
                self.ends()
            case c.AnswerFence(_, writes) if status is Status.OK:
                invariant(9, writes >= self.told, "a count of {} was taken after {} were accepted", writes, self.told)
                self.answered = writes
            case c.Bind(bound, _) if status is Status.OK:
                self.lost.discard(bound)
                if bound == self.ring:
                    self.ends()

    @staticmethod
    def _sealed(block: Block, status: Status) -> None:
        if status is Status.OK:
            block.sealed = True
        elif status is Status.MEM_ERROR:
            invariant(9, block.doubtful, "memory has not failed, and a SEAL ended MEM_ERROR")
            block.dead = True
        invariant(2, status is not Status.CRC, "what was accepted is not what its ring had sent")

    def _moved(self, asked: Asked, status: Status) -> None:
        if status is Status.STALE or (status is Status.UNAVAILABLE and self.answered is not None):
            self.ends()
        elif status is Status.OK and asked.ring != self.ring:
            invariant(9, self.answered is not None, "a session has moved before its ring had let it go")
            assert self.answered is not None
            invariant(9, self.told >= self.answered, "a session has moved, and {} writes were to come", self.answered)
            for block in self.of():
                block.firm = block.told
            self.former, self.ring = self.ring, asked.ring
            self.told, self.answered = 0, None
            self.tenure += 1
