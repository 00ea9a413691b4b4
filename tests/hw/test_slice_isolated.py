"""A slice whose partitions are isolated: over its links, too, they are told nothing of each other."""

from typing import Any

import pytest

from hw.rtl.emit import Emission, emit
from hw.rtl.node.core import control
from hw.rtl.node.slice import Slice
from hw.tb.core.world import NOT_OURS, Moves
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.slice.compiled import CompiledWorld
from hw.tb.slice.world import World
from pymodel.spec import IllegalOperation, InvariantViolation, isolation
from pymodel.spec import slice as spec_slice
from pymodel.spec.check.independence import independent
from pymodel.stimulus.tenants import Tenants
from tests.hw.corebench import isolated
from tests.hw.test_slice import LATE, LIFE, SLOW

PARAMS = isolated()
PACES: tuple[dict[str, Any], ...] = ({}, {"memory": LATE, "links": SLOW})
"""In a hurry; everything late."""

WORLDS = 20
"""Of a night, for each seed."""

TENANCY = 1_500
"""Commands of tenants; their log is executed again for each of them, without the others."""


def play(seed: int, commands: int, *, script: Moves | None = None, emission: Emission | None = None) -> World:
    """A world of so many commands."""
    compiled = CompiledWorld(PARAMS, seed, script=script, emission=emission, **PACES[seed % 2])
    compiled.play(commands)
    compiled.harness.close()
    return compiled.world


def apart(seed: int, commands: int, emission: Emission | None = None) -> int:
    """Partitions keep to themselves; the log must tell each the same without the others. How much they did."""
    world = play(seed, commands, script=Tenants(PARAMS, seed, without=NOT_OURS), emission=emission)
    return sum(independent(PARAMS, world.log, observer) for observer in range(PARAMS.tables.partitions))


@pytest.mark.nightly
def test_an_isolated_slice_equals_the_specification(seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_slice_isolated.py -m nightly")
    for i in range(WORLDS):
        world = play(seed + i, LIFE)
        assert world.compared and world.placed


@pytest.mark.nightly
def test_isolated_partitions_are_told_nothing_of_each_other_over_links(seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_slice_isolated.py -m nightly")
    for i in range(WORLDS):
        assert apart(seed + i, TENANCY) > TENANCY


def leaking(monkeypatch: pytest.MonkeyPatch) -> Emission:
    """A slice in which a ring may ask for the sessions of other partitions."""
    good = "(is_in(op, IN_SESSION) & (op.slot.slot[: len(t.share)] != mine))"
    monkeypatch.setattr(control, "foreign", mutate(control.foreign, good, "0"))
    return emit(Slice(PARAMS), "slice")


@pytest.mark.nightly
def test_a_leak_is_found_even_if_the_specification_has_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    emission = leaking(monkeypatch)
    with pytest.raises((CheckError, IllegalOperation, InvariantViolation)):
        play(0, TENANCY, emission=emission)
    good = "command.session.slot % core.params.shares != partition.id"
    monkeypatch.setattr(spec_slice, "foreign", mutate(isolation.foreign, good, "False"))
    with pytest.raises(InvariantViolation, match="invariant 12"):
        for seed in range(WORLDS):
            apart(seed, TENANCY, emission)
