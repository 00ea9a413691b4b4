"""The blocks that can be emitted, by name, and how each is built from the parameters."""

from collections.abc import Callable

from amaranth.lib import wiring

from hw.params import Params
from hw.rtl.csr import SliceControl
from hw.rtl.gpu import Requester
from hw.rtl.node.cam import Cam
from hw.rtl.node.core import Core
from hw.rtl.node.data import DataPath
from hw.rtl.node.slice import Slice
from hw.rtl.system import System
from hw.rtl.transform import Crc32c

BLOCKS: dict[str, Callable[[Params], wiring.Component]] = {
    "cam": Cam,
    "core": Core,
    "crc32c": lambda params: Crc32c(beat_bytes=params.memory.beat_bytes),
    "csr": SliceControl,
    "data": DataPath,
    "requester": Requester,
    "slice": Slice,
    "system": System,
}
"""A block's name is also the name of its top module in Verilog. A slice and a requester are made of the others, the
system of these two."""
