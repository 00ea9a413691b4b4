"""Prefetch engines with a seeded bug, each of which a story of `test_prefetch.py` finds."""

from collections.abc import Callable
from typing import Any

import pytest

from hw.rtl.gpu import answers, contexts, ender, engines, requester, starter
from hw.rtl.gpu.contexts import Contexts
from hw.rtl.gpu.ender import Ender
from hw.rtl.gpu.inspector import Inspector
from hw.rtl.gpu.layouts import Owner
from hw.rtl.gpu.prefetch import job, prefetch
from hw.rtl.gpu.prefetch.arrivals import Arrivals
from hw.rtl.gpu.prefetch.fills import Fills
from hw.rtl.gpu.prefetch.issuer import Issuer
from hw.rtl.gpu.prefetch.job import Job
from hw.rtl.gpu.prefetch.lister import Lister
from hw.rtl.gpu.prefetch.prefetch import Prefetch
from hw.rtl.gpu.starter import Starter
from hw.rtl.gpu.waits import Waits
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.test_prefetch import cancelled, cut, lists, lost, merged, play, refused, staged

Story = Callable[..., Any]

MUTANTS: dict[str, tuple[type, str, str, Story, float]] = {
    "a damaged segment is taken for good": (Inspector, "now.crc != crc.crcs.payload", "0", lists, 0.9),
    "a segment that is not what was stored is taken for good": (Inspector, "~now.ok | ", "", lists, 0.9),
    "a check is not waited for": (Waits, ' - ack("checked"))', ")", lists, 0),
    "a damaged segment ends OK": (Contexts, "course.poisoned & read.data.status", "0 & read.data.status", lists, 0.9),
    "a bad block is marked arrived": (
        Arrivals,
        "mark.record.flags.arrived.eq(~self.bad)",
        "mark.record.flags.arrived.eq(1)",
        lists,
        0.9,
    ),
    "a range behind a bad one is marked": (
        Arrivals,
        "self.marks.valid.eq(writes & ~self.bad)",
        "self.marks.valid.eq(writes)",
        lists,
        0.9,
    ),
    "the last status of a bad block is told": (
        Arrivals,
        "with m.If(~good & ~self.bad)",
        "with m.If(~good)",
        lists,
        0.9,
    ),
    "a mark does not wait": (Arrivals, "(self.over >> new.fill)[0] & self.releases.ready)", "1)", lists, 0),
    "a mark that is refused is forgotten": (Arrivals, "self.failed.eq(1)", "self.failed.eq(0)", refused, 0),
    "marks are not waited for": (Arrivals, "& (under_way == 0)", "", lists, 0),
    "what a ring that has stopped wanted is marked": (Arrivals, "writes.eq(self.runs)", "writes.eq(1)", lost, 0),
    "a range of a length that is none": (
        Job,
        "in_range.eq(Mux(left == 0, descriptor.slot.as_value(), left))",
        "in_range.eq(left)",
        lists,
        0,
    ),
    "segments behind the block are wanted": (Job, "Mux(rest < least, rest, least)", "least", lists, 0),
    "a range larger than its ring is begun": (Job, " | ((ring < segments) & (ring < length))", "", refused, 0),
    "room is not waited for": (Job, "room.eq(~staged | (used + wanted <= size))", "room.eq(1)", staged, 0),
    "segments go over the end of the ring": (Job, "staged & (to_end < least)", "0", staged, 0),
    "a bad block takes no more places": (Job, "place.eq(place + rest)", "place.eq(place)", staged, 0.6),
    "the list is read on behind an error": (Job, "refused.eq(self.listed.payload.error)", "refused.eq(0)", refused, 0),
    "an end is not waited for": (Job, "arrivals.idle & ~steps.o.valid & ~reading", "~reading", lists, 0),
    "a CANCEL is not answered": (Job, "with m.If(self.cancelled):", "with m.If(0):", cancelled, 0),
    "a CANCEL stops nothing": (Job, "~runs | self.cancelled | refused", "~runs | refused", cancelled, 0),
    "another CANCEL takes the place of the first": (
        Prefetch,
        "cancels & ~taken & (found",
        "cancels & (found",
        cancelled,
        0,
    ),
    "jobs hear of entries of others": (Job, "(self.listed.payload.job == self._number)", "1", lists, 0),
    "a fill is free too soon": (Fills, "with m.If(left & (users == 1)):", "with m.If(left):", merged, 0),
    "a fill stays": (Fills, "with m.If(left & (users == 1)):", "with m.If(left & (users == 2)):", lists, 0),
    "nothing is merged": (Fills, "merge.eq(self.ask & same.any())", "merge.eq(0 & same.any())", merged, 0),
    "the window does not open": (
        Fills,
        "Mux(allocate, read.count, 0) - ending",
        "Mux(allocate, read.count, 0)",
        lists,
        0,
    ),
    "a READ goes over the end of a page": (Issuer, "place.scattered & (left < want.count)", "0", lists, 0),
    "a page that is in error is written": (Issuer, "with m.If(self.found.payload.error):", "with m.If(0):", lists, 0.9),
    "an error of a list is swallowed": (Lister, "error.eq(error | beat.error)", "error.eq(0)", refused, 0),
    "a command of an engine completes on the ring": (
        Ender,
        "foreign.eq(done.payload.owner.matches(*self._owners))",
        "foreign.eq(0)",
        lists,
        0,
    ),
    "a context of an engine is counted on its ring": (
        Contexts,
        "released.valid & ~(foreign >> released.payload.token)[0]",
        "released.valid",
        lost,
        0,
    ),
    "a restart ends a task before its engine": (Waits, "waits = used & ~task & (", "waits = used & (", cut, 0),
    "engines leave no context free": (
        Starter,
        "with m.If(~software.valid & self.spare & free)",
        "with m.If(free)",
        lists,
        0,
    ),
}


def patch(monkeypatch: pytest.MonkeyPatch, target: type, mutant: type) -> None:
    """Let the mutant be what every module that builds a requester knows by its name."""
    for module in (answers, contexts, ender, engines, job, prefetch, requester, starter):
        if hasattr(module, target.__name__):
            monkeypatch.setattr(module, target.__name__, mutant)
    if target is Prefetch:
        monkeypatch.setitem(engines.KINDS, Owner.PREFETCH, mutant)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad, story, rate = MUTANTS[name]
    patch(monkeypatch, target, mutate(target, good, bad))
    with pytest.raises(CheckError):
        for seed in range(4):
            play(64, seed, story, rate=rate)
