"""How long a command takes on a slice: the bounds of docs/slice.md, and the longest seen beside each."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hw.params.params import Params
from hw.params.protocol import KEY_BYTES, Opcode, RingId
from hw.rtl.fabric.layouts import COMMAND_BYTES, RESPONSE_BYTES
from hw.rtl.node.core.tables import HANDS_EVERY
from hw.tb.harness.harness import Links
from hw.tb.harness.simulation import Memory
from hw.tb.scoreboard import CheckError

NEVER = 1e-12
"""What is less likely is taken for impossible: a model that waits by chance waits no longer."""

STEP = 9
"""Cycles of an operation that looks at no key, with the SEALED or DRAINED behind it; or of a step of the hands."""


LANE = 3
"""Channels that take turns on the way to a requester."""


class Span(Enum):
    """A part of the life of a command."""

    TURN = "from the front of its port's buffer, or from its last item, until the core has taken it"
    ANSWER = "from its end in the core until its requester has taken the answer"
    SEAL = "from a SEAL that waits to its end"
    MIGRATION = "from a MIGRATE that waits to its end"
    PARKED = "from a READ that is parked until it goes on or ends"
    READING = "from the start of a READ to its end"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a slice can rely on: most cycles for a flit, either way, until its credit is back; most until memory has
    answered what it is asked."""

    flit: int
    memory: int

    @classmethod
    def of(cls, params: Params, memory: Memory, links: Links) -> "Surroundings":
        """Those of the harness's models."""
        beats = params.segment_beats
        queued = params.tables.ports * (params.write_bursts + params.read_segments) * beats
        willing = min(memory.address_willing, memory.data_willing, memory.answer_willing)
        late = _surely(1 - willing) if willing < 1 else 0
        return cls(
            flit=4 + 2 * links.latency + _surely(links.idle) + _surely(links.backpressure),
            memory=in_turns(
                params, memory.latency + memory.jitter + math.ceil(queued / willing) + late + params.turn_cycles
            ),
        )


def in_turns(params: Params, cycles: int) -> int:
    """Cycles in which a partition has the core, and a channel, for so many: just these where there are no turns.

    What no longer fits in a turn begins in the next one.
    """
    if not params.strict:
        return cycles
    times = params.times
    used = times.turn - max(times.guard, times.alloc, times.lookup) + 1
    return (math.ceil(cycles / used) + 1) * times.period(params.shares)


def _surely(wait: float) -> int:
    """Cycles after which something that waits with this probability, each cycle, has happened."""
    return 1 if wait == 0 else math.ceil(math.log(NEVER) / math.log(wait))


def operation_cycles(params: Params) -> int:
    """The longest operation: an ALLOC that finds no victim, or a LOOKUP that asks every partition for each key."""
    words = math.ceil(max(pool.frames for pool in params.pools) / params.tables.scan_frames)
    return STEP + max(29 + 10 * words, 10 * params.tables.lookup_keys * params.tables.partitions)


def memory_operations(params: Params) -> int:
    """Answers of memory that the core may have to take: one for each write in flight, one for each READ under way."""
    return params.tables.ports * (params.memory.channels * params.write_bursts + params.memory.waiting_reads)


def turn_cycles(params: Params) -> int:
    """Until the core takes what a port offers, whatever else there is to take.

    In front of it go a command of every other port and of the administrator, and as many losses; an answer of memory
    for each segment and READ under way, and for those that these commands have begun. Every operation may be followed
    by a step for a parked READ or a migration, and every `HANDS_EVERY` by one of the hands.
    """
    commands = params.tables.ports + 1
    answers = memory_operations(params) + commands
    operations = 2 * commands + answers
    steps = operations + math.ceil(operations / HANDS_EVERY)
    return in_turns(params, commands * operation_cycles(params) + (commands + answers + steps) * STEP)


def bounds(params: Params, around: Surroundings) -> Mapping[Span, int]:
    """The most cycles of each part of the life of a command, while its port is not `crowded`."""
    memory, tables = params.memory, params.tables
    turn = turn_cycles(params)
    flits, keys = params.flits(COMMAND_BYTES), math.ceil(tables.lookup_keys * KEY_BYTES / memory.beat_bytes)
    # The command's flits and those of a segment have to come, each against a credit; the segments before it have to go.
    coming = (2 * flits + keys + params.segment_beats) * around.flit + flits + 1
    going = params.link.write_segments * (around.memory + tables.ports * params.segment_beats)
    segments = max(pool.frame_bytes for pool in params.pools) // memory.segment_bytes
    reading = memory.waiting_reads * segments * (LANE * params.segment_beats * around.flit + around.memory) + turn
    return {
        Span.TURN: coming + going + turn,
        Span.ANSWER: params.answers * LANE * params.flits(RESPONSE_BYTES) * around.flit,
        Span.SEAL: around.memory + turn,
        Span.MIGRATION: 2 * tables.fence_cycles + tables.fences * turn,
        Span.PARKED: 2 * tables.park_cycles + tables.parked_reads * turn,
        Span.READING: reading,
    }


def crowded(params: Params, unanswered: int, reads: int) -> bool:
    """Whether a port may have no room for more answers, or no place for a READ: then commands wait for their end.

    `unanswered`: commands that its requester waits for; `reads`: READs among them.
    """
    return unanswered + params.tables.lookup_keys > params.answers or reads >= params.memory.waiting_reads


@dataclass(slots=True)
class _Life:
    """When what of a command has happened: asked for, taken, begun to wait or to read, ended in the core."""

    opcode: Opcode
    asked: int
    taken: int | None = None
    reading: bool = False
    ended: int | None = None


@dataclass(slots=True)
class Latencies:
    """The longest time seen of each part, in cycles; commands are named by ring and tag.

    - `crowds`: how often a port was found crowded. What was under way at it then is not counted.
    """

    params: Params
    longest: dict[Span, int] = field(default_factory=lambda: dict.fromkeys(Span, 0))
    crowds: int = 0
    _lives: dict[tuple[RingId, int], _Life] = field(default_factory=dict)
    _front: dict[int, int] = field(default_factory=dict)
    _crowded: dict[int, int] = field(default_factory=dict)

    def ask(self, name: tuple[RingId, int], opcode: Opcode, cycle: int) -> None:
        """A command is handed to its link."""
        self._lives[name] = _Life(opcode, cycle)

    def take(self, name: tuple[RingId, int], cycle: int) -> None:
        """The core has taken the next item of a command.

        What was sent to its port before it and was not taken is refused there, and then it was not at the front.
        """
        life, port = self._lives[name], name[0].port
        mine = [each for other, each in self._lives.items() if other[0].port == port]
        first = next((each for each in mine if each.taken is None), life)
        taken = [each for each in mine if each.taken is not None]
        if crowded(self.params, len(taken), sum(each.opcode is Opcode.READ for each in taken)):
            self._crowded[port] = max(cycle, self._crowded.get(port, 0))
            self.crowds += 1
        if first is life or life.taken is not None:
            self._see(Span.TURN, port, max(life.asked, self._front.get(port, 0)), cycle)
        self._front[port] = life.taken = cycle

    def start(self, name: tuple[RingId, int], cycle: int) -> None:
        """A READ has started; one that was parked goes on."""
        life = self._lives[name]
        assert life.taken is not None, "only what was taken starts"
        self._see(Span.PARKED, name[0].port, life.taken, cycle)
        life.taken, life.reading = cycle, True

    def end(self, name: tuple[RingId, int], cycle: int) -> None:
        """A command has ended in the core."""
        life = self._lives[name]
        assert life.taken is not None, "only what was taken ends in the core"
        waits = {Opcode.SEAL: Span.SEAL, Opcode.MIGRATE: Span.MIGRATION, Opcode.READ: Span.PARKED}
        span = Span.READING if life.reading else waits.get(life.opcode)
        if span is not None:
            self._see(span, name[0].port, life.taken, cycle)
        life.ended = cycle

    def answer(self, name: tuple[RingId, int], cycle: int) -> None:
        """The requester has the end of a command; one that never reached the core was at its port's front until now."""
        life, port = self._lives.pop(name), name[0].port
        if life.ended is None:
            self._front[port] = max(cycle, self._front.get(port, 0))
        else:
            self._see(Span.ANSWER, port, life.ended, cycle)

    def fall_silent(self, port: int) -> None:
        """The requester of a port takes and gives nothing: nothing of the port is counted."""
        self._crowded[port] = sys.maxsize

    def lose(self, port: int, cycle: int) -> None:
        """A port has been lost, and is there again."""
        self._lives = {name: life for name, life in self._lives.items() if name[0].port != port}
        self._crowded[port] = self._front[port] = cycle

    def _see(self, span: Span, port: int, begin: int, end: int) -> None:
        if self._crowded.get(port, -1) < begin:
            self.longest[span] = max(self.longest[span], end - begin)

    def check(self, limits: Mapping[Span, int]) -> None:
        """Raise CheckError if anything took longer than it may."""
        for span, cycles in self.longest.items():
            if cycles > limits[span]:
                raise CheckError(f"{span.name} took {cycles:,} cycles, at most {limits[span]:,} allowed: {span.value}")
