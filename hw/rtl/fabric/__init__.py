"""Links between ports: flits of several channels on one stream, each channel with credits of its own."""

from hw.rtl.fabric.fan import Fan
from hw.rtl.fabric.layouts import Channel, flit_layout, lane, link
from hw.rtl.fabric.receiver import Receiver
from hw.rtl.fabric.transmitter import Transmitter

__all__ = ["Channel", "Fan", "Receiver", "Transmitter", "flit_layout", "lane", "link"]
