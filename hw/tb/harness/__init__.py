"""A top compiled to a shared library, with memory, links and software around it as C++ models."""

from hw.tb.harness.harness import Harness, Links
from hw.tb.harness.simulation import HarnessError, Memory, TargetStatistics

__all__ = ["Harness", "HarnessError", "Links", "Memory", "TargetStatistics"]
