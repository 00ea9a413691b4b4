"""Requesters that write blocks, and drop them again after a while."""

from collections import deque
from dataclasses import dataclass, field

import google_crc32c

from hw.params import KvnodeError
from hw.params import commands as c
from hw.params.protocol import RingId, SessionId, Status
from hw.tb.slice.software import Reply
from scripts.benches.stream.slices import Block, Place, Slice

AHEAD = 1
"""Frames that a requester asks for before it needs them, so that nothing waits for an ALLOC."""

TOGETHER = 2
"""Blocks of a requester that are under way."""

KEPT = 1
"""Blocks of a requester that stay to be read; those that somebody still reads stay longer."""


@dataclass
class Writer:
    """A ring that writes: what it has under way, and what it has written."""

    ring: RingId
    session: SessionId
    claims: deque[tuple[int, Reply]] = field(default_factory=deque)
    sealing: deque[tuple[Block, Reply]] = field(default_factory=deque)
    kept: deque[Block] = field(default_factory=deque)
    leaving: list[Block] = field(default_factory=list)
    dropping: list[Reply] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        """Whether anything that it has written is left."""
        return bool(self.sealing or self.kept or self.leaving or self.dropping)

    @property
    def frames(self) -> int:
        """Frames that it has, or has asked for."""
        return sum(len(each) for each in (self.claims, self.sealing, self.kept, self.leaving, self.dropping))


class Writers:
    """A requester at each port that writes new blocks: a share of all beats, for those that read set the pace.

    A block that is sealed joins those that are read; when newer ones have come, it is dropped.

    - `sent`: the segments that they have written, in order.
    """

    def __init__(self, slice_: Slice, share: float) -> None:
        self._slice, self._software = slice_, slice_.software
        self._writers = [Writer(ring, slice_.software.session(ring)) for ring in slice_.rings]
        self._pace = share / (1 - share)
        self._from = slice_.software.beats
        self._begun = 0
        self._frames = (slice_.frames - len(slice_.blocks)) // len(self._writers)
        self.sent: list[Place] = []

    @property
    def busy(self) -> bool:
        """Whether anything of what was written is left."""
        return any(writer.busy for writer in self._writers)

    def step(self, *, more: bool = True) -> None:
        """Look at what has ended, and write more, or have all go that there is."""
        for writer in self._writers:
            while writer.sealing and writer.sealing[0][1].ended:
                block, reply = writer.sealing.popleft()
                _require(reply, Status.OK)
                writer.kept.append(block)
                self._slice.blocks.append(block)
            if more:
                self._write(writer)
            self._drop(writer, min(KEPT, self._frames - 1) if more else 0)

    def close(self) -> None:
        """Give back the frames that were not used."""
        for writer in self._writers:
            _require(self._software.ask(writer.ring, c.CloseSession(writer.session)), Status.OK)

    def _write(self, writer: Writer) -> None:
        slice_, length = self._slice, self._slice.length
        while len(writer.claims) < AHEAD and writer.frames < self._frames:
            key = next(slice_.keys)
            writer.claims.append((key, self._software.send(writer.ring, c.Alloc(0, key, length, writer.session))))
        owed = self._pace * (self._software.beats - self._from)
        if self._begun > owed or len(writer.sealing) == TOGETHER or not writer.claims:
            return
        key, claim = writer.claims[0]
        if not claim.ended:
            return
        _require(claim, Status.GRANTED)
        writer.claims.popleft()
        handle, data = claim.answers[0].handle, slice_.new_bytes()
        assert handle is not None, "what is granted has a handle"
        self._begun += slice_.params.flits(length)
        self.sent += [(handle.frame, i) for i in range(slice_.params.segments(length))]
        self._software.send(writer.ring, c.Write(handle, 0, data))
        sealed = self._software.send(writer.ring, c.Seal(handle, length, google_crc32c.value(data)))
        writer.sealing.append((Block(key, handle, data), sealed))

    def _drop(self, writer: Writer, keep: int) -> None:
        """Let nobody read the oldest any more, and drop what nobody reads."""
        while len(writer.kept) > keep:
            block = writer.kept.popleft()
            self._slice.blocks.remove(block)
            writer.leaving.append(block)
        for block in [each for each in writer.leaving if not each.reads]:
            writer.leaving.remove(block)
            writer.dropping.append(self._software.send(writer.ring, c.Drop(0, block.key)))
        for reply in [each for each in writer.dropping if each.ended]:
            writer.dropping.remove(reply)
            _require(reply, Status.OK)


def _require(reply: Reply, wanted: Status) -> None:
    """Raise KvnodeError unless a command has ended so."""
    if reply.status is not wanted:
        raise KvnodeError(f"{reply.command.opcode.name} ended {reply.status.name}, expected {wanted.name}")
