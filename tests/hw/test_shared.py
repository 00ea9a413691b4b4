"""Shared components: one module for equal ones, and the behaviour of a design in which each is a part of its own."""

from pathlib import Path
from typing import Any

import pytest
from amaranth import EnableInserter, Module, ResetInserter, Signal
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import KvnodeError
from hw.rtl import shared as shared_module
from hw.rtl.emit import emit, run_yosys, to_rtlil
from hw.rtl.shared import shared


@shared
class Digit(wiring.Component):
    """A digit of an odometer."""

    def __init__(self, base: int, *, step: int = 1):
        self._base, self._step = base, step
        super().__init__({"turn": In(1), "digit": Out(range(base)), "carry": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.carry.eq(self.turn & (self.digit >= self._base - self._step))
        with m.If(self.turn):
            m.d.sync += self.digit.eq(self.digit + self._step)
        with m.If(self.carry):
            m.d.sync += self.digit.eq(self._step - 1)
        return m


@shared
class Pair(wiring.Component):
    """Two digits, shared themselves."""

    turn: In(1)
    clear_high: In(1)
    low: Out(range(10))
    high: Out(range(10))

    def __init__(self) -> None:
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.low = low = Digit(10)
        high = Digit(10)
        m.submodules.high = ResetInserter(self.clear_high)(high)
        m.d.comb += [low.turn.eq(self.turn), high.turn.eq(low.carry), self.low.eq(low.digit), self.high.eq(high.digit)]
        return m


class Odometer(wiring.Component):
    """A pair, renewed by two signals, and two digits beside it."""

    turn: In(1)
    clear: In(1)
    restart: In(1)
    value: Out(16)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pair, hexadecimal, by_two = Pair(), Digit(16), Digit(16, step=2)
        m.submodules.pair = ResetInserter(self.restart)(ResetInserter(self.clear)(pair))
        m.submodules.hexadecimal = hexadecimal
        m.submodules.by_two = ResetInserter(self.clear)(by_two)
        changed = Signal()
        m.d.sync += changed.eq(self.turn)
        m.d.comb += [
            pair.turn.eq(self.turn),
            pair.clear_high.eq(changed & self.clear),
            hexadecimal.turn.eq(pair.low == 9),
            by_two.turn.eq(self.turn),
            self.value.eq(pair.low | pair.high << 4 | hexadecimal.digit << 8 | by_two.digit << 12),
        ]
        return m


def prove_equal(component: Any, directory: Path) -> None:
    """Prove that a design behaves alike with and without sharing. Raises KvnodeError if it does not."""
    (directory / "shared.il").write_text(to_rtlil(component(), "shared"))
    (directory / "whole.il").write_text(rtlil.convert(component(), name="whole"))
    prepare = ("proc", "flatten", "opt_clean")
    run_yosys(
        *(f"read_rtlil {directory / 'shared.il'}", "hierarchy -check -top shared", *prepare, "design -stash shared"),
        *(f"read_rtlil {directory / 'whole.il'}", "hierarchy -check -top whole", *prepare),
        "design -copy-from shared shared",
        "miter -equiv -flatten shared whole miter",
        "hierarchy -top miter",
        "sat -verify -prove trigger 0 -tempinduct -set-at 1 in_rst 1 -seq 1 miter",
    )


def test_equal_components_are_one_module() -> None:
    verilog = emit(Odometer(), "odometer").verilog
    modules = [line.split("(")[0].split()[1] for line in verilog.splitlines() if line.startswith("module ")]
    assert sorted(modules) == [
        r"\odometer.Digit",
        r"\odometer.Digit_1",
        r"\odometer.Digit_2",
        r"\odometer.Pair",
        "odometer",
    ]


def test_a_shared_component_is_a_design_too() -> None:
    assert emit(Digit(10), "digit").verilog.count("\nmodule ") == 1


def test_sharing_changes_no_behaviour(tmp_path: Path) -> None:
    prove_equal(Odometer, tmp_path)


def test_a_lost_reset_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forget(fragment: Any) -> Any:
        for part, _, _ in fragment.subfragments:
            forget(part)
        if isinstance(fragment, shared_module.Instance):
            fragment.statements.clear()
        return fragment

    monkeypatch.setattr(shared_module, "give_resets", forget)
    with pytest.raises(KvnodeError, match="proof did fail"):
        prove_equal(Odometer, tmp_path)


def test_an_enable_is_refused() -> None:
    class Paused(wiring.Component):
        run: In(1)

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.submodules.digit = EnableInserter(self.run)(Digit(10))
            return m

    with pytest.raises(TypeError, match=r"EnableInserter around paused\.Digit"):
        emit(Paused(), "paused")
