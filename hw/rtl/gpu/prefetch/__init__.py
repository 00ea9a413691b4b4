"""The prefetch engine: brings the blocks of a session into a GPU's memory ahead of their use."""

from hw.rtl.gpu.prefetch.prefetch import Prefetch

__all__ = ["Prefetch"]
