"""The data path of a slice, between the core's verdicts and the memory channels."""

from hw.rtl.node.data.data_path import DataPath, memory_channel
from hw.rtl.node.data.read_path import ReadPath
from hw.rtl.node.data.write_path import WritePath

__all__ = ["DataPath", "ReadPath", "WritePath", "memory_channel"]
