"""Guards: every property needs some, each is needed, and a failure without one becomes a test."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil

from hw.formal import Guard, Outcome, Property, Verdict, all_guards, all_properties, prove, removed, without
from hw.formal import properties as proved
from hw.formal.guard import Sign
from hw.formal.trace import read_inputs, replay
from hw.rtl import fabric
from hw.rtl.node import parking
from hw.rtl.node.core import tables
from hw.tb.mutate import mutate
from scripts import cli
from scripts import prove as command

PROPERTIES, GUARDS = all_properties(), all_guards()
FIRST = {guard.needs: guard for guard in reversed(GUARDS)}
"""The first guard of each property."""

LONG = ("core_", "crc32c.value", "link.credits", "link.order", "prefetch.", "replacement.")
"""Properties all of whose guards have their turn at night; of the others the first one is removed in every run."""

PARTS = {(guard.needs, guard.target.__qualname__): guard for guard in reversed(GUARDS)}
"""The first guard of each property in each class or function."""


def text_of(prop: Property) -> str:
    """The design as it is proved."""
    return rtlil.convert(prop.design(), name="top", emit_src=False)


def idle(guard: Guard) -> Property:
    """The property with a mutant that changes nothing."""
    return without(replace(guard, instead=guard.text), PROPERTIES[guard.needs])


def test_every_property_needs_a_guard() -> None:
    assert FIRST.keys() == PROPERTIES.keys()


def test_no_two_guards_have_the_same_name() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
    assert len({without(guard, PROPERTIES[guard.needs]).name for guard in GUARDS}) == len(GUARDS)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_guard_is_in_the_source_once(guard: Guard) -> None:
    assert mutate(guard.target, guard.text, guard.instead)


@pytest.mark.parametrize(
    "guard",
    [pytest.param(g, id=g.name, marks=[pytest.mark.nightly] * g.needs.startswith("core_")) for g in PARTS.values()],
)
def test_nothing_but_the_guard_is_removed(guard: Guard) -> None:
    assert text_of(idle(guard)) == text_of(PROPERTIES[guard.needs])


def test_a_mutant_that_does_not_see_the_small_parameters_is_another_design(monkeypatch: pytest.MonkeyPatch) -> None:
    names = dict(vars(parking))
    exec(inspect.getsource(parking.Parking), names)
    monkeypatch.setattr("hw.formal.guard.mutate", lambda *_: names["Parking"])
    assert text_of(idle(FIRST["parking.turns"])) != text_of(PROPERTIES["parking.turns"])


@pytest.mark.parametrize(
    "guard",
    [
        pytest.param(g, id=g.name, marks=[pytest.mark.nightly] * (g.needs.startswith(LONG) or g is not FIRST[g.needs]))
        for g in GUARDS
    ],
)
def test_property_does_not_hold_without_its_guard(tmp_path_factory: pytest.TempPathFactory, guard: Guard) -> None:
    """And where the simulator begins as the failure does, the same claim fails there, in the same cycle."""
    prop = without(guard, PROPERTIES[guard.needs])
    outcome = prove(prop, build=tmp_path_factory.mktemp("guards"))
    assert guard.needed(outcome)
    if guard.sign is Sign.REPLAYED:
        assert outcome.trace
        failing = prop.design()
        inputs = read_inputs(outcome.trace, failing)
        assert outcome.detail in replay(failing, inputs)[len(inputs) - 1]


@pytest.mark.parametrize(
    ("target", "holders"),
    [
        (fabric.Transmitter, (fabric, fabric.transmitter, proved.fabric)),
        (tables.Tables._derive, (tables.Tables,)),
    ],
)
def test_removal_reaches_all_that_hold_the_target_and_ends(target: Any, holders: tuple[Any, ...]) -> None:
    guard = next(guard for guard in GUARDS if guard.target is target)
    with removed(guard):
        assert all(getattr(holder, target.__name__) is not target for holder in holders)
    assert all(getattr(holder, target.__name__) is target for holder in holders)


def found(verdict: Verdict, *, trace: bool = False) -> Outcome:
    return Outcome(name="", verdict=verdict, seconds=0, covered=False, trace=Path("waves") if trace else None)


def test_a_guard_is_needed_if_a_claim_fails_or_where_that_is_enough_if_the_induction_does() -> None:
    failed, stuck = found(Verdict.FAILED, trace=True), found(Verdict.UNDECIDED, trace=True)
    late, uncovered = found(Verdict.UNDECIDED), found(Verdict.PROVED)
    guards = {sign: replace(GUARDS[0], sign=sign) for sign in Sign}
    assert all(guard.needed(failed) for guard in guards.values())
    assert [sign for sign, guard in guards.items() if guard.needed(stuck)] == [Sign.OPEN]
    assert not any(guard.needed(outcome) for guard in guards.values() for outcome in (late, uncovered))


def remove(monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, Outcome]) -> int:
    """Run the command with a guard of each name, whose removal ends like this."""
    guard = FIRST["slots.names"]
    monkeypatch.setattr(command, "all_guards", lambda: [replace(guard, name=name) for name in outcomes])
    monkeypatch.setattr(command, "prove", lambda prop, *, fresh: outcomes[prop.name.split("-")[-1]])
    return cli.run(["prove", "--guards", "slots"])


def test_command_fails_when_a_guard_is_not_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {
        "needed": found(Verdict.FAILED),
        "idle": found(Verdict.PROVED),
        "unknown": found(Verdict.UNDECIDED),
    }
    assert remove(monkeypatch, outcomes) == 1
    assert capsys.readouterr().out.splitlines() == [
        "needed   slots.names fails without it",
        "idle     slots.names PROVED WITHOUT IT",
        "unknown  slots.names UNDECIDED WITHOUT IT",
    ]
    assert remove(monkeypatch, {"needed": found(Verdict.FAILED)}) == 0


def test_command_removes_the_guards_of_what_is_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "prove", lambda prop, *, fresh: found(Verdict.FAILED))
    assert cli.run(["prove", "--guards"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(GUARDS)
    assert cli.run(["prove", "--guards", "cam.tag"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == sum(guard.needs == "cam.tag" for guard in GUARDS)
