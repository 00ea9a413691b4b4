"""Layouts of what moves between the registers and the slice."""

from amaranth.lib import data

from hw.params.protocol import FRAME_BITS, PORT_BITS, RING_BITS

ADMIN_COMMAND = data.StructLayout(
    {
        "opcode": 5,
        "port": 8,
        "ring": 8,
        "binding": 2,
        "partition": 8,
        "pool": 4,
        "public": 1,
        "quota": 32,
        "guarantee": 32,
        "read_mask": 64,
        "model": 16,
        "state": 2,
    }
)
"""An administrative command; a command uses the operands that it has, as `hw.params.commands` says."""

ERROR_ENTRY = data.StructLayout({"kind": 8, "code": 8, "port": PORT_BITS, "ring": RING_BITS, "frame": FRAME_BITS})
"""An entry of the error log: an `hw.params.registers.ErrorKind`, and what it concerns."""
