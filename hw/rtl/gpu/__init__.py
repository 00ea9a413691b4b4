"""The requester's side of a port: rings in host memory, and the paths of commands and data to and from its link."""

from hw.rtl.gpu.requester import Requester

__all__ = ["Requester"]
