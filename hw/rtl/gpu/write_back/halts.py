"""What a PUT waits for before it begins: its producer; and whether its session is about to leave this ring."""

from amaranth import Value
from amaranth.lib import data

from hw.params.protocol import EngineOpcode


def reached(fences: data.View, row: data.View) -> Value:
    """Return whether the producer has reached what a PUT waits for, if it waits for anything. Numbers wrap."""
    descriptor = row.descriptor
    ahead = (fences[row.ring] - descriptor.results)[: len(fences[0])]
    return ~descriptor.flags.engine.put.fenced | ~ahead[-1]


def halted(halt: data.View, row: data.View) -> Value:
    """Return whether a descriptor is a PUT of the session that is halted."""
    descriptor = row.descriptor
    return (
        halt.valid
        & (descriptor.opcode == EngineOpcode.PUT)
        & (halt.ring == row.ring)
        & (halt.session == descriptor.slot.id)
        & (halt.slice == descriptor.slice[: len(halt.slice)])
    )
