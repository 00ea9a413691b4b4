"""What a device has done for its users."""

from collections import Counter
from dataclasses import dataclass, field

from hw.params.commands import Completion
from hw.params.protocol import EngineOpcode, Opcode, Status


@dataclass(slots=True)
class Statistics:
    """Counts since the device was found.

    - ``completed``: commands, by opcode and status.
    - ``bytes_read``, ``bytes_written``: data of READs, WRITEs and PUTs that ended OK.
    - ``latency``, ``longest``: time from ``submit`` to completion, by opcode, all together and the most; in cycles of
      the device or in seconds, as ``Transport.set_timeout``. Empty where no time passes.
    """

    completed: Counter[tuple[Opcode | EngineOpcode, Status]] = field(default_factory=Counter)
    bytes_read: int = 0
    bytes_written: int = 0
    latency: dict[Opcode | EngineOpcode, float] = field(default_factory=dict)
    longest: dict[Opcode | EngineOpcode, float] = field(default_factory=dict)

    def count(self, opcode: Opcode | EngineOpcode, completion: Completion, size: int, latency: float | None) -> None:
        """A command has ended; ``size``: of what it had to write."""
        self.completed[opcode, completion.status] += 1
        if completion.status is Status.OK:
            self.bytes_written += size
            self.bytes_read += completion.length
        if latency is not None:
            self.latency[opcode] = self.latency.get(opcode, 0) + latency
            self.longest[opcode] = max(self.longest.get(opcode, 0), latency)
