"""A requester at one port of a compiled slice that makes its moves, one after the other, and writes down what comes."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from hw.params.commands import Command
from hw.params.params import Params
from hw.params.protocol import Handle, PinId, RingId, SessionId
from hw.rtl.fabric import Channel
from hw.tb.harness import Harness
from hw.tb.slice.packets import Packets
from hw.tb.slice.software import Reply, Software

Trace = list[tuple[int, int]]
"""Cycle and flit of all that has come to a port."""

Asked = tuple[RingId, Command]


@dataclass(frozen=True)
class Before:
    """Nothing until so many cycles before the end of the turn that the port's partition has next, or has."""

    cycles: int


Moves = Generator[Sequence[Asked] | int | Before | RingId, list[Reply], None]
"""What a party does: commands at once, of which it waits for all ends; so many cycles of nothing; nothing until its
turn is about to end; the loss of a ring. It is sent the replies to the commands."""


class Party(Software):
    """Makes its moves by what comes to its own port alone; `trace` is that, `over` says that there are no more."""

    def __init__(self, harness: Harness, params: Params, port: int, moves: Moves) -> None:
        super().__init__(harness, params)
        self.trace: Trace = []
        self.over = self._begun = False
        self._port, self._moves = port, moves
        self._asked: list[Reply] = []
        self._until = 0

    def step(self) -> None:
        """Hear what has come, and go on if all that was waited for is there."""
        self.hear([self._port])
        if self.over or self.harness.cycle < self._until or not all(reply.ended for reply in self._asked):
            return
        try:
            move = self._moves.send(self._asked) if self._begun else next(self._moves)
        except StopIteration:
            self.over = True
            return
        self._begun, self._asked = True, []
        if isinstance(move, int):
            self._until = self.harness.cycle + move
        elif isinstance(move, Before):
            self._until = self.harness.cycle + self._left(move.cycles)
        elif isinstance(move, RingId):
            self._lose(move)
        else:
            self._asked = [self.send(ring, command) for ring, command in move]

    def _left(self, before: int) -> int:
        """The cycles until then; partition i has the ports that are i modulo the partitions."""
        times, shares = self._params.times, self._params.shares
        end = (self._port % shares + 1) * times.turn - before
        return (end - self.harness.cycle) % times.period(shares)

    def _lose(self, ring: RingId) -> None:
        flits = Packets(self._params).loss(ring)
        packed = b"".join(flit.to_bytes(self.harness.flit_bytes, "little") for flit in flits)
        self.harness.send(ring.port, Channel.MESSAGE, packed)

    def _hear(self, port: int, cycle: int, flit: int) -> None:
        self.trace.append((cycle, flit))
        super()._hear(port, cycle, flit)


def session_of(reply: Reply) -> SessionId:
    """The session that was opened."""
    slot = reply.answers[0].slot
    assert slot is not None
    return SessionId(*slot)


def handle_of(reply: Reply) -> Handle:
    """The block that was claimed."""
    handle = reply.answers[0].handle
    assert handle is not None
    return handle


def pins_of(reply: Reply) -> list[PinId]:
    """The pins that a LOOKUP gave."""
    return [PinId(*answer.slot) for answer in reply.answers if answer.slot is not None]
