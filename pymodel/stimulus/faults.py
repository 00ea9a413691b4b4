"""How a fault of the traffic enters the order log when the specification runs alone."""

import random

from hw.params import orderlog as log
from hw.params.orderlog import Operation, Timer
from hw.params.protocol import REGISTERS
from pymodel.spec.slice import Slice
from pymodel.spec.state import NOBODY
from pymodel.stimulus.traffic import Fault, Happen


def entry(happens: Happen, slice_: Slice, rng: random.Random) -> Operation | None:
    """The log entry of a fault, at one of the places where it can strike now; None when there is none."""
    core = slice_.core
    match happens.fault:
        case Fault.RING_LOST:
            ring = core.rings.get(happens.ring) if happens.ring is not None else None
            strikes = (
                ring is not None and ring.id != REGISTERS and (ring.partition is not NOBODY or ring.administrative)
            )
            places: list[Operation] = [log.Lost(ring.id)] if strikes and ring is not None else []
        case Fault.PARKED_READ_EXPIRED:
            places = [log.Expired(Timer.PARKED_READ, slot) for slot, _ in core.parked.items()]
        case Fault.FENCE_EXPIRED:
            places = [log.Expired(Timer.FENCE, slot) for slot in core.fenced]
        case Fault.WRITE_FAILED:
            waiting = [frame for frame in core.waiting.values() if frame.answered < frame.accepted]
            places = [log.Landed(frame.index, 1, ok=False) for frame in waiting]
        case Fault.READ_DAMAGED:
            places = [log.ReadDone(*name, ok=False) for name in core.reads]
        case Fault.RESTARTED:
            places = [log.Restarted()]
    return rng.choice(places) if places else None
