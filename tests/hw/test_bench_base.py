"""The testbench base: what it takes for granted of the simulator holds, and its checks can fail."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from amaranth.hdl import signed
from amaranth.lib import data
from hypothesis import given
from hypothesis import strategies as st

from hw.rtl.emit import describe, emit
from hw.rtl.layouts import beat_layout
from hw.rtl.transform import Crc32c
from hw.tb import faults
from hw.tb.canary.design import Canary
from hw.tb.mutate import mutate
from hw.tb.pace import always, bursts, never, randomly
from hw.tb.payload import Codec
from hw.tb.runner import Run, read_results
from hw.tb.scoreboard import CheckError, Scoreboard

NESTED = data.StructLayout({"a": signed(5), "b": data.ArrayLayout(3, 4), "c": beat_layout(2)})


def test_simulator_samples_where_the_bench_does(run_bench: Callable[..., None]) -> None:
    run_bench(Canary(), "canary", "hw.tb.canary.bench")


def test_every_fault_in_a_bench_is_found() -> None:
    planted = [name for name, value in vars(faults).items() if type(value) is type(faults.never_comes)]
    assert len(planted) == 7
    emission = emit(Crc32c(beat_bytes=4), "crc32c")
    with pytest.raises(CheckError) as failure:
        Run(emission=emission, module=faults.__name__, settings={"beat_bytes": 4}, seed=0, node="NODE")()
    report = str(failure.value)
    assert f"{len(planted)} of {len(planted)} tests did not pass" in report
    assert "again, with waves: KVNODE_SEED=0 KVNODE_WAVES=1 .venv/bin/pytest -m '' -s NODE" in report


@given(st.integers(-16, 15), st.lists(st.integers(0, 7), min_size=4, max_size=4), st.integers(0, 65535))
def test_codec_agrees_with_amaranth(a: int, b: list[int], word: int) -> None:
    value = {"a": a, "b": b, "c": {"data": word, "count": 2, "last": 1}}
    codec = Codec(describe(NESTED))
    assert codec.pack(value) == NESTED.const(value).as_bits()
    assert codec.unpack(codec.pack(value)) == value


@pytest.mark.parametrize("value", [{"data": 1 << 16, "count": 1, "last": 0}, {"data": 0}, {"data": 0, "x": 1}])
def test_codec_refuses_what_does_not_fit(value: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"expected|does not fit"):
        Codec(describe(beat_layout(2))).pack(value)


def test_scoreboard_compares_in_order() -> None:
    board = Scoreboard("board")
    board.expect(1)
    board.expect(2)
    with pytest.raises(CheckError, match="board: expected 1, got 2"):
        board.observe(2)


def test_scoreboard_compares_by_tag() -> None:
    board = Scoreboard("board", key=lambda item: item["tag"])
    for tag in (1, 2):
        board.expect({"tag": tag, "data": tag})
    board.observe({"tag": 2, "data": 2})
    with pytest.raises(CheckError, match="expected"):
        board.observe({"tag": 1, "data": 2})


@pytest.mark.parametrize("expected", [[], [1, 2]])
def test_scoreboard_finishes_only_when_all_came(expected: list[int]) -> None:
    board = Scoreboard("board")
    for item in expected:
        board.expect(item)
    for item in expected[:1]:
        board.observe(item)
    with pytest.raises(CheckError, match=r"nothing was compared|1 items never came"):
        board.finish()


def test_scoreboard_refuses_what_is_not_expected() -> None:
    with pytest.raises(CheckError, match="nothing expected, got 7"):
        Scoreboard("board").observe(7)


def test_paces() -> None:
    take = [next(always(Random(0))), next(never(Random(0)))]
    assert take == [True, False]
    for pace in (randomly(0.5), bursts(5, 5)):
        first, again = ([next(steps) for _ in range(200)] for steps in (pace(Random(1)), pace(Random(1))))
        assert first == again
        assert 40 < sum(first) < 160


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ("", "no test in it"),
        ("<testcase name='a' classname='m'><failure/></testcase>", "1 of 1 tests did not pass: a"),
        ("<testcase name='a' classname='m'/><testcase name='b' classname='m'><skipped/></testcase>", "did not pass: b"),
    ],
)
def test_results_without_a_pass_are_a_failure(tmp_path: Path, cases: str, message: str) -> None:
    results = tmp_path / "results.xml"
    results.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    with pytest.raises(CheckError, match=message):
        read_results(results)


def test_no_results_are_a_failure(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="without a result file"):
        read_results(tmp_path / "results.xml")


def test_mutant_must_differ_in_one_place() -> None:
    with pytest.raises(ValueError, match="0 places"):
        mutate(Canary, "no such text", "")


def test_mutant_sees_what_is_patched_in_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = mutate(read_results, "has no test in it", "is empty")
    monkeypatch.setattr("hw.tb.runner.CheckError", KeyError)
    with pytest.raises(KeyError):
        mutant(tmp_path / "results.xml")
