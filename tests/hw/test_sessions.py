"""The manager of sessions alone: it knows each session that a ring has, and answers its fence with all that was
appended."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params import TINY, InputError
from hw.params.protocol import Opcode, Status
from hw.params.sections import RequesterParams
from hw.rtl.gpu.sessions import manager
from hw.rtl.gpu.sessions.manager import SessionManager
from hw.rtl.gpu.sessions.pins import PinCounts
from hw.rtl.gpu.sessions.table import SessionTable
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.agents import expect
from tests.hw.simulate import Restart, simulate

PARAMS = replace(TINY, requester=RequesterParams(commands=8, slots=1, sessions=2))
ENTRIES, RINGS, CONTEXTS = 2, 2, 8
Name = tuple[int, int]
"""A ring, and the generation of a session."""

OPCODES = (
    *(Opcode.OPEN_SESSION, Opcode.MIGRATE, Opcode.WRITE, Opcode.WRITE, Opcode.WRITE, Opcode.LOOKUP, Opcode.UNPIN),
    *(Opcode.CLOSE_SESSION, Opcode.ANSWER_FENCE),
)


@dataclass(eq=False)
class Entry:
    """An entry of the table; `writes`: counted in it, under way, also when it is `gone`."""

    name: Name
    count: int = 0
    writes: int = 0
    moves: bool = False
    gone: bool = False


@dataclass(eq=False)
class Command:
    """A command of software's, and where it is counted."""

    opcode: Opcode
    name: Name
    entry: Entry | None = None


class Bench:
    """Does anything to a manager, and knows what it has to have."""

    def __init__(self, seed: int):
        self.random, self.dut = Random(seed), SessionManager(PARAMS)
        self.entries: list[Entry] = []
        self.commands: dict[int, Command] = {}
        self.pins, self.void = [0] * RINGS, [False] * RINGS
        self.halt: Name | None = None  # the session that is drained
        self.drained = 0  # cycles until it is
        self.serving: Entry | None = None
        self.before: dict[Name, int] = {}  # counts a cycle ago
        self.offered = self.asked = False
        self.sent = 0
        self.counted = {"answered": 0, "failed": 0}
        self.fences = 0

    def _name(self) -> Name:
        return self.random.randrange(RINGS), self.random.randrange(4)

    def _find(self, name: Name) -> Entry | None:
        return next((each for each in self.entries if each.name == name and not each.gone), None)

    def _drop(self, entry: Entry | None) -> None:
        if entry:
            entry.gone, entry.moves = True, False

    def step(self, ctx: SimulatorContext, *, calm: bool) -> None:  # noqa: PLR0912, PLR0915 (a cycle, event by event)
        rng, dut, watched = self.random, self.dut, self.dut.watched
        lost = [not calm and rng.random() < 0.003 for _ in range(RINGS)]
        settled = [not any(each.name[0] == ring for each in self.commands.values()) for ring in range(RINGS)]
        cutting = not calm and rng.random() < 0.001
        ctx.set(watched.lost, sum(bit << i for i, bit in enumerate(lost)))
        ctx.set(watched.settled, sum(bit << i for i, bit in enumerate(settled)))
        ctx.set(dut.running, 3)
        ctx.set(dut.cutting, cutting)
        later: list[Any] = []  # what changes behind this cycle

        begins = not calm and len(self.commands) < CONTEXTS and rng.random() < 0.3
        name = self._name()
        context = rng.choice([each for each in range(CONTEXTS) if each not in self.commands] or [0])
        opcode = rng.choice(OPCODES)
        slot = {"generation": name[1]}
        begun = {"valid": begins, "context": context, "opcode": opcode, "pin": opcode is Opcode.LOOKUP}
        ctx.set(watched.begun, begun | {"name": {"ring": name[0], "session": slot}})
        new = Command(opcode, name, self._find(name) if opcode is Opcode.WRITE else None)

        ends = bool(self.commands) and rng.random() < 0.3
        number = rng.choice(list(self.commands)) if ends else 0
        done = self.commands.get(number) if ends else None
        status = rng.choice([Status.OK, Status.OK, Status.OK, Status.STALE, Status.PENDING])
        count, given = rng.randrange(4), rng.randrange(4)
        ended = {"valid": ends, "context": number, "ring": done.name[0] if done else 0, "status": status}
        ended |= {"given": 1, "slot": {"generation": given}, "count": count}
        ctx.set(watched.ended, ended)
        unmanaged = 0
        if done:
            valid = not (self.void[done.name[0]] or lost[done.name[0]] or cutting)
            if done.entry:
                later.append((done.entry, "count", count))
                later.append((done.entry, "writes", -1))
            if done.opcode is Opcode.LOOKUP and valid:
                self.pins[done.name[0]] += count
            if done.opcode is Opcode.UNPIN and valid and status is Status.OK:
                self.pins[done.name[0]] -= 1
            if done.opcode in (Opcode.OPEN_SESSION, Opcode.MIGRATE) and valid and status is Status.OK:
                came = (done.name[0], given) if done.opcode is Opcode.OPEN_SESSION else done.name
                if not self._find(came):
                    room = len(self.entries) < ENTRIES
                    unmanaged = not room
                    if room:
                        later.append((Entry(came), "new", 0))
            closes = done.opcode is Opcode.CLOSE_SESSION and status in (Status.OK, Status.STALE)
            if valid and (closes or (done.opcode is Opcode.ANSWER_FENCE and status is Status.OK)):
                later.append((self._find(done.name), "drop", 0))

        fence, fenced = rng.random() < 0.03, self._name()
        ctx.set(watched.fence, {"valid": fence, "name": {"ring": fenced[0], "session": {"generation": fenced[1]}}})
        moving = self._find(fenced) if fence else None
        writer = self._name()
        wrote = rng.random() < 0.2 and not (writer == self.halt and self.drained == 0)
        ctx.set(dut.buffer.wrote.valid, wrote)
        segments = rng.randrange(4)
        ctx.set(
            dut.buffer.wrote.payload, {"ring": writer[0], "session": {"generation": writer[1]}, "segments": segments}
        )
        if wrote and self._find(writer):
            later.append((self._find(writer), "count", segments))

        # The buffer, and the node.
        self.drained -= self.halt is not None and self.drained > 0
        ctx.set(dut.buffer.drained, self.halt is not None and self.drained == 0)
        takes, answers = rng.random() < 0.5, self.asked and rng.random() < 0.3
        ctx.set(dut.starts.ready, takes)
        ctx.set(dut.ended.valid, answers)
        told = rng.choice([Status.OK, Status.RANGE, Status.RANGE, Status.STALE])
        ctx.set(dut.ended.payload.outcome.status, told)

        # What it does in this cycle.
        expect(ctx.get(dut.sessions) == sum(not each.gone for each in self.entries), "another number of sessions")
        expect(bool(ctx.get(dut.managed)) is (moving is not None), "a FENCE is said to be managed, or not")
        expect(bool(ctx.get(dut.counted.unmanaged)) is bool(unmanaged), "a session without a place")
        halt = dut.buffer.halt
        halts = (ctx.get(halt.ring), ctx.get(halt.session.generation)) if ctx.get(halt.valid) else None
        if halts and self.halt is None:
            self.serving, self.drained = self._find(halts), rng.choice([1, 2, 20])
        self.halt = halts
        if ctx.get(dut.starts.valid):
            got = dut.starts.payload
            expect(ctx.get(got.descriptor.opcode) == Opcode.ANSWER_FENCE, "another command")
            name = (ctx.get(got.ring), ctx.get(got.descriptor.slot.id.generation))
            expect(name == self.halt, "a fence of another session is answered")
            if not self.offered:
                entry = self.serving
                expect(entry is not None and self.drained == 0, "a fence is answered before the buffer is drained")
                self.sent = ctx.get(got.descriptor.length)
                expect(self.sent == self.before[name], f"a count of {self.sent}, expected {self.before[name]}")
            self.offered = not takes
            self.asked = takes
        if answers:
            self.asked, entry = False, self.serving
            alive = entry is not None and not entry.gone
            again = alive and entry and told is Status.RANGE and (entry.writes > 0 or entry.count != self.sent)
            fine, failed = (ctx.get(dut.counted[name]) for name in ("answered", "failed"))
            expect(fine == (told is Status.OK), "an answer that was taken, or not, is counted")
            expect(failed == (told is not Status.OK and not again), "an answer that was refused is counted, or not")
            if not again:
                self.fences += told is Status.OK
                if alive:
                    later.append((entry, "drop", 0))
        self.before = {each.name: each.count for each in self.entries if not each.gone}

        # What is different then.
        if begins:
            if new.entry:
                later.append((new.entry, "writes", 1))
            self.commands[context] = new
        if moving:
            moving.moves = True
        for entry, what, by in later:
            if what == "drop":
                self._drop(entry)
            elif what == "new":
                if not lost[entry.name[0]]:
                    self.entries.append(entry)
            elif entry:
                setattr(entry, what, getattr(entry, what) + by)
        if done:
            del self.commands[number]
        for ring in range(RINGS):
            if lost[ring] or cutting:
                self.pins[ring] = 0
                for each in self.entries:
                    if each.name[0] == ring:
                        self._drop(each)
            self.void[ring] = lost[ring] or (self.void[ring] and not settled[ring])
        self.entries = [each for each in self.entries if not each.gone or each.writes]

    async def run(self, ctx: SimulatorContext, _: Restart) -> None:
        for cycle in range(3000):
            calm = cycle > 2600
            self.step(ctx, calm=calm)
            await ctx.tick()
            pins = [ctx.get(self.dut.pins[ring]) for ring in range(RINGS)]
            expect(pins == [each & 0xFFFF for each in self.pins], f"{pins} pins, expected {self.pins}")
        expect(not self.commands, "commands are left")


def play(seed: int) -> Bench:
    bench = Bench(seed)
    simulate(bench.dut, bench.run)
    return bench


def test_fences_are_answered_with_all_that_was_appended(seed: int) -> None:
    print(f"seed {seed}")
    play(seed)


def test_it_needs_a_write_back_buffer() -> None:
    with pytest.raises(InputError, match=r"requester\.sessions = 2"):
        replace(PARAMS, requester=replace(PARAMS.requester, slots=0))


MUTANTS: dict[str, tuple[type, str, str]] = {
    "the buffer is not drained": (SessionManager, "m.If(self.buffer.drained)", "m.If(1)"),
    "WRITEs of software are not waited for": (SessionManager, "m.Elif(~table.busy)", "m.Else()"),
    "an answer is never sent again": (SessionManager, "there & (table.busy | (table.count != sent))", "0"),
    "an answer is sent again for ever": (SessionManager, "there & (table.busy | (table.count != sent))", "1"),
    "an entry outlasts its fence": (SessionManager, "table.drop.eq(there)", "table.drop.eq(0)"),
    "a loss is forgotten": (SessionManager, "(void | lost)", "lost"),
    "the session of MIGRATE is what was given": (SessionManager, "with m.If(opened)", "with m.If(1)"),
    "what the buffer has written is not counted": (SessionTable, "(self.wrote & writer[i])", "(self.wrote & 0)"),
    "what software has written is not counted": (SessionTable, "(self.appended & ends", "(0 & ends"),
    "the count of the session before goes on": (SessionTable, "counts[i].eq(0)", "counts[i].eq(counts[i])"),
    "a session comes twice": (SessionTable, " & ~added.any()", ""),
    "an entry is used while a WRITE is counted in it": (SessionTable, " & (writes[i] == 0)", ""),
    "pins outlast their ring": (PinCounts, "self.lost[i] | self.clear", "0"),
}


@pytest.mark.parametrize(
    "name", [name if not i else pytest.param(name, marks=pytest.mark.nightly) for i, name in enumerate(MUTANTS)]
)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad = MUTANTS[name]
    mutant = mutate(target, good, bad)
    if target is SessionManager:
        monkeypatch.setitem(globals(), "SessionManager", mutant)
    else:
        monkeypatch.setattr(manager, target.__name__, mutant)
    with pytest.raises((CheckError, KeyError)):
        for seed in range(4):
            play(seed)
