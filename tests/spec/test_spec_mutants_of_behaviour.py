"""What no invariant forbids, a test of behaviour does: a seeded bug for each such test, and it fails."""

from collections.abc import Callable
from typing import Any

import pytest
import test_spec_events as events
import test_spec_lifetimes as lifetimes
import test_spec_quotas as quotas
import test_spec_replacement as replacement
from specbench import refuse, seed_bug, watch

from pymodel.spec import admin, blocks
from pymodel.spec.core import Core
from pymodel.spec.replacement import Replacement
from pymodel.spec.slots import Slots

SEEDS = range(5)

GIVES_UP = {
    "stops before it has gone round twice": (Replacement._victim, "range(2 * steps_around + 1)", "range(steps_around)"),
    "keeps every reference": (Replacement._advance, "frame.referenced = False", "pass"),
}


@pytest.mark.parametrize("name", GIVES_UP)
def test_a_hand_that_gives_up_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_bug(monkeypatch, *GIVES_UP[name])
    watch(monkeypatch)
    with pytest.raises(AssertionError, match="could go"):
        for seed in SEEDS:
            refuse(seed, victims=1)


BEHAVIOUR: dict[str, tuple[Callable[..., Any], str, str, Callable[[], None]]] = {
    "moves the hand only when the queue is empty": (
        Replacement._victim,
        "range(self._tables.scan_steps)",
        "range(0)",
        replacement.test_each_alloc_that_evicts_moves_the_hand_its_steps_though_the_queue_has_victims,
    ),
    "steps across the boundary of a word": (
        Replacement._advance,
        "(partition.hand // step + 1) * step",
        "partition.hand + step",
        replacement.test_the_hand_stops_at_the_boundaries_of_words_wherever_it_started,
    ),
    "takes a place in the queue for another block's": (
        Replacement._queued,
        "frame.partition is partition and frame.queued",
        "frame.partition is partition",
        replacement.test_a_block_in_a_frame_that_was_queued_for_another_has_no_place_in_the_queue,
    ),
    "leaves a new block in the queue": (
        Core.claim,
        "frame.referenced = frame.queued = False",
        "frame.referenced = False",
        replacement.test_a_block_in_a_frame_that_was_queued_for_another_has_no_place_in_the_queue,
    ),
    "leaves a new block its frame's reference": (
        Core.claim,
        "frame.referenced = frame.queued = False",
        "frame.queued = False",
        replacement.test_a_new_block_does_not_inherit_a_reference,
    ),
    "leaves the hand in the middle of another pool": (
        admin.set_partition,
        "partition.hand = 0",
        "pass",
        replacement.test_in_another_pool_the_hand_starts_anew_with_an_empty_queue,
    ),
    "leaves victims of another pool in the queue": (
        admin.set_partition,
        "partition.victims.clear()",
        "pass",
        replacement.test_in_another_pool_the_hand_starts_anew_with_an_empty_queue,
    ),
    "never takes from the one that asks": (
        Replacement._donor,
        "if p.used > p.guarantee",
        "if p.used > p.guarantee and p is not partition",
        quotas.test_who_is_furthest_above_its_guarantee_takes_its_own_below_its_quota_too,
    ),
    "takes no quota for none set": (
        blocks.alloc,
        "partition.used >= partition.quota",
        "partition.used >= partition.quota > 0",
        quotas.test_a_partition_without_a_quota_is_at_its_quota,
    ),
    "tells partition 0 alone that a model died": (
        admin.retire,
        "core.ports()",
        "core.ports(core.partitions[0])",
        events.test_every_port_with_a_tenant_hears_that_a_model_was_retired,
    ),
    "gives the slot out again that was returned last": (
        Slots.take,
        "free.popleft()",
        "free.pop()",
        lifetimes.test_the_slot_that_has_been_free_longest_is_taken,
    ),
}


@pytest.mark.parametrize("name", BEHAVIOUR)
def test_what_only_behaviour_shows_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, old, new, test = BEHAVIOUR[name]
    seed_bug(monkeypatch, function, old, new)
    with pytest.raises(AssertionError, match="assert"):
        test()
