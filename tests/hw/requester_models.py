"""What is around a requester: memory behind AXI4, and a node at the other end of its link."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import google_crc32c
from amaranth.sim import SimulatorContext

from hw.params import Params, records
from hw.params.protocol import KEY_BYTES, NoteKind, Opcode, Status
from hw.rtl.emit import describe
from hw.rtl.fabric.layouts import (
    COMMAND_BYTES,
    RESPONSE,
    RESPONSE_BYTES,
    Channel,
    flit_layout,
    from_node_buffers,
    to_node_buffers,
)
from hw.tb.payload import Codec
from hw.tb.scoreboard import CheckError

BASE = 0x0123_4560_0000_0000


class Memory:
    """Bytes at sparse addresses. What was not allocated, or is bad, is refused; where nobody may write, is an error.

    - `watch`: called with address and size of what a burst has written.
    """

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}
        self.bad: set[int] = set()
        self.open: set[int] = set()
        self.watch: Callable[[int, int], None] = lambda address, size: None
        self._next = BASE

    def allocate(self, size: int, *, align: int, bad: bool = False) -> int:
        """Return the address of new bytes, filled with 0xA5; those beside them are refused."""
        address = -(-(self._next + 1) // align) * align
        self._next = address + size
        self.bytes.update((at, 0xA5) for at in range(address, address + size))
        if bad:
            self.bad.update(range(address, address + size))
        return address

    def put(self, address: int, data: bytes) -> None:
        """Software writes."""
        self.bytes.update(enumerate(data, address))

    def get(self, address: int, size: int) -> bytes:
        """Software reads."""
        return bytes(self.bytes[at] for at in range(address, address + size))

    def permit(self, address: int, size: int, *, yes: bool = True) -> None:
        """Let hardware write there, or not any more."""
        (self.open.update if yes else self.open.difference_update)(range(address, address + size))

    def read(self, address: int, size: int) -> tuple[int, bool]:
        """Hardware reads; the second is whether that was refused. Bytes beside an allocation read as 0."""
        there = [at for at in range(address, address + size) if at in self.bytes]
        refused = not there or any(at in self.bad for at in there)
        return sum(self.bytes[at] << 8 * (at - address) for at in there), refused

    def write(self, address: int, beats: list[tuple[bytes, int]]) -> bool:
        """Hardware writes a burst; return whether that was refused, as one is that touches a beat with bad bytes, with
        strobes or without. CheckError where nobody may write."""
        new = {
            address + beat * len(data) + at: byte
            for beat, (data, strobes) in enumerate(beats)
            for at, byte in enumerate(data)
            if strobes >> at & 1
        }
        size = sum(len(data) for data, _ in beats)
        if not self.bad.isdisjoint(range(address, address + size)) or any(at not in self.bytes for at in new):
            return True
        for at in new:
            if at not in self.open:
                raise CheckError(f"a write to {at:#x}, where nothing is to be written")
        self.bytes.update(new)
        if new:
            self.watch(min(new), len(new))
        return False


class AxiMemory:
    """A memory behind one AXI4 manager: slow, in order for each ID only, reads of several IDs interleaved."""

    def __init__(self, axi: Any, memory: Memory, random: Random, beat_bytes: int) -> None:
        self.axi, self.memory, self.random, self.size = axi, memory, random, beat_bytes
        self.reads: defaultdict[int, deque[list[int]]] = defaultdict(deque)
        self.addresses: deque[tuple[int, int, int]] = deque()
        self.beats: list[tuple[bytes, int]] = []
        self.whole: deque[list[tuple[bytes, int]]] = deque()
        self.writes: defaultdict[int, deque[tuple[int, int, list[tuple[bytes, int]]]]] = defaultdict(deque)
        self.cycle = 0
        self.read_offer = self.write_offer = False

    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not (any(self.reads.values()) or any(self.writes.values()) or self.addresses or self.whole)

    def drive(self, ctx: SimulatorContext) -> None:
        """Set what the manager sees in this cycle."""
        axi, rng = self.axi, self.random
        self.cycle += 1
        for ready in (axi.arready, axi.awready, axi.wready):
            ctx.set(ready, rng.random() < 0.7)
        if not self.read_offer:
            due = [i for i, bursts in self.reads.items() if bursts and bursts[0][0] <= self.cycle]
            if due and rng.random() < 0.8:
                number = rng.choice(due)
                _, address, left = self.reads[number][0]
                data, refused = self.memory.read(address, self.size)
                ctx.set(axi.rid, number)
                ctx.set(axi.rdata, data)
                ctx.set(axi.rresp, rng.choice([2, 3]) if refused else 0)
                ctx.set(axi.rlast, left == 1)
                self.read_offer = True
        ctx.set(axi.rvalid, self.read_offer)
        if not self.write_offer:
            due = [i for i, bursts in self.writes.items() if bursts and bursts[0][0] <= self.cycle]
            if due and rng.random() < 0.8:
                number = rng.choice(due)
                _, address, beats = self.writes[number].popleft()
                refused = self.memory.write(address, beats)
                ctx.set(axi.bid, number)
                ctx.set(axi.bresp, rng.choice([2, 3]) if refused else 0)
                self.write_offer = True
        ctx.set(axi.bvalid, self.write_offer)

    def sample(self, ctx: SimulatorContext) -> None:
        """Take what the manager offers in this cycle."""
        axi, rng = self.axi, self.random
        if ctx.get(axi.arvalid) and ctx.get(axi.arready):
            address, beats = self._burst(ctx, "ar")
            due = self.cycle + rng.choice([1, 3, 12])
            self.reads[ctx.get(axi.arid)].append([due, address, beats])
        if self.read_offer and ctx.get(axi.rready):
            self.read_offer = False
            number = ctx.get(axi.rid)
            burst = self.reads[number][0]
            burst[1] += self.size
            burst[2] -= 1
            if not burst[2]:
                self.reads[number].popleft()
        if ctx.get(axi.awvalid) and ctx.get(axi.awready):
            self.addresses.append((ctx.get(axi.awid), *self._burst(ctx, "aw")))
        if ctx.get(axi.wvalid) and ctx.get(axi.wready):
            self.beats.append((ctx.get(axi.wdata).to_bytes(self.size, "little"), ctx.get(axi.wstrb)))
            if ctx.get(axi.wlast):
                self.whole.append(self.beats)
                self.beats = []
        if self.write_offer and ctx.get(axi.bready):
            self.write_offer = False
        while self.addresses and self.whole:
            number, address, count = self.addresses.popleft()
            beats = self.whole.popleft()
            if len(beats) != count:
                raise CheckError(f"{len(beats)} beats in a burst of {count}")
            self.writes[number].append((self.cycle + rng.choice([1, 5, 40]), address, beats))

    def _burst(self, ctx: SimulatorContext, channel: str) -> tuple[int, int]:
        address, beats = (ctx.get(getattr(self.axi, channel + name)) for name in ("addr", "len"))
        if address // 4096 != (address + (beats + 1) * self.size - 1) // 4096 or address % self.size:
            raise CheckError(f"a burst of {beats + 1} beats at {address:#x}")
        return address, beats + 1


class Node:
    """The other end of a link: ends commands as it likes, in the order of the link, and answers in any.

    - `names`: what a link tag stands for now, given by whoever follows `issued`. An object with `ring`, `fields`, and
      room for what the node has seen and said: `seen`, `keys`, `received`, `sent`, `answer`, `results`.
    - `lost`: rings that are. `losses`: how often each was told.
    - `stale`: packets that were sent. `hold`: nothing is.
    """

    def __init__(self, link: Any, params: Params, random: Random) -> None:
        self.link, self.params, self.random = link, params, random
        self.names: dict[int, Any] = {}
        self.lost: set[int] = set()
        self.losses: Counter[int] = Counter()
        self.hold = False
        self.stale: list[tuple[Channel, list[dict[str, int]]]] = []
        self._flit = Codec(describe(flit_layout(params)))
        self.reset()

    def reset(self) -> None:
        """Both ends of the link are reset, and everything under way is forgotten."""
        self.room = dict(from_node_buffers(self.params))
        self.held: Counter[Channel] = Counter()
        self.packets: dict[Channel, list[dict[str, int]]] = {channel: [] for channel in Channel}
        self.commands: deque[tuple[Any, dict[str, int], bytes]] = deque()
        self.data: deque[bytes] = deque()
        self.told: deque[int | None] = deque()
        self.later: list[tuple[int, list[dict[str, int]]]] = []
        self.out: dict[Channel, deque[dict[str, int]]] = {
            channel: deque() for channel in (Channel.RESPONSE, Channel.DATA, Channel.MESSAGE)
        }
        self.inside = {channel: False for channel in self.out}
        self.cycle = 0

    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not (self.commands or self.data or self.later or any(self.out.values()) or self.told)

    def pending(self, ring: int) -> bool:
        """Whether a command of a ring has not been answered."""
        return any(subject.ring == ring for subject, _, _ in self.commands)

    def message(self, data: bytes, slice_: int) -> None:
        """A slice tells the port something."""
        self.out[Channel.MESSAGE].extend(flit | {"slice": slice_} for flit in self._flits(data, 0, 0))

    def between(self, channel: Channel, flits: list[dict[str, int]]) -> None:
        """Send a packet at once, before those that wait, but behind the one that is under way."""
        queue = self.out[channel]
        at = next((i + 1 for i, flit in enumerate(queue) if flit["last"]), 0) if self.inside[channel] else 0
        for flit in reversed(flits):
            queue.insert(at, flit)

    def drive(self, ctx: SimulatorContext) -> None:
        """Set what the requester sees in this cycle."""
        rng, lane = self.random, self.link.from_node
        self.cycle += 1
        self._execute()
        for packet in [each for each in self.later if each[0] <= self.cycle]:
            if rng.random() < 0.5:
                self.later.remove(packet)
                self.out[Channel.RESPONSE].extend(packet[1])
        ready = [channel for channel, flits in self.out.items() if flits and self.room[channel]]
        go = bool(ready) and not self.hold and rng.random() < 0.8
        ctx.set(lane.valid, go)
        if go:
            channel = rng.choice(ready)
            self.room[channel] -= 1
            flit = self.out[channel].popleft()
            self.inside[channel] = not flit["last"]
            ctx.set(lane.flit, {"channel": channel, **flit})
        credits = 0
        for channel in (Channel.REQUEST, Channel.DATA, Channel.MESSAGE):
            if self.held[channel] and rng.random() < 0.6:
                self.held[channel] -= 1
                credits |= 1 << channel
                if channel is Channel.MESSAGE:
                    ring = self.told.popleft()
                    if ring is not None:
                        self.losses[ring] += 1
                        self.lost.add(ring)
        ctx.set(self.link.to_node.credits, credits)

    def sample(self, ctx: SimulatorContext) -> None:
        """Take what the requester sends in this cycle."""
        lane = self.link.to_node
        if ctx.get(lane.valid):
            self._take(self._flit.unpack(ctx.get(lane.flit.as_value())))
        credits = ctx.get(self.link.from_node.credits)
        for channel in self.room:
            self.room[channel] += credits >> channel & 1

    def _take(self, flit: dict[str, int]) -> None:
        channel = Channel(flit["channel"])
        self.held[channel] += 1
        if self.held[channel] > to_node_buffers(self.params)[channel]:
            raise CheckError(f"a flit without a credit: {channel.name}")
        packet = self.packets[channel]
        packet.append(flit)
        if not flit["last"]:
            return
        self.packets[channel] = []
        size = self.params.memory.beat_bytes
        data = b"".join(each["data"].to_bytes(size, "little")[: each["count"]] for each in packet)
        if channel is Channel.MESSAGE:
            self.told.append(None if data[0] == NoteKind.HEARTBEAT else flit["ring"])
        elif channel is Channel.DATA:
            self._at_slice(packet, self.names.get(flit["tag"]))
            self.data.append(data)
        else:
            subject = self.names.get(flit["tag"])
            if subject is None or subject.ring != flit["ring"]:
                raise CheckError(f"a command with tag {flit['tag']:#x} of ring {flit['ring']}, expected {subject}")
            self._at_slice(packet, subject)
            subject.seen += 1
            fields = records.COMMAND.unpack(data[:COMMAND_BYTES])
            self._compare(subject, fields)
            self.commands.append((subject, {"tag": flit["tag"], "ring": flit["ring"]}, data[COMMAND_BYTES:]))

    def _compare(self, subject: Any, fields: dict[str, int]) -> None:
        """Compare a command with what it is to be."""
        for name, value in fields.items():
            if name != "reserved" and value != subject.fields[name]:
                raise CheckError(f"{name} {value:#x} is sent, expected {subject.fields[name]:#x}")

    def _at_slice(self, packet: list[dict[str, int]], subject: Any) -> None:
        """Of what belongs to a command that is known, every flit goes to its slice."""
        for flit in packet:
            if subject is not None and flit["slice"] != (wanted := self._slice(subject, packet)):
                raise CheckError(f"a flit goes to slice {flit['slice']}, expected {wanted}")

    def _slice(self, subject: Any, packet: list[dict[str, int]]) -> int:
        """The slice that a packet belongs to: of a command of software's, that of its descriptor."""
        return int(subject.fields["slice"])

    def _execute(self) -> None:
        """End the oldest command, if all of it is here."""
        if not self.commands or self.random.random() < 0.3:
            return
        subject, header, rest = self.commands[0]
        rng, fields = self.random, subject.fields
        lost = header["ring"] in self.lost
        answer = {
            "status": Status.UNAVAILABLE if lost else rng.choice([Status.OK, Status.OK, Status.OK, Status.DENIED])
        }
        if fields["opcode"] == Opcode.WRITE and fields["length"]:
            wanted = self.params.segments(fields["length"])
            if len(self.data) < wanted:
                return
            subject.received = b"".join(self.data.popleft() for _ in range(wanted))
            if answer["status"] != Status.OK:
                answer["item"] = rng.randrange(wanted)
        elif fields["opcode"] == Opcode.LOOKUP:
            self.commands.popleft()
            self._look_up(subject, header, rest, lost)
            return
        elif fields["opcode"] == Opcode.READ:
            if not lost and fields["count"] and rng.random() < 0.8:
                answer = {"status": rng.choice([Status.OK, Status.POISON]), "streamed": 1}
                self._stream(subject, header)
        elif rng.random() < 0.5:
            answer |= {"named": 1, "handle": rng.getrandbits(128), "pinned": 1, "slot": rng.getrandbits(64)}
        self.commands.popleft()
        subject.answer = answer
        self._answer(header, answer | {"complete": 1, "outcome": answer["status"]})

    def _look_up(self, subject: Any, header: dict[str, int], keys: bytes, lost: bool) -> None:
        rng, count = self.random, len(keys) // KEY_BYTES
        subject.keys = keys
        if not count or lost:
            self._end_lookup(subject, header, Status.UNAVAILABLE if lost and count else Status.INVALID, 0)
            return
        # All of them, up to the one that ends a run, or up to the one whose pin has no room.
        stop, full = rng.choice([(count, False), (rng.randint(1, count), False), (rng.randrange(count), True)])
        for item in range(stop):
            status = rng.choice([Status.HIT, Status.HIT, Status.MISS, Status.PENDING])
            result = {"status": status}
            if status is Status.HIT:
                result |= {"named": 1, "handle": rng.getrandbits(128), "pinned": 1, "slot": rng.getrandbits(64)}
            subject.results.append(result)
            end = {}
            if item == stop - 1 and not full:
                subject.answer = {"status": Status.OK if stop == count else status}
                end = {"complete": 1, "outcome": subject.answer["status"]}
            self._answer(header, result | end | {"item": item})
        if full:
            self._end_lookup(subject, header, Status.NO_SPACE, stop)

    def _end_lookup(self, subject: Any, header: dict[str, int], status: Status, item: int) -> None:
        """End a LOOKUP before the key `item`, of which nothing is said."""
        subject.answer = {"status": status}
        self._answer(header, {"status": status, "complete": 1, "outcome": status, "item": item})

    def _stream(self, subject: Any, header: dict[str, int]) -> None:
        rng, size, fields = self.random, self.params.memory.segment_bytes, subject.fields
        # The last segment is whole, or short, or all of them are about as long as there is room.
        fitting = fields["length"] - size * (fields["count"] - 1) + rng.choice([-1, 0, 1])
        lengths = [size, rng.randint(1, size), fitting if 1 <= fitting <= size else size]
        for number in range(fields["count"]):
            last = number == fields["count"] - 1
            data = rng.randbytes(rng.choice(lengths) if last else size)
            subject.sent.append(data)
            flits = self._segment(data, header, fields["segment"] + number, last=last)
            if rng.random() < 0.05:
                flits[-1][rng.choice(["crc", "ok"])] ^= 1
                subject.damaged = True
            self.out[Channel.DATA].extend(flits)
            if last:
                self.stale.append((Channel.DATA, [dict(flit) for flit in flits]))

    def _segment(self, data: bytes, header: dict[str, int], number: int, *, last: bool) -> list[dict[str, int]]:
        """Return the flits of a segment of a READ, with its trailer."""
        flits = list(self._flits(data, header["ring"], header["tag"]))
        for flit in flits:
            flit["segment"] = number & 0xFFFF
        flits[-1] |= {"end": int(last), "crc": google_crc32c.value(data)}
        return flits

    def _answer(self, header: dict[str, int], response: dict[str, int]) -> None:
        word = sum(value << RESPONSE[name].offset for name, value in response.items())
        data = word.to_bytes(RESPONSE_BYTES, "little")
        flits = list(self._flits(data, header["ring"], header["tag"]))
        # Answers of one LOOKUP stay in order, and the last is the one that ends it.
        behind = max((due for due, other in self.later if other[0]["tag"] == header["tag"]), default=0)
        if behind or response.get("item") or not response.get("complete"):
            self.out[Channel.RESPONSE].extend(flits)
        else:
            self.later.append((self.cycle + self.random.choice([1, 4, 30]), flits))
        self.stale.append((Channel.RESPONSE, [dict(flit) for flit in flits]))

    def _flits(self, data: bytes, ring: int, tag: int) -> Iterator[dict[str, int]]:
        size = self.params.memory.beat_bytes
        for at in range(0, len(data), size):
            part = data[at : at + size]
            word = int.from_bytes(part, "little")
            yield {
                "ring": ring,
                "tag": tag,
                "data": word,
                "count": len(part),
                "last": int(at + size >= len(data)),
                "ok": 1,
            }
