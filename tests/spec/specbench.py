"""A slice on the bench: tests say what happens in the words of requesters, one operation after another."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import google_crc32c
import pytest

from hw.params import TINY, Params
from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Command, Completion, Message
from hw.params.orderlog import Hand, Operation, Step, Taken
from hw.params.protocol import REGISTERS, FrameState, Handle, ModelState, Opcode, PinId, RingId, SessionId, Status
from hw.params.sections import CamParams, MemoryParams, PoolParams, ReplayParams, TableParams
from hw.tb.mutate import mutate
from pymodel.spec import Slice
from pymodel.spec.replacement import Replacement
from pymodel.spec.state import Frame, Partition
from pymodel.stimulus.faults import entry
from pymodel.stimulus.scheduler import Policy, Scheduler
from pymodel.stimulus.traffic import Submit, Traffic

A = RingId(0, 0)
A_TOO = RingId(0, 1)
A_FAR = RingId(1, 0)
B = RingId(1, 1)
"""Three rings of partition 0, the last of them on another port; one of partition 1, which is public."""
EPOCH = 77
SEGMENT = 512

SMALL = Params(
    memory=MemoryParams(segment_bytes=SEGMENT, beat_bytes=16),
    cam=CamParams(banks=2, ways=2, sets=4),
    pools=(PoolParams(frame_bytes=4096, frames=6), PoolParams(frame_bytes=8192, frames=5)),
    tables=TableParams(
        ports=3,
        rings_per_port=3,
        partitions=4,
        models=3,
        sessions=6,
        pins_per_ring=4,
        parked_reads=3,
        fences=2,
        lookup_keys=4,
        victims=2,
        scan_frames=2,
        generation_bits=8,
        slot_generation_bits=10,
        stamp_bits=1,
    ),
    replay=ReplayParams(),
)
"""Small enough for everything to collide, large enough for everything to be there more than once."""

ALWAYS = (Status.INVALID, Status.UNAVAILABLE, Status.DENIED)
REACHABLE: dict[Opcode, set[Status]] = {
    Opcode.LOOKUP: {
        Status.OK,
        Status.HIT,
        Status.MISS,
        Status.PENDING,
        Status.NO_SPACE,
        Status.INVALID,
        Status.UNAVAILABLE,
    },
    Opcode.ALLOC: {
        *ALWAYS,
        Status.GRANTED,
        Status.EXISTS,
        Status.PENDING,
        Status.NO_SPACE,
        Status.QUOTA,
        Status.RETIRED,
        Status.RANGE,
        Status.STALE,
    },
    Opcode.WRITE: {*ALWAYS, Status.OK, Status.WRITE_ONCE, Status.RANGE, Status.PENDING, Status.STALE},
    Opcode.SEAL: {
        *ALWAYS,
        Status.OK,
        Status.INCOMPLETE,
        Status.CRC,
        Status.MEM_ERROR,
        Status.WRITE_ONCE,
        Status.PENDING,
        Status.STALE,
    },
    Opcode.ABORT: {*ALWAYS, Status.OK, Status.WRITE_ONCE, Status.PENDING, Status.STALE},
    Opcode.READ: {*ALWAYS, Status.OK, Status.PENDING, Status.RANGE, Status.POISON, Status.STALE},
    Opcode.UNPIN: {*ALWAYS, Status.OK, Status.STALE},
    Opcode.DROP: {*ALWAYS, Status.OK, Status.MISS},
    Opcode.OPEN_SESSION: {Status.UNAVAILABLE, Status.DENIED, Status.OK, Status.NO_SPACE},
    Opcode.CLOSE_SESSION: {*ALWAYS, Status.OK, Status.PENDING, Status.STALE},
    Opcode.MIGRATE: {*ALWAYS, Status.OK, Status.PENDING, Status.STALE, Status.NO_SPACE},
    Opcode.ANSWER_FENCE: {*ALWAYS, Status.OK, Status.RANGE, Status.PENDING, Status.STALE},
    Opcode.BIND: {*ALWAYS, Status.OK, Status.PENDING},
    Opcode.SET_PARTITION: {*ALWAYS, Status.OK, Status.RANGE, Status.PENDING},
    Opcode.DROP_PARTITION: {*ALWAYS, Status.OK},
    Opcode.SET_MODEL: {*ALWAYS, Status.OK},
    Opcode.RETIRE: {*ALWAYS, Status.OK},
    Opcode.SET_EPOCH: {*ALWAYS, Status.OK},
}
"""What each command can end with. PENDING beyond the contract's table is the fence's, or a bind's or pool's."""

UNREACHABLE = {
    (Opcode.LOOKUP, Status.DENIED): "MISS is answered instead, so as not to tell",
    (Opcode.OPEN_SESSION, Status.INVALID): "it has no field that could be wrong",
    (Opcode.LOOKUP, Status.STALE): "it names no handle, pin or session",
    (Opcode.DROP, Status.STALE): "it names no handle, pin or session",
    (Opcode.OPEN_SESSION, Status.STALE): "it names no handle, pin or session",
    **{(opcode, Status.STALE): "it names no handle, pin or session" for opcode in Opcode if opcode.administrative},
}
"""What the contract allows every command, and these never give."""


def tiny(**tables: int) -> Params:
    """TINY, with a true CAM so that any keys will do, and some table sizes changed."""
    return replace(TINY, cam=CamParams(banks=1, ways=8, sets=1), tables=replace(TINY.tables, **tables))


def block_bytes(segments: int, nonce: int = 0, short: int = 0) -> bytes:
    """Bytes of so many segments, the last one ``short`` bytes short."""
    return random.Random(nonce).randbytes(segments * SEGMENT - short)


class Bench:
    """One slice; unless told otherwise it is configured, and everything is audited after every operation.

    ``heard`` collects all that the ports were told.
    """

    def __init__(self, params: Params | None = None, *, configured: bool = True, audited: bool = True) -> None:
        params = params or tiny()
        self._audited = audited
        self.sound = True
        self.params = params
        self.slice = Slice(params)
        self.core = self.slice.core
        self.heard: list[Completion | Message] = []
        self._tag = 0
        if configured:
            self.configure()

    def configure(self, epoch: int = EPOCH) -> None:
        """Partition 0 with three rings reads partition 1, which is public; both models are LIVE."""
        self.must(REGISTERS, c.SetEpoch(epoch))
        frames = self.params.pools[0].frames
        self.must(REGISTERS, c.SetPartition(0, quota=frames, read_mask=0b10))
        self.must(REGISTERS, c.SetPartition(1, quota=frames, public=True))
        for model in range(self.params.tables.models):
            self.must(REGISTERS, c.SetModel(model, ModelState.LIVE))
        for ring, partition in ((A, 0), (A_TOO, 0), (A_FAR, 0), (B, 1)):
            self.must(REGISTERS, c.Bind(ring, partition))

    def execute(self, op: Operation) -> list[Completion | Message]:
        """One entry of the order log; ``sound`` says whether the last one broke nothing."""
        self.sound = False
        outputs = self.slice.execute(op)
        if self._audited:
            self.slice.monitor.audit()
        self.sound = True
        self.heard += outputs
        return outputs

    def ask(self, ring: RingId, command: Command) -> int:
        """Take a command, whole; returns its tag."""
        self._tag += 1
        items = 1
        if isinstance(command, c.Lookup):
            items = max(1, len(command.keys))
        elif isinstance(command, c.Write):
            items = max(1, -(-len(command.data) // SEGMENT))
        for item in range(items):
            self.execute(Taken(ring, self._tag, command, item))
            if self.answer(ring, self._tag) is not None:
                break
        return self._tag

    def answer(self, ring: RingId, tag: int) -> Completion | None:
        """The completion of a command, once there is one."""
        answers = [o for o in self.heard if isinstance(o, Completion) and (o.ring, o.tag) == (ring, tag)]
        assert len(answers) <= 1, "a command completes once"
        return answers[0] if answers else None

    def answered(self, ring: RingId, tag: int) -> Completion:
        """The completion of a command that must have one by now."""
        answer = self.answer(ring, tag)
        assert answer is not None, f"tag {tag} of {ring} waits"
        return answer

    def do(self, ring: RingId, command: Command) -> Completion:
        """Take a command, and let the slice go on by itself until there is an answer."""
        tag = self.ask(ring, command)
        if self.answer(ring, tag) is None:
            self.settle()
        return self.answered(ring, tag)

    def must(self, ring: RingId, command: Command) -> Completion:
        """As ``do``, and it ends well."""
        result = self.do(ring, command)
        assert result.status in (Status.OK, Status.GRANTED, Status.HIT), f"{command} ends {result.status.name}"
        return result

    def settle(self) -> None:
        """Every internal operation that is possible, the sweep too, until none is left."""
        while True:
            op = next(self.slice.possible(), None) or next(
                (Step(Hand.FRAMES, i) for i in range(len(self.core.frames)) if self.slice.dead(i)), None
            )
            if op is None:
                return
            self.execute(op)

    # Shorthands.

    def open(self, ring: RingId = A) -> SessionId:
        """A session of the ring."""
        session = self.must(ring, c.OpenSession()).session
        assert session is not None
        return session

    def alloc(self, ring: RingId, session: SessionId, key: int, length: int = SEGMENT, model: int = 0) -> Handle:
        """A block being written."""
        handle = self.must(ring, c.Alloc(model, key, length, session)).handle
        assert handle is not None
        return handle

    def store(self, ring: RingId, session: SessionId, key: int, data: bytes = block_bytes(1), model: int = 0) -> Handle:
        """A sealed block."""
        handle = self.alloc(ring, session, key, len(data), model)
        self.must(ring, c.Write(handle, 0, data))
        self.must(ring, seal(handle, data))
        return handle

    def pin(self, ring: RingId, key: int, model: int = 0) -> PinId:
        """Pin a sealed block."""
        (pin,) = self.must(ring, c.Lookup(model, [key], pin=True)).pins
        assert pin is not None
        return pin

    def look(self, ring: RingId, key: int, model: int = 0) -> Status:
        """What a LOOKUP of one key says."""
        return self.do(ring, c.Lookup(model, [key])).status

    def read(self, ring: RingId, handle: Handle, segments: int = 1) -> Completion:
        """READ from the start of a block."""
        return self.do(ring, c.Read(handle, 0, segments))

    def lose(self, ring: RingId) -> None:
        """A ring is lost; nobody has walked over its remains yet."""
        self.execute(log.Lost(ring))


def seal(handle: Handle, data: bytes) -> c.Seal:
    """The SEAL that these bytes deserve."""
    return c.Seal(handle, len(data), google_crc32c.value(data))


def moving(bench: Bench) -> tuple[SessionId, Handle]:
    """A session of A with a block of one segment, asked for by A_FAR; A has not answered yet."""
    session = bench.open(A)
    handle = bench.alloc(A, session, 1, 2 * SEGMENT)
    bench.ask(A, c.Write(handle, 0, block_bytes(1)))
    bench.ask(A_FAR, c.Migrate(session))
    return session, handle


def fuzz(
    params: Params,
    seed: int,
    operations: int,
    policy: Policy = Policy.RANDOM,
    audit_every: int = 16,
    *,
    traffic: Traffic | None = None,
) -> tuple[Scheduler, Traffic, list[Completion | Message]]:
    """Run traffic through a slice for so many operations, then drain it; everything is audited now and then."""
    rng = random.Random(seed)
    scheduler = Scheduler(Slice(params), seed, policy, record=True)
    traffic = traffic or Traffic(params, seed)
    heard: list[Completion | Message] = []

    def hear(outputs: list[Completion | Message]) -> None:
        traffic.heard(outputs)
        heard.extend(outputs)

    assert scheduler.log is not None
    while len(scheduler.log) < operations:
        if len(traffic.outstanding) < 24 and rng.random() < 0.4:
            action = traffic.next()
            if isinstance(action, Submit):
                scheduler.submit(*action)
            elif (op := entry(action, scheduler.slice, rng)) is not None:
                hear(scheduler.inject(op))
        hear(scheduler.step())
        if len(scheduler.log) % audit_every == 0:
            scheduler.slice.monitor.audit()
    hear(scheduler.drain())
    scheduler.slice.monitor.audit()
    return scheduler, traffic, heard


def evicted(bench: Bench) -> list[int]:
    """Keys that have been evicted, in order, as port 0 was told."""
    return [m.key for m in bench.heard if isinstance(m, c.Event) and not m.stored and m.port == 0]


def watch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Check every refusal: whoever had to give a frame had none that could go. The refusals are collected."""
    choose = Replacement.choose
    refusals: list[str] = []

    def check(self: Replacement, partition: Partition) -> Frame | None:
        at_quota = partition.used >= partition.quota
        giver = partition if at_quota else self._donor(partition)
        limit = (1 << self._tables.generation_bits) - 1
        spare = [
            frame
            for frame in giver.pool.frames
            if frame.partition is giver
            and frame.state is FrameState.SEALED
            and not frame.held
            and frame.generation < limit
        ]
        frame = choose(self, partition)
        if frame is None:
            refusals.append("quota" if at_quota else "space")
            assert not spare, f"refused, but {spare[0].index} could go"
        return frame

    monkeypatch.setattr(Replacement, "choose", check)
    return refusals


def refuse(seed: int, victims: int) -> None:
    """Traffic on small queues and short generations."""
    tables = replace(SMALL.tables, victims=victims, scan_frames=4, scan_steps=1, generation_bits=4)
    fuzz(replace(SMALL, tables=tables), seed, 12_000, audit_every=64)


def seed_bug(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], good: str, bad: str) -> None:
    """Change one place of a function's source; the function itself changes, for all who have it."""
    monkeypatch.setattr(function, "__code__", mutate(function, good, bad).__code__)
