"""The hardware's side of registers, and the monitor of everything."""

from random import Random
from typing import Any

from hw.rdl import Field, Kind
from hw.tb.axi import LITE_FIELDS, Offer
from hw.tb.bench import Bench
from hw.tb.csr.checker import RegisterChecker
from hw.tb.csr.model import RegisterModel
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
            fields = [f for f in register.fields if f.kind in INPUTS]
            if fields:
                self.values[name] = {f.name: random_input(f, None) for f in fields}
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
                self.set(name, f.name, random_input(f, self._rng))
        for name in self._changed:
            self._ports[name].value = self._codecs[name].pack(self.values[name])
        self._changed.clear()

    def sample(self) -> None:
        """Nothing to see."""

    def reset(self) -> None:
        """Nothing is under way."""


def random_input(f: Field, rng: Random | None) -> Any:
    """Return what hardware may show of a field; without a generator, nothing but zeros."""
    return INPUTS[f.kind](f, rng)


def _number(f: Field, rng: Random | None) -> Any:
    return rng.getrandbits(f.width) if rng else 0


def _event(f: Field, rng: Random | None) -> Any:
    return rng.getrandbits(f.width) if rng and rng.random() < 0.2 else 0


def _count(f: Field, rng: Random | None) -> Any:
    if rng is None:
        return {"increment": 0, "clear": 0}
    return {"increment": rng.getrandbits(f.increment_width), "clear": int(rng.random() < 0.1)}


INPUTS = {Kind.STATUS: _number, Kind.WINDOW: _number, Kind.EVENT: _event, Kind.COUNTER: _count}


class RegisterMonitor(Monitor):
    """Shows every cycle to a checker, and keeps when things happened.

    - `accepted`: channel to the cycle of its last transfer.
    - `offered`: channel to the cycle in which its last offer was first made.
    """

    def __init__(self, bench: Bench, checker: RegisterChecker, hardware: HardwareSide) -> None:
        super().__init__(bench)
        self.checker = checker
        self.accepted: dict[str, int] = {}
        self.offered: dict[str, int] = {}
        self._hardware = hardware
        self._signals = {
            channel: {field: getattr(bench.dut, f"axi__{channel}{field}") for field in (*fields, "valid", "ready")}
            for channel, fields in LITE_FIELDS.items()
        }
        codecs = {name: bench.codec(f"software__{name}") for name in checker.model.software}
        checker.pack = {name: codec.pack for name, codec in codecs.items()}
        self._software = {name: getattr(bench.dut, f"software__{name}") for name in codecs}
        for board in checker.scoreboards:
            bench.add_scoreboard(board)

    def sample(self) -> None:
        """Show this cycle to the checker."""
        if self.bench.in_reset:
            self.checker.reset()
            return
        seen = {channel: self._channel(channel) for channel in self._signals}
        software = {name: int(port.value) for name, port in self._software.items()}
        events = self.checker.cycle(seen, software, bool(self.bench.dut.irq.value), self._hardware.values)
        for channel, (new, taken) in events.items():
            if new:
                self.offered[channel] = self.bench.cycle
            if taken:
                self.accepted[channel] = self.bench.cycle

    def _channel(self, channel: str) -> tuple[Offer | None, bool]:
        signals = self._signals[channel]
        if not signals["valid"].value:
            return None, bool(signals["ready"].value)
        offer = {field: int(signals[field].value) for field in LITE_FIELDS[channel]}
        return offer, bool(signals["ready"].value)

    def reset(self) -> None:
        """Sampling in reset tells the checker."""
