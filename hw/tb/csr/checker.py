"""Comparison of registers with their model, in every cycle of any simulator."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from hw.tb.axi import LITE_FIELDS, ChannelWatch, Offer
from hw.tb.csr.model import Inputs, RegisterModel, Write
from hw.tb.scoreboard import CheckError, Scoreboard


class RegisterChecker:
    """Compares responses, data and everything that hardware sees with the model.

    A write takes effect in the cycle in which its response is first offered, a read shows the cycle before that; so
    the model follows the order in which responses come, and nothing else of the design is looked at.

    `pack` makes the bits of a `software` structure; it is set by whoever knows the ports.
    """

    def __init__(self, model: RegisterModel) -> None:
        self.model = model
        self.writes = Scoreboard("writes")
        self.reads = Scoreboard("reads")
        self.scoreboards = (self.writes, self.reads)
        self.pack: Mapping[str, Callable[[Any], int]] = {}
        self._watches = {name: ChannelWatch(name) for name in LITE_FIELDS}
        self._pending: dict[str, deque[Offer]] = {name: deque() for name in ("aw", "w", "ar")}
        self._expected: dict[str, int] = {}
        self._before: Inputs | None = None

    def reset(self) -> None:
        """The design is in reset: it forgets what is under way."""
        self.model.reset()
        self._before = None
        for watch in self._watches.values():
            watch.reset()
        for queue in self._pending.values():
            queue.clear()
        for board in self.scoreboards:
            board.reset()

    def cycle(
        self, seen: Mapping[str, tuple[Offer | None, bool]], software: Mapping[str, int], irq: bool, inputs: Inputs
    ) -> dict[str, tuple[bool, bool]]:
        """Follow one cycle: what is offered on each channel and whether it would be taken, and the other ports.

        Returns for each channel whether its offer is new, and whether it is taken. Raises CheckError.
        """
        events = {name: self._watches[name].follow(*channel) for name, channel in seen.items()}
        if self._before is not None:
            b, r = (seen[name][0] if events[name][0] else None for name in ("b", "r"))
            self._follow(b, r, self._before)
        for name in self.model.changed:
            self._expected[name] = self.pack[name](self.model.software[name])
        for name, expected in self._expected.items():
            if software[name] != expected:
                found = f"{software[name]:#x}, expected {expected:#x}"
                raise CheckError(f"software.{name}: {found}, which is {self.model.software[name]}")
        _compare("irq", self.model.irq, irq)
        self._before = dict(inputs)
        for name, queue in self._pending.items():
            offer, _ = seen[name]
            if offer is not None and events[name][1]:
                queue.append(offer)
                self._expect(name)
        return events

    def _expect(self, name: str) -> None:
        """A transfer on this channel was taken: a response may be owed."""
        if name == "ar":
            self.reads.expect("response")
        elif len(self._pending["aw" if name == "w" else "w"]) >= len(self._pending[name]):
            self.writes.expect("response")

    def _follow(self, b: Offer | None, r: Offer | None, before: Inputs) -> None:
        if r is not None:
            self.reads.observe("response")
            address = self._pending["ar"].popleft()["addr"]
            response, data = self.model.read(address, before)
            _compare(f"read of {address:#x}", {"data": data, "resp": response}, r)
        write = None
        if b is not None:
            self.writes.observe("response")
            address, beat = self._pending["aw"].popleft()["addr"], self._pending["w"].popleft()
            write = Write(address, beat["data"], beat["strb"])
        answer = self.model.step(before, write)
        if b is not None:
            _compare(f"{write}", {"resp": answer}, b)


def _compare(what: str, expected: Any, found: Any) -> None:
    if found != expected:
        raise CheckError(f"{what}: found {found}, expected {expected}")
