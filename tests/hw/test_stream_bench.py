"""`kvnode bench stream`: it counts what moves, compares every byte, and asks another requester for the same bursts."""

from collections import Counter
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree

import google_crc32c
import pytest

from hw.params import InputError, KvnodeError, load_params
from hw.params import commands as c
from hw.params.dram import DRAMS, HBM3, MemoryChannel
from hw.params.protocol import Handle, RingId
from hw.params.striping import Striping
from hw.rtl.fabric import Channel
from hw.tb.harness import Memory
from hw.tb.harness.dram import Request, request
from hw.tb.slice.software import Reply, Software
from scripts.benches import Result
from scripts.benches.stream import GEOMETRIES, alone, covered, dram, ideal, mixed, rates, readers, run
from scripts.benches.stream.rates import Counts, Measured, measure
from scripts.benches.stream.readers import Part, Readers, segments_at_random
from scripts.benches.stream.slices import Block, Geometry, Slice
from scripts.report import draw
from tests.hw.corebench import small

PARAMS = small()
DEPTH = 2
"""READs under way where there are writes: so few frames are free again soon."""

LENGTH, CYCLES, TURNAROUND = 4096, 2_000, 8
SHARED = Memory(shared=True, turnaround=TURNAROUND)


@pytest.fixture
def few(seed: int, monkeypatch: pytest.MonkeyPatch) -> Slice:
    """A small slice with two blocks, and some frames for others; requesters ask for little at a time."""
    monkeypatch.setattr(rates, "WARMING", 500)
    monkeypatch.setattr(readers, "BEATS", 800)
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_stream_bench.py", flush=True)
    return Slice(PARAMS, name="small", length=LENGTH, blocks=2, seed=seed)


def test_reads_are_counted(few: Slice) -> None:
    """All ports get more than one, and no more than the links carry; what comes is what memory has given."""
    rows = [measure(few, Memory(), CYCLES, ports=ports).counts for ports in (range(1), range(2))]
    for ports, counts in enumerate(rows, start=1):
        assert 0.5 * ports * CYCLES < counts.came <= ports * CYCLES
        assert counts.cycles == CYCLES and abs(counts.came - counts.read) < 200
        assert counts.written == counts.turns == 0


def test_reads_and_writes_go_on_for_long(few: Slice) -> None:
    """Data and turns fill no more cycles than there are; all frames come back, and blocks that are read stay."""
    blocks = list(few.blocks)
    for _ in range(2):
        counts = measure(few, SHARED, CYCLES, depth=DEPTH, writes=0.3).counts
        used = counts.read + counts.written + TURNAROUND * counts.turns
        assert counts.turns > 10 and counts.written > 3 * PARAMS.flits(LENGTH)
        assert used <= PARAMS.memory.channels * (CYCLES + TURNAROUND)
        assert few.blocks == blocks and not any(block.reads for block in blocks)


def test_other_bytes_are_found(few: Slice) -> None:
    block = few.blocks[1]
    block.data = block.data[:700] + bytes([block.data[700] ^ 1]) + block.data[701:]
    with pytest.raises(KvnodeError, match="or with other bytes"):
        measure(few, Memory(), CYCLES)


def test_what_was_written_is_compared_too(few: Slice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that are new do not hold what their writer believes."""
    send = Software.send

    def other(software: Software, ring: RingId, command: c.Command) -> Reply:
        if isinstance(command, c.Write):
            command = replace(command, data=bytes(LENGTH))
        elif isinstance(command, c.Seal):
            command = replace(command, crc=google_crc32c.value(bytes(LENGTH)))
        return send(software, ring, command)

    monkeypatch.setattr(Software, "send", other)
    with pytest.raises(KvnodeError, match="or with other bytes"):
        measure(few, SHARED, CYCLES, depth=DEPTH, writes=0.3)


@pytest.mark.parametrize("kind", ["data", "end"])
def test_a_beat_that_is_lost_is_found(few: Slice, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """One within a READ, and the last one of a READ."""
    hear, heard = Software._hear, Counter[Channel]()

    def deaf(software: Software, port: int, cycle: int, flit: int) -> None:
        channel = software._packets.channel(flit)
        last = channel is Channel.DATA and software._packets.beat(port, flit).end and software._packets.ends(flit)
        heard[channel] += last == (kind == "end")
        if channel is not Channel.DATA or heard[channel] != 5 or last != (kind == "end"):
            hear(software, port, cycle, flit)

    monkeypatch.setattr(Software, "_hear", deaf)
    monkeypatch.setattr(rates, "PATIENCE", 2_000)
    with pytest.raises(KvnodeError, match="or with other bytes" if kind == "data" else "has not ended in"):
        measure(few, Memory(), CYCLES)


@pytest.mark.parametrize("writes", [0.0, 0.3])
def test_a_requester_alone_asks_for_the_same_bursts(few: Slice, monkeypatch: pytest.MonkeyPatch, writes: float) -> None:
    """Each segment that was asked for, once, on its channel and at its address, in both orders."""
    measured = measure(few, SHARED, 500, choose=segments_at_random, depth=DEPTH, writes=writes)
    wanted = Counter((part.block.handle.frame, part.first, False) for part in measured.readers.sent)
    if measured.writers:
        wanted += Counter((*place, True) for place in measured.writers.sent)
    asked: list[list[Request]] = []

    def ask(channel: MemoryChannel, bursts: list[Request], *, outstanding: int) -> SimpleNamespace:
        asked.append(bursts)
        return SimpleNamespace(fraction=len(asked))

    monkeypatch.setattr(alone, "request", ask)
    found = alone.alone(PARAMS, MemoryChannel(dram=HBM3), measured, 0)
    channels, stripes = PARAMS.memory.channels, Striping(PARAMS)
    assert found == pytest.approx(((channels + 1) / 2, channels + (channels + 1) / 2))
    for order in asked[:channels], asked[channels:]:
        bursts_found = Counter(
            (*stripes.segment_at(channel, burst.address), burst.write)
            for channel, bursts in enumerate(order)
            for burst in bursts
        )
        assert len(order) == channels and bursts_found == wanted


def test_a_stream_alone_gets_what_a_stream_gets() -> None:
    """Blocks that lie behind each other, on one channel."""
    params = Geometry(1, 1).params()
    blocks = [Block(key, Handle(0, 0, key, 0, 0), b"") for key in range(params.frames)]
    parts = [Part(block, 0, 8) for _ in range(4) for block in blocks]
    measured = Measured(Counts(0, 0, 0, 0, 0), cast(Readers, SimpleNamespace(sent=parts)), None)
    channel, whole = MemoryChannel(dram=HBM3), params.memory.segment_bytes
    stream = [Request(whole * (number % (8 * params.frames)), whole) for number in range(8 * len(parts))]
    wanted = request(channel, stream[: alone.BURSTS], outstanding=params.read_segments).fraction
    assert alone.alone(params, channel, measured, 0) == (wanted, wanted)
    assert wanted == pytest.approx(0.92, abs=0.01)


def test_a_result_has_the_hash_of_what_was_measured() -> None:
    one, other = (geometry.params() for geometry in GEOMETRIES[:2])
    none, single, both, swapped = (
        Result(figures=[], input="", seed=0, params=params).params_hash
        for params in ([], [one], [one, other], [other, one])
    )
    assert (none, single) == (load_params().hash, one.hash)
    assert len({none, single, both, swapped}) == 4 and len(both) == len(single)


def test_figures_miss_their_targets() -> None:
    """By the worst of what was measured."""
    name = Geometry(4, 4, frames=(40 << 20,)).name(0)
    assert name == "4 x 4, frames of 40,960 KiB"
    good = ideal.Reads(name, 1.0, [1.0, 0.99, 1.0], [0.97, 1.0, 1.0])
    bad = ideal.Reads(name, 1.0, [1.0, 1.0, 0.98], [0.96, 1.0, 1.0])
    assert [figure.ok for figure in ideal.figures([good, bad])] == [True, True, False, False]
    narrow = ideal.Reads(name, 64 / 65, [0.9, 0.9, 0.9], [0.98, 0.98, 0.98])
    assert [(figure.ok, figure.limit) for figure in ideal.figures([narrow])] == [(False, 64 / 65), (True, 1.0)]
    rows = [mixed.Mixed(name, 100, 0.96, 0.9, 0.3, 250), mixed.Mixed("other", 100, 0.94, 0.9, 0.2, 250)]
    assert [figure.ok for figure in mixed.figures(rows)] == [True, True, False, False]
    kinds = product(DRAMS, dram.TRAFFIC)
    beside = [
        dram.Beside(name, channels, *kind, 0.97, alone.Alone(1.0, 1.0), 0.3) for kind in kinds for channels in (1, 4)
    ]
    good_alone = [each._replace(ours=0.99) if each.channels == 1 else each for each in beside]
    uneven = [traffic == "segments at random" for _, traffic in product(DRAMS, dram.TRAFFIC)]
    assert [figure.ok for figure in dram.figures(beside)] == [False] * 12
    assert [figure.ok for figure in dram.figures(good_alone)] == uneven
    for sheet in ideal.sheet([good]), mixed.sheet(rows), dram.sheet(beside):
        assert {len(row) for row in sheet.rows} == {len(sheet.columns)}


def test_what_is_in_flight_decides(few: Slice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many READs bring twice as many beats, until the links are full."""
    monkeypatch.setattr(covered, "LATENCIES", (200,))
    monkeypatch.setattr(covered, "MOST", 0.5)
    found = covered.covered(few, 1_000)
    assert [each.in_flight for each in found[:2]] == [32 / 200, 64 / 200]
    assert 1.7 < found[1].rate / found[0].rate < 2.3
    drawing = draw(lambda axes: covered.plot(axes, found), label="in flight")
    assert ElementTree.fromstring(drawing).tag.endswith("svg")


def test_a_slice_is_measured_in_front_of_dram(few: Slice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dram, "REFRESHES", 1)
    monkeypatch.setattr(dram, "CYCLES", 1_000)
    monkeypatch.setattr(dram, "DRAMS", {"HBM2": DRAMS["HBM2"]})
    monkeypatch.setattr(dram, "TRAFFIC", {name: dram.TRAFFIC[name] for name in ("a stream", "70/30, blocks at random")})
    rows = dram.beside(few, 0)
    assert [each[2:4] for each in rows] == [(on, traffic) for traffic in dram.TRAFFIC for on in ("ideal", "HBM2")]
    for each in rows:
        assert 0.1 < each.ours <= 1 and 0.1 < each.alone.at_random <= 1
        assert (each.writes > 0) == each.traffic.startswith("70/30")


def test_a_trace_is_refused() -> None:
    with pytest.raises(InputError, match="benchmark stream takes no trace"):
        run("x.jsonl")
