"""A requester with a write-back buffer, software that puts blocks, and a node that stores them."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import google_crc32c
from amaranth.sim import SimulatorContext

from hw.params import Params, records
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.rtl.fabric.layouts import COMMAND_BYTES, Channel
from hw.rtl.gpu.layouts import Owner
from hw.tb.scoreboard import CheckError
from tests.hw.requester_commands import FRAME, SEGMENT, Commands, Submission, params
from tests.hw.requester_models import Node
from tests.hw.requester_world import Software, World

SLOTS = 3
KEYS = 24
"""Of blocks: few, so that some exist."""


def put_params(beat_bytes: int) -> Params:
    plain = params(beat_bytes)
    return replace(plain, requester=replace(plain.requester, commands=12, slots=SLOTS))


@dataclass(eq=False)
class Put(Submission):
    """A PUT or FLUSH.

    - `before`: what its block has. `fence`: what it waits for. `done`: what the node has said to its commands. `waits`:
      of a FLUSH, the tags of those before it. `entry`: its completion.
    """

    before: bytes = b""
    fence: int | None = None
    done: dict[Opcode, dict[str, int]] = field(default_factory=dict)
    waits: list[Submission] = field(default_factory=list)
    entry: dict[str, int] = field(default_factory=dict)

    def flag(self, bit: int) -> bool:
        return bool(self.fields["flags"] & bit)


@dataclass(eq=False)
class Own:
    """A command of the buffer's, for a PUT."""

    ring: int
    put: Put
    fields: dict[str, int] = field(default_factory=dict)


class Puts(Commands):
    """Invents PUTs and FLUSHes beside other commands, and judges them. A source is overwritten once it is released."""

    node: "Store"

    def mix(self, number: int) -> Submission:
        """A PUT, a FLUSH, or anything else."""
        return self.random.choice([self.put, self.put, self.put, self.flush, self.invent])(number)

    def put(self, number: int, *, flags: int = 0, after: Put | None = None, fence: int | None = None) -> Put:
        """A PUT of a new block, or one that goes on."""
        rng = self.random
        length = rng.choice([1, 4, 511, 512, 513, 1500, FRAME])
        if flags & records.OPEN:
            length = SEGMENT * rng.randint(1, 2)
        if after:
            length = rng.choice([0, 4, 512, 700]) if not flags & records.OPEN else SEGMENT
            flags |= records.APPENDED
        if fence is not None:
            flags |= records.FENCED
        put = self._make(number, EngineOpcode.PUT, flags)
        fields = put.fields
        put.before, put.fence = (after.before + after.source if after else b""), fence
        fields |= {"length": length, "subject": rng.randrange(KEYS), "count": FRAME // SEGMENT}
        fields["results"] = fence or rng.getrandbits(64)
        if after:
            fields |= {"subject": after.entry["handle"], "crc": after.entry["slot"]}
            fields |= {
                "segment": len(put.before) // SEGMENT,
                "slot": after.fields["slot"],
                "slice": after.fields["slice"],
            }
        kind = rng.choice(["data", "empty", "long", "unmapped", "page"]) if rng.random() < self.rate else ""
        count = self.params.segments(length)
        bad = rng.randrange(count) if kind in ("unmapped", "page") and count else None
        if count and (rng.random() < 0.5 or kind == "page"):
            self._scatter(put, count, bad, kind)
        elif count:
            start = self.hbm.allocate(SEGMENT * count, align=SEGMENT)
            put.buffers, fields["data"] = [start + SEGMENT * i for i in range(count)], start
        if bad is not None:
            put.faults.add(bad)
            if kind == "unmapped":
                self.hbm.bad.update(range(put.buffers[bad], put.buffers[bad] + SEGMENT))
        for at in put.buffers:
            self.hbm.put(at, rng.randbytes(SEGMENT))
        put.source = b"".join(
            bytes(SEGMENT) if i in put.faults else self.hbm.get(at, SEGMENT) for i, at in enumerate(put.buffers)
        )[:length]
        if kind == "data" and count:
            fields["data"] += 8
            put.refusal = Status.INVALID
        if kind == "empty":
            fields["length"] = 2 * bool(after)
            put.refusal = Status.INVALID
        if kind == "long":
            fields["length"] = FRAME + 1
            put.refusal = Status.RANGE
        return put

    def flush(self, number: int) -> Put:
        """A FLUSH of a ring, or of a session of it."""
        session = self.random.choice([None, 5, 6])
        flush = self._make(number, EngineOpcode.FLUSH, 0 if session is None else records.OF_SESSION)
        if session is not None:
            flush.fields["slot"] = session
        flush.waits = [
            each
            for each in self.by_tag.values()
            if isinstance(each, Put)
            and each.ring == number
            and each.fields["opcode"] == EngineOpcode.PUT
            and (session is None or (session, flush.fields["slice"]) == (each.fields["slot"], each.fields["slice"]))
        ]
        return flush

    def _make(self, number: int, opcode: EngineOpcode, flags: int) -> Put:
        rng = self.random
        tag = rng.choice([each for each in range(1 << 10) if each not in self.by_tag])
        names = {"model": 16, "segment": 16, "crc": 32, "page_shift": 8}
        fields = {name: rng.getrandbits(bits) for name, bits in names.items()}
        fields |= {"opcode": int(opcode), "flags": flags, "tag": tag, "slot": rng.choice([5, 6]), "length": 7}
        fields["slice"] = tag % self.params.node.slices
        put = Put(number, fields)
        self.by_tag[tag] = put
        return put

    def forget(self, submission: Submission) -> None:
        super().forget(submission)
        if isinstance(submission, Put):
            for at in submission.buffers:
                self.hbm.put(at, self.random.randbytes(SEGMENT))

    def judge(self, submission: Submission, entry: dict[str, int]) -> None:
        if not isinstance(submission, Put):
            super().judge(submission, entry)
            return
        put = submission
        put.entry = entry
        count, handle, slot = put.done.get(Opcode.WRITE, {}).get("count", 0), 0, 0
        if put.refusal is not None:
            status = put.refusal
        elif (
            not put.done
            and entry["status"] == Status.NO_SPACE
            and len(self.by_tag) > self.params.requester.commands - 2
        ):
            status = Status.NO_SPACE
        elif put.fields["opcode"] == EngineOpcode.FLUSH:
            status = Status.OK
            if any(each in self.by_tag.values() for each in put.waits):
                raise CheckError("a FLUSH completes before what it waits for")
        else:
            status = self._outcome(put)
        if put.done and put.refusal is not None:
            raise CheckError(f"{put.fields} was begun, expected {put.refusal.name}")
        if status in (Status.OK, Status.EXISTS) and put.fields["opcode"] == EngineOpcode.PUT:
            handle = put.done[Opcode.ALLOC]["handle"] if Opcode.ALLOC in put.done else put.fields["subject"]
        given = status == Status.OK and put.flag(records.OPEN)
        if given:
            slot = google_crc32c.value(put.before + put.source)
        flags = entry["flags"] & records.PHASE | records.NAMED * bool(handle) | records.GIVEN * given
        expected = {
            "status": status,
            "count": count,
            "items": 0,
            "tag": put.fields["tag"],
            "handle": handle,
            "slot": slot,
        }
        if entry != expected | {"flags": flags}:
            raise CheckError(f"completion {entry}, expected {expected}, behind {put.done}")

    def _outcome(self, put: Put) -> Status:
        """How a PUT has to end."""
        done = put.done
        for opcode, answer in done.items():
            status = Status(answer["status"])
            if opcode is Opcode.WRITE and put.faults:
                status = Status.INVALID
            if status not in (Status.OK, Status.GRANTED):
                if opcode is not Opcode.ALLOC and Opcode.ABORT not in done:
                    raise CheckError(f"a block is left behind: {done}")
                return status
        if put.flag(records.OPEN):
            return Status.OK
        if Opcode.SEAL not in done:
            raise CheckError(f"a PUT completes without SEAL: {done}")
        content = self.node.sealed[put.done[Opcode.SEAL]["subject"]]
        if content != put.before + put.source:
            raise CheckError("other bytes are sealed than were put")
        return Status.OK


class Store(Node):
    """A node that stores the blocks that are put; it refuses and fails some.

    - `fails`: how many. `handles`: of the block of each key; `writing`, `sealed`: bytes by handle.
    """

    fails = 0.15

    def __init__(self, link: Any, params: Params, random: Random) -> None:
        self.sealed: dict[int, bytes] = {}
        super().__init__(link, params, random)

    def reset(self) -> None:
        super().reset()
        self.handles: dict[int, int] = {}
        self.writing: dict[int, bytes] = {}

    def _take(self, flit: dict[str, int]) -> None:
        subject = self.names.get(flit["tag"])
        if flit["channel"] != Channel.REQUEST or not isinstance(subject, Own):
            super()._take(flit)
            return
        packet = self.packets[Channel.REQUEST]
        self.held[Channel.REQUEST] += 1
        packet.append(flit)
        if flit["last"]:
            self.packets[Channel.REQUEST] = []
            size = self.params.memory.beat_bytes
            data = b"".join(each["data"].to_bytes(size, "little")[: each["count"]] for each in packet)
            subject.fields = records.COMMAND.unpack(data[:COMMAND_BYTES])
            header = {"tag": flit["tag"], "ring": flit["ring"]}
            self._at_slice(packet, subject)
            if flit["ring"] != subject.ring:
                raise CheckError(f"a command of ring {flit['ring']} for ring {subject.ring}")
            self.commands.append((subject, header, b""))

    def _slice(self, subject: Any, packet: list[dict[str, int]]) -> int:
        """Of a command for a PUT, that of the PUT."""
        return super()._slice(subject.put if isinstance(subject, Own) else subject, packet)

    def _execute(self) -> None:
        if not self.commands or not isinstance(self.commands[0][0], Own):
            super()._execute()
            return
        if self.random.random() < 0.3:
            return
        own, header, _ = self.commands[0]
        fields, put = own.fields, own.put
        opcode = Opcode(fields["opcode"])
        wanted = self.params.segments(fields["length"])
        if opcode is Opcode.WRITE and len(self.data) < wanted:
            return
        data = b"".join(self.data.popleft() for _ in range(wanted)) if opcode is Opcode.WRITE else b""
        self.commands.popleft()
        self._check(put, opcode, fields)
        answer = {"status": Status.UNAVAILABLE}
        if header["ring"] not in self.lost:
            answer = self._obey(put, opcode, fields, data)
        put.done[opcode] = answer | {"subject": fields["subject"]}
        said = {name: value for name, value in answer.items() if name != "count"}
        if opcode is Opcode.WRITE:
            appended = answer.get("count", 0) if answer["status"] == Status.OK else self.random.randint(0, wanted)
            put.done[opcode]["count"] = appended
            said["item"] = 0 if answer["status"] == Status.OK else appended
        self._answer(header, said | {"complete": 1, "outcome": answer["status"]})

    def _check(self, put: Put, opcode: Opcode, fields: dict[str, int]) -> None:
        if opcode in put.done:
            raise CheckError(f"{opcode.name} twice")
        failed = any(answer["status"] not in (Status.OK, Status.GRANTED) for answer in put.done.values())
        failed |= Opcode.WRITE in put.done and bool(put.faults)
        if failed != (opcode is Opcode.ABORT):
            raise CheckError(f"{opcode.name} behind {put.done}")
        if opcode is Opcode.ALLOC:
            expected = {name: put.fields[name] for name in ("model", "subject", "slot")}
            expected["length"] = FRAME if put.flag(records.OPEN) else put.fields["length"]
            if any(fields[name] != value for name, value in expected.items()):
                raise CheckError(f"ALLOC of {fields}, expected {expected}")

    def _obey(self, put: Put, opcode: Opcode, fields: dict[str, int], data: bytes) -> dict[str, Any]:
        rng, handle = self.random, fields["subject"]
        fails = rng.random() < self.fails
        if opcode is Opcode.ALLOC:
            key = fields["subject"]
            if key in self.handles:
                known = self.handles[key]
                status = Status.EXISTS if known in self.sealed else Status.PENDING
                return {"status": status, "named": 1, "handle": known}
            if fails:
                return {"status": rng.choice([Status.QUOTA, Status.NO_SPACE, Status.RETIRED])}
            self.handles[key] = handle = rng.getrandbits(128)
            self.writing[handle] = b""
            return {"status": Status.GRANTED, "named": 1, "handle": handle}
        if handle not in self.writing:
            return {"status": Status.STALE}
        content = self.writing[handle]
        if opcode is Opcode.WRITE and not fails:
            if fields["segment"] * SEGMENT != len(content):
                raise CheckError(f"a WRITE at segment {fields['segment']} of {len(content)} bytes")
            if data != put.source:
                raise CheckError("other bytes are sent than were put: their source was released early, or is wrong")
            self.writing[handle] = content + data
            return {"status": Status.OK, "count": self.params.segments(len(data))}
        if opcode is Opcode.SEAL and not fails:
            if (fields["length"], fields["crc"]) != (len(content), google_crc32c.value(content)):
                raise CheckError(f"a SEAL of {fields['length']} bytes, expected {len(content)}, or with a wrong CRC32C")
            self.sealed[handle] = self.writing.pop(handle)
        if opcode is Opcode.ABORT:
            del self.writing[handle]
            self.handles = {key: value for key, value in self.handles.items() if value != handle}
        return {"status": Status.STALE if fails and opcode is not Opcode.ABORT else Status.OK}


class PutWorld(World):
    """A world whose requester has a write-back buffer, and whose node stores blocks."""

    commands: Puts
    node: Store

    def __init__(self, beat_bytes: int, seed: int, *, rate: float = 0.0) -> None:
        super().__init__(beat_bytes, seed, rate=rate)
        self.commands.node = self.node
        self.fences: dict[int, int] = {}

    def _parameters(self, beat_bytes: int) -> Params:
        return put_params(beat_bytes)

    def _make_commands(self, rate: float) -> Commands:
        return Puts(self.params, self.random, self.host, self.hbm, rate)

    def _make_node(self) -> Node:
        return Store(self.dut.link, self.params, self.random)

    def reach(self, number: int, fence: int) -> Software:
        """The producer of a ring's blocks has come so far."""
        self.fences[number] = fence
        yield from self.write(f"RING{number}_FENCE", fence)

    def _subject(self, ctx: SimulatorContext) -> Any:
        ring, tag, owner = (ctx.get(getattr(self.dut.issued, name)) for name in ("ring", "tag", "owner"))
        submission = self.commands.by_tag.get(tag)
        if owner != Owner.WRITE_BACK:
            return submission
        if not isinstance(submission, Put) or submission.ring != ring:
            raise CheckError(f"a command of the buffer's for {submission}")
        if submission.fence is not None and self.fences.get(ring, 0) < submission.fence:
            raise CheckError("a PUT begins before its fence is reached")
        return Own(ring, submission)

    def _cut_off(self, submission: Submission, entry: dict[str, int]) -> bool:
        """A PUT that is cut off ends UNAVAILABLE, or with what had failed by then; its block died with the node."""
        if not isinstance(submission, Put):
            return super()._cut_off(submission, entry)
        failures = [answer["status"] for answer in submission.done.values()]
        failures += [Status.UNAVAILABLE] + [Status.INVALID] * bool(submission.faults)
        return entry["status"] in failures and entry["status"] not in (Status.OK, Status.GRANTED, Status.EXISTS)
