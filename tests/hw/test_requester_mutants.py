"""Requesters with a seeded bug, each of which a story of `test_requester.py` finds. Most are for the nights."""

from collections.abc import Callable

import pytest

from hw.rtl.gpu import contexts, requester, rings
from hw.rtl.gpu.completer import Completer
from hw.rtl.gpu.contexts import Contexts
from hw.rtl.gpu.events import Events
from hw.rtl.gpu.finisher import Finisher
from hw.rtl.gpu.mover import Mover
from hw.rtl.gpu.placer import Placer
from hw.rtl.gpu.requester import Requester
from hw.rtl.gpu.ring import Ring
from hw.rtl.gpu.sender import Sender
from hw.rtl.gpu.starter import Starter
from hw.rtl.gpu.waits import Waits
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.everyday import everyday
from tests.hw import requester_world
from tests.hw.requester_commands import Commands
from tests.hw.requester_world import World
from tests.hw.test_requester import (
    play,
    play_again,
    play_away,
    play_bereaving,
    play_losing,
    play_restarting,
    play_silenced,
    play_telling,
    play_whole,
)

MUTANTS: dict[str, tuple[type, str, str, Callable[[int], World]]] = {
    "what comes while the node is away waits for it": (
        Requester,
        "cutoff.cutting & ~cutoff.away",
        "cutoff.cutting",
        play_away,
    ),
    "what comes while the node is away is sent": (Starter, "self.away & ~judged.refused", "0", play_away),
    "a completion does not wait for its data": (
        Waits,
        "(ended | ~streamed) & (bursts == 0)",
        "(ended | ~streamed)",
        lambda seed: play(64, seed),
    ),
    "the phase stays after a round": (
        Ring,
        "Mux(self.completed == mask, ~self.phase, self.phase)",
        "self.phase",
        lambda seed: play(64, seed),
    ),
    "room for completions is not counted": (
        Ring,
        "(self.next != state.tail) & (after_next != state.head)",
        "(self.next != state.tail)",
        lambda seed: World(64, seed).overrun(),
    ),
    "a loss is not told": (
        Ring,
        "settings.lose | self.failing | (self.running & ~settings.enable)",
        "settings.lose",
        lambda seed: play(64, seed, losses=0.2),
    ),
    "a ring is inactive before its commands have ended": (
        Ring,
        "~self.telling & (outstanding == 0)",
        "~self.telling",
        lambda seed: play(64, seed, losses=0.2),
    ),
    "a ring that is lost gets completions": (
        Completer,
        "runs.eq((self.running >> done.ring)[0])",
        "runs.eq(1)",
        play_silenced,
    ),
    "a ring that is lost gets results": (
        Finisher,
        "answer.written.eq((self.running >> context.ring)[0])",
        "answer.written.eq(1)",
        play_silenced,
    ),
    "a ring that is lost gets data": (
        Contexts,
        "self.mute.eq(~(self.running >> by_data.data.ring)[0] | beyond)",
        "self.mute.eq(beyond)",
        play_silenced,
    ),
    "what a READ met that was cut off meets the next one": (
        Placer,
        "target.known & (number == 0)",
        "self.ended.valid",
        lambda seed: play_restarting(seed, 64, rate=0.6),
    ),
    "a READ that is cut off is taken for whole": (
        Contexts,
        "self.ended.valid & ~self.cutting",
        "self.ended.valid",
        play_restarting,
    ),
    "the mark of a restart is taken for the end of a READ": (
        Contexts,
        "self.ended.valid & ~self.cutting",
        "self.ended.valid",
        play_whole,
    ),
    "a link is never renewed": (
        Requester,
        "cutoff.abandon & cutoff.idle & self.restarting",
        "0",
        play_losing,
    ),
    "a loss behind a restart is not told": (
        Requester,
        "(losses, notes.losses, self.restarting)",
        "(losses, notes.losses, self._cutoff.cutting)",
        play_bereaving,
    ),
    "a loss behind a restart is not waited for": (
        Requester,
        "self._rings.cut.eq(self.restarting)",
        "self._rings.cut.eq(cutoff.cutting)",
        play_bereaving,
    ),
    "a loss that a restart has swallowed is waited for": (
        Requester,
        "self._rings.cut.eq(self.restarting)",
        "self._rings.cut.eq(0)",
        play_bereaving,
    ),
    "a stale tag is accepted": (
        Contexts,
        "there & (uses[number] == tag[bits:])",
        "there",
        play_again,
    ),
    "an error of memory is forgotten": (
        Waits,
        "course.invalid.eq(1)",
        "course.invalid.eq(0)",
        lambda seed: play(64, seed, rate=0.6),
    ),
    "a command goes to another slice": (
        Sender,
        "flit.slice.eq(descriptor.slice",
        "flit.slice.eq(~descriptor.slice",
        lambda seed: play(64, seed, make=Commands.read),
    ),
    "data goes to another slice": (
        Mover,
        "flit.slice.eq(entry.slice)",
        "flit.slice.eq(0)",
        lambda seed: play(64, seed, make=Commands.write),
    ),
    "an event is of another slice": (
        Events,
        "out.record.slice.eq(flit.slice",
        "out.record.slice.eq(~flit.slice",
        play_telling,
    ),
    "a result of no key is counted": (
        Finisher,
        "(response.item < context.count) & of_key",
        "(response.item < context.count)",
        lambda seed: play(64, seed, make=Commands.look_up),
    ),
    "a WRITE that stopped has done nothing": (
        Finisher,
        "context.count, response.item",
        "context.count, 0",
        lambda seed: play(64, seed, make=Commands.write),
    ),
    "a WRITE of bad data has done nothing": (
        Contexts,
        "(row.read & course.invalid)",
        "course.invalid",
        lambda seed: play(64, seed, rate=0.6, make=Commands.write),
    ),
    "what is refused has done what another has": (
        Contexts,
        "with m.If(row.refused | course.abandoned | course.longer",
        "with m.If(course.abandoned | course.longer",
        lambda seed: play(64, seed, rate=0.6, make=Commands.write),
    ),
    "what is cut off has done what another has": (
        Contexts,
        "with m.If(row.refused | course.abandoned | course.longer",
        "with m.If(row.refused | course.longer",
        play_restarting,
    ),
    "the room of a READ is not told": (
        Contexts,
        "self.room.eq(by_data.data.room)",
        "self.room.eq((1 << 32) - 1)",
        lambda seed: play(64, seed, make=Commands.read),
    ),
    "data that has no room ends OK": (
        Contexts,
        "told & course.longer",
        "0",
        lambda seed: play(64, seed, make=Commands.read),
    ),
    "the length is told of data that is not whole": (
        Contexts,
        "course.brought & ~course.invalid & (",
        "course.brought & (",
        lambda seed: play(64, seed, rate=0.6),
    ),
    "the length of another READ is told": (
        Contexts,
        "row.read & course.brought & ",
        "row.read & ",
        lambda seed: play(64, seed),
    ),
    "damaged data that has no room ends RANGE": (
        Contexts,
        "(read.data.status == Status.OK)",
        "1",
        lambda seed: play(64, seed, make=Commands.read),
    ),
}


EVERYDAY = (
    "a completion does not wait for its data",
    "a loss is not told",
    "an error of memory is forgotten",
)
"""The quickest to find, one of each kind; the others are found in nightly runs."""


@pytest.mark.parametrize("name", everyday(MUTANTS, *EVERYDAY))
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, good, bad, run = MUTANTS[name]
    for module in (requester, requester_world, rings, contexts):
        if hasattr(module, target.__name__):
            monkeypatch.setattr(module, target.__name__, mutate(target, good, bad))
    with pytest.raises(CheckError):
        for seed in range(4):
            run(seed)
