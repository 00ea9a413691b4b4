"""Proofs of the core: their stories reach what they claim about."""

import pytest

from hw.formal import all_properties
from hw.formal.node.stories import LIFE
from hw.formal.properties.core_frames import PinnedFrame, UnsealedFrame
from hw.formal.story import Step, missed

TOLD = [name for name, prop in all_properties().items() if isinstance(prop.cover, tuple)]


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
