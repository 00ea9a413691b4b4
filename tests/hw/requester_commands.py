"""Commands of software around a requester: what they ask for, and what has to come of them."""

from dataclasses import dataclass, field
from random import Random

from hw.params import records
from hw.params.params import Params
from hw.params.protocol import Opcode, Status
from hw.params.sections import LinkParams, MemoryParams, NodeParams, PoolParams, RequesterParams, TableParams
from hw.tb.scoreboard import CheckError
from tests.hw.requester_models import Memory

SEGMENT = 512
FRAME = 4096
KEYS = 12


SLICES = {16: 16, 64: 4}
"""Of the node, by the bytes of a beat; else one."""


def params(beat_bytes: int) -> Params:
    return Params(
        node=NodeParams(slices=SLICES.get(beat_bytes, 1)),
        memory=MemoryParams(beat_bytes=beat_bytes, segment_bytes=SEGMENT, channels=1, waiting_reads=2),
        link=LinkParams(commands=2, write_segments=2, answers=4, response_flits=4, data_flits=8, message_flits=2),
        requester=RequesterParams(commands=6, write_segments=2),
        tables=TableParams(ports=2, rings_per_port=3, lookup_keys=KEYS, sessions=4, pins_per_ring=4),
        pools=(PoolParams(frame_bytes=FRAME, frames=16),),
    )


@dataclass(eq=False)
class Submission:
    """A descriptor, what has become of it, and what it asks memory for.

    - `refusal`: the status by which it ends without the node.
    - `buffers`: where each segment of data is. `faults`: those that memory refuses. `cut`: it refuses keys, all but
      those that are `whole`.
    - `damaged`: the trailer of some data is wrong.
    - `source`: the data, or the keys, that the node has to get. What the node has seen and said is `seen`, `keys`,
      `received`, `sent`, `answer`, `results`.
    """

    ring: int
    fields: dict[str, int]
    refusal: Status | None = None
    faults: set[int] = field(default_factory=set)
    source: bytes = b""
    whole: bytes = b""
    buffers: list[int] = field(default_factory=list)
    seen: int = 0
    answer: dict[str, int] = field(default_factory=dict)
    results: list[dict[str, int]] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    received: bytes = b""
    keys: bytes = b""
    cut: bool = False
    damaged: bool = False


class Commands:
    """Invents commands, and compares their completions with what the node has seen and said.

    - `by_tag`: those under way, by software's tag. `rate`: how many of them are wrong, or ask for memory that refuses.
    """

    def __init__(self, params: Params, random: Random, host: Memory, hbm: Memory, rate: float) -> None:
        self.params, self.random, self.host, self.hbm, self.rate = params, random, host, hbm, rate
        self.by_tag: dict[int, Submission] = {}

    def invent(self, number: int) -> Submission:
        rng = self.random
        tag = rng.choice([each for each in range(1 << 10) if each not in self.by_tag])
        opcode = rng.choice([Opcode.LOOKUP, Opcode.WRITE, Opcode.READ, Opcode.READ, Opcode.ALLOC, Opcode.UNPIN, 0xEE])
        fields = {
            "opcode": int(opcode),
            "flags": rng.getrandbits(4),
            "model": rng.getrandbits(16),
            "segment": rng.choice([0, rng.randrange(1 << 15)]),
            "count": rng.randint(0, 3),
            "length": rng.choice([0, 1, 511, 512, 513, 1500, FRAME]),
            "crc": rng.getrandbits(32),
            "subject": rng.getrandbits(128),
            "slot": rng.getrandbits(64),
            "tag": tag,
            "data": rng.getrandbits(64),
            "results": rng.getrandbits(64),
            "page_shift": rng.getrandbits(8),
            "slice": tag % self.params.node.slices,
        }
        submission = Submission(number, fields)
        self.by_tag[tag] = submission
        fault = rng.random() < self.rate
        if opcode == Opcode.READ:
            whole = SEGMENT * fields["count"]
            less = max(0, whole - rng.choice([rng.randint(1, SEGMENT), SEGMENT, SEGMENT + rng.randint(1, SEGMENT)]))
            fields["length"] = rng.choice([0, less, less, whole, whole + 1, (1 << 32) - 1])
        if opcode == Opcode.LOOKUP:
            self._with_keys(submission, fault)
        elif opcode in (Opcode.WRITE, Opcode.READ):
            self._with_data(submission, fault)
        return submission

    def look_up(self, number: int) -> Submission:
        """Return a LOOKUP of some keys."""
        return self._invent(number, Opcode.LOOKUP)

    def read(self, number: int) -> Submission:
        """Return a READ of some segments."""
        return self._invent(number, Opcode.READ)

    def write(self, number: int) -> Submission:
        """Return a WRITE."""
        return self._invent(number, Opcode.WRITE)

    def _invent(self, number: int, opcode: Opcode) -> Submission:
        while True:
            submission = self.invent(number)
            if submission.fields["opcode"] == opcode and submission.fields["count"]:
                return submission
            self.forget(submission)

    def _with_keys(self, submission: Submission, fault: bool) -> None:
        rng, fields = self.random, submission.fields
        fields["count"] = count = rng.choice([0, 1, rng.randint(2, KEYS), KEYS])
        where = self.host.allocate(16 * max(count, 1), align=128)
        submission.source = rng.randbytes(16 * count)
        self.host.put(where, submission.source)
        fields["data"], fields["results"] = where, self.host.allocate(32 * max(count, 1), align=128)
        self.host.permit(fields["results"], 32 * count)
        kind = rng.choice(["keys", "results", "count", "unmapped"]) if fault else ""
        if kind == "keys":
            fields["data"] += 16 * rng.randint(1, 7)
        elif kind == "results":
            fields["results"] += 32
        elif kind == "count":
            fields["count"] = rng.choice([KEYS + 1, 0xFFFF])
        elif kind == "unmapped" and count:
            first = 16 * rng.randrange(count)
            self.host.bad.update(range(where + first, where + 16 * count))
            size = self.params.memory.beat_bytes
            submission.whole = submission.source[: first // size * size]
            submission.cut = True
        if kind in ("keys", "results", "count"):
            submission.refusal = Status.INVALID

    def _with_data(self, submission: Submission, fault: bool) -> None:  # noqa: PLR0912 (a fault after the other)
        rng, fields, write = self.random, submission.fields, submission.fields["opcode"] == Opcode.WRITE
        count = self.params.segments(fields["length"]) if write else fields["count"]
        kind = rng.choice(["data", "shift", "long", "unmapped", "page"]) if fault else ""
        unmapped = rng.randrange(count) if kind in ("unmapped", "page") and count else None
        if rng.random() < 0.5 or kind in ("shift", "page"):
            self._scatter(submission, count, unmapped, kind)
        else:
            start = self.hbm.allocate(SEGMENT * max(count, 1), align=SEGMENT)
            submission.buffers = [start + SEGMENT * i for i in range(count)]
            fields["data"] = start
            if kind == "data":
                fields["data"] += rng.choice([1, 128, 256])
        if unmapped is not None and kind == "unmapped":
            self.hbm.bad.update(range(submission.buffers[unmapped], submission.buffers[unmapped] + SEGMENT))
        if unmapped is not None:
            submission.faults.add(unmapped)
        for at in submission.buffers:
            if write:
                self.hbm.put(at, rng.randbytes(SEGMENT))
            else:
                self.hbm.permit(at, SEGMENT)
        if write:
            data = b"".join(
                bytes(SEGMENT) if i in submission.faults else self.hbm.get(at, SEGMENT)
                for i, at in enumerate(submission.buffers)
            )
            submission.source = data[: fields["length"]]
        if kind == "data":
            submission.refusal = Status.INVALID
            if fields["flags"] & records.SCATTERED:
                fields["data"] += rng.choice([8, 64])
        if kind == "shift":
            fields["page_shift"] = rng.choice([0, 8, 32, 255])
            submission.refusal = Status.INVALID
        if kind == "long" and write:
            fields["length"] = rng.choice([FRAME + 1, 0xFFFF_FFFF])
            submission.refusal = Status.RANGE

    def _scatter(self, submission: Submission, count: int, unmapped: int | None, kind: str) -> None:
        """Give a command a list of pages; with an `unmapped` segment, its page is not aligned."""
        rng, fields = self.random, submission.fields
        shift = rng.choice([9, 10, 11])
        pages = max(1, -(-count * SEGMENT >> shift))
        starts = [self.hbm.allocate(1 << shift, align=SEGMENT) for _ in range(pages)]
        submission.buffers = [starts[i * SEGMENT >> shift] + (i * SEGMENT & (1 << shift) - 1) for i in range(count)]
        if kind == "page" and unmapped is not None:
            page = unmapped * SEGMENT >> shift
            starts[page] += rng.choice([1, 256])
            submission.faults |= {i for i in range(count) if i * SEGMENT >> shift == page}
        fields["data"] = self.host.allocate(8 * pages, align=128)
        self.host.put(fields["data"], b"".join(at.to_bytes(8, "little") for at in starts))
        fields["page_shift"] = shift
        fields["flags"] |= records.SCATTERED

    def forget(self, submission: Submission) -> None:
        """Nothing may be written for a command any more."""
        fields = submission.fields
        del self.by_tag[fields["tag"]]
        if fields["opcode"] == Opcode.LOOKUP:
            self.host.permit(fields["results"] // 128 * 128, 2 * len(submission.source), yes=False)
        if fields["opcode"] == Opcode.READ:
            for at in submission.buffers:
                self.hbm.permit(at, SEGMENT, yes=False)

    def judge(self, submission: Submission, entry: dict[str, int]) -> None:
        """Compare a completion, and all that has to be in memory by now, with what the node has seen and said."""
        fields, answer = submission.fields, submission.answer
        lookup = fields["opcode"] == Opcode.LOOKUP
        status, count, items, slot = answer.get("status"), 0, 0, 0
        if submission.refusal is not None:
            if submission.seen:
                raise CheckError(f"{fields} was sent, expected {submission.refusal.name}")
            status = submission.refusal
        elif submission.seen != 1:
            raise CheckError(f"{fields} completes, and was sent {submission.seen} times")
        elif lookup:
            items = self._judge_results(submission)
            count = sum(result["status"] == Status.HIT for result in submission.results)
            status = Status.INVALID if submission.cut else status
        elif fields["opcode"] == Opcode.WRITE:
            if submission.received != submission.source:
                raise CheckError(f"{len(submission.received)} bytes were sent, or others than {len(submission.source)}")
            count = self.params.segments(fields["length"]) if status == Status.OK else answer.get("item", 0)
            status = Status.INVALID if submission.faults else status
        elif fields["opcode"] == Opcode.READ:
            length = self._judge_data(submission)
            if submission.sent and submission.faults:
                status = Status.INVALID
            elif submission.damaged and status == Status.OK:
                status = Status.POISON
            elif status == Status.OK:
                status, slot = Status.OK if length <= fields["length"] else Status.RANGE, length
            count = fields["count"] if status == Status.OK else 0
        keeps = not lookup and submission.refusal is None
        named, given = (bool(answer.get(name)) and keeps for name in ("named", "pinned"))
        expected = {
            "status": status,
            "count": count,
            "items": items,
            "tag": fields["tag"],
            "handle": answer["handle"] if named else 0,
            "slot": answer["slot"] if given else slot,
            "flags": entry["flags"] & records.PHASE | records.NAMED * named | records.GIVEN * given,
        }
        if entry != expected:
            raise CheckError(f"completion {entry}, expected {expected}")

    def _judge_data(self, submission: Submission) -> int:
        """Compare the buffer of a READ with as much of what was sent as has room; return how much was sent."""
        sent = b"".join(submission.sent)
        there = sent[: submission.fields["length"]].ljust(SEGMENT * len(submission.buffers), b"\xa5")
        for i, at in enumerate(submission.buffers):
            if i not in submission.faults and self.hbm.get(at, SEGMENT) != there[SEGMENT * i :][:SEGMENT]:
                raise CheckError(f"segment {i} of a READ of {len(sent)} bytes is not in memory")
        return len(sent)

    def _judge_results(self, submission: Submission) -> int:
        """Compare the keys that were sent, and what was written for each; return the number of results."""
        results, where = submission.results, submission.fields["results"]
        keys = submission.whole if submission.cut else submission.source
        if submission.keys != keys:
            raise CheckError(f"{len(submission.keys)} bytes of keys were sent, expected {len(keys)}")
        for i, result in enumerate(results):
            got = records.COMPLETION.unpack(self.host.get(where + 32 * i, 32))
            hit = result["status"] == Status.HIT
            expected = {
                "handle": result["handle"] if hit else 0,
                "slot": result["slot"] if hit else 0,
                "tag": 0,
                "count": 0,
                "items": i,
                "status": result["status"],
                "flags": (records.NAMED | records.GIVEN) * hit,
            }
            if got != expected:
                raise CheckError(f"result {i} is {got}, expected {expected}")
        rest = self.host.get(where + 32 * len(results), 32 * (submission.fields["count"] - len(results)))
        if rest.strip(b"\xa5"):
            raise CheckError(f"more is written than {len(results)} results")
        return len(results)
