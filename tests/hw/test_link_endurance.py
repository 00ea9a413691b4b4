"""Links with replay, compiled: millions of cycles, wires of up to two thousand."""

from collections.abc import Iterator
from typing import Any

import pytest

from hw.rtl.fabric import link_end
from hw.rtl.fabric.acceptance import Acceptance
from hw.rtl.fabric.join import Join
from hw.rtl.fabric.link_end import LinkEnd
from hw.tb.link import endurance
from hw.tb.link.endurance import Course, Program, program
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.linkbench import link_params

LONG, SHORT, WIDE = 2_000, 20, 3
"""Latencies, and the pieces of a word on the short wire."""

BAD: dict[str, Any] = {"flip": 0.01, "lose": 0.01, "spell": 0.001, "length": 60}
AWAY = {"cut_every": 9_000, "cut_cycles": 6_000, "reset_every": 2_000}
"""All that can happen."""

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def long() -> Iterator[Program]:
    """A link for a wire of two thousand cycles, with credits that cover it."""
    params = link_params(latency=LONG)
    with program(params, credits=params.link_round_trip // 2 + 8) as made:
        yield made


@pytest.fixture(scope="module")
def short() -> Iterator[Program]:
    """A link for a wire of twenty cycles, with a word in three pieces."""
    with program(link_params(latency=SHORT, flit_cycles=WIDE), credits=12) as made:
        yield made


def test_two_thousand_cycles_carry_a_flit_a_cycle(long: Program) -> None:
    """At the full rate both ways; and seven cycles behind the wire where no flit waits for a credit."""
    seldom = long.run(Course(cycles=60_000, latency=LONG, moody=True), seed=0)
    assert seldom.least == LONG + 7
    found = long.run(Course(cycles=60_000, latency=LONG), seed=0)
    start = 3 * LONG
    assert found.flits > 2 * (found.cycles - start - LONG)


def test_wires_go_wrong_for_long(long: Program, seed: int) -> None:
    print(f"seed {seed}")
    bad = {"flip": 1e-4, "lose": 1e-4, "spell": 1e-5, "length": 400}
    found = long.run(Course(cycles=1_000_000, latency=LONG, moody=True, **bad), seed=seed)
    assert found.flits > 50_000 and found.hit > 200


def test_ends_come_and_go_for_long(long: Program, seed: int) -> None:
    print(f"seed {seed}")
    away = {"cut_every": 200_000, "cut_cycles": 150_000, "reset_every": 40_000}
    found = long.run(Course(cycles=1_500_000, latency=LONG, flip=1e-4, moody=True, **away), seed=seed)
    assert found.flits > 20_000 and found.ups > 5 and found.failed


@pytest.mark.parametrize("latency", [0, 1, 2, 7, SHORT])
def test_everything_at_once(short: Program, latency: int, seed: int) -> None:
    """Any wire that is no longer than the link is made for, with all that can happen."""
    print(f"seed {seed}")
    found = short.run(Course(cycles=1_000_000, latency=latency, moody=True, **BAD, **AWAY), seed=seed)
    assert found.flits > 20_000 and found.ups > 50 and found.failed > 5


MUTANTS = {
    "a flit behind a lost one is taken": (Acceptance, "self.flow.carries & (ahead == 0)", "self.flow.carries"),
    "no silence": (Join, "(quiet == 0) &", ""),
    "a flit of before, behind a hold": (LinkEnd, "acceptance.take & ~self.hold", "acceptance.take"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the seed: each is rare, and takes 100,000 cycles on average at the most."""
    target, good, bad = MUTANTS[name]
    holder = endurance if target is LinkEnd else link_end
    monkeypatch.setattr(holder, target.__name__, mutate(target, good, bad))
    course = Course(cycles=2_000_000, latency=SHORT, moody=True, **BAD, **(AWAY | {"reset_every": 500}))
    with program(link_params(latency=SHORT, flit_cycles=WIDE), credits=12) as made:
        for seed in range(8):
            with pytest.raises(CheckError):
                made.run(course, seed=seed)
