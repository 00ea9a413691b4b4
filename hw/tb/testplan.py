"""Testplans: what must be tested, and by which tests; `hw/testplan/NAME.toml`, a list of `[[entry]]`."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

import msgspec

from hw.params import InputError

NIGHTLY = ("pytest.mark.nightly", "NIGHTLY")
"""How a test says that only the long run has a result."""


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """One thing that must be tested.

    - `name`: short, unique in its plan.
    - `intent`, `stimulus`, `check`: why, what is done, what is compared with what.
    - `tests`: cocotb tests as `package.module::test`, pytest tests as `path/to/file.py::test`.
    - `nightly`: only the long run has a result.
    """

    name: str
    intent: str
    stimulus: str
    check: str
    tests: list[str]
    nightly: bool = False


class Plan(msgspec.Struct, forbid_unknown_fields=True):
    """The file of one block."""

    entry: list[Entry]


def load_plans(root: Path) -> dict[str, Plan]:
    """Return the plans under `root` by name. Raises InputError for a file that is none."""
    plans = {}
    for file in sorted((root / "hw/testplan").glob("*.toml")):
        try:
            plans[file.stem] = msgspec.convert(tomllib.loads(file.read_text()), Plan)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise InputError(f"{file}: {error}, expected the fields of `hw.tb.testplan.Entry`") from error
    return plans


def bench_tests(root: Path) -> set[str]:
    """Return all cocotb tests of the benches: functions decorated with `cocotb.test` in files named `bench*.py`."""
    return {
        f"{'.'.join(file.relative_to(root).with_suffix('').parts)}::{function.name}"
        for file in (root / "hw/tb").rglob("bench*.py")
        for function in _functions(file)
        if any(ast.unparse(decorator).startswith("cocotb.test") for decorator in function.decorator_list)
    }


def pytest_tests(root: Path) -> set[str]:
    """Return all pytest tests."""
    return {
        f"{file.relative_to(root).as_posix()}::{function.name}"
        for file in (root / "tests").rglob("test_*.py")
        for function in _functions(file)
        if function.name.startswith("test_")
    }


def nightly_tests(root: Path) -> set[str]:
    """Return the pytest tests that are decorated as nightly, whatever their parameters."""
    return {
        f"{file.relative_to(root).as_posix()}::{function.name}"
        for file in (root / "tests").rglob("test_*.py")
        for function in _functions(file)
        if any(ast.unparse(decorator) in NIGHTLY for decorator in function.decorator_list)
    }


def problems(
    plans: dict[str, Plan], benches: set[str], pytests: set[str], nightly: Set[str] = frozenset()
) -> Iterator[str]:
    """Yield what is wrong between plans and tests, one line each."""
    planned: set[str] = set()
    for plan_name, plan in plans.items():
        for entry in plan.entry:
            if not entry.tests:
                yield f"{plan_name}/{entry.name}: no test"
            for test in entry.tests:
                if test not in benches | pytests:
                    yield f"{plan_name}/{entry.name}: {test} does not exist"
                if test in nightly and not entry.nightly:
                    yield f"{plan_name}/{entry.name}: {test} runs at night only, but the entry does not say so"
            planned.update(entry.tests)
        names = [entry.name for entry in plan.entry]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{plan_name}/{name}: named twice"
    for test in sorted(benches - planned):
        yield f"{test}: in no testplan"


def without_result(plans: dict[str, Plan], passed: Iterable[str]) -> list[str]:
    """Return the tests planned for the everyday run that are not among `passed`."""
    planned = {test for plan in plans.values() for entry in plan.entry if not entry.nightly for test in entry.tests}
    return sorted(planned - set(passed))


def _functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
