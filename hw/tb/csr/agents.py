"""The hardware's side of registers, and the monitor that compares everything with the model."""

import copy
from collections import deque
from random import Random
from typing import Any

from hw.rdl import Field, Kind
from hw.tb.axi import LITE_FIELDS, ChannelWatch
from hw.tb.bench import Bench
from hw.tb.csr.model import Inputs, RegisterModel, Write
from hw.tb.scoreboard import CheckError, Scoreboard
from hw.tb.stream import Monitor


class HardwareSide:
    """Drives what hardware tells software: silence at first, random values once `active`."""

    def __init__(self, bench: Bench, model: RegisterModel) -> None:
        self.bench = bench
        self.active = False
        self.values: dict[str, dict[str, Any]] = {}
        self._rng = bench.rng("hardware")
        self._fields: list[tuple[str, Field]] = []
        for register in model.registers.values():
            name = register.name.lower()
            fields = [f for f in register.fields if f.kind in _INPUTS]
            if fields:
                self.values[name] = {f.name: _INPUTS[f.kind](f, None) for f in fields}
                self._fields += [(name, f) for f in fields]
        self._ports = {name: getattr(bench.dut, f"hardware__{name}") for name in self.values}
        self._codecs = {name: bench.codec(f"hardware__{name}") for name in self.values}
        self._changed = set(self.values)
        bench.add(self)

    def set(self, name: str, field: str, value: Any) -> None:
        """Drive a field from the next cycle on."""
        self.values[name] = {**self.values[name], field: value}
        self._changed.add(name)

    def drive(self) -> None:
        """Change a few fields, or none."""
        if self.active:
            for name, f in self._rng.sample(self._fields, min(4, len(self._fields))):
                self.set(name, f.name, _INPUTS[f.kind](f, self._rng))
        for name in self._changed:
            self._ports[name].value = self._codecs[name].pack(self.values[name])
        self._changed.clear()

    def sample(self) -> None:
        """Nothing to see."""

    def reset(self) -> None:
        """Nothing is under way."""


def _number(f: Field, rng: Random | None) -> Any:
    return rng.getrandbits(f.width) if rng else 0


def _event(f: Field, rng: Random | None) -> Any:
    return rng.getrandbits(f.width) if rng and rng.random() < 0.2 else 0


def _count(f: Field, rng: Random | None) -> Any:
    if rng is None:
        return {"increment": 0, "clear": 0}
    return {"increment": rng.getrandbits(f.increment_width), "clear": int(rng.random() < 0.1)}


_INPUTS = {Kind.STATUS: _number, Kind.WINDOW: _number, Kind.EVENT: _event, Kind.COUNTER: _count}


class RegisterMonitor(Monitor):
    """Compares responses, data and everything that hardware sees with the model, in every cycle.

    A write takes effect in the cycle in which its response is first offered, a read shows the cycle before that; so
    the model follows the order in which responses come, and nothing else of the design is looked at.
    """

    def __init__(self, bench: Bench, model: RegisterModel, hardware: HardwareSide) -> None:
        super().__init__(bench)
        self.model = model
        self.hardware = hardware
        self.writes = bench.add_scoreboard(Scoreboard("writes"))
        self.reads = bench.add_scoreboard(Scoreboard("reads"))
        self.accepted: dict[str, int] = {}
        """Channel to the cycle of its last transfer."""
        self.offered: dict[str, int] = {}
        """Channel to the cycle in which its last offer was first made."""
        self._watches = {name: ChannelWatch(bench, f"axi__{name}", fields) for name, fields in LITE_FIELDS.items()}
        self._pending: dict[str, deque[dict[str, int]]] = {name: deque() for name in ("aw", "w", "ar")}
        self._before: Inputs | None = None
        self._software = {
            name: (getattr(bench.dut, f"software__{name}"), bench.codec(f"software__{name}"))
            for name in model.software()
        }

    def sample(self) -> None:
        """Follow the clock edge that has just passed, and compare."""
        if self.bench.in_reset:
            self.model.reset()
            self._before = None
            return
        seen = {name: watch.sample() for name, watch in self._watches.items()}
        if self._before is not None:
            self._follow(seen["b"], seen["r"], self._before)
        self._compare_software()
        self._before = copy.copy(self.hardware.values)
        for name, (offer, new, taken) in seen.items():
            if new:
                self.offered[name] = self.bench.cycle
            if taken:
                self.accepted[name] = self.bench.cycle
                if offer is not None and name in self._pending:
                    self._pending[name].append(offer)
                    self._expect(name)

    def _expect(self, name: str) -> None:
        """A transfer on this channel was taken: a response may be owed."""
        if name == "ar":
            self.reads.expect("response")
        elif len(self._pending["aw" if name == "w" else "w"]) >= len(self._pending[name]):
            self.writes.expect("response")

    def _follow(self, b: Any, r: Any, before: Inputs) -> None:
        if r[1]:
            self.reads.observe("response")
            request = self._pending["ar"].popleft()
            response, data = self.model.read(request["addr"], before)
            self._compare(f"read of {request['addr']:#x}", {"data": data, "resp": response}, r[0])
        write = None
        if b[1]:
            self.writes.observe("response")
            address, data = self._pending["aw"].popleft(), self._pending["w"].popleft()
            write = Write(address["addr"], data["data"], data["strb"])
        response = self.model.step(before, write)
        if write is not None:
            self._compare(f"{write}", {"resp": response}, b[0])

    def _compare_software(self) -> None:
        for name, expected in self.model.software().items():
            port, codec = self._software[name]
            self._compare(f"software.{name}", codec.pack(expected), int(port.value))
        self._compare("irq", self.model.irq, bool(self.bench.dut.irq.value))

    def _compare(self, what: str, expected: Any, found: Any) -> None:
        if found != expected:
            raise CheckError(f"{what}: expected {expected}, found {found} (cycle {self.bench.cycle})")

    def reset(self) -> None:
        """Reset forgets what is under way."""
        for watch in self._watches.values():
            watch.reset()
        for queue in self._pending.values():
            queue.clear()
