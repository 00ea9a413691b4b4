"""Software and memory around a requester, and what it may do to them."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from amaranth.sim import SimulatorContext

from hw.params import Params, records
from hw.params.protocol import Opcode, Status
from hw.rdl import requester_map
from hw.rtl.gpu.requester import Requester
from hw.tb.scoreboard import CheckError
from tests.hw.requester_commands import Commands, Submission, params
from tests.hw.requester_models import AxiMemory, Memory, Node
from tests.hw.simulate import Restart, simulate

PORT = 3
COMMANDS = 24
"""Of a world."""
PATIENCE = 1500
"""Cycles in which something has to end."""

Access = tuple[str, int] | tuple[str, int, int] | None
Software = Generator[Access, Any, None]
Make = Callable[[Commands, int], Submission]


@dataclass(eq=False)
class SoftwareRing:
    """A ring as software has it: absolute numbers of what was submitted, completed and consumed."""

    entries: int
    submission: int
    completion: int
    submitted: int = 0
    consumed: int = 0
    written: set[int] = field(default_factory=set)
    alive: bool = True


class World:
    """A requester and all around it; `play` runs software against it.

    Raises CheckError for a completion that is wrong, too early, in a wrong place, doubled or missing, and for writes
    where nothing is to be written.
    """

    def __init__(self, beat_bytes: int, seed: int, *, rate: float = 0.0) -> None:
        self.params, self.random = self._parameters(beat_bytes), Random(seed)
        self.host, self.hbm = Memory(), Memory()
        self.commands = self._make_commands(rate)
        self.dut = Requester(self.params)
        self.node = self._make_node()
        self.memories = [
            AxiMemory(getattr(self.dut, name), memory, self.random, beat_bytes)
            for name, memory in (("host", self.host), ("hbm", self.hbm))
        ]
        self.rings: dict[int, SoftwareRing] = {}
        self.map = requester_map(self.params)
        self.host.watch = self._watch
        self.restart = 0
        self.until_renewed = False
        self.cycle = self.progress = 0
        self.completions = 0
        self.events: list[dict[str, int]] = []
        self.restarted = False

    def _parameters(self, beat_bytes: int) -> Params:
        return params(beat_bytes)

    def _make_commands(self, rate: float) -> Commands:
        return Commands(self.params, self.random, self.host, self.hbm, rate)

    def _make_node(self) -> Node:
        return Node(self.dut.link, self.params, self.random)

    def _subject(self, ctx: SimulatorContext) -> Any:
        """What the command is about that is issued now."""
        return self.commands.by_tag.get(ctx.get(self.dut.issued.tag))

    # What software does: generators of register accesses, which give the response and the value read.

    def write(self, name: str, value: int, *, okay: bool = True) -> Software:
        response, _ = yield "write", self.map[name].offset, value
        if (response == 0) != okay:
            raise CheckError(f"a write of {value:#x} to {name} was answered {response}")

    def read(self, name: str) -> Generator[Access, Any, int]:
        response, value = yield "read", self.map[name].offset
        if response:
            raise CheckError(f"a read of {name} was answered {response}")
        return int(value)

    def sleep(self, cycles: int) -> Software:
        for _ in range(cycles):
            yield None

    def enable(self, number: int, *, log2_entries: int, bad: str = "") -> Software:
        entries, name = 1 << log2_entries, f"RING{number}_"
        ring = SoftwareRing(
            entries,
            self.host.allocate(64 * entries, align=128, bad=bad == "submission"),
            self.host.allocate(32 * entries, align=128, bad=bad == "completion"),
        )
        self.host.put(ring.completion, bytes(32 * entries))
        self.host.permit(ring.completion, 32 * entries)
        for side, address in (("SUBMISSION", ring.submission), ("COMPLETION", ring.completion)):
            yield from self.write(f"{name}{side}_LOW", address & 0xFFFF_FFFF)
            yield from self.write(f"{name}{side}_HIGH", address >> 32)
        yield from self.write(f"{name}SIZE", log2_entries)
        self.rings[number] = ring
        self.node.lost.discard(number)
        yield from self.write(f"{name}CONTROL", 1)
        yield from self.write(f"{name}SIZE", log2_entries, okay=False)

    def overrun(self) -> "World":
        """Submit more than there is room for completions, of which none is consumed for long."""

        def software() -> Software:
            yield from self.enable(0, log2_entries=2)
            for count in (3, 3, 2):
                for _ in range(count):
                    self.put(0)
                yield from self.ring_doorbell(0)
                yield from self.sleep(400)
            yield from self.settle(0)

        return self.play(software())

    def put(self, number: int, make: Make = Commands.invent) -> Submission:
        ring = self.rings[number]
        submission = make(self.commands, number)
        at = ring.submission + 64 * (ring.submitted % ring.entries)
        self.host.put(at, records.DESCRIPTOR.pack(**submission.fields))
        ring.submitted += 1
        return submission

    def ring_doorbell(self, number: int) -> Software:
        ring = self.rings[number]
        yield from self.write(f"RING{number}_TAIL", ring.submitted % ring.entries)

    def consume(self, number: int) -> Software:
        """Take what has completed, as far as its phase tells."""
        ring, before = self.rings[number], self.rings[number].consumed
        while self._entry(ring, ring.consumed)["flags"] & records.PHASE == self._phase(ring, ring.consumed):
            ring.consumed += 1
        if ring.consumed != before:
            yield from self.write(f"RING{number}_HEAD", ring.consumed % ring.entries)

    def room(self, number: int) -> bool:
        ring = self.rings[number]
        return ring.submitted - ring.consumed < ring.entries - 1

    def settle(self, number: int) -> Software:
        """Until everything on a ring has completed."""
        while self.rings[number].consumed != self.rings[number].submitted:
            yield from self.consume(number)
            yield from self.sleep(5)

    def inactive(self, number: int, *, failed: int, told: int) -> Software:
        """Until a ring has stopped; nothing of it may be written then, and the node has to know."""
        while (status := (yield from self.read(f"RING{number}_STATUS"))) & 1:
            yield from self.sleep(3)
        if status >> 1 & 1 != failed:
            raise CheckError(f"ring {number} has status {status:#x}, expected failed {failed}")
        if status >> 16:
            raise CheckError(f"{status >> 16} commands under way on a ring that is inactive")
        if self.node.losses[number] <= told:
            raise CheckError(f"ring {number} is inactive, and the node was not told")
        if self.node.pending(number):
            raise CheckError(f"ring {number} is inactive, and the node has commands of it")
        self.forbid(number)
        del self.rings[number]

    def forbid(self, number: int) -> None:
        """Nothing of a ring may be written any more."""
        ring = self.rings[number]
        self.host.permit(ring.completion, 32 * ring.entries, yes=False)
        for submission in [each for each in self.commands.by_tag.values() if each.ring == number]:
            self.commands.forget(submission)

    # What hardware does.

    def _phase(self, ring: SoftwareRing, number: int) -> int:
        return 1 - number // ring.entries % 2

    def _entry(self, ring: SoftwareRing, number: int) -> dict[str, int]:
        return records.COMPLETION.unpack(self.host.get(ring.completion + 32 * (number % ring.entries), 32))

    def _watch(self, address: int, size: int) -> None:
        """Something was written to host memory: if to a completion ring, everything about it has to be right now."""
        for number, ring in self.rings.items():
            index, within = divmod(address - ring.completion, 32)
            if 0 <= index < ring.entries:
                if (within, size) != (0, 32):
                    raise CheckError(f"{size} bytes are written at byte {within} of a completion")
                absolute = ring.consumed + (index - ring.consumed) % ring.entries
                self._complete(number, ring, absolute, self._entry(ring, absolute))

    def _complete(self, number: int, ring: SoftwareRing, absolute: int, entry: dict[str, int]) -> None:
        if entry["flags"] & records.PHASE != self._phase(ring, absolute) or absolute in ring.written:
            raise CheckError(f"ring {number}: entry {absolute} is written as {entry}, with a wrong phase or again")
        if absolute >= ring.consumed + ring.entries - 1:
            raise CheckError(f"ring {number}: entry {absolute} is written, only {ring.consumed} are consumed")
        ring.written.add(absolute)
        submission = self.commands.by_tag.get(entry["tag"])
        if submission is None or submission.ring != number:
            raise CheckError(f"ring {number}: {entry} is of no command")
        self.completions += 1
        self.progress = self.cycle
        if not (self.restarted and self._cut_off(submission, entry)):
            self.commands.judge(submission, entry)
        self.commands.forget(submission)

    def _cut_off(self, submission: Submission, entry: dict[str, int]) -> bool:
        """Whether a restart may end a command so: INVALID if memory had refused some of it by then. Of what ends
        UNAVAILABLE nothing is done, unless the node has said so."""
        refused = submission.refusal is None and (submission.cut or submission.faults)
        if entry["status"] != Status.UNAVAILABLE:
            return entry["status"] == Status.INVALID and bool(refused)
        lookup = submission.fields["opcode"] == Opcode.LOOKUP
        if not lookup and entry["count"] not in (0, submission.answer.get("item", 0)):
            raise CheckError(f"{submission.fields} was cut off as {entry}, and the node said {submission.answer}")
        return True

    def play(self, software: Software) -> "World":
        """Run software to its end. CheckError if that takes too long, or if something is under way then."""

        async def bench(ctx: SimulatorContext, _: Restart) -> None:
            ctx.set(self.dut.number, PORT)
            bus = Bus(self.dut.axi, software)
            while bus.step(ctx) or not self._quiet(ctx):
                self.cycle += 1
                if self.cycle > self.progress + PATIENCE:
                    raise CheckError(f"nothing ends: {len(self.commands.by_tag)} commands under way")
                if not self.until_renewed:
                    self.restart -= self.restart > 0
                elif self.restart and ctx.get(self.dut.renewed):
                    self.restart = 0
                if self.restart:
                    self.node.reset()
                ctx.set(self.dut.restarting, self.restart > 0)
                for part in (*self.memories, self.node):
                    part.drive(ctx)
                if ctx.get(self.dut.issued_valid):
                    self.node.names[ctx.get(self.dut.issued.link_tag)] = self._subject(ctx)
                if self.restart:
                    ctx.set(self.dut.link.from_node.valid, 0)
                    ctx.set(self.dut.link.to_node.credits, 0)
                for part in self.memories:
                    part.sample(ctx)
                if not self.restart:
                    self.node.sample(ctx)
                await ctx.tick()

        simulate(self.dut, bench)
        left = [each for each in self.commands.by_tag.values() if each.ring in self.rings]
        if left:
            raise CheckError(f"{len(left)} commands have not completed")
        return self

    def _quiet(self, ctx: SimulatorContext) -> bool:
        return self.node.idle() and all(memory.idle() for memory in self.memories)


class Bus:
    """Does the register accesses of software, one after the other."""

    def __init__(self, axi: Any, software: Software) -> None:
        self.axi, self.software = axi, software
        self.access: Access = None
        self.offered: set[str] = set()
        self.taken: set[str] = set()
        self.ended = False

    def step(self, ctx: SimulatorContext) -> bool:
        """A cycle; whether software goes on."""
        axi = self.axi
        ctx.set(axi.bready, 1)
        ctx.set(axi.rready, 1)
        self.offered -= self.taken
        result = None
        if self.access is not None:
            write = self.access[0] == "write"
            if ctx.get(axi.bvalid if write else axi.rvalid):
                response = ctx.get(axi.bresp if write else axi.rresp)
                result = response.value, 0 if write else ctx.get(axi.rdata)
                self.access = None
        if self.access is None and not self.ended:
            try:
                self.access = self.software.send(result)
            except StopIteration:
                self.ended = True
            if self.access is not None:
                self.offered = {"aw", "w"} if self.access[0] == "write" else {"ar"}
                ctx.set(axi.awaddr, self.access[1])
                ctx.set(axi.araddr, self.access[1])
                ctx.set(axi.wdata, self.access[-1])
                ctx.set(axi.wstrb, 0xF)
        for channel in ("aw", "w", "ar"):
            ctx.set(getattr(axi, f"{channel}valid"), channel in self.offered)
        self.taken = {channel for channel in self.offered if ctx.get(getattr(axi, f"{channel}ready"))}
        return not self.ended
