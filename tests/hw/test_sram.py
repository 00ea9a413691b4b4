"""The SRAM behaves alike with and without the macro, and does not need initial values."""

from collections.abc import Callable

import pytest

from hw.rtl import sram
from hw.rtl.emit import emit
from hw.rtl.sram import Sram

BENCH = "hw.tb.sram.bench"


INFERRED, MACRO = 16, 8192


@pytest.mark.parametrize("rows", [INFERRED, MACRO])
def test_bench(run_bench: Callable[..., None], rows: int) -> None:
    run_bench(Sram(rows=rows, lanes=3, lane_bits=7), "sram", BENCH, rows=rows)


def test_memories_have_no_initial_value() -> None:
    assert "initial" not in emit(Sram(rows=INFERRED, lanes=3, lane_bits=7), "sram").verilog


def test_big_memories_are_macros() -> None:
    verilog = emit(Sram(rows=MACRO, lanes=3, lane_bits=7), "sram").verilog
    assert verilog.count(sram.MODEL.read_text()) == 1
    assert len(verilog.splitlines()) < 100
