"""The core of a slice: takes operations one by one, in the order that its log tells, and judges each."""

from hw.rtl.node.core.core import Core

__all__ = ["Core"]
