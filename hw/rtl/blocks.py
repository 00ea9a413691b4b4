"""The blocks that can be emitted, by name, and how each is built from the parameters; and parts of one to measure."""

from collections.abc import Callable
from typing import NamedTuple

from amaranth.lib import wiring

from hw.params import Params
from hw.rtl.csr import SliceControl
from hw.rtl.fabric import Fan, LinkEnd
from hw.rtl.fabric.layouts import from_node_buffers, to_node_buffers
from hw.rtl.gpu import Requester
from hw.rtl.node.cam import Cam
from hw.rtl.node.core import Core
from hw.rtl.node.data import DataPath
from hw.rtl.node.data.read_lane import ReadLane
from hw.rtl.node.data.read_port import ReadPort
from hw.rtl.node.data.write_lane import WriteLane
from hw.rtl.node.data.write_port import WritePort
from hw.rtl.node.node import Node
from hw.rtl.node.slice import Slice
from hw.rtl.system import System
from hw.rtl.transform import Crc32c

BLOCKS: dict[str, Callable[[Params], wiring.Component]] = {
    "cam": Cam,
    "core": Core,
    "crc32c": lambda params: Crc32c(beat_bytes=params.memory.beat_bytes),
    "csr": SliceControl,
    "data": DataPath,
    "link": lambda params: LinkEnd(params, sent=to_node_buffers(params), received=from_node_buffers(params)),
    "node": Node,
    "requester": Requester,
    "slice": Slice,
    "system": System,
}
"""A block's name is also the name of its top module in Verilog. A slice and a requester are made of the others, a node
of slices, the system of a node and requesters. A link is the requester's end of one with replay."""


class Part(NamedTuple):
    """What a block has several of: how one is built, and how many a slice, or a node, has."""

    build: Callable[[Params], wiring.Component]
    number: Callable[[Params], int]


def _channels(params: Params) -> int:
    return params.memory.channels


def _ports(params: Params) -> int:
    return params.tables.ports


def _fans(params: Params) -> int:
    return params.tables.ports if params.node.slices > 1 else 0


PARTS: dict[str, Part] = {
    "fan": Part(Fan, _fans),
    "read_lane": Part(ReadLane, _channels),
    "write_lane": Part(WriteLane, _channels),
    "read_port": Part(ReadPort, _ports),
    "write_port": Part(WritePort, _ports),
}
"""What the data path is made of: so much of it is for a channel, and so much for a port; and the fans of a node of
several slices."""
