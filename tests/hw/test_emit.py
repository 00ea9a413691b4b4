"""Emission: Verilog that Verilator has nothing to say about, equal for equal designs, with a map of its ports."""

import json
from pathlib import Path
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import PRESETS, TINY, KvnodeError, load_params
from hw.rtl import emit as emit_module
from hw.rtl.blocks import BLOCKS
from hw.rtl.emit import describe, emit, run_yosys
from hw.rtl.gpu import Requester
from hw.rtl.gpu.prefetch import Prefetch
from hw.rtl.system import System
from hw.tb.structure import combinational_inputs
from hw.tb.verilator import find_verilator

WAIVERS = Path(emit_module.__file__).with_name("lint.vlt")


class Leaky(wiring.Component):
    """Breaks the stream rule: valid waits for ready."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += [self.o.payload.eq(self.i.payload), self.i.ready.eq(self.o.ready)]
        m.d.comb += self.o.valid.eq(self.i.valid & self.o.ready)
        return m


def everyday(block: str, preset: str) -> bool:
    """Whether a block is small enough in a preset."""
    if block in {"node", "core", "slice", "requester"}:  # a system has the last three
        return False
    return preset == "TINY" or block not in {"data", "link", "system"}


@pytest.mark.parametrize(
    ("block", "preset"),
    [
        pytest.param(block, preset, marks=() if everyday(block, preset) else pytest.mark.nightly)
        for block in BLOCKS
        for preset in PRESETS
    ],
)
def test_verilator_lint_is_silent(tmp_path: Path, block: str, preset: str) -> None:
    verilog, _ = emit(BLOCKS[block](PRESETS[preset]), block).write(tmp_path)
    assert find_verilator().lint(WAIVERS, verilog) == ""


@pytest.mark.nightly
def test_lint_is_silent_of_several_slices_too(tmp_path: Path) -> None:
    verilog, _ = emit(System(load_params(None, ["preset=TINY", "node.slices=2"])), "system").write(tmp_path)
    assert find_verilator().lint(WAIVERS, verilog) == ""


@pytest.mark.parametrize(
    "engines",
    [
        ("prefetches=2",),
        *(
            pytest.param(engines, marks=pytest.mark.nightly)
            for engines in (("prefetches=1", "fills=4"), ("slots=4", "commands=8"), ("prefetches=2", "slots=4"))
        ),
    ],
)
def test_lint_is_silent_of_engines_too(tmp_path: Path, engines: tuple[str, ...]) -> None:
    params = load_params(None, ["preset=TINY", *(f"requester.{each}" for each in engines)])
    verilog, _ = emit(Requester(params), "requester").write(tmp_path)
    assert find_verilator().lint(WAIVERS, verilog) == ""


def test_engines_valid_never_waits_for_ready() -> None:
    params = load_params(None, ["preset=TINY", "requester.prefetches=2"])
    for outputs in ("*__valid", "*__payload"):
        assert combinational_inputs(Prefetch(params), outputs, "*__ready") == []


def test_lint_speaks_up(tmp_path: Path) -> None:
    source = tmp_path / "top.v"
    source.write_text("module top(input [3:0] a, output [2:0] b); assign b = a; endmodule\n")
    assert "WIDTHTRUNC" in find_verilator().lint(WAIVERS, source)


def blocks(*large: str) -> list[Any]:
    """All blocks; these at night."""
    return [pytest.param(block, marks=pytest.mark.nightly if block in large else ()) for block in BLOCKS]


@pytest.mark.parametrize("block", blocks("slice", "node", "system"))
def test_valid_never_waits_for_ready(block: str) -> None:
    for outputs in ("*__valid", "*__payload"):
        assert combinational_inputs(BLOCKS[block](TINY), outputs, "*__ready") == []


def test_a_valid_that_waits_is_found() -> None:
    assert combinational_inputs(Leaky(), "*__valid", "*__ready") == ["o__ready"]


@pytest.mark.parametrize("block", blocks("core", "slice", "node", "system"))
def test_equal_designs_are_equal_text(block: str) -> None:
    wider = load_params(None, ["preset=TINY", "memory.beat_bytes=32", "cam.sets=4"])
    first, second, other = (emit(BLOCKS[block](params), block) for params in (TINY, TINY, wider))
    assert first == second
    assert first != other


def test_map_has_every_field_of_every_port(tmp_path: Path) -> None:
    _, signal_map = emit(BLOCKS["crc32c"](TINY), "crc32c").write(tmp_path)
    ports = json.loads(signal_map.read_text())["ports"]
    assert ports["beats__payload"] == {
        "direction": "in",
        "width": 134,
        "shape": {
            "width": 134,
            "fields": {
                "data": {"width": 128, "signed": False, "offset": 0},
                "count": {"width": 5, "signed": False, "offset": 128},
                "last": {"width": 1, "signed": False, "offset": 133},
            },
        },
    }
    assert {name: port["direction"] for name, port in ports.items() if "crcs" in name} == {
        "crcs__payload": "out",
        "crcs__valid": "out",
        "crcs__ready": "in",
    }


def test_describe_names_enumerations_and_arrays() -> None:
    class Colour(enum.Enum, shape=2):
        RED = 1

    class Pixel(data.Struct):
        colour: Colour
        levels: data.ArrayLayout(4, 3)

    assert describe(Pixel) == {
        "width": 14,
        "fields": {
            "colour": {"width": 2, "members": {"RED": 1}, "offset": 0},
            "levels": {"width": 12, "length": 3, "element": {"width": 4, "signed": False}, "offset": 2},
        },
    }


def test_yosys_errors_are_reported() -> None:
    with pytest.raises(KvnodeError, match="No such command: frobnicate"):
        run_yosys("frobnicate")
