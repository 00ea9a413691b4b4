"""Links between ports: flits of several channels on one stream, each channel with credits of its own."""

from hw.rtl.fabric.fan import Fan
from hw.rtl.fabric.layouts import Channel, flit_layout, lane, link
from hw.rtl.fabric.link_end import LinkEnd
from hw.rtl.fabric.receiver import Receiver
from hw.rtl.fabric.span import Span
from hw.rtl.fabric.transmitter import Transmitter

__all__ = ["Channel", "Fan", "LinkEnd", "Receiver", "Span", "Transmitter", "flit_layout", "lane", "link"]
