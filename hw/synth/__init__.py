"""Size and logic depth of a component on an FPGA family, from Yosys alone: no place and route, no vendor tool."""

from hw.synth.family import FAMILIES
from hw.synth.flow import Report, synthesise

__all__ = ["FAMILIES", "Report", "synthesise"]
