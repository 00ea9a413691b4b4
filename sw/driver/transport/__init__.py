"""Ways to reach a slice: each carries registers, commands and completions, and decides nothing."""

from sw.driver.transport.base import Arrival, Transport
from sw.driver.transport.specification import SpecificationTransport

__all__ = ["Arrival", "SpecificationTransport", "Transport"]
