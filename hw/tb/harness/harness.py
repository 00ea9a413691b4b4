"""The compiled slice, or node, from Python, with requesters' ends at its links."""

import ctypes
from dataclasses import asdict, dataclass
from pathlib import Path

from hw.params import InputError, Params
from hw.rtl.emit import Emission
from hw.rtl.fabric import Channel
from hw.rtl.fabric.layouts import to_node_buffers
from hw.rtl.node.node import Node
from hw.rtl.node.slice import Slice
from hw.tb.harness.build import emit_top
from hw.tb.harness.simulation import HANDLE, NUMBER, POINTER, U64, Memory, Simulation


@dataclass(frozen=True, kw_only=True)
class Links:
    """How the requesters' ends of the links behave; all share it.

    - `idle`: probability, each cycle, that nothing is sent although there is a flit and a credit.
    - `backpressure`: probability, each cycle, that a channel's next flit stays in its buffer, and gives no credit.
    - `latency`: cycles that a flit or a credit is under way, each way.
    """

    idle: float = 0.0
    backpressure: float = 0.0
    latency: int = 0


class Harness(Simulation):
    """A slice with memory, requesters and software around it, reset and in its first cycle; of several, a node.

    Memory channels, units of registers and order logs of a node are numbered as in `Node`.

    - `emission`: the top, if it is not `Slice(params)` or `Node(params)`: a mutant.
    - Everything else is as in `Simulation`.
    """

    _API = {
        "set_link": (None, (HANDLE, NUMBER, POINTER)),
        "send": (None, (HANDLE, NUMBER, NUMBER, ctypes.c_char_p, U64)),
        "pending": (U64, (HANDLE, NUMBER)),
        "received": (POINTER, (HANDLE, NUMBER, POINTER)),
        "clear_received": (None, (HANDLE, NUMBER)),
        "fall_silent": (None, (HANDLE, NUMBER)),
        "renew": (None, (HANDLE, NUMBER)),
        "down": (ctypes.c_int, (HANDLE, NUMBER)),
        "turned": (U64, (HANDLE, NUMBER)),
    }

    def __init__(
        self,
        params: Params,
        *,
        seed: int = 0,
        memory: Memory | None = None,
        links: Links | None = None,
        waves: Path | None = None,
        emission: Emission | None = None,
    ):
        slices = params.node.slices
        emission = emission or (emit_top(Slice, "slice", params) if slices == 1 else emit_top(Node, "node", params))
        super().__init__(params, emission, seed=seed, targets={"memory": slices * params.memory.channels}, waves=waves)
        self._sent = to_node_buffers(params)
        self.flit_bytes = -(-emission.ports["links__0__to_node__flit"]["width"] // 8)
        """Bytes of a flit; the header is in the low bits of the first."""
        self.memory = memory or Memory()
        self.links = links or Links()

    @property
    def links(self) -> Links:
        """How the ends of the links behave from the next cycle on."""
        return self._links

    @links.setter
    def links(self, links: Links) -> None:
        self._links = links
        for port in range(self._params.tables.ports):
            self.set_link(port, links)

    def set_link(self, port: int, links: Links) -> None:
        """Let one end behave otherwise than the rest from the next cycle on, until `links` is set."""
        self._library.harness_set_link(self._harness, self._port(port), ctypes.byref(_Behaviour(**asdict(links))))

    def send(self, port: int, channel: Channel, flits: bytes) -> None:
        """Append packed flits, `flit_bytes` each, to what a requester sends; their field `channel` is set.

        Flits of a channel stay in order; channels that have one and a credit take turns, a flit a cycle. Raises
        InputError for a port or channel that there is not, or part of a flit.
        """
        self._port(port)
        if channel not in self._sent:
            raise InputError(f"channel {channel!r} is not sent to a node, expected {[c.name for c in self._sent]}")
        if len(flits) % self.flit_bytes:
            raise InputError(f"{len(flits)} bytes are no multiple of {self.flit_bytes}, the bytes of a flit")
        self._library.harness_send(self._harness, port, channel.value, flits, len(flits) // self.flit_bytes)

    def pending(self, port: int) -> int:
        """Return how many flits of a port have not reached the node."""
        return int(self._library.harness_pending(self._harness, self._port(port)))

    def fall_silent(self, port: int) -> None:
        """From now on a requester sends nothing, not even that it is there, and takes nothing, until it is renewed."""
        self._library.harness_fall_silent(self._harness, self._port(port))

    def renew(self, port: int) -> None:
        """Reset a requester's end of its link, until the port is reset too, which is lost with it if it was not yet.

        What was queued, and what is under way, is gone.
        """
        self._library.harness_renew(self._harness, self._port(port))

    def down(self, port: int) -> bool:
        """Return whether a port is lost; the requester's end of its link is then held in reset."""
        return bool(self._library.harness_down(self._harness, self._port(port)))

    def turned(self, port: int) -> int:
        """Return the cycle in which a port was lost last, or came back into service."""
        return int(self._library.harness_turned(self._harness, self._port(port)))

    def received(self, port: int) -> bytes:
        """Return the flits that a requester took since the last call, `STAMP_BYTES` of cycle before each."""
        return self._take("received", self._port(port))


class _Behaviour(ctypes.Structure):
    _fields_ = [("idle", ctypes.c_double), ("backpressure", ctypes.c_double), ("latency", ctypes.c_uint32)]
