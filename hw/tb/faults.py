"""Benches of the CRC32C unit that must fail: each leaves out or spoils one thing that the testbench base relies on."""

from typing import Any

import cocotb

from hw.tb.bench import Bench
from hw.tb.crc32c.bench import CrcBench
from hw.tb.pace import never, randomly
from hw.tb.stream import StreamMonitor


class DeafMonitor(StreamMonitor):
    """Misses every fifth transfer."""

    def sample(self) -> None:
        if self.bench.cycle % 5:
            super().sample()


@cocotb.test()
async def monitor_misses_beats(dut: Any) -> None:
    """The expected CRCs come from a monitor that does not see every beat."""
    async with CrcBench(dut) as bench:
        deaf = DeafMonitor(bench, "beats")
        bench.source.monitor.listeners.clear()
        deaf.listeners.append(bench.on_beat)
        for _ in range(20):
            bench.send(bench.segment())
        await bench.sent()


@cocotb.test()
async def wrong_expectation(dut: Any) -> None:
    """One CRC is expected that no segment has."""
    async with CrcBench(dut) as bench:
        bench.crcs.expect(0x12345678)
        bench.send(b"kvnode")
        await bench.sent()


@cocotb.test()
async def nothing_compared(dut: Any) -> None:
    """No segment is sent."""
    async with CrcBench(dut):
        pass


@cocotb.test()
async def nothing_to_compare_with(dut: Any) -> None:
    """The bench has no scoreboard."""
    async with Bench(dut):
        pass


@cocotb.test()
async def never_comes(dut: Any) -> None:
    """No CRC is ever taken."""
    async with CrcBench(dut, backpressure=never) as bench:
        bench.send(b"kvnode")
        await bench.sent()


@cocotb.test()
async def one_too_many(dut: Any) -> None:
    """A segment is sent that the scoreboard does not hear of, after all that it expects has come."""
    async with CrcBench(dut) as bench:
        bench.send(b"kvnode")
        await bench.until(lambda: bench.crcs.compared == 1)
        bench.source.monitor.listeners.clear()
        bench.send(b"kvnode")


@cocotb.test()
async def bubbles(dut: Any) -> None:
    """The source leaves out a cycle now and then."""
    async with CrcBench(dut, idle=randomly(0.9)) as bench:
        for _ in range(20):
            bench.send(bench.segment())
        await bench.sent()
        bench.source.monitor.check_full_rate()
