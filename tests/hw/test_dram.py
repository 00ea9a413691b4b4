"""The memory channel of the compiled harness: rules of the device, what it gives, and that nothing starves."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hw.params import InputError, ParameterError
from hw.params.dram import DRAMS, HBM2, HBM3, MAPS, Controller, Dram, MemoryChannel, Place
from hw.tb.harness.build import HERE
from hw.tb.harness.dram import Kind, Request, Run, request
from hw.tb.harness.dram_rules import broken_rules, misplaced

SEGMENT = 4096
BANK_BY_BANK = replace(HBM3, refresh="bank")
PUBLIC = {"HBM3": 0.913, "HBM2": 0.944, "DDR5-4800": 0.917}
"""Streaming reads with refresh over all banks, of a public simulator, as a fraction of peak."""

RAMULATOR = {
    ("stream", "stream"): (0.923, 0.951, 0.917),
    ("stream", "column"): (0.923, 0.950, 0.917),
    ("stream", "row"): (0.026, 0.040, 0.068),
    ("random", "stream"): (0.873, 0.927, 0.907),
    ("random", "column"): (0.923, 0.950, 0.875),
    ("short", "stream"): (0.799, 0.935, 0.612),
    ("4th", "stream"): (0.748, 0.861, 0.917),
    ("16th", "column"): (0.923, 0.950, 0.611),
    ("writes", "stream"): (0.920, 0.947, 0.905),
    ("mixed", "stream"): (0.874, 0.920, 0.898),
    ("mixed", "column"): (0.885, 0.926, 0.497),
    ("mixed at random", "stream"): (0.816, 0.891, 0.858),
}
"""What Ramulator 2.1 (c5b1c3a) gave for the same accesses, on each of DRAMS; docs/memory-models.md says how."""


def listed(
    count: int, *, stride: int = 1, at_random: bool = False, length: int = SEGMENT, writes: float = 0.0
) -> list[Request]:
    """The lists of accesses that RAMULATOR is about."""
    generator = random.Random(0)
    places = (generator.randrange(1 << 15) if at_random else stride * i % (1 << 15) for i in range(count))
    return [Request(SEGMENT * place, length, generator.random() < writes) for place in places]


def segments(numbers: Sequence[int], write: bool = False) -> list[Request]:
    return [Request(SEGMENT * number, SEGMENT, write) for number in numbers]


def traffic(dram: Dram, seed: int, count: int = 60, writes: float = 0.3) -> list[Request]:
    """Bursts of any length, here and there, near to each other or far; reads and writes in halves of the addresses."""
    generator = random.Random(seed)
    print(f"seed {seed}")
    half, requests = dram.channel_bytes // 2, []
    places = [generator.randrange(half // SEGMENT) for _ in range(6)]
    for _ in range(count):
        base = SEGMENT * (generator.choice(places) + generator.choice([0, 0, 1, 64, 4096])) % half
        length = generator.choice([16, 512, 1024, SEGMENT])
        write = generator.random() < writes
        requests.append(Request(base + half * write + generator.choice([0, 512, 2048]), length, write))
    return requests


def faults(channel: MemoryChannel, requests: Sequence[Request], run: Run) -> list[str]:
    return [*broken_rules(run.commands, channel.dram), *misplaced(run.commands, requests, channel)]


@pytest.mark.parametrize("dram", [*DRAMS.values(), BANK_BY_BANK], ids=[*DRAMS, "bank-by-bank"])
@pytest.mark.parametrize("order", MAPS)
def test_commands_keep_the_rules(dram: Dram, order: str, seed: int) -> None:
    """With refreshes as often as a few bursts."""
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_dram.py", flush=True)
    channel = MemoryChannel(dram=replace(dram, refi=dram.refi // 4), map=MAPS[order])
    for requests in (traffic(dram, seed), traffic(dram, seed + 1, writes=0.0)):
        run = request(channel, requests, record=True)
        assert faults(channel, requests, run) == []
        assert run.statistics.refreshes == (run.commands["kind"] >= Kind.REFRESH_ALL).sum() > 0
        assert len(run.commands) < 100_000


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("bl", "tWTR_S"), ("cl", "the data bus"), ("cwl", "tWR"), ("gap", "read to write"), ("rp", "tRP"),
        ("rcd_read", "tRCD of reads"), ("rcd_write", "tRCD of writes"), ("ras", "tRAS"), ("rc", "tRC"),
        ("ccd_s", "tCCD_S"), ("ccd_l", "tCCD_L"), ("ccd_l_write", "tCCD_L of writes"), ("rrd_s", "tRRD_S"),
        ("rrd_l", "tRRD_L"), ("faw", "tFAW"), ("wtr_s", "tWTR_S"), ("wtr_l", "tWTR_L"), ("wr", "tWR"), ("rtp", "tRTP"),
        ("rrefd", "tRREFD"), ("rfc_bank", "tRFC of a bank"), ("rfc", "tRFC"),
    ],
)  # fmt: skip
def test_a_rule_that_is_not_kept_is_found(name: str, broken: str) -> None:
    """A channel that takes a time of its device for half as long."""
    dram = replace(HBM3, ccd_s=3, ccd_l=5, refi=2000, refresh="all" if name == "rfc" else "bank")
    hasty = replace(dram, **{name: getattr(dram, name) // 2})
    run = request(MemoryChannel(dram=hasty), traffic(dram, 0, count=200), record=True)
    assert any(f" breaks {broken}" in line for line in broken_rules(run.commands, dram))


@pytest.mark.parametrize("dram", [HBM3, BANK_BY_BANK], ids=["all", "bank"])
def test_a_refresh_that_is_not_given_is_found(dram: Dram) -> None:
    requests = segments(range(200))
    run = request(MemoryChannel(dram=replace(dram, refi=dram.refi + 10)), requests, record=True)
    assert any("breaks tREFI" in line for line in broken_rules(run.commands, dram))
    run = request(MemoryChannel(dram=dram), requests, record=True)
    refreshed = [kind in (Kind.REFRESH_ALL, Kind.REFRESH_BANK) for kind in run.commands["kind"].tolist()]
    assert run.statistics.refreshes == sum(refreshed)
    assert list(broken_rules(run.commands[[not each for each in refreshed]], dram))


def test_an_access_that_is_not_made_or_elsewhere_is_found() -> None:
    requests = traffic(HBM2, 2)
    run = request(MemoryChannel(dram=HBM2), requests, record=True)
    assert list(misplaced(run.commands[:-1], requests, MemoryChannel(dram=HBM2)))
    assert list(misplaced(run.commands, requests[1:], MemoryChannel(dram=HBM2)))
    assert list(misplaced(run.commands, requests, MemoryChannel(dram=HBM2, map=MAPS["column"])))


@pytest.mark.parametrize("name", DRAMS)
def test_a_stream_is_as_fast_as_refresh_lets_it_be(name: str) -> None:
    """A refresh costs tRTP, tRP, tRFC and tRCD, and what of the data comes behind its commands."""
    dram = DRAMS[name]
    run = request(MemoryChannel(dram=dram), segments(range(4000)))
    lost = (dram.rtp + dram.rp + dram.rfc + dram.rcd_read) / dram.refi
    assert run.fraction == pytest.approx(1 - lost, rel=0.002)
    assert run.fraction == pytest.approx(PUBLIC[name], rel=0.012)
    assert run.statistics.hits / run.statistics.reads > 0.96
    assert run.statistics.turnarounds == 0
    assert run.statistics.refresh_clocks / run.statistics.clocks == pytest.approx(1 - run.fraction, rel=0.1)


@pytest.mark.parametrize("name", DRAMS)
def test_a_public_simulator_gives_as_much(name: str) -> None:
    traffics = {
        "stream": listed(1000),
        "random": listed(1000, at_random=True),
        "short": listed(6000, at_random=True, length=512),
        "4th": listed(1000, stride=4),
        "16th": listed(1000, stride=16),
        "writes": listed(1000, writes=1.0),
        "mixed": listed(1000, writes=0.3),
        "mixed at random": listed(1000, at_random=True, writes=0.3),
    }
    for (traffic_, order), fractions in RAMULATOR.items():
        requests = traffics[traffic_][: 60 if order == "row" else None]
        run = request(MemoryChannel(dram=DRAMS[name], map=MAPS[order]), requests)
        assert run.fraction == pytest.approx(fractions[list(DRAMS).index(name)], rel=0.03), (traffic_, order)


@pytest.mark.parametrize(("name", "factor"), [("HBM3", 35.8), ("HBM2", 23.9), ("DDR5-4800", 13.8)])
def test_a_bad_map_costs_a_factor(name: str, factor: float) -> None:
    """Row low: each access opens its row, in one bank: a tRC for each."""
    dram = DRAMS[name]
    good, bad = (
        request(MemoryChannel(dram=dram, map=MAPS[order]), segments(range(500))) for order in ("stream", "row")
    )
    assert good.fraction / bad.fraction == pytest.approx(factor, rel=0.02)
    assert factor == pytest.approx(dram.rc / dram.bl, rel=0.02)
    assert bad.statistics.hits == 0


def test_banks_refreshed_in_turn_do_not_stop_a_stream() -> None:
    assert request(MemoryChannel(dram=BANK_BY_BANK), segments(range(1000))).fraction > 0.99


def test_turnarounds_cost_what_the_bus_is_idle_for() -> None:
    """Batches of writes: the bus rests for `gap` before one, and for tWTR and tCL after it."""
    generator = random.Random(0)
    requests = [Request(SEGMENT * n, SEGMENT, generator.random() < 0.3) for n in range(2000)]
    run = request(MemoryChannel(dram=HBM2), requests)
    counts = run.statistics
    idle = counts.turnarounds / 2 * (HBM2.gap + HBM2.wtr_s + HBM2.cl)
    assert counts.clocks > (counts.reads + counts.writes) * HBM2.bl + idle
    assert (counts.reads + counts.writes) / counts.turnarounds > 40
    assert 0.85 < run.fraction < 0.93


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_nothing_starves(write: bool) -> None:
    """One access to a row beside a stream of others of its bank, which would keep it closed for ever; or one write."""
    stream = [Request(0, SEGMENT)] * 1500
    alone = [Request(HBM2.channel_bytes // 2, 32, write)]
    patience = 1000
    waits = {}
    for controller in (Controller(patience=patience), Controller(patience=1 << 20)):
        channel = MemoryChannel(dram=replace(HBM2, refi=100_000), controller=controller)
        waits[controller.patience] = request(channel, stream[:100] + alone + stream).statistics.longest_wait
    assert waits[patience] < patience + 200
    assert waits[1 << 20] > 50_000


def test_what_waits_to_be_written_is_read_at_once() -> None:
    run = request(
        MemoryChannel(dram=HBM2), [*segments(range(8), True), *segments(range(8))], outstanding=2, record=True
    )
    assert run.statistics.forwarded and run.statistics.forwarded + run.statistics.reads == 8 * SEGMENT // 32
    assert (run.ends[8:] > 0).all()


def test_equal_requests_give_equal_commands() -> None:
    one, other = (request(MemoryChannel(dram=HBM3), traffic(HBM3, 3), record=True) for _ in range(2))
    assert (one.commands == other.commands).all() and (one.ends == other.ends).all()


def remembered(dram: Dram, seed: int, sources: Path = HERE) -> int:
    """How often a channel that has come to rest does not do the same, in the same clocks, as one that was not used."""
    channel = MemoryChannel(dram=dram, controller=Controller(close=40, batch=64, patience=20))
    begin = 4 * replace(channel, dram=replace(dram, refresh="all")).rest(16, SEGMENT, 128)
    later = [each._replace(at=begin) for each in traffic(dram, seed, count=30)]
    ends = []
    for count in (0, 1, 3, 16):
        requests = [*traffic(dram, seed + count, count=count), *later]
        run = request(channel, requests, record=True, sources=sources)
        assert faults(channel, requests, run) == []
        ends.append(run.ends[count:].tolist())
    return sum(each != ends[0] for each in ends)


@pytest.mark.parametrize("dram", [*DRAMS.values(), BANK_BY_BANK], ids=[*DRAMS, "bank-by-bank"])
def test_a_channel_that_closes_rows_forgets(dram: Dram, seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_dram.py", flush=True)
    assert remembered(dram, seed) == 0


def test_what_is_no_channel_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"dram\.row_bytes = 64"):
        replace(HBM2, row_bytes=64, access_bytes=128)
    with pytest.raises(ParameterError, match=r"rfc_bank above 0"):
        replace(DRAMS["DDR5-4800"], refresh="bank")
    with pytest.raises(ParameterError, match=r"dram\.refi = 800: expected twice dram\.rfc or more, 832"):
        replace(HBM3, refi=800)
    with pytest.raises(ParameterError, match=r"dram\.refi = 600: expected twice dram\.rfc_bank or more, 640"):
        replace(BANK_BY_BANK, refi=600)
    with pytest.raises(
        ParameterError, match=r"dram\.cwl = 22: expected dram\.cl \+ dram\.bl \+ dram\.gap \(18\) or less"
    ):
        replace(HBM2, cwl=22)
    with pytest.raises(ParameterError, match=r"controller\.close = 0"):
        MemoryChannel(dram=HBM2).rest(1, SEGMENT, 128)
    with pytest.raises(ParameterError, match=r"dram\.refresh = 'bank': expected 'all'"):
        MemoryChannel(dram=BANK_BY_BANK, controller=Controller(close=40)).rest(1, SEGMENT, 128)
    with pytest.raises(ParameterError, match=r"controller\.high = 8"):
        Controller(low=8, high=8)
    with pytest.raises(ParameterError, match=r"each of group, bank, row, column once"):
        MemoryChannel(dram=HBM2, map=("row", "column", "bank"))
    with pytest.raises(ParameterError, match=r"memory\.beat_bytes = 16: expected a multiple of 64"):
        replace(HBM2, access_bytes=64, bl=1).clocks_per_cycle(16)


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([], "no requests, expected one at least"),
        ([Request(0, 64), Request(64, 0)], r"request 1: .*bytes=0.*expected 1 byte or more"),
        ([Request(-64, 64)], r"request 0: .*address=-64"),
        ([Request(0, 64, at=-1)], r"request 0: .*at=-1"),
    ],
)
def test_requests_for_nothing_are_refused(requests: list[Request], said: str) -> None:
    with pytest.raises(InputError, match=said):
        request(MemoryChannel(dram=HBM2), requests)
    with pytest.raises(InputError, match="outstanding = 0, expected 1 or more"):
        request(MemoryChannel(dram=HBM2), [Request(0, 64)], outstanding=0)


def test_all_commands_are_recorded_however_many_there_are() -> None:
    """Refreshes of a channel that nobody asks for anything are most of them."""
    requests = [Request(0, 64), Request(0, 64, at=3000 * HBM2.refi)]
    run = request(MemoryChannel(dram=HBM2), requests, record=True)
    refreshed = int((run.commands["kind"] == Kind.REFRESH_ALL).sum())
    assert refreshed == run.statistics.refreshes > 2_900
    assert faults(MemoryChannel(dram=HBM2), requests, run) == []


def test_an_address_has_one_place_and_a_cycle_its_clocks() -> None:
    channel = MemoryChannel(dram=HBM2)
    assert channel.place(0x20) == Place(1, 0, 0, 0)
    assert channel.place(0x80) == Place(0, 0, 0, 1)
    assert channel.place(SEGMENT) == Place(0, 1, 0, 0)
    assert channel.place(4 * SEGMENT) == Place(0, 0, 1, 0) == channel.place(4 * SEGMENT + HBM2.channel_bytes)
    for order in MAPS:
        places = {MemoryChannel(dram=HBM2, map=MAPS[order]).place(32 * i) for i in range(4096)}
        assert len(places) == 4096
    assert [dram.clocks_per_cycle(64) for dram in DRAMS.values()] == [4, 4, 8]
    assert HBM2.cycles(100, 64) == pytest.approx(100 / 4)


MUTANTS = {
    "row": ("dram.h", "timing_.open(access.bank, access.row) &&", "timing_.open(access.bank) &&"),
    "group": ("dram.h", "<< s_.bank_bits | field(s_.bank_shift", "| field(s_.bank_shift"),
    "refresh": ("dram.h", "due_ = interval(++refreshes_);", "due_ = interval(refreshes_ += 2);"),
    "window": ("dram_timing.h", "all_.activate, window_[oldest_]}", "all_.activate}"),
    "bus": ("dram.h", "if (timing_.bus(writing_) > now_) return wake(timing_.bus(writing_));", ""),
    "closed": ("dram.h", "const bool closed = timing_.all_closed();", "const bool closed = true;"),
    "commands": ("dram.h", "            row_commands_ = now_ + 1;\n            wake", "            wake"),
}  # fmt: skip


def mutant(name: str, mutants: dict[str, tuple[str, str, str]], directory: Path) -> Path:
    """A directory with models of which one has a bug."""
    file, good, bad = mutants[name]
    for source in [*HERE.glob("*.h"), HERE / "requester.cpp"]:
        shutil.copy(source, directory)
    text = (HERE / file).read_text()
    assert text.count(good) == 1
    (directory / file).write_text(text.replace(good, bad))
    return directory


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str, tmp_path: Path) -> None:
    channel = MemoryChannel(dram=replace(HBM3, refi=HBM3.refi // 4))
    requests = traffic(HBM3, 0)
    run = request(channel, requests, record=True, sources=mutant(name, MUTANTS, tmp_path))
    assert faults(channel, requests, run)


REMEMBERING = {
    "rows stay open": ("dram.h", "if (s_.close) close(refreshed);", ""),
    "batches go on": ("dram.h", "moved_ = 0;\n        }\n        bursts_", "}\n        bursts_"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", REMEMBERING)
def test_a_channel_that_remembers_is_found(name: str, tmp_path: Path) -> None:
    sources = mutant(name, REMEMBERING, tmp_path)
    assert any(remembered(HBM3, seed, sources) for seed in range(20))
