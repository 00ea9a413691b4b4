"""Registers: kvnode.rdl and requester.rdl are their one source, all else is generated from them."""

from hw.rdl.registers import Field, Kind, Register, register_map, requester_map

__all__ = ["Field", "Kind", "Register", "register_map", "requester_map"]
