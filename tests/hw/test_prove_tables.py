"""Proofs of the small machines around the core: each property fails when one guard of its unit is gone."""

from dataclasses import replace
from pathlib import Path

import pytest

from hw.formal import Verdict, all_properties, prove
from hw.formal.properties.scopes import ScopeDeath
from hw.formal.properties.usage import UsageQuota
from hw.rtl.node.scopes import ScopeTable
from hw.rtl.node.usage import Usage
from hw.tb.mutate import mutate

UNITS = {
    "usage.quota": (UsageQuota, Usage),
    "scopes.death": (ScopeDeath, ScopeTable),
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
