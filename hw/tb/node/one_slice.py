"""The slices of a compiled node, each as if it were a harness of its own."""

from collections import defaultdict
from functools import partial
from typing import Any, cast

from hw.params.params import Params
from hw.rtl.fabric import Channel
from hw.rtl.fabric.layouts import flit_layout
from hw.tb.harness import Harness
from hw.tb.harness.simulation import STAMP_BYTES


def views(harness: Harness, params: Params) -> list[Harness]:
    """Return a view of each slice of a node: what a bench of a slice may use as the harness of one.

    Memory channels, registers and the order log are those of the slice; links are shared: what is sent goes to the
    slice, and what is received is from it. All else, time above all, is that of the node.
    """
    sorter = _Sorter(harness, params)
    return [cast(Harness, _OneSlice(harness, sorter, params, number)) for number in range(params.node.slices)]


class _Sorter:
    """Sorts what has come over the links by the slice that it is from."""

    def __init__(self, harness: Harness, params: Params) -> None:
        field = flit_layout(params)["slice"]
        self._harness = harness
        self.offset, self._mask = field.offset, (1 << field.width) - 1
        self._sorted: dict[tuple[int, int], bytearray] = defaultdict(bytearray)

    def received(self, number: int, port: int) -> bytes:
        """What has come from a slice since it was asked for last."""
        text, size = self._harness.received(port), STAMP_BYTES + self._harness.flit_bytes
        for at in range(0, len(text), size):
            flit = int.from_bytes(text[at + STAMP_BYTES : at + size], "little")
            self._sorted[flit >> self.offset & self._mask, port] += text[at : at + size]
        return bytes(self._sorted.pop((number, port), b""))


class _OneSlice:
    """The view of one slice."""

    def __init__(self, harness: Harness, sorter: _Sorter, params: Params, number: int) -> None:
        self._harness = harness
        self._first_channel = number * params.memory.channels
        self._header = number << sorter.offset
        self.log = partial(harness.log, number)
        self.received = partial(sorter.received, number)
        self.read_register = partial(harness.read_register, unit=number)
        self.write_register = partial(harness.write_register, unit=number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    def send(self, port: int, channel: Channel, flits: bytes) -> None:
        size = self._harness.flit_bytes
        words = (int.from_bytes(flits[at : at + size], "little") for at in range(0, len(flits), size))
        addressed = b"".join((word | self._header).to_bytes(size, "little") for word in words)
        self._harness.send(port, channel, addressed)

    def memory_bytes(self, channel: int, address: int, length: int) -> bytes:
        return self._harness.memory_bytes(self._first_channel + channel, address, length)

    def fail_writes(self, number: int, count: int) -> None:
        self._harness.fail_writes(self._first_channel + number, count)

    def spoil(self, number: int, count: int) -> None:
        self._harness.spoil(self._first_channel + number, count)
