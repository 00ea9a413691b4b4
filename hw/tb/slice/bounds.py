"""How long the loss of a port takes at most, as docs/slice.md says."""

from hw.params import Params
from hw.rtl.node.core.tables import HANDS_EVERY
from hw.tb.slice.latency import in_turns, memory_operations, operation_cycles


def memory_cycles(params: Params) -> int:
    """Cycles in which memory answers all that is under way, once it is asked, and the data of READs is taken."""
    beats = max(pool.frame_bytes for pool in params.pools) // params.memory.beat_bytes
    return (
        2 * params.memory.latency_cycles
        + params.turn_cycles
        + params.tables.ports * params.memory.waiting_reads * beats
    )


def cycles_to_rest(params: Params) -> int:
    """From the loss of a port until nothing of it is under way: all its rings are lost, all it had begun has ended."""
    tables = params.tables
    losses = 2 * tables.ports * tables.rings_per_port
    waiting = 2 * tables.rings_per_port * (tables.parked_reads + tables.fences)
    operations = losses + memory_operations(params) + waiting + 4
    return in_turns(params, memory_cycles(params) + operations * operation_cycles(params))


def cycles_to_nothing(params: Params) -> int:
    """From then on until its rings have no pin, no session and no frame."""
    tables = params.tables
    turns = tables.rings_per_port * tables.pins_per_ring + tables.sessions + params.frames
    return in_turns(params, turns * ((HANDS_EVERY + 2) * operation_cycles(params) + params.rings))
