"""Tables in SRAM: what they store, what they mend, and what they say is lost; in the Amaranth simulator."""

import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.rtl import secded, table
from hw.rtl.emit import emit
from hw.rtl.table import Table
from hw.tb.mutate import mutate
from tests.hw.flips import Content, open_tables
from tests.hw.simulate import Restart, simulate

DEPTH = 5
LOST = 0b1010

GEOMETRIES = {"one lane": (6, 1, None), "lanes": (12, 3, None), "bits": (4, 4, None), "lost row": (6, 1, LOST)}
"""Bits of a row, its lanes, and what a lost one reads as."""

Bench = Callable[[SimulatorContext, Table, Content], Any]


def run(monkeypatch: pytest.MonkeyPatch, geometry: str, bench: Bench, *, seed: int = 0) -> None:
    """Run a bench on a table that holds random rows."""
    width, lanes, lost = GEOMETRIES[geometry]
    tables = open_tables(monkeypatch)
    dut = table.Table(shape=width, depth=DEPTH, lanes=lanes, ecc=True, lost=lost)
    rng = random.Random(seed)

    async def fill(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.write, -1)
        for row in range(DEPTH):
            ctx.set(dut.write_address, row)
            ctx.set(dut.write_data, rng.getrandbits(width))
            await ctx.tick()
        ctx.set(dut.write, 0)
        await bench(ctx, dut, tables[-1])

    simulate(dut, fill)


async def read(ctx: SimulatorContext, dut: Table, row: int) -> tuple[int, bool]:
    """Return a row, and whether it is lost."""
    ctx.set(dut.read, 1)
    ctx.set(dut.read_address, row)
    await ctx.tick()
    ctx.set(dut.read, 0)
    return ctx.get(dut.read_data), bool(ctx.get(dut.uncorrectable))


async def every_flip(ctx: SimulatorContext, dut: Table, content: Content) -> None:
    """Every flip of one or two bits of every codeword."""
    bits = range(content.code.bits)
    for row in range(DEPTH):
        stored = await read(ctx, dut, row)
        assert not stored[1]
        for lane in range(content.lanes):
            for bit in bits:
                content.flip(ctx, row, bit, lane=lane)
                assert await read(ctx, dut, row) == stored
                content.flip(ctx, row, bit, lane=lane)
            for pair in combinations(bits, 2):
                content.flip(ctx, row, *pair, lane=lane)
                found, lost = await read(ctx, dut, row)
                assert lost
                assert dut._lost in (None, found)
                content.flip(ctx, row, *pair, lane=lane)
        assert await read(ctx, dut, row) == stored


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_one_flipped_bit_is_mended_and_two_are_found(monkeypatch: pytest.MonkeyPatch, geometry: str) -> None:
    run(monkeypatch, geometry, every_flip)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("seed", range(3))
def test_reads_and_writes_between_scrubbing(monkeypatch: pytest.MonkeyPatch, geometry: str, seed: int) -> None:
    """Every read gives what was written, whatever is flipped and mended meanwhile, and stands until idle."""
    rng = random.Random(seed)
    mended = 0

    async def bench(ctx: SimulatorContext, dut: Table, content: Content) -> None:
        nonlocal mended
        lane_bits = content.code.data_bits
        mask = (1 << lane_bits) - 1
        model = [(await read(ctx, dut, row))[0] for row in range(DEPTH)]
        standing = None
        for _ in range(2000):
            content.flip_one(ctx, rng)
            activity = rng.choice(["idle", "idle", "idle", "nothing", "both"])
            reads, writes = (activity == "both" and rng.random() < 0.6 for _ in range(2))
            target, source = rng.sample(range(DEPTH), 2)
            lanes = rng.getrandbits(content.lanes) if writes else 0
            new = rng.getrandbits(content.lanes * lane_bits)
            for signal, value in (
                (dut.idle, activity == "idle"),
                (dut.read, reads),
                (dut.read_address, source),
                (dut.write, lanes),
                (dut.write_address, target),
                (dut.write_data, new),
            ):
                ctx.set(signal, value)
            if reads:
                standing = model[source]
            elif activity == "idle":
                standing = None
            selected = sum(mask << lane * lane_bits for lane in range(content.lanes) if lanes >> lane & 1)
            model[target] = model[target] & ~selected | new & selected
            await ctx.tick()
            assert not ctx.get(dut.uncorrectable)
            assert standing is None or ctx.get(dut.read_data) == standing
            mended += ctx.get(dut.events.valid)

    run(monkeypatch, geometry, bench, seed=seed)
    assert mended > 50, "hardly anything was mended: the stimulus is too weak"


async def scrub(ctx: SimulatorContext, dut: Table, rounds: int) -> list[tuple[int, bool]]:
    """Let the scrubber go round; what it says: row, and whether it is lost."""
    events = []
    ctx.set(dut.idle, 1)
    for _ in range(2 * DEPTH * rounds + 1):
        await ctx.tick()
        if ctx.get(dut.events.valid):
            payload = ctx.get(dut.events.payload)
            events.append((payload.row, bool(payload.uncorrectable)))
    ctx.set(dut.idle, 0)
    return events


async def every_row_mended(ctx: SimulatorContext, dut: Table, content: Content) -> None:
    """The scrubber mends a flipped bit in each row, once."""
    good = [ctx.get(content.row(row)) for row in range(DEPTH)]
    for row in range(DEPTH):
        content.flip(ctx, row, (3 * row + 1) % content.code.bits, lane=row % content.lanes)
    assert await scrub(ctx, dut, 3) == [(row, False) for row in range(DEPTH)]
    assert [ctx.get(content.row(row)) for row in range(DEPTH)] == good


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_scrubber_mends(monkeypatch: pytest.MonkeyPatch, geometry: str) -> None:
    run(monkeypatch, geometry, every_row_mended)


@pytest.mark.parametrize(("geometry", "reports"), [("one lane", 3), ("lanes", 3), ("lost row", 1)])
def test_scrubber_reports_what_is_lost(monkeypatch: pytest.MonkeyPatch, geometry: str, reports: int) -> None:
    """In each round, if there is nothing to overwrite it with; else once."""

    async def bench(ctx: SimulatorContext, dut: Table, content: Content) -> None:
        content.flip(ctx, 2, 0, 1)
        before = content.codeword(ctx, 2)
        assert await scrub(ctx, dut, 3) == [(2, True)] * reports
        assert content.codeword(ctx, 2) == (before if reports > 1 else content.code.encode(LOST))

    run(monkeypatch, geometry, bench)


def test_scrubber_waits_to_be_let() -> None:
    """Without idle it neither reads nor writes; with a single idle cycle it writes nothing."""

    async def bench(ctx: SimulatorContext, dut: Table, content: Content) -> None:
        content.flip(ctx, 0, 0)
        before = ctx.get(content.row(0))
        stored = await read(ctx, dut, 1)
        for _ in range(10):
            await ctx.tick()
            assert ctx.get(dut.read_data) == stored[0]
        for cycle in range(20):
            ctx.set(dut.idle, cycle % 2)
            await ctx.tick()
        assert ctx.get(content.row(0)) == before

    with pytest.MonkeyPatch.context() as monkeypatch:
        run(monkeypatch, "one lane", bench)


def test_without_ecc_rows_are_bare() -> None:
    dut = Table(shape=6, depth=DEPTH, ecc=False)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.idle, 0)
        for row in range(DEPTH):
            ctx.set(dut.write, 1)
            ctx.set(dut.write_address, row)
            ctx.set(dut.write_data, row + 7)
            await ctx.tick()
        ctx.set(dut.write, 0)
        for row in range(DEPTH):
            assert await read(ctx, dut, row) == (row + 7, False)

    simulate(dut, bench)
    assert "events__valid = 1'h0" in emit(dut, "bare").verilog


MUTANTS: dict[str, tuple[Any, Any, str, str, str, Bench]] = {
    "syndrome off by one column": (
        secded,
        secded.decode,
        "for column in code.columns",
        "for column in code.columns[1:] + code.columns[:1]",
        "one lane",
        every_flip,
    ),
    "syndrome of lanes off by one column": (
        table,
        secded.decode_lanes,
        "zip(planes, code.columns, strict=True)",
        "zip(planes, code.columns[1:] + code.columns[:1], strict=True)",
        "lanes",
        every_flip,
    ),
    "scrubber writes back unmended": (
        table,
        Table,
        "sram.write_data.eq(mended)",
        "sram.write_data.eq(sram.read_data)",
        "one lane",
        every_row_mended,
    ),
}
"""Name to where it is looked up, what it is, what is right and what is wrong, and what finds it on which table."""


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad, geometry, bench = MUTANTS[name]
    mutant = mutate(target, good, bad)
    monkeypatch.setattr(where, target.__name__, mutant)
    if target is Table:
        monkeypatch.setattr("tests.hw.flips.Table", mutant)
    with pytest.raises(AssertionError):
        run(monkeypatch, geometry, bench)
