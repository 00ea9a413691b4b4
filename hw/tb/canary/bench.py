"""cocotb tests of what `hw.tb.bench` takes for granted about the simulator.

They do without `Bench`, which rests on what they show.
"""

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge


@cocotb.test()
async def driven_after_the_edge(dut: Any) -> None:
    """What is driven after an edge takes effect at the next edge, not at this one."""
    dut.rst.value = 0
    Clock(dut.clk, 1, "ns").start()
    driven = 0
    await RisingEdge(dut.clk)
    dut.d.value = driven
    for _ in range(100):
        await RisingEdge(dut.clk)
        before, driven = driven, random.randrange(256)
        dut.d.value = driven
        await ReadOnly()
        assert int(dut.q.value) == before, f"q took {int(dut.q.value)} at the edge, expected {before}"


@cocotb.test()
async def settled_in_read_only(dut: Any) -> None:
    """In ReadOnly, combinational outputs follow what was driven in the same cycle."""
    dut.rst.value = 0
    Clock(dut.clk, 1, "ns").start()
    for _ in range(100):
        await RisingEdge(dut.clk)
        driven = random.randrange(256)
        dut.d.value = driven
        await ReadOnly()
        assert int(dut.y.value) == (driven + 1) % 256, f"y is {int(dut.y.value)} for d = {driven}"


@cocotb.test()
async def reset_is_synchronous(dut: Any) -> None:
    """Reset acts at the edge after it was driven, and wins over the input."""
    dut.rst.value = 0
    dut.d.value = 1
    Clock(dut.clk, 1, "ns").start()
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 1
    await ReadOnly()
    assert int(dut.q.value) == 1, "q was reset before an edge"
    await RisingEdge(dut.clk)
    await ReadOnly()
    assert int(dut.q.value) == 0x5A, "q was not reset by the edge"
