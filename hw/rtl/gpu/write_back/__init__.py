"""The write-back buffer: blocks on their way from a GPU's memory into a node."""

from hw.rtl.gpu.write_back.layouts import hook, seen_layout
from hw.rtl.gpu.write_back.write_back import WriteBack

__all__ = ["WriteBack", "hook", "seen_layout"]
