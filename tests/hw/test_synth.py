"""Synthesis: figures of circuits whose size and depth are known."""

import json
from pathlib import Path

import pytest
from amaranth import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import TINY, KvnodeError, load_params
from hw.rtl.blocks import PARTS
from hw.rtl.sram import LARGEST_INFERRED, Sram
from hw.synth import FAMILIES, Report, synthesise
from hw.synth.depth import longest_path
from scripts import cli


class Adder(wiring.Component):
    """A 16-bit adder between registers."""

    a: In(16)
    b: In(16)
    total: Out(16)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Signal(16), Signal(16)
        m.d.sync += [a.eq(self.a), b.eq(self.b), self.total.eq(a + b)]
        return m


class Parity(wiring.Component):
    """The parity of so many bits, between registers."""

    def __init__(self, bits: int):
        super().__init__({"word": In(bits), "parity": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = Signal.like(self.word)
        m.d.sync += [word.eq(self.word), self.parity.eq(word.xor())]
        return m


class RegisterCam(wiring.Component):
    """The plain CAM of registers: matches are registered, then the lowest is encoded."""

    def __init__(self, *, entries: int, bits: int):
        self._entries = entries
        super().__init__(
            {
                "key": In(bits),
                "write": In(1),
                "place": In(range(entries)),
                "hit": Out(1),
                "index": Out(range(entries)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        keys = Array(Signal(len(self.key), name=f"key_{i}") for i in range(self._entries))
        valid, match = Signal(self._entries), Signal(self._entries)
        with m.If(self.write):
            m.d.sync += [keys[self.place].eq(self.key), valid.bit_select(self.place, 1).eq(1)]
        lowest = Signal.like(self.index)
        for i in reversed(range(self._entries)):
            with m.If(match[i]):
                m.d.comb += lowest.eq(i)
        m.d.sync += match.eq(Cat(valid[i] & (keys[i] == self.key) for i in range(self._entries)))
        m.d.sync += [self.hit.eq(match.any()), self.index.eq(lowest)]
        return m


@pytest.mark.parametrize("family", FAMILIES)
def test_adder(tmp_path: Path, family: str) -> None:
    report = synthesise(Adder(), "adder", family, build=tmp_path)
    assert (report.luts, report.flip_flops, report.levels) == (16, 48, 1)
    assert report.path_end.startswith("total[")


def test_parity_of_sixteen_bits_is_two_levels_of_luts(tmp_path: Path) -> None:
    report = synthesise(Parity(16), "parity", "ecp5", build=tmp_path)
    assert (report.luts, report.flip_flops, report.levels) == (5, 17, 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_memory_becomes_block_rams(tmp_path: Path, family: str) -> None:
    report = synthesise(Sram(rows=1024, lanes=1, lane_bits=36), "sram", family, build=tmp_path)
    assert (report.memory_bits, report.macro_bits) == (36 * 1024, 0)
    assert report.block_rams in (1, 2)
    assert report.flip_flops == 0


def test_macros_count_as_memory_and_end_paths(tmp_path: Path) -> None:
    rows = LARGEST_INFERRED // 32 * 2
    report = synthesise(Sram(rows=rows, lanes=2, lane_bits=16), "sram", "ecp5", build=tmp_path)
    assert (report.memory_bits, report.macro_bits, report.block_rams) == (32 * rows, 32 * rows, 0)
    assert (report.luts, report.flip_flops, report.levels) == (0, 0, 0)


def test_an_equal_design_is_not_synthesised_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = synthesise(Parity(4), "parity", "ecp5", build=tmp_path)
    monkeypatch.setattr("hw.synth.flow.run_yosys", lambda *commands: pytest.fail("synthesised again"))
    assert synthesise(Parity(4), "parity", "ecp5", build=tmp_path) == first


@pytest.mark.nightly
def test_register_cam(tmp_path: Path) -> None:
    """The reason for a hashed CAM: 64 entries of 96 bits cost this much."""
    report = synthesise(RegisterCam(entries=64, bits=96), "cam", "ecp5", build=tmp_path)
    assert report.flip_flops == 64 * 96 + 64 + 64 + 1 + 6
    assert 7_000 < report.luts < 8_500


def lut(inputs: list[int], output: int) -> dict:
    return {
        "type": "LUT4",
        "port_directions": {"A": "input", "B": "input", "Z": "output"},
        "connections": {"A": inputs[:1], "B": inputs[1:], "Z": [output]},
    }


def netlist(*cells: dict) -> dict:
    return {
        "ports": {"i": {"direction": "input", "bits": [1, 2]}, "o": {"direction": "output", "bits": [9]}},
        "cells": {f"cell_{i}": cell for i, cell in enumerate(cells)},
        "netnames": {"i": {"hide_name": 0, "bits": [1, 2]}, "o": {"hide_name": 0, "bits": [9]}},
    }


def test_longest_path_is_the_deepest_one_between_named_ends() -> None:
    path = longest_path(netlist(lut([1, 2], 3), lut([3, 1], 4), lut([4, 3], 9)), frozenset(), {})
    assert (path.levels, path.start, path.end) == (3, "i[0]", "o")


def test_dedicated_inputs_are_free() -> None:
    cells = netlist(lut([1, 2], 3), lut([1, 3], 9))
    assert longest_path(cells, frozenset(), {"LUT4": frozenset({"B"})}).levels == 1


def lut_ram(address: int, data: int, output: int) -> dict:
    return {
        "type": "RAM",
        "port_directions": {"RAD": "input", "DI": "input", "DO": "output"},
        "connections": {"RAD": [address], "DI": [data], "DO": [output]},
    }


def test_what_a_lut_ram_stores_does_not_pass_it() -> None:
    cells = netlist(lut_ram(1, 4, 3), lut([3, 2], 4), lut([3], 9))
    sampled = {"RAM": frozenset({"DI"})}
    path = longest_path(cells, frozenset(), {}, sampled)
    assert (path.levels, path.start) == (3, "i[0]")
    with pytest.raises(KvnodeError, match="combinational loop through"):
        longest_path(cells, frozenset(), {})


def test_a_loop_is_an_error() -> None:
    with pytest.raises(KvnodeError, match="combinational loop through"):
        longest_path(netlist(lut([1, 4], 3), lut([3, 2], 4)), frozenset(), {})


def test_a_node_of_one_slice_has_no_fan() -> None:
    assert PARTS["fan"].number(TINY) == 0
    assert PARTS["fan"].number(load_params(None, ["preset=TINY", "node.slices=2"])) == TINY.tables.ports


def test_command_prints_a_table_and_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["synth", "crc32c", "write_port", "--set", "preset=TINY"]
    assert cli.run(arguments) == 0
    assert "crc32c" in capsys.readouterr().out
    assert cli.run([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    block, port = result["blocks"]
    assert (block["number"], port["number"]) == (1, TINY.tables.ports)
    assert set(block) == set(port) == {*Report.__dataclass_fields__, "number"}
    assert block["luts"] > block["flip_flops"] > 200
    assert 4 <= block["levels"] <= 8
    assert set(result) == {"blocks", "params_hash", "git_rev"}
