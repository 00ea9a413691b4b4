"""A write-back buffer alone: descriptors on one side, on the other a node, a Mover and a table of contexts that do
all that they may."""

from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import google_crc32c
from amaranth.sim import SimulatorContext

from hw.params import TINY, Params, records
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.params.sections import MemoryParams, RequesterParams
from hw.rtl.gpu.layouts import DESCRIPTOR, Owner
from hw.rtl.gpu.write_back import WriteBack
from tests.hw.agents import Sink, Source, expect
from tests.hw.simulate import Restart, simulate

SEGMENT = 512
RINGS = 2
CONTEXTS = 16
PATIENCE = 3000
"""Cycles in which something has to end, or to be submitted."""
REFUSED = (Status.EXISTS, Status.PENDING, Status.QUOTA, Status.NO_SPACE, Status.UNAVAILABLE)


def params(beat_bytes: int, slots: int) -> Params:
    return replace(
        TINY,
        memory=MemoryParams(beat_bytes=beat_bytes, segment_bytes=SEGMENT, channels=1),
        requester=RequesterParams(commands=CONTEXTS, slots=slots),
        tables=replace(TINY.tables, rings_per_port=RINGS),
    )


@dataclass(eq=False)
class Task:
    """A descriptor, and what has become of it.

    - `source`: its bytes; `before`: those that its block has. `begun`: commands that were started for it, with their
      status, None while under way. `segments`: appended. `waits`: of a FLUSH, the tasks before it. `status`: told.
    - Of a PUT of a session that is halted, `accepted`: it was there before, and its fence was reached; `late`: it came
      behind that; `left`: it may end STALE because of it.
    """

    ring: int
    context: int
    fields: dict[str, int]
    source: bytes = b""
    before: bytes = b""
    handle: int = 0
    begun: list[tuple[Opcode, Status | None]] = field(default_factory=list)
    segments: int = 0
    waits: list["Task"] = field(default_factory=list)
    accepted: bool = False
    late: bool = False
    left: bool = False
    status: Status | None = None
    answered: bool = False
    released: bool = False

    def flag(self, bit: int) -> bool:
        return bool(self.fields["flags"] & bit)

    @property
    def put(self) -> bool:
        return self.fields["opcode"] == EngineOpcode.PUT


@dataclass(eq=False)
class Command:
    """A command of a slot: whose, and in how many cycles it ends once its data has left."""

    task: Task
    opcode: Opcode
    job: int
    tag: int
    due: int
    data: deque[dict[str, Any]] = field(default_factory=deque)


class Bench:
    """Checks every command that a buffer starts, and every answer."""

    def __init__(self, beat_bytes: int, slots: int, seed: int, *, faults: float = 0.2, pace: float = 0.7) -> None:
        self.params, self.random, self.faults = params(beat_bytes, slots), Random(seed), faults
        self.dut = WriteBack(self.params)
        self.tasks: list[Task] = []
        self.by_context: dict[int, Task] = {}
        self.of_job: dict[int, Task] = {}
        self.commands: list[Command] = []
        self.moving: deque[Command] = deque()  # started, and not taken by the Mover
        self.carrying: deque[Command] = deque()
        self.tag = 0
        self.tags: list[int] = []  # of WRITEs under way
        self.others = False  # what it asks for is software's
        self.asking = 0  # cycles in which the Mover still asks memory
        self.releases: list[tuple[int, Task]] = []
        self.fences = [0] * RINGS
        self.running = [True] * RINGS
        self.stopped = False
        self.late = 0  # commands since the link was cut off
        self.cutting = False
        self.halted: tuple[int, int] | None = None  # a ring, and a session of it
        self.halting: tuple[int, int] | None = None  # the same, as the buffer sees it
        self.wrote: defaultdict[int, int] = defaultdict(int)
        self.counted: defaultdict[str, int] = defaultdict(int)
        self.drained = False
        self.cycle = self.progress = 0
        self.urgent = False
        dut, rng = self.dut, self.random
        self.source = Source(dut.tasks, rng, 1)
        self.ended = Source(dut.ended, rng, 1)
        self.agents: list[Any] = [
            self.source,
            self.ended,
            Sink("starts", dut.starts, rng, pace, self._start),
            Sink("answers", dut.answers, rng, pace, self._answer),
        ]

    # What software does.

    def put(
        self,
        ring: int,
        session: int,
        *,
        flags: int = 0,
        after: Task | None = None,
        fence: int | None = None,
    ) -> Task:
        """A PUT of some segments, or one that goes on with the block of another."""
        rng = self.random
        whole = rng.randint(1, 3)
        length = whole * SEGMENT if flags & records.OPEN else whole * SEGMENT - rng.choice([0, 1, 300, SEGMENT - 4])
        if after and not flags & records.OPEN and rng.random() < 0.3:
            length = 0
        fields = {
            "opcode": int(EngineOpcode.PUT),
            "flags": flags | rng.choice([0, records.SCATTERED]),
            "model": rng.getrandbits(16),
            "count": rng.randint(3, 9),
            "length": length,
            "subject": rng.getrandbits(128),
            "slot": session,
            "data": rng.getrandbits(40) * SEGMENT,
            "page_shift": rng.getrandbits(5),
            "segment": rng.getrandbits(16),
            "crc": rng.getrandbits(32),
            "results": rng.getrandbits(64) if fence is None else rng.getrandbits(32) << 32 | fence & 0xFFFF_FFFF,
        }
        before = b""
        if after:
            before = after.before + after.source
            fields["flags"] |= records.APPENDED
            fields |= {"subject": after.handle, "segment": len(before) // SEGMENT, "crc": google_crc32c.value(before)}
        return self._submit(ring, fields, rng.randbytes(length), before)

    def flush(self, ring: int, session: int | None = None) -> Task:
        """A FLUSH of what is before it."""
        fields = {"opcode": int(EngineOpcode.FLUSH), "length": self.random.getrandbits(8), "slot": session or 0}
        fields["flags"] = 0 if session is None else records.OF_SESSION
        task = self._submit(ring, fields, b"", b"")
        task.waits = [
            each
            for each in self.tasks[:-1]
            if each.put and each.ring == ring and (session is None or each.fields["slot"] == session)
        ]
        return task

    def room(self) -> bool:
        return len(self.by_context) < CONTEXTS

    def _submit(self, ring: int, fields: dict[str, int], source: bytes, before: bytes) -> Task:
        rng = self.random
        context = rng.choice([each for each in range(CONTEXTS) if each not in self.by_context])
        fields["tag"] = rng.getrandbits(16)
        self.progress = self.cycle
        task = Task(ring, context, fields, source, before, handle=fields.get("subject", 0))
        task.late = task.left = self._leaves(task)
        self.tasks.append(task)
        self.by_context[context] = task
        word = int.from_bytes(records.DESCRIPTOR.pack(**fields), "little")
        self.source.queue.append({"ring": ring, "context": context, "descriptor": DESCRIPTOR.from_bits(word)})
        return task

    # What the buffer does.

    def _start(self, start: dict[str, Any]) -> None:
        self.late += self.cutting
        expect(self.late <= 1, "more begins than was offered before the link was cut off")
        got, job = start["descriptor"], start["job"]
        opcode = Opcode(got["opcode"])
        expect(start["owner"] == Owner.WRITE_BACK, f"a command of {start['owner']}")
        if opcode is Opcode.ALLOC or job not in self.of_job or self.of_job[job].released:
            self.of_job[job] = self._first(start)
        task = self.of_job[job]
        fields = task.fields
        expect(task.put and not task.answered, f"{opcode.name} of what has ended")
        expect((start["ring"], got["tag"]) == (task.ring, fields["tag"]), f"{opcode.name} of another's")
        expect(all(status is not None for _, status in task.begun), f"{opcode.name} while another is under way")
        wanted = self._next(task)
        expect(opcode is wanted, f"{opcode.name} behind {task.begun}, expected {wanted}")
        first = fields["segment"] if task.flag(records.APPENDED) else 0
        handle = self._word(got["subject"]["handle"])
        expected: dict[str, int] = {}
        if opcode is Opcode.ALLOC:
            length = fields["count"] * SEGMENT if task.flag(records.OPEN) else fields["length"]
            expected = {"model": fields["model"], "length": length}
            expect(got["subject"]["key"] == fields["subject"], "the key of another block")
            expect(self._session(got["slot"]["id"]) == fields["slot"], "another session")
        else:
            expect(handle == task.handle, f"{opcode.name} of another block")
        if opcode is Opcode.WRITE:
            expected = {name: fields[name] for name in ("data", "length", "page_shift")} | {"segment": first}
            expect(got["flags"]["scattered"] == task.flag(records.SCATTERED), "SCATTERED")
            busy = self.moving or (self.asking and not self.others)
            expect(not busy, "a WRITE before the Mover is free of the one before")
        if opcode is Opcode.SEAL:
            expected["length"] = len(task.before) + len(task.source)
            expected["crc"] = google_crc32c.value(task.before + task.source)
        for name, value in expected.items():
            expect(got[name] == value, f"{opcode.name}: {name} {got[name]:#x}, expected {value:#x}")
        task.begun.append((opcode, None))
        command = Command(task, opcode, job, self.tag, self.cycle + self.random.choice([1, 3, 40]))
        if opcode is Opcode.WRITE:
            size = self.params.memory.beat_bytes
            beats = [task.source[at : at + size] for at in range(0, len(task.source), size)]
            junk = self.random.randbytes(size)
            for i, beat in enumerate(beats):
                word = int.from_bytes((beat + junk)[:size], "little")
                segment, at = divmod(i * size, SEGMENT)
                last = i == len(beats) - 1 or at + size == SEGMENT
                header = {"tag": self.tag, "segment": segment, "last": last}
                command.data.append(header | {"data": word, "count": len(beat)})
            self.moving.append(command)
            self.tags.append(self.tag)
        self.commands.append(command)

    def _first(self, start: dict[str, Any]) -> Task:
        """The task that a slot has begun: a PUT whose fence is reached, of a session that is not halted."""
        got = start["descriptor"]
        for task in self.tasks:
            if task.put and not task.begun and not task.answered and task.fields["tag"] == got["tag"]:
                expect(self._reached(task), "a PUT before its fence is reached")
                expect(not (self._leaves(task) and task.late), "a PUT that came behind the halt of its session")
                expect(not (self.drained and self._leaves(task)), "a PUT of a session that is drained")
                return task
        raise AssertionError(f"a command of no PUT: {got}")

    def _reached(self, task: Task) -> bool:
        """Whether the producer has come as far as a PUT waits for."""
        behind = (self.fences[task.ring] - task.fields["results"]) & 0xFFFF_FFFF
        return not task.flag(records.FENCED) or behind < 1 << 31

    def _leaves(self, task: Task) -> bool:
        """Whether a PUT is of the session that is halted."""
        return task.put and (task.ring, task.fields["slot"]) == self.halting

    def _halt(self) -> None:
        """What the halt of a session means for the PUTs that there are: those in its source may be late, or not."""
        self.halting = self.halted
        waiting = {item["context"] for item in self.source.queue}
        for task in self.by_context.values():
            task.late = False
            task.left |= self._leaves(task)
            task.accepted = self._leaves(task) and self._reached(task) and task.context not in waiting

    def _next(self, task: Task) -> Opcode | None:
        """The command that has to follow."""
        done = dict(task.begun)
        failed = any(status not in (Status.OK, Status.GRANTED) for status in done.values())
        if Opcode.ABORT in done or (failed and Opcode.ALLOC in done and done[Opcode.ALLOC] is not Status.GRANTED):
            return None
        if failed:
            return Opcode.ABORT
        if not done and not task.flag(records.APPENDED):
            return Opcode.ALLOC
        if Opcode.WRITE not in done and task.source:
            return Opcode.WRITE
        return Opcode.SEAL if Opcode.SEAL not in done and not task.flag(records.OPEN) else None

    def _answer(self, answer: dict[str, Any]) -> None:
        task, outcome = self.by_context[answer["context"]], answer["outcome"]
        status = Status(outcome["status"])
        expect(not task.answered and answer["complete"] == 1, "an answer twice")
        expect(all(each is not None for _, each in task.begun), f"an answer while a command is under way: {task.begun}")
        task.answered, task.status = True, status
        self.progress = self.cycle
        alive = self.running[task.ring] and not self.cutting
        if not task.put and self.running[task.ring]:
            expect(all(each.released for each in task.waits), "a FLUSH before what it waits for")
            expect(status is Status.OK, f"a FLUSH ends {status.name}")
        elif task.put:
            self._judge(task, status, outcome, alive=alive)
        self.releases.append((self.cycle + self.random.choice([1, 5, 30]), task))

    def _judge(self, task: Task, status: Status, outcome: dict[str, Any], *, alive: bool) -> None:
        first = next((each for _, each in task.begun if each not in (Status.OK, Status.GRANTED)), None)
        missing = self._next(task)
        left = status is Status.STALE and not task.begun and task.left
        if missing is not None and not left:
            expect(not alive, f"ends {status.name} without {missing.name}: {task.begun}")
        want = first or (Status.OK if missing is None else Status.UNAVAILABLE)
        if left:
            expect(not task.accepted, "a PUT that was accepted is dropped")
            want = Status.STALE
        expect(status is want, f"ends {status.name} behind {task.begun}, expected {want.name}")
        expect(outcome["count"] == task.segments, f"{outcome['count']} segments, expected {task.segments}")
        named, so_far = status in (Status.OK, Status.EXISTS), status is Status.OK and task.flag(records.OPEN)
        expect((outcome["named"], outcome["given"]) == (named, so_far), "named, given")
        if named:
            expect(self._word(outcome["handle"]) == task.handle, "another handle")
        if so_far:
            crc = google_crc32c.value(task.before + task.source)
            expect(self._session(outcome["slot"]) == crc, "another CRC32C so far")

    def _word(self, handle: dict[str, int]) -> int:
        widths = {"epoch": 64, "generation": 32, "frame": 20, "slice": 6, "node": 6}
        word, at = 0, 0
        for name, bits in widths.items():
            word |= handle[name] << at
            at += bits
        return word

    def _session(self, slot: dict[str, int]) -> int:
        return slot["generation"] | slot["slot"] << 48

    # What is around it.

    def _end(self, command: Command) -> None:
        """The node answers, or nobody does."""
        rng, task, opcode = self.random, command.task, command.opcode
        fails = rng.random() < self.faults
        status = Status.GRANTED if opcode is Opcode.ALLOC else Status.OK
        if fails:
            others = REFUSED if opcode is Opcode.ALLOC else (Status.STALE, Status.INVALID, Status.UNAVAILABLE)
            status = rng.choice(others)
        if self.cutting and rng.random() < 0.8:
            status = Status.UNAVAILABLE
        outcome: dict[str, Any] = {"status": status}
        if opcode is Opcode.ALLOC and status in (Status.GRANTED, Status.EXISTS):
            task.handle = rng.getrandbits(128)
            handle, at = {}, 0
            for name, bits in {"epoch": 64, "generation": 32, "frame": 20, "slice": 6, "node": 6}.items():
                handle[name] = task.handle >> at & (1 << bits) - 1
                at += bits
            outcome |= {"named": 1, "handle": handle}
        if opcode is Opcode.WRITE:
            self.tags.remove(command.tag)
            whole = -(-len(task.source) // SEGMENT)
            task.segments = whole if status is Status.OK else rng.randint(0, whole)
            outcome["count"] = task.segments
            self.wrote[task.fields["slot"]] += task.segments
        task.begun[-1] = (opcode, status)
        self.ended.queue.append({"job": command.job, "owner": Owner.WRITE_BACK, "outcome": outcome})

    def drive(self, ctx: SimulatorContext) -> None:
        dut, rng = self.dut, self.random
        self.cycle += 1
        self.stopped |= not all(self.running)
        self.late *= self.cutting
        for command in [each for each in self.commands if each.due <= self.cycle and not each.data]:
            if command not in self.moving and rng.random() < 0.7:
                self.commands.remove(command)
                self._end(command)
        self.asking -= self.asking > 0
        free = not self.asking
        takes = free and bool(self.moving) and rng.random() < 0.5
        ctx.set(dut.seen.mover_free, free)
        # Those that are under way have tags of their own; what else moves, and is sent, is software's.
        self.tag = rng.choice([each for each in range(64) if each not in self.tags])
        ctx.set(dut.seen.next_tag, self.tag)
        others = not takes and free and rng.random() < 0.2
        self.others = others if takes or others else self.others
        ctx.set(dut.seen.moved, {"valid": takes or others, "tag": self.moving[0].tag if takes else self.tag})
        if takes or others:
            self.asking = rng.choice([1, 4, 20])
        if takes:
            self.carrying.append(self.moving.popleft())
        carries = bool(self.carrying) and not takes and rng.random() < 0.8
        ctx.set(dut.seen.sent.valid, carries or rng.random() < 0.5)
        others = {"tag": self.tag, "last": rng.random() < 0.5, "data": rng.getrandbits(64), "count": 8}
        ctx.set(dut.seen.sent.flit, others)
        if carries:
            command = self.carrying[0]
            ctx.set(dut.seen.sent.flit, command.data.popleft())
            if not command.data:
                self.carrying.popleft()
                command.due = max(command.due, self.cycle + rng.choice([1, 2, 30]))
        due = [each for each in self.releases if each[0] <= self.cycle]
        ctx.set(dut.seen.released, bool(due))
        if due:
            self.releases.remove(due[0])
            ctx.set(dut.seen.context, due[0][1].context)
            due[0][1].released = True
            del self.by_context[due[0][1].context]
        for ring in range(RINGS):
            ctx.set(dut.seen.fences[ring], self.fences[ring])
        ctx.set(dut.running, sum(runs << ring for ring, runs in enumerate(self.running)))
        ctx.set(dut.cutting, self.cutting)
        if self.halted != self.halting:
            self._halt()
        ring, halt = self.halted or (0, 0)
        session = {"generation": halt & (1 << 48) - 1, "slot": halt >> 48}
        ctx.set(dut.sessions.halt, {"valid": self.halted is not None, "ring": ring, "session": session})
        for agent in self.agents:
            agent.drive(ctx)

    def observe(self, ctx: SimulatorContext) -> None:
        dut = self.dut
        self.drained = self.halted is not None and bool(ctx.get(dut.sessions.drained))
        if self.drained:
            left = [each for each in self.tasks if self._leaves(each) and not each.answered]
            mine = [each for each in left if each.begun or each.accepted]
            expect(not mine, f"drained, and {len(mine)} PUTs that were accepted are under way")
        if ctx.get(dut.sessions.wrote.valid):
            wrote = dut.sessions.wrote.payload
            session = ctx.get(wrote.session.generation) | ctx.get(wrote.session.slot) << 48
            self.wrote[session] -= ctx.get(wrote.segments)
        for name in ("taken", "existed", "sealed", "failed", "full"):
            self.counted[name] += ctx.get(dut.counted[name])
        held = self.counted["taken"] - sum(each.put and each.released for each in self.tasks)
        expect(held <= self.params.requester.slots, f"{held} PUTs have a slot")
        self.urgent = bool(ctx.get(dut.urgent))
        for agent in self.agents:
            agent.observe(ctx)

    def play(self, story: Any) -> "Bench":
        """Run a story, a generator that yields in each cycle; then everything has to end."""

        async def bench(ctx: SimulatorContext, _: Restart) -> None:
            going = True
            while going or self.by_context or not ctx.get(self.dut.idle):
                going = going and next(story, self) is None
                expect(self.cycle < self.progress + PATIENCE, f"nothing ends: {len(self.by_context)} tasks")
                self.drive(ctx)
                self.observe(ctx)
                await ctx.tick()

        simulate(self.dut, bench)
        expect(all(each.answered for each in self.tasks), "a task without an answer")
        expect(not any(self.wrote.values()), f"segments that were not told, or never written: {dict(self.wrote)}")
        puts = [each for each in self.tasks if each.put]
        untaken = sum(each.left and each.status is Status.STALE for each in puts)
        few = self.counted["taken"] < len(puts) - untaken and not self.stopped
        expect(
            not few and self.counted["taken"] <= len(puts), f"{self.counted['taken']} PUTs are counted of {len(puts)}"
        )
        return self
