"""The compiled harness: stories told to a slice through it, what it injects and records, and what it refuses."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import google_crc32c
import pytest

from hw.params import InputError
from hw.params import commands as c
from hw.params.commands import Command
from hw.params.params import TINY
from hw.params.protocol import Handle, LookupMode, ModelState, RingId, SessionId, Status
from hw.params.striping import Striping
from hw.rdl import Kind, register_map
from hw.rtl.emit import describe
from hw.rtl.fabric import Channel
from hw.rtl.node.layouts import Kind as Operation
from hw.rtl.node.layouts import log_layout
from hw.tb.harness import Harness, Links, Memory
from hw.tb.harness.simulation import STAMP_BYTES
from hw.tb.payload import Codec
from hw.tb.slice.compiled import administer
from hw.tb.slice.packets import Answer, Beat, Packets

RING, OTHER = RingId(0, 0), RingId(1, 1)
OKAY, SLVERR = 0, 2
SEGMENT, BEAT = TINY.memory.segment_bytes, TINY.memory.beat_bytes
REGISTERS = register_map()
PATIENCE = 20_000
STEP = 50

QUICK = Memory(latency=1), Links()
LATE = (
    Memory(
        latency=60, jitter=50, reorder=True, interleave=True, outstanding=3,
        address_willing=0.4, data_willing=0.5, answer_willing=0.5,
    ),
    Links(idle=0.6, backpressure=0.7, latency=11),
)  # fmt: skip


@dataclass
class Reply:
    """What a command has brought: its answers, and the beats of a READ, each with the cycle it came in."""

    answers: list[Answer] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)

    @property
    def status(self) -> Status:
        assert self.answers[-1].outcome is not None
        return self.answers[-1].outcome

    @property
    def data(self) -> bytes:
        return b"".join(beat.data for beat in self.beats)

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come; a READ that was started brings its data too."""
        return bool(self.answers) and self.answers[-1].outcome is not None


class Software:
    """Requesters and an administrator who wait for each command."""

    def __init__(self, harness: Harness):
        self.harness = harness
        self.packets = Packets(TINY)
        self._tags = itertools.count()
        self._parts: dict[int, list[int]] = {}

    def administer(self, command: Command) -> Status | None:
        """Have a command done by way of the registers."""
        return administer(self.harness, command)

    def begin(self, bind: bool = True) -> None:
        """Bring the slice into service, with two rings of one partition."""
        while not self.status("ready"):
            self.harness.run(STEP)
        self.administer(c.SetEpoch(99))
        self.harness.run(STEP)
        assert self.status("started")
        assert self.administer(c.SetPartition(0, quota=TINY.frames)) is Status.OK
        assert self.administer(c.SetModel(0, ModelState.LIVE)) is Status.OK
        for ring in (RING, OTHER) if bind else ():
            assert self.administer(c.Bind(ring, 0)) is Status.OK

    def status(self, name: str) -> bool:
        """A bit of STATUS."""
        register = REGISTERS["STATUS"]
        return bool(self.harness.read_register(register.offset)[0] & register.field(name).mask)

    def send(self, ring: RingId, command: Command) -> int:
        """Send a command and return its tag."""
        tag = next(self._tags)
        flits = {
            Channel.REQUEST: self.packets.requests(ring, tag, command),
            Channel.DATA: self.packets.data(ring, tag, command),
        }
        for channel, words in flits.items():
            packed = b"".join(word.to_bytes(self.harness.flit_bytes, "little") for word in words)
            self.harness.send(ring.port, channel, packed)
        return tag

    def heard(self, port: int) -> Iterator[tuple[int, Answer | Beat]]:
        """What has come over a link, with its cycle."""
        for cycle, flit in records(self.harness.received(port), self.harness.flit_bytes):
            if self.packets.channel(flit) == Channel.DATA:
                yield cycle, self.packets.beat(port, flit)
            else:
                assert self.packets.channel(flit) == Channel.RESPONSE
                parts = self._parts.setdefault(port, [])
                parts.append(flit)
                if self.packets.ends(flit):
                    yield cycle, self.packets.answer(port, parts)
                    parts.clear()

    def ask(self, ring: RingId, command: Command) -> Reply:
        """Send a command and wait for its end."""
        tag = self.send(ring, command)
        reply = Reply()
        end = self.harness.cycle + PATIENCE
        while not reply.ended:
            assert self.harness.cycle < end, f"{command}: no end"
            self.harness.run(STEP)
            for cycle, item in self.heard(ring.port):
                assert (item.ring, item.tag) == (ring, tag)
                (reply.answers if isinstance(item, Answer) else reply.beats).append(item)
                reply.cycles.append(cycle)
        return reply

    def store(self, key: int, data: bytes) -> Handle:
        """Open a session, and store a block in it."""
        session = self.session()
        granted = self.ask(RING, c.Alloc(0, key, len(data), session))
        handle = granted.answers[0].handle
        assert granted.answers[0].status is Status.GRANTED and handle is not None
        assert self.ask(RING, c.Write(handle, 0, data)).status is Status.OK
        assert self.ask(RING, c.Seal(handle, len(data), google_crc32c.value(data))).status is Status.OK
        assert self.ask(RING, c.CloseSession(session)).status is Status.OK
        return handle

    def session(self) -> SessionId:
        opened = self.ask(RING, c.OpenSession()).answers[0]
        assert opened.status is Status.OK and opened.slot is not None
        return SessionId(*opened.slot)


def records(text: bytes, size: int) -> Iterator[tuple[int, int]]:
    """The cycle and the payload of each record."""
    for at in range(0, len(text), STAMP_BYTES + size):
        cycle, payload = text[at : at + STAMP_BYTES], text[at + STAMP_BYTES : at + STAMP_BYTES + size]
        yield int.from_bytes(cycle, "little"), int.from_bytes(payload, "little")


def block(length: int) -> bytes:
    """Bytes of a block, no two segments alike."""
    return bytes((i * 7 + (i >> 8) * 13) & 0xFF for i in range(length))


def test_registers() -> None:
    harness = Harness(TINY)
    for register in REGISTERS.values():
        if register.constant:
            assert harness.read_register(register.offset) == (register.reset(TINY), OKAY), register.name
    scratch = REGISTERS["SCRATCH"].offset
    assert harness.write_register(scratch, 0x11223344) == OKAY
    assert harness.write_register(scratch, 0xAABBCCDD, strobe=0b0101) == OKAY
    assert harness.read_register(scratch) == (0x11BB33DD, OKAY)
    assert harness.write_register(REGISTERS["ID"].offset, 0) == SLVERR
    assert harness.read_register(scratch + 2) == (0, SLVERR)
    assert harness.read_register(0xFFC) == (0, SLVERR)
    assert harness.write_register(REGISTERS["INTERRUPT_STATUS"].offset, 1 << 20) == SLVERR
    assert not [r.name for r in REGISTERS.values() for f in r.fields if f.kind is Kind.CONSTANT and f.writable]


def test_an_interrupt() -> None:
    harness = Harness(TINY)
    ready = REGISTERS["INTERRUPT_STATUS"].field("ready").mask
    assert not harness.irq
    assert harness.write_register(REGISTERS["INTERRUPT_ENABLE"].offset, ready) == OKAY
    harness.run(1000)
    assert harness.irq
    assert harness.write_register(REGISTERS["INTERRUPT_STATUS"].offset, ready) == OKAY
    harness.run(5)
    assert not harness.irq


def test_an_unbound_ring_is_answered() -> None:
    software = Software(Harness(TINY))
    assert software.ask(RING, c.Lookup(0, [7])).status is Status.UNAVAILABLE
    software.begin(bind=False)
    assert software.ask(RING, c.Lookup(0, [7])).status is Status.MISS


@pytest.mark.parametrize(("memory", "links"), [QUICK, LATE], ids=["quick", "late"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_story(memory: Memory, links: Links, seed: int) -> None:
    """Blocks of every shape go in, are found, come out byte for byte, and are gone."""
    harness = Harness(TINY, seed=seed, memory=memory, links=links)
    software = Software(harness)
    software.begin()
    lengths = [1, SEGMENT - 1, 3 * SEGMENT + BEAT + 1, 4096]
    handles = {}
    for key, length in enumerate(lengths):
        handles[key] = software.store(key, block(length))
    found = software.ask(OTHER, c.Lookup(0, [0, 1, 2, 99], LookupMode.BITMAP))
    assert [answer.status for answer in found.answers] == [Status.HIT] * 3 + [Status.MISS]
    assert [answer.handle for answer in found.answers[:3]] == [handles[key] for key in range(3)]
    for key, length in enumerate(lengths):
        data = block(length)
        count = TINY.segments(length)
        read = software.ask(OTHER, c.Read(handles[key], 0, count))
        assert (read.status, read.data) == (Status.OK, data)
        trailers = [beat for beat in read.beats if beat.last]
        assert [beat.segment for beat in trailers] == list(range(count))
        assert all(beat.ok for beat in trailers)
        parts = [data[i : i + SEGMENT] for i in range(0, length, SEGMENT)]
        assert [beat.crc for beat in trailers] == [google_crc32c.value(part) for part in parts]
        for segment, part in enumerate(parts):
            channel, address = Striping(TINY).locate(handles[key].frame, segment)
            assert harness.memory_bytes(channel, address, len(part)) == part
        assert software.ask(RING, c.Drop(0, key)).status is Status.OK
        assert software.ask(RING, c.Lookup(0, [key])).answers[0].status is Status.MISS
    assert harness.pending(0) == harness.pending(1) == 0
    statistics = harness.statistics()
    beats = sum(map(TINY.flits, lengths))
    assert sum(channel.write_beats for channel in statistics) == beats
    assert sum(channel.read_beats for channel in statistics) == beats
    assert sum(channel.read_bursts for channel in statistics) == sum(map(TINY.segments, lengths))
    for channel in statistics:
        assert 1 <= channel.most_writes <= memory.outstanding
        assert channel.write_busy >= channel.write_beats and channel.read_busy >= channel.read_beats


def test_the_log_tells_what_was_done() -> None:
    harness = Harness(TINY)
    software = Software(harness)
    software.begin()
    harness.log_willing = 0.3
    before = harness.cycle
    harness.log()
    handle = software.store(5, block(SEGMENT))
    codec = Codec(describe(log_layout()))
    entries = [(cycle, codec.unpack(word)) for cycle, word in records(harness.log(), harness.log_bytes)]
    kinds = [Operation(entry["kind"]) for _, entry in entries]
    wanted = [Operation[name] for name in ("OPEN_SESSION", "ALLOC", "WRITE", "SEAL", "CLOSE_SESSION")]
    assert [kind for kind in kinds if kind in wanted] == wanted
    assert kinds.index(Operation.WRITE) < kinds.index(Operation.LANDED) < kinds.index(Operation.SEALED)
    assert next(entry for _, entry in entries if entry["kind"] == Operation.ALLOC.value)["frame"] == handle.frame
    cycles = [cycle for cycle, _ in entries]
    assert before <= cycles[0] and cycles == sorted(cycles) and cycles[-1] < harness.cycle
    assert harness.log() == b""


def test_a_flipped_bit_is_found() -> None:
    harness = Harness(TINY)
    software = Software(harness)
    software.begin()
    handle = software.store(3, block(2 * SEGMENT + 5))
    channel, _ = Striping(TINY).locate(handle.frame, 2)
    first, _ = Striping(TINY).locate(handle.frame, 0)
    if first == channel:  # the first read of the channel is the one that is spoilt
        software.ask(RING, c.Read(handle, 0, 2))
        harness.received(0)
    harness.spoil(channel, 1)
    read = software.ask(RING, c.Read(handle, 2, 1))
    assert read.status is Status.POISON and read.data != block(2 * SEGMENT + 5)[2 * SEGMENT :]
    assert [beat.ok for beat in read.beats if beat.last] == [False]
    assert harness.injected() == (0, 0, 1)
    assert software.ask(RING, c.Lookup(0, [3])).answers[0].status is Status.MISS
    harness.run(10_000)
    assert harness.injected() == (0, 0, 1)


def test_a_read_that_fails_is_poison() -> None:
    harness = Harness(TINY)
    software = Software(harness)
    software.begin()
    handle = software.store(3, block(SEGMENT))
    harness.fail_reads(Striping(TINY).locate(handle.frame, 0)[0], 1)
    assert software.ask(RING, c.Read(handle, 0, 1)).status is Status.POISON
    assert harness.injected() == (0, 1, 0)


def test_a_write_that_fails_is_told() -> None:
    harness = Harness(TINY)
    software = Software(harness)
    software.begin()
    session = software.session()
    handle = software.ask(RING, c.Alloc(0, 1, SEGMENT, session)).answers[0].handle
    assert handle is not None
    harness.fail_writes(Striping(TINY).locate(handle.frame, 0)[0], 1)
    software.ask(RING, c.Write(handle, 0, block(SEGMENT)))
    sealed = software.ask(RING, c.Seal(handle, SEGMENT, google_crc32c.value(block(SEGMENT))))
    assert sealed.status is Status.MEM_ERROR
    assert harness.injected() == (1, 0, 0)


def test_a_restart_restores_credits_and_keeps_memory() -> None:
    harness = Harness(TINY, memory=Memory(latency=200))
    software = Software(harness)
    software.begin()
    handle = software.store(3, block(SEGMENT))
    channel, address = Striping(TINY).locate(handle.frame, 0)
    software.send(RING, c.Read(handle, 0, 1))
    harness.run(40)
    control = REGISTERS["CONTROL"]
    harness.write_register(control.offset, control.field("restart").mask)
    harness.run(2)
    assert harness.restarting
    software.send(RING, c.Lookup(0, [3]))
    harness.run(5)
    assert harness.restarting and harness.pending(0) == 0
    harness.run(1000)
    assert not harness.restarting and not software.status("started")
    harness.received(0)
    software.begin()
    assert software.ask(RING, c.Lookup(0, [3])).answers[0].status is Status.MISS
    assert harness.memory_bytes(channel, address, SEGMENT) == block(SEGMENT)
    again = software.store(4, block(3 * SEGMENT))
    assert software.ask(RING, c.Read(again, 0, 3)).data == block(3 * SEGMENT)


def story(seed: int) -> tuple[list[int], bytes]:
    """The cycles of answers, and the log, of a story with everything random."""
    harness = Harness(TINY, seed=seed, memory=LATE[0], links=LATE[1])
    software = Software(harness)
    software.begin()
    handle = software.store(0, block(4096))
    return software.ask(OTHER, c.Read(handle, 0, 8)).cycles, harness.log()


def test_a_seed_decides_every_cycle() -> None:
    assert story(5) == story(5)
    assert story(5) != story(6)


def test_latency_and_bandwidth_are_as_asked() -> None:
    """A READ's first beat is later by what memory and link are later; half the bandwidth takes twice as long."""
    harness = Harness(TINY)
    software = Software(harness)
    software.begin()
    handle = software.store(0, block(4096))
    first, last = {}, {}
    harness.memory = memory = Memory(latency=10)
    for name, change in {"base": {}, "late": {"latency": 110}, "half": {"answer_willing": 0.25}}.items():
        harness.memory = replace(memory, **change)
        begin = harness.cycle
        cycles = software.ask(RING, c.Read(handle, 0, 8)).cycles
        first[name], last[name] = cycles[0] - begin, cycles[-1] - cycles[0]
    harness.memory, harness.links = memory, Links(latency=30)
    begin = harness.cycle
    assert software.ask(RING, c.Read(handle, 0, 8)).cycles[0] - begin == first["base"] + 60
    assert first["late"] == first["base"] + 100
    assert last["half"] > 1.5 * last["base"]


def test_an_end_that_takes_nothing_gives_no_credit_and_loses_nothing() -> None:
    """Answers wait in the slice, which asks no more of its core than it has room for: with and without keys."""
    harness = Harness(TINY, links=Links(backpressure=1.0))
    software = Software(harness)
    sent = [software.send(RING, c.Lookup(0, [1] * keys)) for keys in (1, 1, 1, 0, 1, 0, 0, 1, 4, 0, 1, 2, 0, 1)]
    harness.run(2000)
    assert harness.pending(0) and harness.received(0) == b""
    harness.links = Links()
    harness.run(2000)
    assert not harness.pending(0)
    answers = [answer for _, answer in software.heard(0) if isinstance(answer, Answer)]
    assert [answer.tag for answer in answers if answer.outcome is not None] == sent


def test_two_harnesses_do_not_disturb_each_other() -> None:
    one, two = Software(Harness(TINY, seed=1)), Software(Harness(TINY, seed=2))
    one.begin()
    two.begin()
    handles = one.store(1, block(700)), two.store(1, block(900))
    assert one.ask(RING, c.Read(handles[0], 0, 2)).data == block(700)
    assert two.ask(RING, c.Read(handles[1], 0, 2)).data == block(900)


def test_what_cannot_be_sent_is_refused() -> None:
    harness = Harness(TINY)
    with pytest.raises(InputError, match="port 2"):
        harness.send(2, Channel.REQUEST, b"")
    with pytest.raises(InputError, match="multiple"):
        harness.send(0, Channel.REQUEST, b"\0")
    with pytest.raises(InputError, match="RESPONSE"):
        harness.send(0, Channel.RESPONSE, b"")
    with pytest.raises(InputError, match="memory 2"):
        harness.spoil(2, 1)
    with pytest.raises(InputError, match="of a channel of"):
        harness.memory_bytes(0, 0, 1 << 40)
