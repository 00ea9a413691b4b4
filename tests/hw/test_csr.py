"""Registers behind AXI4-Lite: their bench on two maps, their netlist, and the mutants that the bench must find."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hw.params import TINY
from hw.rdl import Kind, register_map
from hw.rdl.registers import SOURCE
from hw.rtl.csr import Registers, SliceControl, fields, registers
from hw.rtl.csr.target import Axi4LiteTarget
from hw.rtl.emit import emit
from hw.tb import csr
from hw.tb.csr.unit import exercise
from hw.tb.mutate import mutate
from hw.tb.runner import Run
from hw.tb.scoreboard import CheckError
from hw.tb.structure import combinational_inputs

BENCH = "hw.tb.csr.bench"
STRESS = Path(csr.__file__).with_name("stress.rdl")
MAPS = {"kvnode": SOURCE, "stress": STRESS}


@pytest.mark.parametrize("name", MAPS)
def test_registers_in_the_amaranth_simulator(name: str, seed: int) -> None:
    registers = register_map(MAPS[name])
    exercise(Registers(TINY, registers), registers, seed=seed, cycles=1000)


@pytest.mark.parametrize("name", MAPS)
def test_bench(run_bench: Callable[..., None], name: str) -> None:
    dut = Registers(TINY, register_map(MAPS[name]))
    run_bench(dut, "registers", BENCH, rdl=str(MAPS[name]), preset="TINY")


def test_stress_map_has_every_kind_of_field() -> None:
    assert {f.kind for register in register_map(STRESS).values() for f in register.fields} == set(Kind)


@pytest.mark.parametrize("outputs", ["axi__*", "software__*", "irq"])
def test_outputs_are_registered(outputs: str) -> None:
    assert combinational_inputs(Registers(TINY, register_map(STRESS)), outputs, "*") == []


def test_no_output_of_the_slice_control_follows_an_input() -> None:
    assert combinational_inputs(SliceControl(TINY), "*", "*") == []


MUTANTS = {
    "address bit ignored": (
        registers,
        Registers,
        "with m.Switch(access.read_address[2:]):",
        "with m.Switch(access.read_address[2:] & 0x2FF):",
        "aliasing",
    ),
    "two registers at one address": (
        registers,
        Registers,
        "writes[name].eq(access.write & ~access.write_error),",
        "writes[name].eq(access.write & ~access.write_error), writes['BIT5'].eq(access.write & ~access.write_error),",
        "aliasing",
    ),
    "reserved bits taken": (
        registers,
        Registers,
        "misaligned | locked | (written & ~writable).any()",
        "misaligned | locked",
        "walking_ones",
    ),
    "read-only register taken": (
        registers,
        Registers,
        "                if writable:",
        "                if True:",
        "reset_values",
    ),
    "lock ignored": (registers, Registers, "misaligned | locked | (", "misaligned | (", "locks"),
    "misaligned write taken": (registers, Registers, "misaligned | locked | (", "locked | (", "misaligned"),
    "refused write done": (
        registers,
        Registers,
        "writes[name].eq(access.write & ~access.write_error)",
        "writes[name].eq(access.write)",
        "locks",
    ),
    "strobe ignored": (fields, fields._stored, "value & ~write.strobed | write.bits", "write.bits", "byte_strobes"),
    "write one to set": (
        fields,
        fields._event,
        "value & ~Mux(write.now, write.bits, 0) | hardware",
        "value | Mux(write.now, write.bits, 0) | hardware",
        "walking_ones",
    ),
    "clearing wins over setting": (
        fields,
        fields._event,
        "value & ~Mux(write.now, write.bits, 0) | hardware",
        "(value | hardware) & ~Mux(write.now, write.bits, 0)",
        "random_traffic",
    ),
    "pulse stays": (
        fields,
        fields._pulse,
        "m.d.sync += value.eq(Mux(write.now, write.bits, 0))",
        "m.d.sync += value.eq(Mux(write.now, write.bits, value))",
        "random_traffic",
    ),
    "counter wraps": (
        fields,
        fields._counter,
        "total[:-1] | total[-1].replicate(len(value))",
        "total[:-1]",
        "random_traffic",
    ),
    "response changes before it is taken": (
        registers,
        Axi4LiteTarget,
        "access.read.eq(read_taken & ~axi.rvalid)",
        "access.read.eq(read_taken)",
        "responses_not_taken",
    ),
    "write does not wait for its data": (
        registers,
        Axi4LiteTarget,
        "address_taken & data_taken & ~axi.bvalid",
        "address_taken & ~axi.bvalid",
        "one_long_before_the_other",
    ),
}
"""Name to the module that uses what is mutated, that, what is right, what is wrong, and a test that must find it."""


@pytest.mark.parametrize("name", MUTANTS)
def test_comparison_finds_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plant(monkeypatch, name)
    stress = register_map(STRESS)
    with pytest.raises(CheckError):
        exercise(registers.Registers(TINY, stress), stress, seed=0, cycles=2000)


EVERY_DAY = ("two registers at one address", "response changes before it is taken")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EVERY_DAY else pytest.mark.nightly) for name in MUTANTS]
)
def test_bench_finds_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plant(monkeypatch, name)
    finder = MUTANTS[name][-1]
    mutant = emit(registers.Registers(TINY, register_map(STRESS)), "registers")
    with pytest.raises(CheckError, match=f"tests did not pass: .*{finder}"):
        Run(emission=mutant, module=BENCH, settings={"rdl": str(STRESS), "preset": "TINY"}, seed=0, node=name)()


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Put a mutant in the place of what it mutates: by its name in a module, or as the logic of a kind of field."""
    module, original, good, bad, _ = MUTANTS[name]
    mutant = mutate(original, good, bad)
    monkeypatch.setattr(module, original.__name__, mutant)
    for kind, build in fields._STATEFUL.items():
        if build is original:
            monkeypatch.setitem(fields._STATEFUL, kind, mutant)
