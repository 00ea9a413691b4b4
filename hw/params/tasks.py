"""Tasks: what software asks of the engines of its requester, as plain records beside the commands of a node.

A node knows none of them. An engine does each by commands of its own, and answers it once.
"""

from dataclasses import dataclass
from typing import ClassVar

from hw.params.commands import Command
from hw.params.protocol import EngineOpcode, SessionId


@dataclass(frozen=True, slots=True)
class Task(Command):
    """Root of all tasks."""

    opcode: ClassVar[EngineOpcode]  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Put(Task):
    """Store a block: ALLOC, WRITE, SEAL. OK: it is sealed; EXISTS: it was, and nothing was sent."""

    opcode: ClassVar[EngineOpcode] = EngineOpcode.PUT
    model: int
    key: int
    data: bytes | memoryview
    session: SessionId


@dataclass(frozen=True, slots=True)
class Flush(Task):
    """Ends when every PUT has that was submitted before it on its ring: of one session, or of all."""

    opcode: ClassVar[EngineOpcode] = EngineOpcode.FLUSH
    session: SessionId | None = None
