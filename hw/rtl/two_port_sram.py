"""SRAM with a port to read and a port to write: what buffers of the data path and tables are made of."""

from pathlib import Path

from amaranth import ClockSignal, Instance, Module
from amaranth.lib import data, memory, wiring
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
    lanes
        Equal parts of a row that are written separately.

    Interface
    ---------
    write, write_address, write_data : In
        The lanes of the row that `write` has, a bit a lane, are written.
    read, read_address : In
        With `read`, the row is read.
    read_data : Out
        The row of the last read.

    Latency and throughput
    ----------------------
    A read and a write a cycle; a read takes one cycle.

    Ordering and stalls
    -------------------
    A read sees the writes of earlier cycles. A row that is read while it is written reads as anything.

    Reset and errors
    ----------------
    Reset leaves the content alone. There is none at power-up: what was never written reads as anything.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, *, rows: int, width: int, lanes: int = 1):
        self._rows = rows
        self._row = data.ArrayLayout(width // lanes, lanes)
        super().__init__(
            {
                "write": In(lanes),
                "write_address": In(ceil_log2(rows)),
                "write_data": In(width),
                "read": In(1),
                "read_address": In(ceil_log2(rows)),
                "read_data": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._rows * self._row.size > LARGEST_INFERRED:
            m.submodules.macro = Instance(
                MACRO,
                p_ROWS=self._rows,
                p_LANES=self._row.length,
                p_LANE_BITS=self._row.elem_shape,
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
        m.submodules.mem = mem = memory.Memory(shape=self._row, depth=self._rows, init=[])
        write, read = mem.write_port(granularity=1), mem.read_port()
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
            read.en.eq(self.read),
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
        ]
        return m
