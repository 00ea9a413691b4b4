"""Options and fixtures that all tests share: seeds, benches, and the check that every planned test has a result."""

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from amaranth.lib import wiring

from hw.rtl.emit import emit
from hw.tb.runner import Run
from hw.tb.testplan import load_plans, without_result
from tests.everyday import everyday

ROOT = Path(__file__).resolve().parent.parent
SEED = "KVNODE_SEED"
BENCH_TEST = "bench test"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--testplan", action="store_true", help="fail when a planned test has no passing result")


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(SEED, str(secrets.randbelow(1 << 32)))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs this in the background ignores it
    config.pluginmanager.register(Planned(config), "planned")


def pytest_report_header() -> str:
    return f"seeds: 0 and {SEED}={os.environ[SEED]}"


class Planned:
    """Collects what passed, and ends the session with a failure when a planned test is not among it."""

    def __init__(self, config: pytest.Config):
        self.wanted = config.getoption("--testplan") and not hasattr(config, "workerinput")
        self.passed: set[str] = set()
        self.missing: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid.split("[")[0])
            self.passed.update(str(value) for name, value in report.user_properties if name == BENCH_TEST)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        if self.wanted:
            self.missing = without_result(load_plans(ROOT), self.passed)
            session.exitstatus = session.exitstatus or int(bool(self.missing))
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for test in self.missing:
            terminalreporter.write_line(f"planned, but without a passing result: {test}", red=True)


@pytest.fixture(params=everyday(["zero", "random"], "random"))
def seed(request: pytest.FixtureRequest) -> int:
    """One that KVNODE_SEED gives or chance; and, at night, seed 0."""
    return 0 if request.param == "zero" else int(os.environ[SEED])


@pytest.fixture
def run_bench(
    request: pytest.FixtureRequest, seed: int, record_property: Callable[[str, object], None]
) -> Callable[..., None]:
    """A function that runs the cocotb tests of `module` on `component`; keywords become the settings of the bench."""

    def run(component: wiring.Component, name: str, module: str, **settings: Any) -> None:
        emission = emit(component, name)
        for test in Run(emission=emission, module=module, settings=settings, seed=seed, node=request.node.nodeid)():
            record_property(BENCH_TEST, test)

    return run
