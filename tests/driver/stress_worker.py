"""One thread of a stress test: a ring, what it holds, and operations at random."""

from collections import deque
from collections.abc import Callable
from random import Random

from driverbench import FRAMES, PARAMS
from stress_judge import LENGTHS, READABLE, Judge, Mark, Seen, content, fits, length_of

from hw.params import commands as c
from hw.params.commands import Completion
from hw.params.protocol import Handle, LookupMode, PinId, RingId, SessionId, Status
from sw.driver import BufferMismatch, Client, CommandFailed, Device

KEYS, MODELS = range(5), range(PARAMS.tables.models)

GUARD, MARK = 64, 0xA5
"""Bytes around a buffer that nobody may touch, and what they are."""

KEPT = 8
"""Buffers whose READs have ended, and that nobody may touch any more."""

WRONG: list[Callable[[Handle], Handle]] = [
    lambda handle: handle._replace(epoch=handle.epoch ^ 1),
    lambda handle: handle._replace(generation=handle.generation + 1_000_000),
    lambda handle: handle._replace(frame=handle.frame + FRAMES),
    lambda handle: handle._replace(slice=1),
]


class Worker:
    """Does operations on one ring of a partition, and tells the judge of all that comes back.

    What it holds is its own, though others may use the ring: sessions, and pins.
    """

    def __init__(self, device: Device, judge: Judge, ring: RingId, partition: int, seed: str) -> None:
        self.client = Client(device, ring)
        self.partition = partition
        self._judge = judge
        self._random = Random(seed)
        self._sessions: list[tuple[SessionId, Mark]] = []
        self._pins: list[tuple[PinId, Mark]] = []
        self._past: deque[bytearray] = deque(maxlen=KEPT)
        self._wrong_sessions = [SessionId(0, 1 << 40), SessionId(99, 1)]
        self._wrong_pins = [PinId(0, 1 << 40), PinId(99, 1)]
        self._kinds: dict[Callable[[], None], int] = {
            self._put: 30,
            self._get: 30,
            self._look: 10,
            self._get_seen: 10,
            self._get_mismatched: 5,
            self._use_wrong_handle: 4,
            self._use_wrong_names: 4,
            self._unpin: 10,
            self._drop: 4,
            self._close_any: 4,
        }

    def step(self) -> None:
        """One operation."""
        (operation,) = self._random.choices(list(self._kinds), list(self._kinds.values()))
        operation()
        for past in self._past:
            assert past.count(MARK) == len(past), "a buffer has changed after its READ had ended"

    def give_back(self) -> None:
        """Return all pins, close all sessions, also those that were left open."""
        while self._pins:
            self._unpin()
        while self._sessions:
            self._close_any()

    # Statuses, with losses of the ring in mind.

    def _ended(self, what: str, status: Status, mark: Mark, *, alive: bool = True) -> None:
        """An operation has ended. If the ring has not been lost since ``mark``, it has not ended UNAVAILABLE, and what
        was ``alive`` at that time is not STALE."""
        self._judge.count(what, status)
        if self._judge.losses.quiet(mark, self.client.ring):
            assert status is not Status.UNAVAILABLE, f"{what}: UNAVAILABLE, though {self.client.ring} was not lost"
            assert not (alive and status is Status.STALE), f"{what}: STALE, though {self.client.ring} was not lost"

    def _mark(self) -> Mark:
        return self._judge.losses.mark(self.client.ring)

    def _block(self) -> tuple[int, int]:
        return self._random.choice(MODELS), self._random.choice(KEYS)

    # Sessions.

    def _open(self) -> None:
        mark = self._mark()
        try:
            self._sessions.append((self.client.open(), mark))
        except CommandFailed as error:
            self._ended("open", error.status, mark)
        else:
            self._ended("open", Status.OK, mark)

    def _close_any(self) -> None:
        if self._sessions:
            self._close(self._random.choice(self._sessions))

    def _close(self, held: tuple[SessionId, Mark]) -> None:
        self._sessions.remove(held)
        session, mark = held
        self._ended("close", self.client.run(c.CloseSession(session)).status, mark)
        self._wrong_sessions[0] = session

    # Blocks.

    def _put(self) -> None:
        if not self._sessions:
            self._open()
        if not self._sessions:
            return
        (model, key), nonce, held = self._block(), self._judge.store(), self._random.choice(self._sessions)
        before = self._judge.drops.mark((self.partition, model, key))
        put = self.client.put(held[0], model, key, content(self.partition, model, key, nonce))
        self._judge.stored(nonce, put.status, put.handle)
        kept = self._judge.drops.quiet(before, (self.partition, model, key))
        self._ended("put", put.status, held[1], alive=kept)
        if put.status in (Status.STALE, Status.UNAVAILABLE):
            self._close(held)  # it may be that only the block is gone
        if put.handle is not None:
            self._judge.seen.append(Seen(put.handle, model, key, put.stored))

    def _drop(self) -> None:
        (model, key), mark = self._block(), self._mark()
        with self._judge.drops.during((self.partition, model, key)):
            self._ended("drop", self.client.drop(model, key), mark)

    def _lookup(self, model: int, keys: list[int], mode: LookupMode, *, pin: bool) -> Completion:
        """A LOOKUP whose results make sense; what they name is known to all."""
        mark = self._mark()
        result = self.client.lookup(model, keys, mode=mode, pin=pin)
        self._ended("lookup", result.status, mark)
        hits = [status is Status.HIT for status in result.statuses]
        assert len(hits) <= len(keys) and set(result.statuses) <= {Status.HIT, Status.MISS, Status.PENDING}, (
            f"results make no sense: {result}"
        )
        assert mode is LookupMode.BITMAP or all(hits[:-1]), result
        assert [given is not None for given in result.pins] == [pin and hit for hit in hits], result
        for status, handle, key in zip(result.statuses, result.handles, keys, strict=False):
            assert (handle is None) == (status is Status.MISS), result
            if handle is not None:
                self._judge.seen.append(Seen(handle, model, key, status is Status.HIT))
        if result.status in (Status.OK, Status.HIT, Status.MISS, Status.PENDING):
            assert (result.count == sum(hits) and len(hits) == len(keys)) or mode is LookupMode.RUN, result
        self._pins += [(given, mark) for given in result.pins if given is not None]
        return result

    def _look(self) -> None:
        """Some keys, pinned or not; pins are kept for a while."""
        model, _ = self._block()
        keys = self._random.choices(KEYS, k=self._random.randint(1, PARAMS.tables.lookup_keys))
        pin = self._random.random() < 0.3 and len(self._pins) < 2
        self._lookup(model, keys, self._random.choice(list(LookupMode)), pin=pin)

    def _get(self) -> None:
        """Pin a block, read it, and return the pin."""
        (model, key), mark = self._block(), self._mark()
        dropped = [(partition, model, key) for partition in READABLE[self.partition]]
        before = self._judge.drops.mark(*dropped)
        result = self._lookup(model, [key], LookupMode.RUN, pin=True)
        if result.status is not Status.HIT:
            return
        status = self._read(Seen(result.handles[0], model, key, sealed=True), length_of(key))
        self._ended("get", status, mark, alive=self._judge.drops.quiet(before, *dropped))
        self._unpin()

    def _get_seen(self) -> None:
        """A block that anybody has seen, whatever has become of it."""
        if self._judge.seen:
            seen, mark = self._random.choice(list(self._judge.seen)), self._mark()
            self._ended("get seen", self._read(seen, length_of(seen.key)), mark, alive=False)

    def _get_mismatched(self) -> None:
        """Into a buffer that is too short, or too long."""
        if self._judge.seen:
            seen, size, mark = self._random.choice(list(self._judge.seen)), self._random.choice(LENGTHS), self._mark()
            size += self._random.choice((0, 1, -1))
            self._ended("get mismatch", self._read(seen, size), mark, alive=False)

    def _read(self, seen: Seen, size: int) -> Status:
        """Get a block into so many bytes; RANGE if they do not fit. Nothing around them changes, and they do not any
        more afterwards."""
        area = bytearray([MARK]) * (size + 2 * GUARD)
        view = memoryview(area)[GUARD : GUARD + size]
        status = Status.OK
        try:
            self.client.get(seen.handle, view)
            assert fits(seen.key, size), f"{seen}: was read into {size} bytes"
            self._judge.returned(seen, self.partition, bytes(view))
        except BufferMismatch:
            assert not seen.sealed or not fits(seen.key, size), f"{seen}: is not of {size} bytes"
            status = Status.RANGE
        except CommandFailed as error:
            status = error.status
        around = area[:GUARD] + area[GUARD + size :]
        assert around.count(MARK) == 2 * GUARD, f"{seen}: was written beside its buffer of {size} bytes"
        view[:] = bytes([MARK]) * size
        self._past.append(area)
        return status

    # Pins, and what is none.

    def _unpin(self) -> None:
        if self._pins:
            pin, mark = self._pins.pop(self._random.randrange(len(self._pins)))
            self._ended("unpin", self.client.unpin(pin), mark)
            self._wrong_pins[0] = pin

    def _use_wrong_handle(self) -> None:
        """Do anything with a handle that is none."""
        if not self._judge.seen:
            return
        seen, mark = self._random.choice(list(self._judge.seen)), self._mark()
        wrong = self._random.choice(WRONG)(seen.handle)
        into = memoryview(bytearray(512))
        command, out = self._random.choice(
            [(c.Read(wrong, 0, 1), into), (c.Write(wrong, 0, b"x" * 512), None), (c.Seal(wrong, 512, 0), None),
             (c.Abort(wrong), None)]
        )  # fmt: skip
        self._ended("wrong", self.client.run(command, out).status, mark, alive=False)
        assert not any(into), f"{wrong} is no handle, and gives data"

    def _use_wrong_names(self) -> None:
        """Use sessions and pins that are none, or are not any more."""
        session, pin, mark = (
            self._random.choice(self._wrong_sessions),
            self._random.choice(self._wrong_pins),
            self._mark(),
        )
        what = self._random.choice(("put", "close", "unpin"))
        if what == "put":
            status = self.client.put(session, *self._block(), b"x").status
        elif what == "close":
            status = self.client.run(c.CloseSession(session)).status
        else:
            status = self.client.unpin(pin)
        self._ended(f"{what} wrong", status, mark, alive=False)
