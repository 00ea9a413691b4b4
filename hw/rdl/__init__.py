"""Registers: kvnode.rdl is their one source, all else is generated from it."""

from hw.rdl.registers import Field, Kind, Register, register_map

__all__ = ["Field", "Kind", "Register", "register_map"]
