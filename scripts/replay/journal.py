"""The order log of compiled RTL in the driver's words: commands by ring and the driver's tag."""

from collections import defaultdict, deque
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from hw.params.commands import Command, Completion
from hw.params.errors import KvnodeError
from hw.params.orderlog import Operation, Restarted
from hw.params.protocol import REGISTER_TAG, REGISTERS, RingId
from hw.rdl import register_map
from hw.rtl.emit import describe
from hw.rtl.node.layouts import Kind, log_layout
from hw.tb.core.operations import operation, ring_of
from hw.tb.harness.simulation import records
from hw.tb.payload import Codec
from sw.driver.transport import Arrival, Observer
from sw.driver.transport.recording import Name, Took


class Issue(Protocol):
    """A requester has given the command in a slot of a ring, its descriptor's ``tag``, the tag ``link_tag``."""

    @property
    def cycle(self) -> int: ...

    @property
    def port(self) -> int: ...

    @property
    def ring(self) -> int: ...

    @property
    def tag(self) -> int: ...

    @property
    def link_tag(self) -> int: ...


class Harness(Protocol):
    """What is compiled: each call returns what is new, in the order of cycles."""

    log_bytes: int

    def log(self, slice_: int = 0) -> bytes:
        """Packed entries of the order log of a slice, with their stamps."""

    def issued(self) -> Sequence[Issue]:
        """What requesters have issued."""


class Filled(NamedTuple):
    """From a cycle on, a slot of a ring has had the driver's command ``tag``."""

    cycle: int
    tag: int


class UnknownCommand(KvnodeError):
    """The order log has a command that nobody has asked for."""


class Journal(Observer):
    """Reads the logs of a harness, with what its requesters have issued and what the driver has asked for.

    ``filled`` is to be told of each descriptor, before the requester can have seen it. Commands of the administrator
    carry no tag of the driver's: each slice takes them one at a time, in order.
    """

    def __init__(self, harness: Harness, slices: int = 1) -> None:
        self._harness = harness
        layout = log_layout()
        self._codec = Codec(describe(layout))
        self._filled: defaultdict[tuple[RingId, int], deque[Filled]] = defaultdict(deque)
        self._names: dict[tuple[RingId, int], int] = {}
        self._issued: deque[Issue] = deque()
        self._asked: list[list[tuple[int, str]]] = [[] for _ in range(slices)]
        self._news: list[list[Operation]] = [[] for _ in range(slices)]

    def news(self) -> list[list[Operation]]:
        """The operations of each slice since the last call."""
        self._read()
        news, self._news = self._news, [[] for _ in self._news]
        return news

    # What the driver does.

    def filled(self, cycle: int | None, ring: RingId, slot: int, tag: int) -> None:
        """A descriptor with ``slot`` as its tag is about to go to the device: the driver's command ``tag``."""
        assert cycle is not None, "the compiled system has a clock"
        self._filled[ring, slot].append(Filled(cycle, tag))

    def submitted(
        self, ring: RingId, tag: int, command: Command, into: memoryview | None, *, cycle: int | None, slice_: int
    ) -> None:
        if ring == REGISTERS:
            self._asked[slice_].append((tag, command.opcode.name))

    def wrote(self, offset: int, value: int, slice_: int) -> None:
        control = register_map()["CONTROL"]
        if offset == control.offset and value & control.field("restart").mask:
            self._read()
            self._news[slice_].append(Restarted())

    def polled(self, arrivals: Sequence[Arrival] | None) -> None:
        """Of what has ended nothing is logged any more: the registers had refused it, if it was not."""
        self._read()
        ended = {it.tag for it in arrivals or () if isinstance(it, Completion) and it.ring == REGISTERS}
        self._asked = [[(tag, opcode) for tag, opcode in its if tag not in ended] for its in self._asked]

    # What the device says.

    def _read(self) -> None:
        logs = [self._harness.log(slice_) for slice_ in range(len(self._news))]
        self._issued.extend(self._harness.issued())
        entries = [
            (cycle, slice_, entry)
            for slice_, log in enumerate(logs)
            for cycle, entry in records(log, self._harness.log_bytes)
        ]
        for cycle, slice_, entry in sorted(entries, key=itemgetter(0)):
            self._news[slice_].append(self._operation(cycle, slice_, self._codec.unpack(entry)))

    def _operation(self, cycle: int, slice_: int, entry: dict[str, Any]) -> Operation:
        kind, ring = Kind(entry["kind"]), ring_of(entry["stamp"])
        if kind < Kind.LANDED:
            return Took(*self._name(cycle, slice_, kind, ring, entry["tag"]), entry["item"])
        if kind is Kind.READ_DONE:
            entry = entry | {"tag": self._name(cycle, slice_, kind, ring, entry["tag"])[1]}
        return operation(entry, {})

    def _name(self, cycle: int, slice_: int, kind: Kind, ring: RingId, link_tag: int) -> Name:
        """The driver's name of what an entry calls ``link_tag``."""
        if ring == REGISTERS:
            return ring, self._ordered(slice_, kind)
        while self._issued and self._issued[0].cycle <= cycle:
            issue = self._issued.popleft()
            self._names[RingId(issue.port, issue.ring), issue.link_tag] = self._slot(issue)
        if (ring, link_tag) not in self._names:
            raise UnknownCommand(f"cycle {cycle:,}: {kind.name} of link tag {link_tag} of {ring} was never issued")
        return ring, self._names[ring, link_tag]

    def _slot(self, issue: Issue) -> int:
        """The driver's tag of what was in the slot of an issue."""
        history = self._filled[RingId(issue.port, issue.ring), issue.tag]
        while len(history) > 1 and history[1].cycle <= issue.cycle:
            history.popleft()
        if not history or history[0].cycle > issue.cycle:
            raise UnknownCommand(f"{issue}: nothing was in that slot")
        return history[0].tag

    def _ordered(self, slice_: int, kind: Kind) -> int:
        """The tag of the administrator's command that is taken; what was not submitted came through the registers."""
        asked = self._asked[slice_]
        for at, (tag, opcode) in enumerate(asked):
            if opcode == kind.name:
                del asked[: at + 1]
                return tag
        return REGISTER_TAG
