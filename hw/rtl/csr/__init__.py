"""Control and status registers, generated from the compiled register map, behind AXI4-Lite."""

from hw.rtl.csr.control import SliceControl
from hw.rtl.csr.registers import Registers

__all__ = ["Registers", "SliceControl"]
