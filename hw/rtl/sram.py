"""Single-port SRAM, of which the CAM is made, as a module that a technology's macros can take the place of."""

from pathlib import Path

from amaranth import ClockSignal, Instance, Module
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

MACRO = "kvnode_sram"
"""Module name of the macro."""

MODEL = Path(__file__).with_suffix(".v")
"""Its behavioural model in Verilog, which goes with every design that has one."""

LARGEST_INFERRED = 1 << 16
"""Bits above which a macro is instantiated: inferring spells out every bit on its way to Verilog, 4 s a million."""


class Sram(wiring.Component):
    """A single-port SRAM, with one write enable a lane.

    Parameters
    ----------
    rows
        Number of rows.
    lanes, lane_bits
        A row is so many lanes of so many bits.

    Interface
    ---------
    enable : In, 1 bit
        An access takes place.
    write : In, a bit a lane
        The lanes to write; an access that writes no lane is a read.
    address : In
        The row; below `rows`.
    write_data, read_data : In, Out, a row
        `read_data` belongs to the access of the cycle before, if that was a read, and means nothing otherwise.

    Latency and throughput
    ----------------------
    One access a cycle; a read takes one cycle.

    Ordering and stalls
    -------------------
    In order: a read sees all earlier writes. Never stalls.

    Reset and errors
    ----------------
    Reset leaves the content alone. There is none at power-up: what was never written reads as anything.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, *, rows: int, lanes: int, lane_bits: int):
        self._rows = rows
        self._row = data.ArrayLayout(lane_bits, lanes)
        super().__init__(
            {
                "enable": In(1),
                "write": In(lanes),
                "address": In(ceil_log2(rows)),
                "write_data": In(self._row),
                "read_data": Out(self._row),
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
                p_ADDRESS_BITS=len(self.address),
                i_clk=ClockSignal(),
                i_enable=self.enable,
                i_write=self.write,
                i_address=self.address,
                i_write_data=self.write_data,
                o_read_data=self.read_data,
            )
            return m
        m.submodules.mem = mem = memory.Memory(shape=self._row, depth=self._rows, init=[])
        write, read = mem.write_port(granularity=1), mem.read_port()
        m.d.comb += [
            write.en.eq(self.write & self.enable.replicate(self._row.length)),
            write.addr.eq(self.address),
            write.data.eq(self.write_data),
            read.en.eq(self.enable & ~self.write.any()),
            read.addr.eq(self.address),
            self.read_data.eq(read.data),
        ]
        return m
