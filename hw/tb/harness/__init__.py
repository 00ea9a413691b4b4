"""The slice compiled to a shared library, with memory, links and software around it as C++ models."""

from hw.tb.harness.harness import ChannelStatistics, Harness, HarnessError, Links, Memory

__all__ = ["ChannelStatistics", "Harness", "HarnessError", "Links", "Memory"]
