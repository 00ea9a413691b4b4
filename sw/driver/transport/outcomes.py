"""What a device has written to memory, as the completions and messages of the specification."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from hw.params.commands import Command, Completion, Event, Fate, Fence, Invalidate, Lookup, Message, Read
from hw.params.protocol import (
    HANDLE_WIDTHS,
    SLOT_WIDTHS,
    Handle,
    MessageKind,
    PinId,
    RingId,
    SessionId,
    Status,
)
from hw.params.records import COMPLETION, GIVEN, NAMED, OF_MODEL, OF_PARTITION, Record

Name = TypeVar("Name", Handle, PinId)

_STATUSES = tuple(Status)


def dtype_of(record: Record) -> np.dtype:
    """A record as NumPy sees it; a field of 128 bits is a pair of words, the lower first."""
    kinds = {8: "u1", 16: "<u2", 32: "<u4", 64: "<u8", 128: ("<u8", 2)}
    fields = {name: kinds.get(bits, f"V{bits // 8}") for name, bits in record.fields.items()}
    return np.dtype({"names": [*fields], "formats": [*fields.values()], "offsets": [*record.offsets.values()]})


RESULT = dtype_of(COMPLETION)


def completed(ring: RingId, tag: int, command: Command, fields: Mapping[str, int], results: memoryview) -> Completion:
    """The completion of a command, but for the data of a READ; ``results``: where those of a LOOKUP are.

    ValueError for fields that are none of a completion.
    """
    completion = Completion(ring, tag, Status(fields["status"]), fields["count"])
    if fields["flags"] & NAMED:
        completion.handle = Handle.unpack(fields["handle"])
    if fields["flags"] & GIVEN:
        completion.session = SessionId.unpack(fields["slot"])
    if isinstance(command, Read) and completion.status is Status.OK:
        completion.length = fields["slot"]
    if isinstance(command, Lookup):
        if fields["items"] > len(command.keys):
            raise ValueError(f"{fields['items']} results of {len(command.keys)} keys")
        _add_results(completion, results[: fields["items"] * RESULT.itemsize])
    return completion


def _add_results(completion: Completion, results: memoryview) -> None:
    """Fill in what a LOOKUP tells of each key, in few calls for all keys."""
    found = np.frombuffer(results, RESULT)
    if (found["status"] >= len(_STATUSES)).any():
        raise ValueError("a result has a status that is none")
    completion.statuses = [*map(_STATUSES.__getitem__, found["status"].tolist())]
    completion.handles = [None] * len(found)
    completion.pins = [None] * len(found)
    (named,) = np.nonzero(found["flags"] & NAMED)
    for at, handle in zip(named.tolist(), _handles(found["handle"][named]), strict=True):
        completion.handles[at] = handle
    (given,) = np.nonzero(found["flags"] & GIVEN)
    for at, pin in zip(given.tolist(), _pins(found["slot"][given]), strict=True):
        completion.pins[at] = pin


def _handles(words: np.ndarray) -> Iterator[Handle]:
    """``Handle.unpack`` of many pairs of words, without a call for each."""
    low, high = words[:, 0], words[:, 1]
    return _made(Handle, [*_split(high, HANDLE_WIDTHS[:-1]), low])


def _pins(words: np.ndarray) -> Iterator[PinId]:
    """``PinId.unpack`` of many words, without a call for each."""
    return _made(PinId, _split(words, SLOT_WIDTHS))


def _split(words: np.ndarray, widths: Sequence[int]) -> list[np.ndarray]:
    """The parts of words of 64 bits, the highest first."""
    below = [sum(widths[at + 1 :]) for at in range(len(widths))]
    return [words >> np.uint64(low) & np.uint64((1 << width) - 1) for low, width in zip(below, widths, strict=True)]


def _made(kind: type[Name], columns: Sequence[np.ndarray]) -> Iterator[Name]:
    """Tuples of a kind, from the columns of their values."""
    return map(partial(tuple.__new__, kind), zip(*(column.tolist() for column in columns), strict=True))


def told(port: int, fields: Mapping[str, int]) -> Message:
    """The message of an entry of a port's event ring. ValueError for one that is none."""
    match MessageKind(fields["kind"]):
        case MessageKind.FENCE:
            return Fence(port, RingId(port, fields["ring"]), SessionId.unpack(fields["slot"]), fields["slice"])
        case MessageKind.INVALIDATE:
            return Invalidate(
                port,
                fields["partition"] if fields["flags"] & OF_PARTITION else None,
                fields["model"] if fields["flags"] & OF_MODEL else None,
                fields["slice"],
            )
        case MessageKind.EVENT:
            block = fields["partition"], fields["model"], fields["key"], Handle.unpack(fields["handle"])
            return Event(port, Fate(fields["fate"]), *block)
