"""Invariant 12 in time: what comes to a partition's port is the same in every cycle, whatever others do."""

from dataclasses import replace
from typing import Any

import pytest

from hw.params.dram import MAPS, Controller
from hw.rtl.emit import emit
from hw.rtl.node import dispatch, fences, parking, rota
from hw.rtl.node import slice as slice_
from hw.rtl.node.core import internal, tables
from hw.rtl.node.data import read_lane, read_path, write_lane, write_path
from hw.rtl.node.slice import Slice
from hw.tb.mutate import mutate
from hw.tb.slice.diary import KINDS
from hw.tb.slice.watched import CHANNEL, behind, watch, watched_params

PARAMS = watched_params()
LOADS = 20
"""Of a night: the first is nothing, then each kind by itself, then mixes."""


@pytest.mark.nightly
def test_a_partition_sees_nothing_of_another_in_any_cycle(seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_slice_time.py -m nightly", flush=True)
    alone = watch(PARAMS, 0)
    assert len(alone) > 500
    for number in (*range(1, len(KINDS) + 1), *range(len(KINDS) + 1 + seed, LOADS + seed)):
        assert watch(PARAMS, number) == alone, f"load {number}"


@pytest.mark.nightly
def test_in_a_shared_slice_it_sees_every_load() -> None:
    shared = watched_params("shared")
    alone = watch(shared, 0)
    assert all(watch(shared, number) != alone for number in range(1, len(KINDS) + 1))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["rows stay open", "slower than the guard"])
def test_memory_that_does_not_come_to_rest_is_seen(name: str) -> None:
    memory = {
        "rows stay open": behind(replace(CHANNEL, controller=Controller(queue=16, high=12, low=4))),
        "slower than the guard": behind(replace(CHANNEL, map=MAPS["row"])),
    }[name]
    alone = watch(PARAMS, 0, memory=memory)
    assert any(watch(PARAMS, number, memory=memory) != alone for number in range(1, LOADS))


MUTANTS: dict[str, tuple[Any, str, Any, str, str]] = {
    "reads in all turns": (
        read_path,
        "ReadLane",
        read_lane.ReadLane,
        "rota.memory(read.valid & bank.free, i)",
        "read.valid & bank.free",
    ),
    "writes in all turns": (
        write_path,
        "WriteLane",
        write_lane.WriteLane,
        "rota.memory(bank.bursts.valid, i)",
        "bank.bursts.valid",
    ),
    "commands in all turns": (
        slice_,
        "Dispatch",
        dispatch.Dispatch,
        "turn.only(each.valid, i)\n",
        "each.valid\n",
    ),
    "no guard": (slice_, "Rota", rota.Rota, "left > times.guard", "left > 0"),
    "hands of all": (
        internal,
        "_of_share",
        internal._of_share,
        "t.turn.only(value, ring // t.params.tables.rings_per_port)",
        "value",
    ),
    "parked READs of all": (
        tables,
        "Parking",
        parking.Parking,
        "turn.only(each.used & (each.woken | each.late) & self.may_resume.bit_select(each.port, 1), i)",
        "each.used & (each.woken | each.late) & self.may_resume.bit_select(each.port, 1)",
    ),
    "migrations of all": (
        tables,
        "Fences",
        fences.Fences,
        "turn.only(each.used & (each.landed | each.late | forsaken[i]), i)",
        "each.used & (each.landed | each.late | forsaken[i])",
    ),
}
"""Name to where it is looked up and as what, what it is, what is right and what is wrong."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_a_part_that_takes_no_turns_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, looked_up, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, looked_up, mutate(target, good, bad))
    emission = emit(Slice(PARAMS), "slice")
    alone = watch(PARAMS, 0, emission=emission)
    assert any(watch(PARAMS, number, emission=emission) != alone for number in range(1, LOADS))
