"""Proofs of the core: their stories reach what they claim about, and each guard of the hardware is needed."""

from dataclasses import replace

import pytest

from hw.formal import all_properties
from hw.formal.guards import GUARDS, Guard, removed, survives
from hw.formal.node.stories import LIFE
from hw.formal.properties.core_frames import PinnedFrame, UnsealedFrame
from hw.formal.story import Step, missed
from hw.tb.mutate import mutate
from scripts import cli
from scripts import prove as command

TOLD = [name for name, prop in all_properties().items() if isinstance(prop.cover, tuple)]
EVERY_DAY = ("a drained frame's use is given back",)
"""Guards that are removed in every run; the others have their turn at night."""


@pytest.mark.parametrize("name", TOLD)
def test_story_reaches_every_cover(name: str) -> None:
    prop = all_properties()[name]
    assert isinstance(prop.cover, tuple)
    assert missed(prop.design(), prop.cover) == []


def test_a_cover_that_a_story_does_not_reach_is_named() -> None:
    assert len(missed(PinnedFrame(), LIFE[:5])) == 4


def test_a_story_that_breaks_a_rule_shows_nothing() -> None:
    with pytest.raises(ValueError, match=r"the story breaks the assume at core_frames\.py"):
        missed(UnsealedFrame(), (*LIFE[:5], Step("READ_DONE")))


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_guard_is_in_the_source_once(guard: Guard) -> None:
    assert mutate(guard.target, guard.text, guard.instead)
    assert guard.needs in all_properties()


@pytest.mark.parametrize(
    "guard",
    [pytest.param(g, id=g.name, marks=[pytest.mark.nightly] * (g.name not in EVERY_DAY)) for g in GUARDS],
)
def test_property_does_not_hold_without_its_guard(tmp_path_factory: pytest.TempPathFactory, guard: Guard) -> None:
    assert not survives(guard, build=tmp_path_factory.mktemp("guards"))


def test_a_guard_is_back_after_its_removal() -> None:
    guard = GUARDS[0]
    with removed(guard):
        pass
    assert getattr(__import__(guard.target.__module__, fromlist=["_"]), guard.target.__name__) is guard.target


def test_command_fails_when_a_guard_is_not_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed, idle = (replace(GUARDS[0], name=name) for name in ("needed", "idle"))
    monkeypatch.setattr(command, "GUARDS", (needed, idle))
    monkeypatch.setattr(command, "survives", lambda guard: guard is idle)
    assert cli.run(["prove", "--guards", needed.needs]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"needed  {needed.needs} fails without it",
        f"idle    {needed.needs} PROVED WITHOUT IT",
    ]
    assert cli.run(["prove", "--guards", "cam.tag"]) == 0
