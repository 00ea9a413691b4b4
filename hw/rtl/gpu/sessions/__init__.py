"""The manager of sessions: an engine that knows those that its requester has, and answers the fences of those that
move."""

from hw.rtl.gpu.sessions.layouts import pins_layout, watched_layout
from hw.rtl.gpu.sessions.manager import SessionManager

__all__ = ["SessionManager", "pins_layout", "watched_layout"]
