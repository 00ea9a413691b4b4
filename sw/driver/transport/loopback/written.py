"""What a requester writes to memory: fields of completions, results and messages."""

from hw.params.commands import Event, Fence, Invalidate, Message
from hw.params.protocol import Handle, MessageKind, SlotId
from hw.params.records import GIVEN, NAMED, OF_MODEL, OF_PARTITION


def names_of(handle: Handle | None, slot: SlotId | None) -> dict[str, int]:
    """What an outcome names and gives."""
    fields = {"flags": 0}
    if handle is not None:
        fields |= {"handle": handle.pack(), "flags": NAMED}
    if slot is not None:
        fields |= {"slot": slot.pack(), "flags": fields["flags"] | GIVEN}
    return fields


def message_of(message: Message) -> dict[str, int]:
    """The fields of a message."""
    return {"slice": message.slice} | _about(message)


def _about(message: Message) -> dict[str, int]:
    match message:
        case Fence(_, ring, session):
            return {"kind": MessageKind.FENCE, "ring": ring.ring, "slot": session.pack()}
        case Invalidate(_, partition, None):
            return {"kind": MessageKind.INVALIDATE, "flags": OF_PARTITION, "partition": partition or 0}
        case Invalidate(_, _, model):
            return {"kind": MessageKind.INVALIDATE, "flags": OF_MODEL, "model": model or 0}
        case Event(_, fate, partition, model, key, handle):
            block = {"partition": partition, "model": model, "key": key, "handle": handle.pack()}
            return {"kind": MessageKind.EVENT, "fate": fate} | block
    raise TypeError(f"{message} is no message of a node")
