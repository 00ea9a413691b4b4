"""`kvnode replay`: a trace through driver and backend, every byte compared."""

from scripts.replay.command import command

__all__ = ["command"]
