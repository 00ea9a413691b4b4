"""The compiled harness: stories told to a slice through it, what it injects and records, and what it refuses."""

from dataclasses import replace

import google_crc32c
import pytest

from hw.params import InputError
from hw.params import commands as c
from hw.params.params import TINY
from hw.params.protocol import LookupMode, RingId, Status
from hw.params.striping import Striping
from hw.rdl import Kind, register_map
from hw.rtl.emit import describe
from hw.rtl.fabric import Channel
from hw.rtl.node.layouts import Kind as Operation
from hw.rtl.node.layouts import log_layout
from hw.tb.harness import Harness, Links, Memory
from hw.tb.harness.simulation import records
from hw.tb.payload import Codec
from hw.tb.slice.software import Software

RING, OTHER = RingId(0, 0), RingId(1, 1)
OKAY, SLVERR = 0, 2
SEGMENT, BEAT = TINY.memory.segment_bytes, TINY.memory.beat_bytes
REGISTERS = register_map()

QUICK = Memory(latency=1), Links()
LATE = (
    Memory(
        latency=60, jitter=50, reorder=True, interleave=True, outstanding=3,
        address_willing=0.4, data_willing=0.5, answer_willing=0.5,
    ),
    Links(idle=0.6, backpressure=0.7, latency=11),
)  # fmt: skip


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
    software = Software(Harness(TINY), TINY)
    assert software.ask(RING, c.Lookup(0, [7])).status is Status.UNAVAILABLE
    software.begin()
    assert software.ask(RING, c.Lookup(0, [7])).status is Status.MISS


@pytest.mark.parametrize(("memory", "links"), [QUICK, LATE], ids=["quick", "late"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_story(memory: Memory, links: Links, seed: int) -> None:
    """Blocks of every shape go in, are found, come out byte for byte, and are gone."""
    harness = Harness(TINY, seed=seed, memory=memory, links=links)
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    lengths = [1, SEGMENT - 1, 3 * SEGMENT + BEAT + 1, 4096]
    handles = {}
    for key, length in enumerate(lengths):
        handles[key] = software.store(RING, key, block(length))
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
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    harness.log_willing = 0.3
    before = harness.cycle
    harness.log()
    handle = software.store(RING, 5, block(SEGMENT))
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
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    handle = software.store(RING, 3, block(2 * SEGMENT + 5))
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
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    handle = software.store(RING, 3, block(SEGMENT))
    harness.fail_reads(Striping(TINY).locate(handle.frame, 0)[0], 1)
    assert software.ask(RING, c.Read(handle, 0, 1)).status is Status.POISON
    assert harness.injected() == (0, 1, 0)


def test_a_write_that_fails_is_told() -> None:
    harness = Harness(TINY)
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    session = software.session(RING)
    handle = software.allocate(RING, 1, SEGMENT, session)
    harness.fail_writes(Striping(TINY).locate(handle.frame, 0)[0], 1)
    software.ask(RING, c.Write(handle, 0, block(SEGMENT)))
    sealed = software.ask(RING, c.Seal(handle, SEGMENT, google_crc32c.value(block(SEGMENT))))
    assert sealed.status is Status.MEM_ERROR
    assert harness.injected() == (1, 0, 0)


def test_a_restart_restores_credits_and_keeps_memory() -> None:
    harness = Harness(TINY, memory=Memory(latency=200))
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    handle = software.store(RING, 3, block(SEGMENT))
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
    software.begin(RING, OTHER)
    assert software.ask(RING, c.Lookup(0, [3])).answers[0].status is Status.MISS
    assert harness.memory_bytes(channel, address, SEGMENT) == block(SEGMENT)
    again = software.store(RING, 4, block(3 * SEGMENT))
    assert software.ask(RING, c.Read(again, 0, 3)).data == block(3 * SEGMENT)


def story(seed: int) -> tuple[list[int], bytes]:
    """The cycles of answers, and the log, of a story with everything random."""
    harness = Harness(TINY, seed=seed, memory=LATE[0], links=LATE[1])
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    handle = software.store(RING, 0, block(4096))
    return software.ask(OTHER, c.Read(handle, 0, 8)).cycles, harness.log()


def test_a_seed_decides_every_cycle() -> None:
    assert story(5) == story(5)
    assert story(5) != story(6)


def test_latency_and_bandwidth_are_as_asked() -> None:
    """A READ's first beat is later by what memory and link are later; half the bandwidth takes twice as long."""
    harness = Harness(TINY)
    software = Software(harness, TINY)
    software.begin(RING, OTHER)
    handle = software.store(RING, 0, block(4096))
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
    software = Software(harness, TINY)
    sent = [software.send(RING, c.Lookup(0, [1] * keys)) for keys in (1, 1, 1, 0, 1, 0, 0, 1, 4, 0, 1, 2, 0, 1)]
    harness.run(2000)
    assert harness.pending(0) and harness.received(0) == b""
    harness.links = Links()
    software.run(2000)
    assert not harness.pending(0) and all(reply.ended for reply in sent)
    ends = [reply.cycles[-1] for reply in sent]
    assert ends == sorted(ends)


def test_two_harnesses_do_not_disturb_each_other() -> None:
    one, two = Software(Harness(TINY, seed=1), TINY), Software(Harness(TINY, seed=2), TINY)
    one.begin(RING, OTHER)
    two.begin(RING, OTHER)
    handles = one.store(RING, 1, block(700)), two.store(RING, 1, block(900))
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
