"""The block CAM: its bench over geometries, its netlist, and the mutants that the bench must find."""

from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest
from amaranth.sim import Simulator

from hw.params import TINY, load_params
from hw.params.toeplitz import diagonals, pack_tag
from hw.rtl import secded
from hw.rtl import sram as sram_module
from hw.rtl.emit import emit
from hw.rtl.layouts import CamOp, place_layout
from hw.rtl.node.cam import Cam, bank, cam, entry, reader, scrubber, selection
from hw.rtl.sram import Sram
from hw.tb.mutate import mutate
from hw.tb.runner import Run
from hw.tb.scoreboard import CheckError
from hw.tb.structure import combinational_inputs, lut4_levels
from pymodel.spec.cam import BlockCam, Tag
from tests.everyday import everyday

BENCH, ERRORS = "hw.tb.cam.bench", "hw.tb.cam.bench_errors"

GEOMETRIES = {
    "tiny": [],
    "wide": ["cam.banks=5", "cam.ways=8", "cam.sets=8", "pools.0.frames=300", "tables.partitions=16"],
    "true": ["cam.banks=1", "cam.ways=12", "cam.sets=1"],
    "odd": ["cam.banks=3", "cam.ways=3", "cam.sets=4", "tables.partitions=3", "tables.models=5"],
    "macro": ["cam.sets=256", "pools.0.frames=1000"],
    "plain": ["tables.ecc=false"],
    "isolated": [
        "cam.sets=8",
        "tables.isolation=strict",
        "pools.1.frames=3",
        "pools.1.frame_bytes=4096",
        "tables.fences=2",
    ],
}
"""What differs from TINY: as many ways as in a big slice; one set; no power of two; an SRAM macro; no ECC; sets
of their own for two partitions."""


def overrides(geometry: str) -> list[str]:
    return ["preset=TINY", *GEOMETRIES[geometry]]


@pytest.mark.parametrize("geometry", everyday(GEOMETRIES, "tiny", "odd"))
def test_bench(run_bench: Callable[..., None], geometry: str) -> None:
    chosen = overrides(geometry)
    run_bench(Cam(load_params(None, chosen)), "cam", BENCH, overrides=chosen)


@pytest.mark.parametrize("geometry", everyday(["tiny", "odd"], "tiny"))
def test_bench_with_errors(run_bench: Callable[..., None], geometry: str) -> None:
    chosen = overrides(geometry)
    run_bench(Cam(load_params(None, chosen)), "cam", ERRORS, overrides=chosen)


def test_outputs_are_registered() -> None:
    assert combinational_inputs(Cam(TINY), "*", "*") == []


def test_logic_depth() -> None:
    assert lut4_levels(Cam(TINY)) <= 12


def test_large_has_no_rows_spelled_out() -> None:
    verilog = emit(Cam(load_params(None, ["preset=LARGE"])), "cam").verilog
    assert verilog.count(sram_module.MODEL.read_text()) == 1
    assert len(verilog) < 1_000_000


@pytest.mark.parametrize("geometry", ["tiny", "isolated"])
def test_traffic_in_the_amaranth_simulator(seed: int, geometry: str) -> None:
    params = load_params(None, overrides(geometry))
    dut, reference, rng = Cam(params), BlockCam(params), Random(seed)
    tags = [Tag(rng.randrange(2), rng.randrange(2), rng.getrandbits(128)) for _ in range(12)]

    async def request(ctx: Any, **fields: Any) -> None:
        ctx.set(dut.requests.payload, fields)
        ctx.set(dut.requests.valid, 1)
        await ctx.tick().until(dut.requests.ready)
        ctx.set(dut.requests.valid, 0)

    async def check(ctx: Any) -> None:
        ctx.set(dut.diagonals, diagonals(params))
        for _ in range(150):
            tag = rng.choice(tags)
            word = pack_tag(params, *tag)
            await request(ctx, op=CamOp.LOOKUP, tag=word)
            response, valid = await ctx.tick().sample(dut.responses.payload, dut.responses.valid).repeat(4)
            assert valid
            frame, place = reference.find(tag), reference.place(tag)
            assert (response.hit, response.full) == (frame is not None, frame is None and place is None)
            if frame is not None:
                assert response.frame == frame
                place = reference.remove(tag)
            if place is not None:
                assert response.place == place_layout(params).const(place._asdict())
                stored = rng.randrange(params.frames)
                await request(ctx, op=CamOp.UPDATE, tag=word, frame=stored, valid=frame is None, place=place._asdict())
                if frame is None:
                    reference.insert(tag, place, stored)
                await request(ctx, op=CamOp.READ, place=place._asdict())
                content, valid = await ctx.tick().sample(dut.contents.payload, dut.contents.valid).repeat(4)
                assert valid
                assert (content.found, frame is None and content.tag) == (frame is None, frame is None and word)

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(check)
    simulator.run()


MODULES: tuple[ModuleType, ...] = (bank, cam, entry, reader, scrubber, secded, selection)

LATE_WRITE = """            write.en.eq(self.write & self.enable.replicate(self._row.length)),
            write.addr.eq(self.address),
            write.data.eq(self.write_data),
"""

MUTANTS: dict[str, tuple[Any, str, str, str, str]] = {
    "sets are anybody's": (cam._home_set, "exact_log2(params.shares)", "0", "isolated", "random_traffic"),
    "tie to the highest bank": (selection.CamSelection, "if j < i else", "if j > i else", "tiny", "random_traffic"),
    "a tag bit not compared": (
        entry.EntryFormat,
        "near(m, self.tag, entry.tag, tag)",
        "near(m, uncoded(self.tag.bits - 1), entry.tag[1:], tag[1:])",
        "plain",
        "every_tag_bit",
    ),
    "UPDATE written a stage late": (
        Sram,
        f"m.d.comb += [\n{LATE_WRITE}",
        f"m.d.sync += [\n{LATE_WRITE}        ]\n        m.d.comb += [\n",
        "tiny",
        "one_tag",
    ),
    "last set not initialised": (
        Cam,
        "sweep == self._params.cam_sets - 1",
        "sweep == self._params.cam_sets - 2",
        "tiny",
        "every_set_is_initialised",
    ),
    "columns off by one": (
        secded.decode,
        "for column in code.columns",
        "for column in (*code.columns[1:], code.columns[0])",
        "tiny",
        "single_errors",
    ),
    "double error taken for a single one": (
        secded.near,
        "~(Cat(meetings).any()",
        "~(Cat(meetings[1:]).any()",
        "tiny",
        "double_errors",
    ),
    "single error in a frame hides the hit": (
        secded.lost,
        "& ~its_syndrome.xor()",
        "",
        "tiny",
        "single_errors",
    ),
    "frame with a double error hits": (
        entry.EntryFormat,
        "& ~lost(m, self.frame, entry.frame)",
        "",
        "tiny",
        "double_errors",
    ),
    "lost way offered as free": (
        entry.EntryFormat,
        "return near(m, self.valid, entry.valid, Const(self.valid.encode(0), self.valid.bits))",
        "return ~near(m, self.valid, entry.valid, Const(self.valid.encode(1), self.valid.bits))",
        "tiny",
        "double_errors_in_free_places",
    ),
    "READ of another bank": (reader.CamReader, "row[self.bank]", "row[0]", "tiny", "random_traffic"),
    "READ writes": (
        Cam,
        "(update | scrubber.write) & (place.way == i)",
        "(update | read | scrubber.write) & (place.way == i)",
        "tiny",
        "random_traffic",
    ),
    "lost tag is read": (
        reader.CamReader,
        "content.found.eq(taken & ~lost(m, tag, word))",
        "content.found.eq(taken)",
        "tiny",
        "double_errors",
    ),
    "scrubber undoes an UPDATE": (
        scrubber.CamScrubber,
        "overtaken.eq(1)",
        "overtaken.eq(0)",
        "tiny",
        "updates_overtake_the_scrubber",
    ),
}
"""Name to what is mutated, what is right, what is wrong, a geometry, and a test that must find it."""


@pytest.mark.parametrize("name", everyday(MUTANTS, "a tag bit not compared", "UPDATE written a stage late"))
def test_bench_finds_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    original, good, bad, geometry, finder = MUTANTS[name]
    mutant = mutate(original, good, bad)
    for module in MODULES:
        if getattr(module, original.__name__, None) is original:
            monkeypatch.setattr(module, original.__name__, mutant)
    chosen = overrides(geometry)
    emission = emit(cam.Cam(load_params(None, chosen)), "cam")
    module = ERRORS if finder in ERROR_TESTS else BENCH
    with pytest.raises(CheckError, match=f"tests did not pass: .*{finder}"):
        Run(emission=emission, module=module, settings={"overrides": chosen}, seed=0, node=name)()


ERROR_TESTS = ("single_errors", "double_errors", "double_errors_in_free_places", "updates_overtake_the_scrubber")
