"""Ways to reach a slice: each carries registers, commands and completions, and decides nothing."""

from sw.driver.transport.base import Arrival, Transport
from sw.driver.transport.bus import Bus
from sw.driver.transport.following import FollowingTransport
from sw.driver.transport.mmio import MmioTransport
from sw.driver.transport.notices import MessagesLost, RingFailed
from sw.driver.transport.observed import ObservedTransport, Observer
from sw.driver.transport.recording import Recorder, Recording
from sw.driver.transport.specification import SpecificationTransport

__all__ = [
    "Arrival",
    "Bus",
    "FollowingTransport",
    "MessagesLost",
    "MmioTransport",
    "ObservedTransport",
    "Observer",
    "Recorder",
    "Recording",
    "RingFailed",
    "SpecificationTransport",
    "Transport",
]
