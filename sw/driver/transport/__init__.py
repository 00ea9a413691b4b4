"""Ways to reach a slice: each carries registers, commands and completions, and decides nothing."""

from sw.driver.transport.base import Arrival, Transport
from sw.driver.transport.following import FollowingTransport
from sw.driver.transport.observed import ObservedTransport, Observer
from sw.driver.transport.recording import Recorder, Recording
from sw.driver.transport.specification import SpecificationTransport

__all__ = [
    "Arrival",
    "FollowingTransport",
    "ObservedTransport",
    "Observer",
    "Recorder",
    "Recording",
    "SpecificationTransport",
    "Transport",
]
