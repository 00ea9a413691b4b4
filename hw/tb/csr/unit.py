"""The same comparison in the Amaranth simulator: no compilation, so one run takes a second or two."""

from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any

from amaranth.lib import data
from amaranth.sim import Simulator

from hw.params import TINY
from hw.rdl import Kind, Register
from hw.rtl.csr import Registers
from hw.tb.axi import LITE_FIELDS, Offer
from hw.tb.csr.accesses import RandomAccesses
from hw.tb.csr.agents import random_input
from hw.tb.csr.checker import RegisterChecker
from hw.tb.csr.model import RegisterModel

INPUTS = (Kind.STATUS, Kind.EVENT, Kind.COUNTER, Kind.WINDOW)


def exercise(dut: Registers, registers: Mapping[str, Register], *, seed: int, cycles: int) -> None:
    """Run random accesses with random stalls and an active hardware side. Raises CheckError."""
    rng = Random(seed)
    accesses = RandomAccesses(registers, rng)
    checker = RegisterChecker(RegisterModel(registers, TINY))
    software = {name: getattr(dut.software, name) for name in checker.model.software}
    checker.pack = {name: _packer(port.shape()) for name, port in software.items()}
    fields = [(r.name.lower(), f) for r in registers.values() for f in r.fields if f.kind in INPUTS]
    events = [(register, f) for register, f in fields if f.kind is Kind.EVENT]
    inputs: dict[str, dict[str, Any]] = {}
    for register, f in fields:
        inputs.setdefault(register, {})[f.name] = random_input(f, None)
    queues: dict[str, deque[Offer]] = {name: deque() for name in ("aw", "w", "ar")}
    offers: dict[str, Offer | None] = dict.fromkeys(queues)

    def fresh(name: str) -> Offer | None:
        if not queues[name]:
            write = accesses.write()
            queues["aw"].append({"addr": write.address, "prot": rng.getrandbits(3)})
            queues["w"].append({"data": write.data, "strb": write.strobe})
            queues["ar"].append({"addr": accesses.address(), "prot": rng.getrandbits(3)})
        return queues[name].popleft() if rng.random() < 0.7 else None

    def drive(ctx: Any) -> None:
        for name, standing in offers.items():
            offer = offers[name] = standing or fresh(name)
            ctx.set(getattr(dut.axi, f"{name}valid"), offer is not None)
            for field, value in (offer or {}).items():
                ctx.set(getattr(dut.axi, f"{name}{field}"), value)
        for name in ("b", "r"):
            ctx.set(getattr(dut.axi, f"{name}ready"), rng.random() < 0.7)
        for register, f in (rng.choice(fields), *events):
            inputs[register] = {**inputs[register], f.name: random_input(f, rng)}
            ctx.set(getattr(dut.hardware, register), inputs[register])

    def seen(ctx: Any, name: str) -> tuple[Offer | None, bool]:
        ready = bool(ctx.get(getattr(dut.axi, f"{name}ready")))
        if not ctx.get(getattr(dut.axi, f"{name}valid")):
            return None, ready
        return {field: int(_bits(ctx.get(getattr(dut.axi, f"{name}{field}")))) for field in LITE_FIELDS[name]}, ready

    async def bench(ctx: Any) -> None:
        for _ in range(cycles):
            drive(ctx)
            ports = {name: _bits(ctx.get(port)) for name, port in software.items()}
            channels = {name: seen(ctx, name) for name in LITE_FIELDS}
            happened = checker.cycle(channels, ports, bool(ctx.get(dut.irq)), inputs)
            for name in offers:
                if happened[name][1]:
                    offers[name] = None
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()


def _bits(value: Any) -> int:
    return value.as_bits() if isinstance(value, data.Const) else getattr(value, "value", value)


def _packer(layout: data.Layout) -> Any:
    return lambda value: layout.const(value).as_bits()
