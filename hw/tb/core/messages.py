"""The specification's messages, as the fields of what hardware tells."""

from collections.abc import Sequence

from hw.params.commands import Completion, Event, Fate, Fence, Invalidate, Message
from hw.params.protocol import MessageKind
from hw.rtl.emit import describe
from hw.rtl.fabric.layouts import MESSAGE
from hw.tb.core.operations import Fields, handle, slot
from hw.tb.payload import Codec

CODEC = Codec(describe(MESSAGE))
"""Of a message as it is on a link."""


def fields_of(message: Message) -> Fields:
    """Every field of a message; what its kind has no use for is 0."""
    blank = CODEC.unpack(0)

    def flags(name: str) -> Fields:
        return {"flags": blank["flags"] | {name: 1}}

    match message:
        case Event(_, fate, partition, model, key, name):
            plain = {"fate": fate.value, "partition": partition, "model": model, "key": key}
            return blank | plain | {"kind": MessageKind.EVENT.value, "handle": handle(name)}
        case Invalidate(_, None, int(model)):
            return blank | {"kind": MessageKind.INVALIDATE.value, "model": model} | flags("of_model")
        case Invalidate(_, int(partition), None):
            return blank | {"kind": MessageKind.INVALIDATE.value, "partition": partition} | flags("of_partition")
        case Fence(_, ring, session):
            return blank | {"kind": MessageKind.FENCE.value, "ring": ring.ring, "slot": slot(session)}
    raise TypeError(f"{message} is no message")


def messages_of(outputs: Sequence[Completion | Message]) -> list[tuple[int, Fields]]:
    """The port and fields of each message among the outputs of the specification."""
    return [(output.port, fields_of(output)) for output in outputs if isinstance(output, Message)]


def what_of(fields: Fields) -> str:
    """What a message is about, for a count."""
    if fields["kind"] == MessageKind.EVENT:
        return Fate(fields["fate"]).name
    if fields["kind"] == MessageKind.FENCE:
        return "FENCE"
    return "PARTITION" if fields["flags"]["of_partition"] else "MODEL"
