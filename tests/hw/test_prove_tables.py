"""Proofs of the small machines around the core: each property fails when one guard of its unit is gone."""

from dataclasses import replace
from pathlib import Path

import pytest

from hw.formal import Verdict, all_properties, prove
from hw.formal.properties.parking import ParkedReads
from hw.formal.properties.scopes import ScopeDeath
from hw.formal.properties.slots import SlotNames
from hw.formal.properties.usage import UsageQuota
from hw.rtl.node.free_queues import FreeQueues
from hw.rtl.node.parking import Parking
from hw.rtl.node.scopes import ScopeTable
from hw.rtl.node.slots import SlotTables
from hw.rtl.node.usage import Usage
from hw.tb.mutate import mutate

UNITS = {
    "usage.quota": (UsageQuota, Usage),
    "scopes.death": (ScopeDeath, ScopeTable),
    "slots.names": (SlotNames, SlotTables),
    "parking.turns": (ParkedReads, Parking),
}
"""Property to its design, and the class under proof."""

GUARDS = {
    "a frame at the quota": ("usage.quota", "used[self.query] >= asked.quota", "used[self.query] > asked.quota"),
    "borrowed what is guaranteed": ("usage.quota", "< serving[asked.pool]", "<= serving[asked.pool]"),
    "the last guaranteed frame is borrowed": ("usage.quota", ">= gaining.guarantee", "> gaining.guarantee"),
    "a tie goes to the highest": ("usage.quota", "wins = high[0] > low[0]", "wins = high[0] >= low[0]"),
    "a donor of another pool": ("usage.quota", "configured[p] & (limits[p].pool == pool)", "configured[p]"),
    "a new guarantee forgets the old": ("usage.quota", "- was + now", "+ now"),
    "quarantined frames serve": ("usage.quota", "serving[self.quarantine_pool] - 1", "serving[self.quarantine_pool]"),
    "repaid to another pool": (
        "usage.quota",
        "borrows & ~(repays & (gaining.pool == losing.pool))",
        "borrows & ~repays",
    ),
    "a stamp comes back": ("scopes.death", "~old.closed & ~old.bumps.all()", "~old.closed"),
    "opened before the last has left": ("scopes.death", "last.eq(old.stale == 1)", "last.eq(1)"),
    "the dead count as alive, too": ("scopes.death", "new.live.eq(0)", "new.live.eq(old.live)"),
    "the dead leave a closed scope as if alive": (
        "scopes.death",
        "~old.closed & (self.stamp == old.generation)",
        "self.stamp == old.generation",
    ),
    "alive in a closed scope": ("scopes.death", "~asked.data.closed & (asked", "(asked"),
    "worn out, and given again": ("slots.names", "m.Case(SlotOp.RELEASE), m.If(~saturated)", "m.Case(SlotOp.RELEASE)"),
    "a name given twice": (
        "slots.names",
        "released.generation.eq(self.generation + 1)",
        "released.generation.eq(self.generation)",
    ),
    "released to the table that offers": ("slots.names", "push_queue.eq(asked.table)", "push_queue.eq(offered)"),
    "taken from the table of the next offer": (
        "slots.names",
        "Cat(self.free_slot, offered)",
        "Cat(self.free_slot, self.offer_table)",
    ),
    "offered though taken": ("slots.names", "free.pop.eq(1)", "free.pop.eq(0)"),
    "not all are woken": ("parking.turns", "self.wake_all | ", ""),
    "one that has left asks": ("parking.turns", "each.used & (each.woken", "(each.woken"),
    "the lowest is always first": ("parking.turns", "behind.eq(asking & ~passed)", "behind.eq(asking)"),
    "late at once": ("parking.turns", "each.late.eq(each.aged)", "each.late.eq(1)"),
    "another leaves": ("parking.turns", "self.release & (picked == i)", "self.release & (self.slot == i)"),
    "asks for a port that may not go on": ("parking.turns", " & self.may_resume.bit_select(each.port, 1)", ""),
    "the time stands still": ("parking.turns", "each.aged.eq(1), ", ""),
}
"""What goes wrong to the property that fails, what is right and what is wrong."""

EVERYDAY = {guard[0]: name for name, guard in reversed(GUARDS.items())}.values()
"""The first of each property."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name not in EVERYDAY)) for name in GUARDS]
)
def test_property_fails_without_a_guard(tmp_path: Path, name: str) -> None:
    prop, good, bad = GUARDS[name]
    design, unit = UNITS[prop]
    mutant = mutate(unit, good, bad)
    outcome = prove(replace(all_properties()[prop], design=lambda: design(mutant)), build=tmp_path)
    assert outcome.verdict is Verdict.FAILED


QUEUE_GUARDS = {
    "pushed beyond the end": ("end >= sizes[self.push_queue]", "end > sizes[self.push_queue]"),
    "an offer of what is popped": ("Mux(popping, following, oldest", "Mux(0, following, oldest"),
    "pushed to the queue that offers": ("count[self.push_queue].eq(", "count[offered].eq("),
}
"""What goes wrong to what is right and what is wrong."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (i != 0)) for i, name in enumerate(QUEUE_GUARDS)]
)
def test_slots_fail_without_a_guard_of_their_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("hw.rtl.node.slots.FreeQueues", mutate(FreeQueues, *QUEUE_GUARDS[name]))
    assert prove(all_properties()["slots.names"], build=tmp_path).verdict is Verdict.FAILED
