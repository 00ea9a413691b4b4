"""A port of a memory node: commands and data off its link, answers and data onto it."""

from hw.rtl.node.port.port import Port

__all__ = ["Port"]
