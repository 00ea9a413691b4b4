"""A device in this process: requesters that do what docs/requester.md says, and the specification behind them."""

from sw.driver.transport.loopback.bus import LoopbackBus

__all__ = ["LoopbackBus"]
