"""The log of RTL, whose commands have tags of the link, becomes one whose commands the driver knows."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import pytest

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Command, Completion
from hw.params.orderlog import Hand
from hw.params.protocol import REGISTER_TAG, REGISTERS, ModelState, RingId
from hw.rdl import register_map
from hw.rtl.emit import describe
from hw.rtl.node.layouts import Kind, log_layout
from hw.tb.core.operations import stamp
from hw.tb.mutate import mutate
from hw.tb.payload import Codec
from scripts.replay.journal import Journal, UnknownCommand
from sw.driver.transport.recording import Took

RING = RingId(1, 0)
T = TypeVar("T")


class Issued(NamedTuple):
    cycle: int
    port: int
    ring: int
    tag: int
    link_tag: int


@dataclass
class Made:
    """A harness that says what it is told to."""

    entries: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    others: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Entries of slice 1."""
    issues: list[Issued] = field(default_factory=list)
    log_bytes: int = -(-log_layout().size // 8)

    def log(self, slice_: int = 0) -> bytes:
        codec = Codec(describe(log_layout()))
        blank = codec.unpack(0)
        entries = [self.entries, self.others][slice_]
        return b"".join(
            cycle.to_bytes(8, "little") + codec.pack(blank | fields).to_bytes(self.log_bytes, "little")
            for cycle, fields in pop(entries)
        )

    def issued(self) -> list[Issued]:
        issues, self.issues = self.issues, []
        return issues

    def took(self, cycle: int, kind: Kind, ring: RingId, link_tag: int, **fields: Any) -> None:
        """A command is taken."""
        self.entries.append((cycle, {"kind": kind.value, "stamp": stamp(ring), "tag": link_tag} | fields))


def pop(entries: list[T]) -> list[T]:
    """All of them, once."""
    popped = entries[:]
    entries.clear()
    return popped


def journal_of(made: Made, kind: type[Journal] = Journal) -> Journal:
    return kind(made)


def news_of(journal: Journal) -> list[log.Operation]:
    """The news of the only slice."""
    (news,) = journal.news()
    return news


def reused(kind: type[Journal] = Journal) -> list[log.Operation]:
    """A slot and a link tag are used twice, and all is read at once."""
    made = Made()
    journal = journal_of(made, kind)
    journal.filled(10, RING, 3, 100)
    journal.filled(50, RING, 3, 200)
    journal.filled(50, RING, 4, 201)
    made.issues = [Issued(20, 1, 0, 3, 7), Issued(60, 1, 0, 3, 7), Issued(62, 1, 0, 4, 8)]
    made.took(25, Kind.READ, RING, 7)
    made.took(40, Kind.READ_DONE, RING, 7, ok=1)
    made.took(61, Kind.WRITE, RING, 7, item=0)
    made.took(63, Kind.ALLOC, RING, 8)
    made.took(64, Kind.WRITE, RING, 7, item=1)
    return news_of(journal)


REUSED = [Took(RING, 100), log.ReadDone(RING, 100), Took(RING, 200), Took(RING, 201), Took(RING, 200, 1)]


def test_tags_of_the_link_become_the_drivers() -> None:
    assert reused() == REUSED


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("self._issued[0].cycle <= cycle", "self._issued"),
        ("history[1].cycle <= issue.cycle", "False"),
        ('entry = entry | {"tag": self._name(cycle, slice_, kind, ring, entry["tag"])[1]}', "pass"),
    ],
)
def test_mutant_is_found(good: str, bad: str) -> None:
    assert reused(mutate(Journal, good, bad)) != REUSED


def test_what_the_slice_does_by_itself_is_as_it_is() -> None:
    made = Made()
    lost = stamp(RingId(1, 1))
    made.entries = [
        (1, {"kind": Kind.LANDED.value, "frame": 5, "count": 2, "ok": 1}),
        (2, {"kind": Kind.SEALED.value, "frame": 5}),
        (3, {"kind": Kind.DRAINED.value, "frame": 6}),
        (4, {"kind": Kind.LOST.value, "ring": lost}),
        (5, {"kind": Kind.STEP_PINS.value, "slot": 9, "ring": lost}),
    ]
    assert news_of(journal_of(made)) == [
        log.Landed(5, 2),
        log.Sealed(5),
        log.Drained(6),
        log.Lost(RingId(1, 1)),
        log.Step(Hand.PINS, 9, RingId(1, 1)),
    ]


def ask(journal: Journal, tag: int, command: Command) -> None:
    journal.submitted(REGISTERS, tag, command, None, cycle=0, slice_=0)


def test_the_administrators_commands_are_known_by_their_order() -> None:
    made = Made()
    journal = journal_of(made)
    control = register_map()["CONTROL"]
    journal.wrote(control.offset, control.field("restart").mask, 0)
    made.took(5, Kind.SET_EPOCH, REGISTERS, 0)
    journal.wrote(control.offset, control.field("start").mask, 0)
    ask(journal, 1, c.SetPartition(0))
    ask(journal, 2, c.SetModel(0, ModelState.LIVE))
    made.took(6, Kind.SET_PARTITION, REGISTERS, 0)
    journal.polled([Completion(REGISTERS, 1)])
    made.took(7, Kind.SET_MODEL, REGISTERS, 0)
    journal.polled([Completion(REGISTERS, 2)])
    took = [Took(REGISTERS, REGISTER_TAG), Took(REGISTERS, 1), Took(REGISTERS, 2)]
    assert news_of(journal) == [log.Restarted(), *took]


def test_a_command_that_registers_refuse_is_not_waited_for() -> None:
    made = Made()
    journal = journal_of(made)
    ask(journal, 1, c.SetModel(1 << 20, ModelState.LIVE))
    journal.polled([Completion(REGISTERS, 1)])
    ask(journal, 2, c.SetModel(0, ModelState.LIVE))
    made.took(7, Kind.SET_MODEL, REGISTERS, 0)
    assert news_of(journal) == [Took(REGISTERS, 2)]


@pytest.mark.parametrize(
    ("issues", "filled", "words"),
    [
        ([], [], "cycle 25: READ of link tag 7 .* was never issued"),
        ([Issued(26, 1, 0, 3, 7)], [10], "was never issued"),
        ([Issued(20, 1, 0, 3, 7)], [], "nothing was in that slot"),
        ([Issued(20, 1, 0, 3, 7)], [21], "nothing was in that slot"),
        ([Issued(20, 0, 0, 3, 7)], [10], "nothing was in that slot"),
    ],
)
def test_a_command_of_nobody_is_a_failure(issues: list[Issued], filled: list[int], words: str) -> None:
    made = Made(issues=issues)
    journal = journal_of(made)
    for cycle in filled:
        journal.filled(cycle, RING, 3, 100)
    made.took(25, Kind.READ, RING, 7)
    with pytest.raises(UnknownCommand, match=words):
        journal.news()
