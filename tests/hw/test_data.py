"""The data path: its benches over geometries, its netlist, its figures, and the mutants that the benches must find."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hw.params import Params
from hw.params.sections import MemoryParams, PoolParams, TableParams
from hw.rtl import emit as emit_module
from hw.rtl.arbiter import merge
from hw.rtl.emit import emit
from hw.rtl.node.data import (
    DataPath,
    data_path,
    read_lane,
    read_path,
    read_port,
    striping,
    write_lane,
    write_path,
    write_port,
)
from hw.rtl.node.data.read_bank import ReadBank
from hw.rtl.node.data.read_lane import ReadLane
from hw.rtl.node.data.read_path import ReadPath
from hw.rtl.node.data.read_port import ReadPort
from hw.rtl.node.data.write_bank import WriteBank
from hw.rtl.node.data.write_lane import WriteLane
from hw.rtl.node.data.write_port import WritePort
from hw.rtl.two_port_sram import LARGEST_INFERRED, MODEL, TwoPortSram
from hw.synth.flow import synthesise
from hw.tb.core.settings import settings_of
from hw.tb.mutate import mutate
from hw.tb.runner import Run
from hw.tb.scoreboard import CheckError
from hw.tb.structure import combinational_inputs
from hw.tb.verilator import find_verilator
from tests.everyday import everyday

WAIVERS = Path(emit_module.__file__).with_name("lint.vlt")

BENCH, AXIRAM, RATE = "hw.tb.data.bench", "hw.tb.data.bench_axiram", "hw.tb.data.bench_rate"
ENDURANCE = "hw.tb.data.bench_endurance"


def slice_of(channels: int, ports: int, *, segment_bytes: int = 512, beat_bytes: int = 16, **memory: int) -> Params:
    """A slice with two pools, of frames of 8 and of 20 segments."""
    return Params(
        memory=MemoryParams(segment_bytes=segment_bytes, beat_bytes=beat_bytes, channels=channels, **memory),
        pools=(
            PoolParams(frame_bytes=8 * segment_bytes, frames=7),
            PoolParams(frame_bytes=20 * segment_bytes, frames=5),
        ),
        tables=TableParams(ports=ports, rings_per_port=1),
    )


GEOMETRIES = {
    "two": slice_of(2, 2, latency_cycles=100, waiting_reads=8),
    "one": slice_of(1, 1, latency_cycles=100, segment_bytes=1024, waiting_reads=8),
    "four": slice_of(4, 4, latency_cycles=100, waiting_reads=8),
    "least": slice_of(1, 1, latency_cycles=1, read_segments=1, waiting_reads=2, turn_bursts=1),
    "odd": slice_of(4, 3, latency_cycles=60, beat_bytes=32, read_segments=3, turn_bursts=16),
}
"""As many ports as channels, one with SRAM macros; the least of everything; numbers that are no powers of two."""

LINTED = {"odd": GEOMETRIES["odd"], "long": slice_of(2, 2, segment_bytes=4096, beat_bytes=32)}

MODULES: tuple[ModuleType, ...] = (
    data_path,
    read_lane,
    read_path,
    read_port,
    striping,
    write_lane,
    write_path,
    write_port,
)


@pytest.mark.parametrize("geometry", ["two"])
def test_bench(run_bench: Callable[..., None], geometry: str) -> None:
    params = GEOMETRIES[geometry]
    run_bench(DataPath(params), "data", BENCH, **settings_of(params))


@pytest.mark.nightly
@pytest.mark.parametrize("geometry", ["one", "least", "odd"])
def test_bench_of_other_geometries(run_bench: Callable[..., None], geometry: str) -> None:
    params = GEOMETRIES[geometry]
    run_bench(DataPath(params), "data", BENCH, **settings_of(params))


def test_buffers_are_macros_when_they_are_big(tmp_path: Path) -> None:
    sram = TwoPortSram(rows=LARGEST_INFERRED // 16, width=32)
    assert emit(sram, "sram").verilog.count(MODEL.read_text()) == 1
    report = synthesise(sram, "sram", "ecp5", build=tmp_path)
    assert (report.memory_bits, report.macro_bits, report.luts) == (2 * LARGEST_INFERRED, 2 * LARGEST_INFERRED, 0)


def test_bench_with_a_memory_of_others(run_bench: Callable[..., None]) -> None:
    params = GEOMETRIES["two"]
    run_bench(DataPath(params), "data", AXIRAM, **settings_of(params))


@pytest.mark.parametrize("cycles", [2_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_any_backpressure_is_endured(run_bench: Callable[..., None], cycles: int) -> None:
    params = GEOMETRIES["two"]
    run_bench(DataPath(params), "data", ENDURANCE, cycles=cycles, **settings_of(params))


@pytest.mark.parametrize("geometry", ["one", "two", pytest.param("four", marks=pytest.mark.nightly)])
def test_rates(run_bench: Callable[..., None], geometry: str) -> None:
    params = GEOMETRIES[geometry]
    run_bench(DataPath(params), "data", RATE, **settings_of(params))


@pytest.mark.parametrize("outputs", ["*valid", "*payload"])
def test_outputs_do_not_wait_for_inputs(outputs: str) -> None:
    assert combinational_inputs(DataPath(GEOMETRIES["two"]), outputs, "*") == []


@pytest.mark.parametrize("name", LINTED)
def test_lint_of_geometries_is_silent(tmp_path: Path, name: str) -> None:
    verilog, _ = emit(DataPath(LINTED[name]), "data").write(tmp_path)
    assert find_verilator().lint(WAIVERS, verilog) == ""


MUTANTS: dict[str, tuple[Any, str, str, str]] = {
    "stripe order swapped": (
        striping.channel_of,
        "(number & mask).xor()",
        "~(number & mask).xor()",
        "write_then_read",
    ),
    "CRC not checked": (
        ReadPort,
        "(crc_unit.crcs.payload == expected.o.payload.crc) & ~expected.o.payload.error",
        "~expected.o.payload.error",
        "read_errors",
    ),
    "read response not looked at": (
        ReadLane,
        "fill.beat.error.eq(is_error(memory.rresp)),",
        "fill.beat.error.eq(0),",
        "read_errors",
    ),
    "landed one early": (
        WriteBank,
        "self.answers.valid.eq(answered[oldest])",
        "self.answers.valid.eq(answered[oldest] | answered[(oldest + 1) % bursts])",
        "write_then_read",
    ),
    "error joined to the segment behind": (
        WritePort,
        "alike.eq((joined.frame == frame) & joined.ok)",
        "alike.eq(joined.frame == frame)",
        "write_errors",
    ),
    "error of another ID": (
        WriteBank,
        "self.answers.payload.eq(good[oldest])",
        "self.answers.payload.eq(good[oldest ^ 1])",
        "write_errors",
    ),
    "reads in order of arrival": (
        ReadBank,
        "rows.read_address.eq(Cat(place[:beat_bits], oldest))",
        "rows.read_address.eq(Cat(place[:beat_bits], oldest ^ 1))",
        "write_then_read",
    ),
    "short segment a beat too long": (
        ReadPath,
        "last_byte[beat_bits : stripes.segment_bits]",
        "last_byte[beat_bits : stripes.segment_bits] + 1",
        "short_segments",
    ),
    "discard of the next frame": (
        WriteBank,
        "self.discard & (held[i].frame == self.discard_frame)",
        "self.discard & (held[i].frame == self.discard_frame + 1)",
        "discarded_blocks",
    ),
    "data lost when memory stalls": (
        WriteLane,
        "send.eq(turns.o.valid & (~memory.wvalid | memory.wready))",
        "send.eq(turns.o.valid)",
        "write_then_read",
    ),
}
"""Name to what is mutated, what is right, what is wrong, and a test that must find it."""

OF_PORTS: dict[str, tuple[Any, str, str, str]] = {
    "answer given to another port": (
        WriteLane,
        "bank.answered.valid.eq(memory.bvalid & (their_id.port == i))",
        "bank.answered.valid.eq(memory.bvalid & (their_id.port != i))",
        "write_then_read",
    ),
    "turns lost": (
        WriteLane,
        """with m.If(take):
            m.d.sync += last.eq(chosen)""",
        """with m.If(take):
            m.d.sync += last.eq(0)""",
        "ports_take_turns",
    ),
    "turn given twice": (
        WriteLane,
        "turns.o.ready.eq(send & ends)",
        "turns.o.ready.eq(send & ends & ~memory.awvalid)",
        "write_then_read",
    ),
    "beats of two ports mixed": (
        WriteLane,
        "with m.If(shown == i):",
        "with m.If(turns.o.payload == i):",
        "write_then_read",
    ),
    "a port stops the others": (
        WriteLane,
        "rota.memory(bank.bursts.valid, i) for",
        "rota.memory(bank.bursts.valid & banks[0].bursts.valid, i) for",
        "one_port_without_data",
    ),
    "answers of all ports in one order": (
        merge,
        "source.ready.eq(1)",
        "source.ready.eq(asking.all())",
        "one_port_without_data",
    ),
}
"""Likewise, of what is between ports; with two of them."""

EVERYDAY = "stripe order swapped"
ALL = {**MUTANTS, **OF_PORTS}


@pytest.mark.parametrize("name", everyday(ALL, EVERYDAY))
def test_bench_finds_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    original, good, bad, finder = ALL[name]
    mutant = mutate(original, good, bad)
    for module in MODULES:
        if getattr(module, original.__name__, None) is original:
            monkeypatch.setattr(module, original.__name__, mutant)
    params = slice_of(2 if name == EVERYDAY else 1, 2 if name in OF_PORTS else 1, latency_cycles=20)
    emission = emit(DataPath(params), "data")
    with pytest.raises(CheckError, match=f"tests did not pass: .*{finder}"):
        Run(emission=emission, module=BENCH, settings=settings_of(params), seed=0, node=name)()


AGAINST_AXI4 = {
    "WLAST in the first beat": (WriteLane, "memory.wlast.eq(beat.last)", "memory.wlast.eq(~beat.last)"),
    "a burst over the end of its page": (
        WriteLane,
        "memory.awlen.eq(bank.bursts.payload.last)",
        "memory.awlen.eq(255)",
    ),
}
"""Name to what is mutated, what is right, what is wrong: AxiRam has to assert that it is."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", AGAINST_AXI4)
def test_a_memory_of_others_finds_what_is_against_the_rules(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    original, good, bad = AGAINST_AXI4[name]
    monkeypatch.setattr(write_path, original.__name__, mutate(original, good, bad))
    params = slice_of(1, 1, latency_cycles=20)
    emission = emit(DataPath(params), "data")
    with pytest.raises(CheckError, match=r"(?s)axi_slave\.py.*tests did not pass"):
        Run(emission=emission, module=ENDURANCE, settings=settings_of(params) | {"cycles": 2_000}, seed=0, node=name)()
