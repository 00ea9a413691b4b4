"""Prefetches around a requester: lists of blocks, a node that has them, and what may be marked when."""

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from amaranth.sim import SimulatorContext

from hw.params import Params, records
from hw.params.protocol import EngineOpcode, Handle, Opcode, Status
from hw.rtl.fabric.layouts import COMMAND_BYTES
from hw.rtl.gpu.layouts import Owner
from hw.tb.scoreboard import CheckError
from tests.hw.requester_commands import SEGMENT, Commands, Submission, params
from tests.hw.requester_models import Node
from tests.hw.requester_world import Software, World

BLOCK, ARRIVAL = records.BLOCK, records.ARRIVAL
KINDS = ("stale", "poison", "tainted", "damaged", "beyond", "room", "refused", "page", "pages")
STATUS = dict(
    zip(KINDS, ["STALE", "POISON", "POISON", "POISON", "RANGE", "RANGE", "INVALID", "INVALID", "INVALID"], strict=True)
)


def prefetch_params(beat_bytes: int) -> Params:
    of = params(beat_bytes)
    engine = {"prefetches": 2, "fills": 4, "fill_segments": 2, "window_segments": 6}
    return replace(of, requester=replace(of.requester, commands=9, **engine))


@dataclass(eq=False)
class Read:
    """A READ of the engine's, and what the node says of it."""

    ring: int
    tag: int
    fields: dict[str, int] = field(default_factory=dict)
    seen: int = 0


@dataclass(eq=False)
class Wanted:
    """A block of a list: its bytes, what is wrong with it, and where its segments go."""

    handle: int
    data: bytes
    kind: str
    buffers: list[int]


@dataclass(eq=False)
class Prefetch(Submission):
    """A PREFETCH: `span` segments from `first` on of each of `blocks`, in ranges of `segments`; `row` entries a block.

    - `marks`: what was marked, by block and entry. `sent`: segments that were asked for.
    - `open_ended`: it may end UNAVAILABLE, before all is known. `closed`: nothing is written for it any more.
      `failing`: memory refuses its list or a mark.
    """

    blocks: list[Wanted] = field(default_factory=list)
    first: int = 0
    span: int = 0
    segments: int = 1
    row: int = 1
    staging: int = 0
    log2_staging: int = 0
    start: int = 0
    marks: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    open_ended: bool = False
    closed: bool = False
    failing: bool = False

    @property
    def ranges(self) -> int:
        return -(-self.span // self.segments)

    @property
    def staged(self) -> bool:
        return bool(self.fields["flags"] & records.STAGED)

    def where(self, block: int, segment: int) -> int:
        """The address of a segment, counted from `first`."""
        if not self.staged:
            return self.blocks[block].buffers[segment]
        return self.staging + SEGMENT * ((self.start + block * self.span + segment) % (1 << self.log2_staging))


class Stock(Node):
    """A node that has blocks, besides what it says of other commands.

    - `blocks`: bytes and fault, by handle. `reads`: how many READs it was asked for. `asked`: for how many segments,
      by tag of the PREFETCH.
    """

    def __init__(self, link: Any, params: Params, random: Random) -> None:
        self.blocks: dict[int, tuple[bytes, str]] = {}
        self.asked: Counter[int] = Counter()
        self.reads = 0
        super().__init__(link, params, random)

    def _compare(self, subject: Any, fields: dict[str, int]) -> None:
        if not isinstance(subject, Read):
            super()._compare(subject, fields)
            return
        subject.fields = fields
        self.reads += 1
        self.asked[subject.tag] += fields["count"]
        engine = self.params.requester
        if not 1 <= fields["count"] <= engine.fill_segments or fields["opcode"] != Opcode.READ:
            raise CheckError(f"an engine sends {fields}")
        reads = [each for each, _, _ in self.commands if isinstance(each, Read)]
        if sum(each.fields["count"] for each in reads) + fields["count"] > engine.window_segments:
            raise CheckError("more segments are under way than the window has")
        if len(reads) >= engine.fills:
            raise CheckError("more READs are under way than there are fills")

    def _slice(self, subject: Any, packet: list[dict[str, int]]) -> int:
        """Of a READ of an engine's, that of its block."""
        if not isinstance(subject, Read):
            return super()._slice(subject, packet)
        size = self.params.memory.beat_bytes
        data = b"".join(each["data"].to_bytes(size, "little") for each in packet)
        handle = Handle.unpack(records.COMMAND.unpack(data[:COMMAND_BYTES])["subject"])
        return handle.slice % self.params.node.slices

    def has(self, tag: int) -> bool:
        """Whether a READ of the PREFETCH with this tag is under way here."""
        return any(isinstance(each, Read) and each.tag == tag for each, _, _ in self.commands)

    def _execute(self) -> None:
        if not self.commands or not isinstance(self.commands[0][0], Read):
            super()._execute()
            return
        if self.random.random() < 0.3:
            return
        subject, header, _ = self.commands.popleft()
        status, streamed = self._serve(subject.fields, header)
        self._answer(header, {"status": status, "outcome": status, "complete": 1, "streamed": int(streamed)})

    def _serve(self, fields: dict[str, int], header: dict[str, int]) -> tuple[Status, bool]:
        if header["ring"] in self.lost:
            return Status.UNAVAILABLE, False
        if fields["subject"] not in self.blocks:
            return Status.STALE, False
        data, kind = self.blocks[fields["subject"]]
        first, count = fields["segment"], fields["count"]
        if (first + count) > -(-len(data) // SEGMENT):
            return Status.RANGE, False
        bad = self.random.randrange(count)
        for i in range(count):
            at = SEGMENT * (first + i)
            flits = self._segment(data[at : at + SEGMENT], header, first + i, last=i == count - 1)
            if i == bad and kind == "damaged":
                flits[-1]["data"] ^= 1
            if i == bad and kind in ("poison", "tainted"):
                flits[-1]["ok"] = 0
            self.out[2].extend(flits)  # type: ignore[index]
        return (Status.POISON if kind == "poison" else Status.OK), True


class PrefetchCommands(Commands):
    """Invents PREFETCHes too, and judges them."""

    stock: Stock

    def prefetch(
        self,
        number: int,
        *,
        blocks: int | None = None,
        span: int | None = None,
        segments: int | None = None,
        same: Prefetch | None = None,
        staging: tuple[int, int, int] | None = None,
        change: dict[str, int] | None = None,
    ) -> Prefetch:
        """Return a PREFETCH; of the blocks of another to the same places (`same`), or to a ring (`staging`: address,
        logarithm of its segments, and where it begins). `change`: fields of the descriptor, added to addresses."""
        rng = self.random
        tag = rng.choice([each for each in range(1 << 10) if each not in self.by_tag])
        count = blocks or rng.randint(1, 4)
        span = span or rng.randint(1, 6)
        first = rng.choice([0, rng.randint(1, 4)])
        new = Prefetch(number, {"tag": tag, "opcode": int(EngineOpcode.PREFETCH)}, first=first, span=span)
        new.segments = segments or rng.randint(1, 4)
        if same is not None:
            new.first, new.span, new.segments, new.blocks = same.first, same.span, same.segments, same.blocks
        shift = new.ranges.bit_length() + rng.randint(0, 1)
        new.row = 1 << shift
        if staging is not None:
            new.staging, new.log2_staging, new.start = staging
        kinds = [rng.choice(KINDS) if rng.random() < self.rate else "good" for _ in range(count)]
        if staging is not None:
            kinds = [kind if kind in ("stale", "poison", "tainted", "damaged", "beyond") else "good" for kind in kinds]
        table = self.host.allocate(64 * len(kinds if same is None else same.blocks), align=128)
        entries = (
            [self._block(new, kind, table + 64 * i, staged=staging is not None) for i, kind in enumerate(kinds)]
            if same is None
            else [self.host.get(same.fields["data"] + 64 * i, 64) for i in range(len(same.blocks))]
        )
        self.host.put(table, b"".join(entries))
        results = self.host.allocate(ARRIVAL.size * new.row * len(new.blocks), align=128)
        self.host.put(results, bytes(ARRIVAL.size * new.row * len(new.blocks)))
        self.host.permit(results, ARRIVAL.size * new.row * len(new.blocks))
        new.fields |= {
            "flags": records.STAGED if staging is not None else 0,
            "model": rng.getrandbits(16),
            "segment": new.first,
            "count": len(new.blocks),
            "length": new.span,
            "crc": new.start,
            "subject": new.staging | new.log2_staging << 64 if staging is not None else rng.getrandbits(128),
            "slot": new.segments,
            "data": table,
            "results": results,
            "page_shift": shift,
        }
        for name, value in (change or {}).items():
            new.fields[name] = value + new.fields[name] * (name in ("data", "results"))
        self.by_tag[tag] = new
        return new

    def _block(self, new: Prefetch, kind: str, at: int, *, staged: bool) -> bytes:
        """Make a block, and return its entry of the list."""
        rng, span = self.random, new.span
        fields = {"handle": rng.getrandbits(128), "length": SEGMENT * span + rng.choice([0, 1, 1 << 20])}
        segments = new.first + span
        size = SEGMENT * segments - rng.choice([0, 0, rng.randrange(SEGMENT)])
        if kind == "beyond":
            size = max(1, size - SEGMENT * rng.randint(1, span))
            if segments == 1:
                kind = "good"  # the least block has that much
        if kind == "room":
            fields["length"] = max(0, size - SEGMENT * new.first - rng.randint(1, SEGMENT))
        data = rng.randbytes(size)
        if kind != "stale":
            self.stock.blocks[fields["handle"]] = data, kind
        buffers: list[int] = []
        if not staged:
            if kind in ("page", "pages") or rng.random() < 0.5:
                buffers = self._pages(fields, span, kind)
            else:
                fields["data"] = self.hbm.allocate(SEGMENT * span, align=SEGMENT)
                buffers = [fields["data"] + SEGMENT * i for i in range(span)]
            if kind != "stale":
                for address in buffers:
                    self.hbm.permit(address, SEGMENT)
            if kind == "refused":
                address = rng.choice(buffers)
                self.hbm.bad.update(range(address, address + SEGMENT))
        new.blocks.append(Wanted(fields["handle"], data, kind, buffers))
        return BLOCK.pack(**fields)

    def _pages(self, fields: dict[str, int], span: int, kind: str) -> list[int]:
        rng = self.random
        shift = rng.choice([9, 10, 11])
        pages = -(-span * SEGMENT >> shift)
        starts = [self.hbm.allocate(1 << shift, align=SEGMENT) for _ in range(pages)]
        buffers = [starts[i * SEGMENT >> shift] + (i * SEGMENT & (1 << shift) - 1) for i in range(span)]
        if kind == "page":
            starts[rng.randrange(pages)] += rng.choice([1, 256])
        fields["data"] = self.host.allocate(8 * pages, align=128)
        self.host.put(fields["data"], b"".join(at.to_bytes(8, "little") for at in starts))
        if kind == "pages":
            self.host.bad.update(range(fields["data"], fields["data"] + 8 * pages))
        fields |= {"page_shift": shift, "flags": records.SCATTERED}
        return buffers

    def cancel(self, number: int, of: int) -> Submission:
        """Return a CANCEL of the PREFETCH with tag `of`."""
        tag = self.random.choice([each for each in range(1 << 10) if each not in self.by_tag])
        new = Submission(number, {"tag": tag, "opcode": int(EngineOpcode.CANCEL), "count": of})
        self.by_tag[tag] = new
        return new

    def forget(self, submission: Submission) -> None:
        if submission.fields["opcode"] == EngineOpcode.CANCEL:
            del self.by_tag[submission.fields["tag"]]
        elif not isinstance(submission, Prefetch):
            super().forget(submission)
        else:
            del self.by_tag[submission.fields["tag"]]
            size = ARRIVAL.size * submission.row * len(submission.blocks)
            self.host.permit(submission.fields["results"], size, yes=False)
            if submission.staged:
                return
            others = [each for each in self.by_tag.values() if isinstance(each, Prefetch) and not each.staged]
            still = {at for each in others for block in each.blocks for at in block.buffers}
            for address in {at for block in submission.blocks for at in block.buffers} - still:
                self.hbm.permit(address, SEGMENT, yes=False)

    def judge(self, submission: Submission, entry: dict[str, int]) -> None:
        fields = submission.fields
        if fields["opcode"] == EngineOpcode.CANCEL:
            if entry["status"] not in (Status.OK, Status.MISS, Status.NO_SPACE):
                raise CheckError(f"CANCEL ends as {entry}")
            of = self.by_tag.get(fields["count"])
            if isinstance(of, Prefetch) and of.ring == submission.ring and entry["status"] == Status.OK:
                of.closed = True
                if self.stock.has(of.fields["tag"]):
                    raise CheckError("a CANCEL completes, and a READ of the PREFETCH is under way")
            return
        if not isinstance(submission, Prefetch):
            super().judge(submission, entry)
            return
        if submission.refusal is not None:
            if (entry["status"], entry["count"], submission.marks) != (submission.refusal, 0, {}):
                raise CheckError(
                    f"PREFETCH ends as {entry} with {submission.marks}, expected {submission.refusal.name}"
                )
            return
        whole = [submission.marks[i, 0] for i in range(len(submission.blocks)) if (i, 0) in submission.marks]
        arrived = sum(mark["flags"] == records.ARRIVED for mark in whole)
        status = entry["status"]
        if submission.failing:
            if status != Status.INVALID or entry["count"] not in (arrived, len(submission.blocks)):
                raise CheckError(f"{fields} ends as {entry}, and memory has failed")
            return
        if status != Status.OK and not (status == Status.UNAVAILABLE and submission.open_ended):
            raise CheckError(f"{fields} ends as {entry}")
        if status == Status.OK and len(whole) != len(submission.blocks):
            raise CheckError(f"{fields} ends as {entry}, and only {len(whole)} blocks are known")
        if (entry["count"], entry["items"], entry["slot"], entry["handle"]) != (arrived, 0, 0, 0):
            raise CheckError(f"{fields} ends as {entry}, and {arrived} blocks have arrived")


class PrefetchWorld(World):
    """A requester with a prefetch engine, and a model of the marks: each is checked when it is written.

    - `consumed`: what software has written to CONSUMED, by ring.
    """

    commands: PrefetchCommands
    node: Stock

    def __init__(self, beat_bytes: int, seed: int, *, rate: float = 0.0) -> None:
        super().__init__(beat_bytes, seed, rate=rate)
        self.commands.stock = self.node
        self.consumed: Counter[int] = Counter()

    def _parameters(self, beat_bytes: int) -> Params:
        return prefetch_params(beat_bytes)

    def _make_commands(self, rate: float) -> Commands:
        return PrefetchCommands(self.params, self.random, self.host, self.hbm, rate)

    def _make_node(self) -> Node:
        return Stock(self.dut.link, self.params, self.random)

    def _subject(self, ctx: SimulatorContext) -> Any:
        issued = self.dut.issued
        if ctx.get(issued.owner) != Owner.PREFETCH:
            return super()._subject(ctx)
        return Read(ctx.get(issued.ring), ctx.get(issued.tag))

    def _watch(self, address: int, size: int) -> None:
        for each in list(self.commands.by_tag.values()):
            if isinstance(each, Prefetch):
                index, within = divmod(address - each.fields["results"], ARRIVAL.size)
                if 0 <= index < each.row * len(each.blocks):
                    if (within, size) != (0, ARRIVAL.size):
                        raise CheckError(f"{size} bytes are written at byte {within} of an arrival")
                    self.progress = self.cycle
                    self._mark(each, *divmod(index, each.row))
        super()._watch(address, size)

    def _mark(self, of: Prefetch, block: int, entry: int) -> None:
        """An entry of an arrival table is written: it has to be true now, and new."""
        raw = self.host.get(of.fields["results"] + ARRIVAL.size * (block * of.row + entry), ARRIVAL.size)
        mark, wanted = ARRIVAL.unpack(raw), of.blocks[block]
        if (block, entry) in of.marks or of.closed:
            raise CheckError(f"entry {entry} of block {block} is written again: {mark}")
        of.marks[block, entry] = mark
        self._no_later(of, block, entry)
        first, end = 0, of.span
        if entry:
            first = (entry - 1) * of.segments
            end = min(of.span, first + of.segments)
        if mark["flags"] == records.ARRIVED:
            if entry == 0 and wanted.kind != "good":
                raise CheckError(f"a block that is {wanted.kind} is marked arrived")
            if entry == 0 and not all((block, 1 + i) in of.marks for i in range(of.ranges)):
                raise CheckError(f"block {block} is marked before its ranges")
            data = wanted.data[SEGMENT * (of.first + first) : SEGMENT * (of.first + end)]
            expected = {"status": Status.OK, "count": end - first, "length": len(data)}
            # A block in a staging ring may be larger than that.
            self._there(of, block, data, first, end if entry or not of.staged else first)
        else:
            status = mark["status"]
            cut = of.open_ended and status == Status.UNAVAILABLE
            if entry or not (cut or status == Status[STATUS.get(wanted.kind, "OK")] != Status.OK):
                raise CheckError(f"block {block}, {wanted.kind}, entry {entry}, is marked {mark}")
            expected = {"flags": records.FAILED, "count": 0, "length": 0}
        expected |= {"block": block, "segment": of.first + first, "tag": of.fields["tag"], "reserved": 0}
        for name, value in expected.items():
            if mark[name] != value:
                raise CheckError(f"{mark} is written, expected {name} = {value}")

    def _no_later(self, of: Prefetch, block: int, entry: int) -> None:
        """Marks come in order."""
        place = block, entry if entry else of.row
        if any((b, e if e else of.row) > place for b, e in of.marks):
            raise CheckError(f"entry {entry} of block {block} is written behind later ones")

    def _there(self, of: Prefetch, block: int, data: bytes, first: int, end: int) -> None:
        for segment in range(first, end):
            part = data[SEGMENT * (segment - first) :][:SEGMENT]
            if self.hbm.get(of.where(block, segment), len(part)) != part:
                raise CheckError(f"segment {segment} of block {block} is marked, and is not in memory")

    def _cut_off(self, submission: Submission, entry: dict[str, int]) -> bool:
        engines = isinstance(submission, Prefetch) or submission.fields["opcode"] == EngineOpcode.CANCEL
        return not engines and super()._cut_off(submission, entry)

    def put_prefetch(self, number: int, **options: Any) -> Prefetch:
        """Submit a PREFETCH."""
        made = self.put(number, lambda commands, ring: commands.prefetch(ring, **options))  # type: ignore[attr-defined]
        assert isinstance(made, Prefetch)
        return made

    def put_cancel(self, number: int, of: int) -> Submission:
        """Submit a CANCEL of the PREFETCH with tag `of`."""
        return self.put(number, lambda commands, ring: commands.cancel(ring, of))  # type: ignore[attr-defined]

    def consume_segments(self, of: Prefetch, *, slow: int = 0) -> Software:
        """Use what a STAGED PREFETCH brings, in order, until all of it is known; each place may then be written."""
        base = of.fields["results"]
        for block in range(len(of.blocks)):
            used = 0
            for entry in range(1, of.ranges + 1):
                while not self._flags(base, of, block, entry) and not self._flags(base, of, block, 0) & records.FAILED:
                    yield from self.sleep(1)
                if not self._flags(base, of, block, entry):
                    break
                yield from self.sleep(slow)
                segments = min(of.segments, of.span - used)
                data = of.blocks[block].data
                self._there(of, block, data[SEGMENT * (of.first + used) :], used, used + segments)
                used += segments
                self.consumed[of.ring] += segments
                yield from self._tell_consumed(of.ring)
            self.consumed[of.ring] += of.span - used
            yield from self._tell_consumed(of.ring)

    def _flags(self, base: int, of: Prefetch, block: int, entry: int) -> int:
        at = base + ARRIVAL.size * (block * of.row + entry)
        return ARRIVAL.unpack(self.host.get(at, ARRIVAL.size))["flags"]

    def _tell_consumed(self, ring: int) -> Software:
        yield from self.write(f"RING{ring}_CONSUMED", self.consumed[ring] & 0xFFFF)
