"""Two rings of one partition, on two ports, and the session that they take from each other."""

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Command, Completion, Message
from hw.params.params import Params
from hw.params.protocol import KEY_BITS, REGISTERS, ModelState, RingId, Status
from hw.tb.migrations.ledger import Asked, Block, Ledger
from hw.tb.scoreboard import CheckError
from pymodel.stimulus.traffic import Fault, Happen, Submit

RINGS = (RingId(0, 0), RingId(1, 0))
UNDER_WAY = 12
"""Commands that wait for their ends before more are sent."""

BLOCKS = 4
"""Blocks that are alive at a time, sealed or not."""

PATIENCE = 500
"""Moves in which a migration has to end."""

DOUBTED = 12
"""Rounds in which a write that fails must have been met."""

FATES = {"honest": 14, "straggling": 2, "low": 2, "never": 1, "old ring lost": 1, "new ring lost": 1, "failing": 1}
"""What may become of a migration, and how often: the fence is answered rightly, with WRITEs in the count that come
after the answer, too low at first, or not at all; a ring is lost; memory fails."""

KIND = ("honest", "straggling", "low")
"""Fates in which every migration goes well, given the time."""


@dataclass(slots=True)
class Round:
    """One migration: when it begins, and when its fence is answered, in moves; and what has become of it so far."""

    fate: str
    begins: int
    answers: int
    asked: bool = False
    fenced: bool = False
    misled: bool = False
    moves: int = 0
    ended: bool = False


class Migrations:
    """Chooses what happens next, by `seed`, so many rounds long; judges all that it hears by its ledger.

    - `fates`: what may become of them.
    - `rounds`: migrations that have ended; `ends`: how often a fate ended how; `flying`: fences answered while WRITEs
      were under way.
    """

    def __init__(self, params: Params, seed: int, rounds: int, fates: Sequence[str] = tuple(FATES)) -> None:
        self.ledger = Ledger(params.memory.segment_bytes)
        self.ends: Counter[tuple[str, Status]] = Counter()
        self.rounds = self.flying = 0
        self._params, self._wanted, self._fates = params, rounds, fates
        self._random = random.Random(f"{seed}/migrations")
        self._tags = count()
        self._sent: dict[Block, int] = {}
        self._doubted = 0
        self._to_say: deque[tuple[RingId, Command, Block | None]] = deque()
        self._to_say.extend(
            (REGISTERS, command, None)
            for command in (
                c.SetEpoch(self._random.getrandbits(63) + 1),
                c.SetPartition(0, quota=params.pools[0].frames),
                c.SetModel(0, ModelState.LIVE),
                *(c.Bind(ring, 0) for ring in RINGS),
            )
        )
        self._round = self._plan()

    def _plan(self) -> Round:
        fate = self._random.choices(self._fates, [FATES[fate] for fate in self._fates])[0]
        return Round(fate, self._random.randrange(16), self._random.randrange(14))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    @property
    def over(self) -> bool:
        """Whether all rounds have ended, and whatever they left."""
        return self.rounds >= self._wanted and not (self.ledger.asked or self._to_say)

    # What the world calls.

    def next(self) -> Submit | Happen | None:
        """The next move; None when nobody has anything to say for now."""
        ledger, this = self.ledger, self._round
        if self._to_say:
            # Administration is done one by one, and nothing beside it.
            if self._to_say[0][0] == REGISTERS and ledger.asked:
                return None
            return self._say(*self._to_say.popleft())
        if any(asked.ring == REGISTERS or isinstance(asked.command, c.OpenSession) for asked in ledger.asked.values()):
            return None
        if len(ledger.asked) >= UNDER_WAY or self._chance(0.2):
            return None
        if this.ended or not ledger.alive:
            return self._turn()
        return self._move()

    def heard(self, outputs: Sequence[Completion | Message]) -> None:
        """Learn from what the ports are told."""
        for output in outputs:
            if isinstance(output, Completion):
                self._learn(output, self.ledger.hears(output))
            elif isinstance(output, c.Fence):
                self._round.fenced = True
            elif isinstance(output, c.Event) and not output.stored:
                self.ledger.loses(output.handle)

    # Saying.

    def _say(self, ring: RingId, command: Command, block: Block | None = None) -> Submit:
        tag = next(self._tags)
        self.ledger.sends(ring, tag, command, block)
        return Submit(ring, tag, command)

    def _turn(self) -> Submit | Happen | None:
        """Between two migrations: lost rings are bound again, and a session is opened when there is none."""
        ledger = self.ledger
        if ledger.lost:
            if ledger.asked:
                return None
            return self._say(REGISTERS, c.Bind(min(ledger.lost), 0))
        if not ledger.alive:
            return self._say(self._random.choice(RINGS), c.OpenSession()) if self.rounds < self._wanted else None
        if self.rounds >= self._wanted:
            return None
        self._round = self._plan()
        return None

    def _move(self) -> Submit | Happen | None:
        """One of the two rings does something, or the migration goes on."""
        ledger, this = self.ledger, self._round
        assert ledger.ring is not None and ledger.session is not None
        this.moves += 1
        if this.moves > PATIENCE:
            raise CheckError(f"the migration of {ledger.session} does not end: {this}")
        here = ledger.ring
        there = RINGS[RINGS[0] == here]
        if not this.asked:
            this.begins -= 1
            if this.begins < 0:
                this.asked = True
                return self._say(there, c.Migrate(ledger.session))
        elif this.fenced and ledger.answered is None:
            this.answers -= 1
            if this.answers < 0:
                return self._answer(here)
        if self._chance(0.3):
            return self._stray(there)
        return self._own(here)

    def _answer(self, ring: RingId) -> Submit | Happen | None:  # noqa: PLR0911 (one a fate)
        """Answer the fence, or what is done instead."""
        ledger, this = self.ledger, self._round
        assert ledger.session is not None
        this.answers = self._random.randrange(1, 8)
        writes = ledger.told + ledger.under_way(ring)
        if any(isinstance(asked.command, c.AnswerFence) for asked in ledger.asked.values()) or ledger.lost:
            return None
        match this.fate:
            case "never":
                return None
            case "old ring lost" | "new ring lost":
                lost = ring if this.fate == "old ring lost" else RINGS[RINGS[0] == ring]
                if self._chance(0.3):
                    return self._say(ring, c.AnswerFence(ledger.session, writes))
                ledger.lost.add(lost)
                return Happen(Fault.RING_LOST, lost)
            case "failing" if not self._doubted:
                self._doubt()
                return Happen(Fault.WRITE_FAILED)
            case "low" if writes and not this.misled:
                this.misled = True
                return self._say(ring, c.AnswerFence(ledger.session, max(0, ledger.told - self._random.randint(0, 1))))
            case "straggling":
                block, left = self._unwritten()
                if block is not None and left:
                    self._to_say.append((ring, self._write(block, 1), block))
                    writes += 1
        self.flying += ledger.under_way(ring) > 0
        return self._say(ring, c.AnswerFence(ledger.session, writes))

    def _doubt(self) -> None:
        """From here on, what is being written may be damaged."""
        self._doubted = DOUBTED
        for block in self.ledger.of():
            block.doubtful = True

    def _unwritten(self) -> tuple[Block | None, int]:
        """A block that is not sealed, and how many of its segments have not been sent.

        None that may be given up by what is under way, or added to by who had not the session.
        """
        under_way = self.ledger.asked.values()
        unsure = {
            asked.block
            for asked in under_way
            if isinstance(asked.command, c.Abort)
            or (isinstance(asked.command, c.Write) and not (asked.owned and asked.ring == self.ledger.ring))
        }
        blocks = [block for block in self.ledger.of() if block not in unsure]
        if not blocks:
            return None, 0
        block = self._random.choice(blocks)
        return block, self._params.segments(len(block.data)) - self._sent[block]

    def _write(self, block: Block, segments: int) -> c.Write:
        """The next segments of a block."""
        size, first = self._params.memory.segment_bytes, self._sent[block]
        self._sent[block] += segments
        return c.Write(block.handle, first, block.data[first * size : (first + segments) * size])

    def _own(self, ring: RingId) -> Submit | None:  # noqa: PLR0911 (one a command)
        """The ring that has the session stores blocks, and reads them; once it has answered its fence, it waits."""
        ledger = self.ledger
        assert ledger.session is not None
        if ring in ledger.lost:
            return None
        block, left = self._unwritten()
        if ledger.answered is not None or any(isinstance(a.command, c.AnswerFence) for a in ledger.asked.values()):
            return self._look(ring)
        if block is None or (len(ledger.of()) < BLOCKS - 1 and self._chance(0.3)):
            return self._alloc(ring)
        if left and self._chance(0.7):
            return self._say(ring, self._write(block, self._random.randint(1, min(2, left))), block)
        if not left and self._chance(0.25):
            return self._say(ring, c.Seal(block.handle, len(block.data), google_crc32c.value(block.data)), block)
        if self._chance(0.08):
            return self._say(ring, c.Abort(block.handle), block)
        return self._look(ring)

    def _alloc(self, ring: RingId) -> Submit | None:
        """A new block; the oldest sealed one makes room for it."""
        ledger = self.ledger
        assert ledger.session is not None
        if any(isinstance(asked.command, c.Alloc | c.Drop) for asked in ledger.asked.values()):
            return None
        sealed = ledger.of(sealed=True)
        if len(sealed) + len(ledger.of()) >= BLOCKS:
            if not sealed:
                return None
            return self._say(ring, c.Drop(0, sealed[0].key), sealed[0])
        frame = self._params.pools[0].frame_bytes
        return self._say(ring, c.Alloc(0, self._random.getrandbits(KEY_BITS), frame, ledger.session))

    def _look(self, ring: RingId) -> Submit | None:
        """A ring reads some of a block, or looks it up; it may wait for it in the node."""
        blocks = self.ledger.of() + self.ledger.of(sealed=True)
        if not blocks:
            return None
        block = self._random.choice(blocks)
        if self._chance(0.2):
            return self._say(ring, c.Lookup(0, [block.key]), block)
        total = self._params.segments(len(block.data))
        first = self._random.randrange(max(1, self._sent[block]))
        command = c.Read(block.handle, first, self._random.randint(1, total - first), park=self._chance(0.6))
        return self._say(ring, command, block)

    def _stray(self, ring: RingId) -> Submit | None:
        """What the ring without the session may try in vain; its bytes are others, unless they may be in time."""
        ledger = self.ledger
        assert ledger.session is not None
        blocks = ledger.of()
        if ring in ledger.lost:
            return None
        if not blocks or self._chance(0.6):
            return self._look(ring)
        block = self._random.choice(blocks)
        in_time = any(isinstance(a.command, c.Migrate) and a.ring == ring for a in ledger.asked.values())
        size, sent = self._params.memory.segment_bytes, block.told
        data = block.data[sent * size : (sent + 1) * size]
        tries: list[Command] = [c.Alloc(0, self._random.getrandbits(KEY_BITS), size, ledger.session)]
        if not in_time:
            tries += [c.Abort(block.handle), c.CloseSession(ledger.session), c.AnswerFence(ledger.session, ledger.told)]
        if data:
            tries.append(c.Write(block.handle, sent, data if in_time else bytes(len(data))))
        tries.append(c.Seal(block.handle, len(block.data), google_crc32c.value(block.data)))
        command = self._random.choice(tries)
        if isinstance(command, c.Alloc) and in_time:
            return None
        return self._say(
            ring, command, None if isinstance(command, c.Alloc | c.CloseSession | c.AnswerFence) else block
        )

    # Learning.

    def _learn(self, result: Completion, asked: Asked) -> None:
        ledger, command, block = self.ledger, asked.command, asked.block
        match command:
            case c.Alloc() if result.status is Status.GRANTED and result.handle is not None:
                data = self._random.randbytes(self._random.randint(1, command.length))
                new = Block(result.handle, command.key, data, doubtful=self._doubted > 0)
                ledger.blocks.append(new)
                self._sent[new] = 0
            case c.Write() if block is not None and not ledger.writing(block):
                self._sent[block] = block.told
            case c.Migrate():
                self._migrated(result.status)

    def _migrated(self, status: Status) -> None:
        """Look at everything that there is, as each of the rings."""
        ledger = self.ledger
        self.rounds += 1
        self._round.ended = True
        self.ends[self._round.fate, status] += 1
        for block in ledger.blocks:
            rings = [ring for ring in RINGS if ring not in ledger.lost]
            for ring in [self._random.choice(rings)] if block.sealed and rings else rings:
                segments = self._params.segments(len(block.data)) if block.sealed else max(1, block.firm)
                self._to_say.append((ring, c.Read(block.handle, 0, segments), block))
            if rings and not block.sealed:
                self._to_say.append((self._random.choice(rings), c.Lookup(0, [block.key]), block))
        self._doubted = max(0, self._doubted - 1)
        ledger.blocks = [block for block in ledger.blocks if not block.dead]
