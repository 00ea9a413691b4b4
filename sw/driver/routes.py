"""Which slices a command goes to, and what their answers mean together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hw.params import commands as c
from hw.params.commands import Command, Completion, LookupMode
from hw.params.errors import InputError
from hw.params.home import Home
from hw.params.params import Params
from hw.params.protocol import KEY_BYTES, Handle, Opcode, PinId, SessionId, Status
from hw.params.tasks import Flush, Put
from sw.driver.lives import GivenSession, parts_of, session_of, slice_of
from sw.driver.transport.descriptors import packed_keys


class Part(NamedTuple):
    """What goes to one slice; ``places``: of a LOOKUP, which of its keys these are, None for all."""

    slice: int
    command: Command
    places: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """What several slices have answered together, and the parts that return what they gave for nothing."""

    completion: Completion
    back: Sequence[Part] = ()


class _Stop(NamedTuple):
    """Why there are no results from key ``end`` on, and with what status.

    ``rank`` tells which comes first: 0, the key before is not HIT; 1, a LOOKUP has ended too early; 2, there is none.
    """

    end: int
    rank: int
    status: Status


class Routes:
    """Sends what names a handle, pin or session where that is, a key to its home, and what the administrator says to
    every slice. A LOOKUP of keys with several homes is split.

    By "root" the first key of a block's chain decides: LOOKUP, DROP and OPEN_SESSION need it, and a session is one of
    that chain's slice. By "key" each key decides for itself, and a session is one in every slice.
    """

    def __init__(self, params: Params) -> None:
        self._slices = params.node.slices
        self._most_keys = params.tables.lookup_keys
        self._by_root = params.node.home == "root"
        self._home = Home(params)

    def parts(self, command: Command, root: int | None = None) -> list[Part]:  # noqa: PLR0911 (one case a command)
        """What goes to which slice; at least one part. InputError for want of a root, and for a session that is in no
        slice that the command goes to."""
        if self._slices == 1:
            return [Part(0, command)]
        match command:
            case c.Lookup(keys=keys):
                return self._lookup(command, keys, root)
            case c.Alloc(key=key, session=session) | Put(key=key, session=session):
                return [self._alloc(command, key, session)]
            case c.Write(handle) | c.Seal(handle) | c.Abort(handle) | c.Read(handle):
                return [Part(self._slice_of(handle), command)]
            case c.Unpin(pin):
                return [Part(slice_of(pin), command)]
            case c.Drop(key=key):
                return [Part(self._slice_of_word(self._root(command, root) if self._by_root else key), command)]
            case c.OpenSession() if self._by_root:
                return [Part(self._slice_of_word(self._root(command, root)), command)]
            case Flush(None):
                return [Part(0, command)]
            case Flush(SessionId() as session):
                return [Part(at, replace(command, session=its)) for at, its in parts_of(session).items()]
            case c.CloseSession(session) | c.Migrate(session):
                return [Part(at, replace(command, session=its)) for at, its in parts_of(session).items()]
            case c.AnswerFence(session):
                return [self._answer(command, session)]
            case _:
                return [Part(at, command) for at in range(self._slices)]

    def _slice_of(self, handle: Handle) -> int:
        """Where a handle belongs; if to none of the slices, any of them says so."""
        return handle.slice % self._slices

    def _slice_of_word(self, word: int) -> int:
        """The home of a key; if it is none, any slice says so."""
        return self._home.slice_of_word(word) if 0 <= word < 1 << 8 * KEY_BYTES else 0

    @staticmethod
    def _root(command: Command, root: int | None) -> int:
        if root is None:
            raise InputError(
                f"{command.opcode.name}: no root, expected the key of the first block of the chain: node.home = root"
            )
        return root

    def _alloc(self, command: c.Alloc | Put, key: int, session: SessionId) -> Part:
        parts = parts_of(session)
        at = next(iter(parts)) if self._by_root else self._slice_of_word(key)
        if isinstance(session, GivenSession) and at not in parts:
            raise InputError(
                f"{command.opcode.name}: {session} is of slice {', '.join(map(str, parts))}, expected one of slice {at}"
            )
        return Part(at, replace(command, session=parts.get(at, session)))

    @staticmethod
    def _answer(command: c.AnswerFence, session: SessionId) -> Part:
        parts = parts_of(session)
        if len(parts) > 1:
            raise InputError(f"ANSWER_FENCE: {session} is of several slices, expected the session of the FENCE")
        ((at, its),) = parts.items()
        return Part(at, replace(command, session=its))

    def _lookup(self, command: c.Lookup, keys: Sequence[int], root: int | None) -> list[Part]:
        """One part, as it is, for keys that the node has to refuse."""
        if self._by_root:
            return [Part(self._slice_of_word(self._root(command, root)), command)]
        try:
            words = np.frombuffer(packed_keys(keys), np.uint8).reshape(-1, KEY_BYTES)
        except InputError:
            return [Part(0, command)]
        if not 1 <= len(words) <= self._most_keys:
            return [Part(0, command)]
        homes = self._home.slices_of_words(words)
        if (homes == homes[0]).all():
            return [Part(int(homes[0]), command)]
        places = [np.flatnonzero(homes == at).tolist() for at in range(self._slices)]
        return [
            Part(at, replace(command, keys=[keys[place] for place in its]), its) for at, its in enumerate(places) if its
        ]


def joined(command: Command, parts: Sequence[Part], completions: Sequence[Completion], life: int) -> Joint:
    """The completion of a command whose parts have all ended. The first that is not OK, by slice, decides."""
    if isinstance(command, c.Lookup):
        return _joined_lookup(command, parts, completions)
    status = next((each.status for each in completions if each.status is not Status.OK), Status.OK)
    joint = Completion(completions[0].ring, completions[0].tag, status)
    given = {
        part.slice: its
        for part, each in zip(parts, completions, strict=True)
        if each.session is not None
        for its in parts_of(each.session).values()
    }
    if command.opcode is not Opcode.OPEN_SESSION or not given:
        return Joint(joint)
    if status is not Status.OK:
        return Joint(joint, [Part(at, c.CloseSession(its)) for at, its in given.items()])
    joint.session = session_of(given, life)
    return Joint(joint)


def _joined_lookup(command: c.Lookup, parts: Sequence[Part], completions: Sequence[Completion]) -> Joint:
    """The results up to the first key that some part has none for, of a run up to the first that is not HIT.

    What ended that part is the status. Pins behind it go back.
    """
    keys, run = len(command.keys), command.mode is LookupMode.RUN
    statuses: list[Status] = [Status.MISS] * keys
    handles: list[Handle | None] = [None] * keys
    pins: list[PinId | None] = [None] * keys
    stops = [_Stop(keys, 2, Status.HIT if run else Status.OK)]
    for part, each in zip(parts, completions, strict=True):
        assert part.places is not None, "parts of a LOOKUP have places"
        answered, rest = part.places[: len(each.statuses)], part.places[len(each.statuses) :]
        for place, its, handle, pin in zip(answered, each.statuses, each.handles, each.pins, strict=True):
            statuses[place], handles[place], pins[place] = its, handle, pin
        if run and each.statuses and each.statuses[-1] is not Status.HIT:
            stops.append(_Stop(answered[-1] + 1, 0, each.status))
        elif rest or each.status not in (Status.HIT, Status.OK):
            stops.append(_Stop(rest[0] if rest else keys, 1, each.status))
    first = min(stops, key=lambda stop: (stop.end, stop.rank))
    joint = Completion(completions[0].ring, completions[0].tag, first.status)
    joint.statuses, joint.handles, joint.pins = statuses[: first.end], handles[: first.end], pins[: first.end]
    joint.count = joint.statuses.count(Status.HIT)
    back = [Part(slice_of(pin), c.Unpin(pin)) for pin in pins[first.end :] if pin is not None]
    return Joint(joint, back)
