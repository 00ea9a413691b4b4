"""The memory node."""
