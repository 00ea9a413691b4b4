"""The compiled system from Python: a node with requesters, and the memory of software at each of them."""

import ctypes
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hw.params import InputError, Params
from hw.rtl.emit import Emission
from hw.rtl.system import System
from hw.tb.harness.build import emit_top
from hw.tb.harness.simulation import HANDLE, NUMBER, POINTER, U64, Memory, Simulation, records
from hw.tb.payload import Codec

PAGE = 4096
"""Regions begin at multiples of this."""

ADDRESSES = 1 << 64
"""How many addresses a requester has."""


class Issued(NamedTuple):
    """In that cycle the requester of a port has given software's command `tag` of a ring the tag `link_tag`.

    Where there are engines, `owner` says whose it is; a command of an engine has the tag of its task.
    """

    cycle: int
    port: int
    ring: int
    tag: int
    link_tag: int
    owner: int = 0


class SystemHarness(Simulation):
    """A system with its memory and software around it, reset and in its first cycle.

    Units of registers and interrupts are 0 to S - 1, the slices, and S + p, the requester at port p. Channel c of
    slice s, of C, is number s C + c of memory. A requester reaches what is mapped for it, through `host` and through
    `hbm`, in place: what it writes is in the caller's buffer at once.

    - `memory`, `host`, `hbm`: how the memory of slices, and what is behind the ports of requesters, behave.
    - `emission`: the system, if it is not `System(params)`: a mutant.
    - Everything else is as in `Simulation`; `of` is "memory", "host" or "hbm", numbered by channel or port.
    """

    _API = {
        "map": (ctypes.c_int, (HANDLE, NUMBER, U64, U64, POINTER, ctypes.c_int)),
        "unmap": (ctypes.c_int, (HANDLE, NUMBER, U64)),
        "issued": (POINTER, (HANDLE, NUMBER, POINTER)),
        "clear_issued": (None, (HANDLE, NUMBER)),
    }

    def __init__(
        self,
        params: Params,
        *,
        seed: int = 0,
        memory: Memory | None = None,
        host: Memory | None = None,
        hbm: Memory | None = None,
        waves: Path | None = None,
        emission: Emission | None = None,
    ):
        emission = emission or emit_top(System, "system", params)
        ports = params.tables.ports
        targets = {"memory": params.node.slices * params.memory.channels, "host": ports, "hbm": ports}
        super().__init__(params, emission, seed=seed, targets=targets, waves=waves)
        self._issued = Codec(emission.ports["issued__0__payload"]["shape"])
        self._buffers: dict[tuple[int, int], np.ndarray] = {}
        self.memory = memory or Memory()
        self.host = host or Memory()
        self.hbm = hbm or Memory()

    @property
    def host(self) -> Memory:
        """How host memory behaves from the next cycle on."""
        return self._behaviours["host"]

    @host.setter
    def host(self, memory: Memory) -> None:
        self._behave("host", memory)

    @property
    def hbm(self) -> Memory:
        """How HBM behaves from the next cycle on."""
        return self._behaviours["hbm"]

    @hbm.setter
    def hbm(self, memory: Memory) -> None:
        self._behave("hbm", memory)

    def map(self, port: int, address: int, view: memoryview, *, writable: bool) -> None:
        """Let the requester of a port reach bytes at an address, a multiple of `PAGE`, until `unmap` or `close`.

        An access to anything else is answered with DECERR, a write to what is not writable with SLVERR. Raises
        InputError for an address that is none, bytes that are not in one piece or overlap a region, and for bytes that
        are to be written but are read-only.
        """
        self._port(port)
        length = view.nbytes
        if address % PAGE or address < 0 or address + length >= ADDRESSES:
            raise InputError(f"region of {length} bytes at {address:#x}, expected a multiple of {PAGE} below 2**64")
        if not (length and view.c_contiguous):
            raise InputError(f"region of {length} bytes, expected at least one, in one piece")
        if writable and view.readonly:
            raise InputError("a read-only buffer to be written, expected one that is writable")
        buffer = np.frombuffer(view.cast("B"), np.uint8)
        if not self._library.harness_map(self._harness, port, address, length, buffer.ctypes.data, writable):
            raise InputError(f"region of {length} bytes at {address:#x} of port {port} overlaps another")
        self._buffers[port, address] = buffer

    def unmap(self, port: int, address: int) -> None:
        """End it: nothing is read or written there afterwards. Raises InputError if no region begins there."""
        if not self._library.harness_unmap(self._harness, self._port(port), address):
            raise InputError(f"no region of port {port} begins at {address:#x}")
        del self._buffers[port, address]

    @property
    def mapped(self) -> int:
        """How many regions are mapped, for all ports."""
        return len(self._buffers)

    def close(self) -> None:
        """End the simulation, and the waves; buffers are free again."""
        super().close()
        self._buffers = {}

    def issued(self) -> list[Issued]:
        """Return what requesters have issued since the last call, in the order of cycles."""
        size = -(-self._issued.width // 8)
        return sorted(
            Issued(cycle, port, **self._issued.unpack(payload))
            for port in range(self._params.tables.ports)
            for cycle, payload in records(self._take("issued", port), size)
        )
