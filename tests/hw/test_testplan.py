"""Every planned test exists, every bench test is planned; the check that each has a result is `pytest --testplan`."""

from pathlib import Path

import pytest

from hw.params import InputError
from hw.tb.testplan import Entry, Plan, bench_tests, load_plans, nightly_tests, problems, pytest_tests, without_result

ROOT = Path(__file__).resolve().parents[2]


def plan(*tests: str, nightly: bool = False) -> dict[str, Plan]:
    return {"p": Plan([Entry("e", intent="", stimulus="", check="", tests=list(tests), nightly=nightly)])}


def test_plans_and_tests_agree() -> None:
    assert list(problems(load_plans(ROOT), bench_tests(ROOT), pytest_tests(ROOT), nightly_tests(ROOT))) == []


def test_all_benches_are_seen() -> None:
    assert "hw.tb.crc32c.bench::random_segments" in bench_tests(ROOT)
    assert "tests/hw/test_testplan.py::test_all_benches_are_seen" in pytest_tests(ROOT)


@pytest.mark.parametrize(
    ("plans", "problem"),
    [
        (plan("b::t", "gone::t"), "p/e: gone::t does not exist"),
        (plan(), "p/e: no test"),
        ({}, "b::t: in no testplan"),
        (plan("b::t", "n::t"), "p/e: n::t runs at night only, but the entry does not say so"),
        ({"p": Plan(plan("b::t")["p"].entry * 2)}, "p/e: named twice"),
    ],
)
def test_disagreement_is_found(plans: dict[str, Plan], problem: str) -> None:
    assert problem in list(problems(plans, {"b::t"}, {"n::t"}, {"n::t"}))
    assert not list(problems(plan("b::t", "n::t", nightly=True), {"b::t"}, {"n::t"}, {"n::t"}))


def test_planned_test_without_result_is_found() -> None:
    assert without_result(plan("b::t", "b::u"), ["b::t"]) == ["b::u"]
    assert without_result(plan("b::t", nightly=True), []) == []


def test_bad_plan_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "hw/testplan").mkdir(parents=True)
    (tmp_path / "hw/testplan/x.toml").write_text("[[entry]]\nname = 'a'\nintend = 'b'\n")
    with pytest.raises(InputError, match=r"x\.toml: .*intend"):
        load_plans(tmp_path)
