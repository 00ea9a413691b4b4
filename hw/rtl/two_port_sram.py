"""SRAM with a port to read and a port to write: what buffers of the data path are made of."""

from pathlib import Path

from amaranth import ClockSignal, Instance, Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

MACRO = "kvnode_two_port_sram"
"""Module name of the macro."""

MODEL = Path(__file__).with_suffix(".v")
"""Its behavioural model in Verilog, which goes with every design that has one."""

LARGEST_INFERRED = 1 << 14
"""Bits above which a macro is instantiated: inferring spells out every bit on its way to Verilog, in each of many."""


class TwoPortSram(wiring.Component):
    """An SRAM that is read and written in the same cycle.

    Parameters
    ----------
    rows, width
        Number of rows, and bits of each.

    Interface
    ---------
    write, write_address, write_data : In
        With `write`, the row is written.
    read, read_address : In
        With `read`, the row is read.
    read_data : Out
        The row of the last read.

    Latency and throughput
    ----------------------
    A read and a write a cycle; a read takes one cycle.

    Ordering and stalls
    -------------------
    A read sees the writes of earlier cycles. Reading and writing one row in the same cycle is the user's error.

    Reset and errors
    ----------------
    Reset leaves the content alone. There is none at power-up: what was never written reads as anything.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, *, rows: int, width: int):
        self._rows = rows
        self._width = width
        super().__init__(
            {
                "write": In(1),
                "write_address": In(ceil_log2(rows)),
                "write_data": In(width),
                "read": In(1),
                "read_address": In(ceil_log2(rows)),
                "read_data": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._rows * self._width > LARGEST_INFERRED:
            m.submodules.macro = Instance(
                MACRO,
                p_ROWS=self._rows,
                p_WIDTH=self._width,
                p_ADDRESS_BITS=len(self.read_address),
                i_clk=ClockSignal(),
                i_write=self.write,
                i_write_address=self.write_address,
                i_write_data=self.write_data,
                i_read=self.read,
                i_read_address=self.read_address,
                o_read_data=self.read_data,
            )
            return m
        m.submodules.mem = mem = memory.Memory(shape=self._width, depth=self._rows, init=[])
        write, read = mem.write_port(), mem.read_port()
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
            read.en.eq(self.read),
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
        ]
        return m
