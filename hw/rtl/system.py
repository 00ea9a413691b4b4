"""The system: a memory node, and a requester at each of its ports."""

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.axi import axi4_lite
from hw.rtl.csr.registers import ADDRESS_BITS
from hw.rtl.fabric import Span
from hw.rtl.gpu.layouts import issued_layout
from hw.rtl.gpu.requester import Requester
from hw.rtl.node.node import Node


class System(wiring.Component):
    """What software sees: registers, interrupts, and requesters that reach its memory.

    Parameters
    ----------
    params
        Everything.

    Interface
    ---------
    axi : In, AXI4-Lite, one a unit
        Registers: numbers 0 to S - 1 are those of the slices, number S + p those of the requester at port p.
    irq : Out(S + ports)
        Interrupts, a bit a unit.
    host, hbm : Out, AXI4, one a port
        As of `Requester`.
    issued : Out, `valid` and `payload` of `issued_layout(params)`, one a port
        As of `Requester`: a command goes to the node.
    memory, log, restarting, down
        As of `Node`.

    Latency and throughput
    ----------------------
    Those of its parts, and of the links between them: none, or with `link.replay` those of `Span`.

    Ordering and stalls
    -------------------
    Ports meet in the node only.

    Reset and errors
    ----------------
    Reset forgets everything. A restart of a slice resets both ends of all links, the loss of a port those of its
    link. With `link.replay` either end of a link that is down is reset by itself.

    Invariants
    ----------
    Those of `Node`.

    Counters
    --------
    As the registers say.
    """

    def __init__(self, params: Params):
        self._params, self._node = params, Node(params)
        self._requesters = [Requester(params) for _ in range(params.tables.ports)]
        ports, node, requester = len(self._requesters), self._node.signature.members, self._requesters[0].signature
        issued = wiring.Signature({"valid": Out(1), "payload": Out(issued_layout(params))})
        self._slices = params.node.slices
        super().__init__(
            {
                "axi": In(axi4_lite(address_bits=ADDRESS_BITS)).array(self._slices + ports),
                "irq": Out(self._slices + ports),
                "host": requester.members["host"].array(ports),
                "hbm": requester.members["hbm"].array(ports),
                "issued": Out(issued).array(ports),
                "memory": node["memory"],
                "log": node["log"],
                "restarting": node["restarting"],
                "down": node["down"],
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.node = node = self._node
        for name in ("memory", "log"):
            for ours, theirs in zip(getattr(node, name), getattr(self, name), strict=True):
                wiring.connect(m, ours, wiring.flipped(theirs))
        for s in range(self._slices):
            wiring.connect(m, node.axi[s], wiring.flipped(self.axi[s]))
        for i, requester in enumerate(self._requesters):
            m.submodules[f"requester_{i}"] = requester
            self._link(m, i, requester)
            wiring.connect(m, requester.axi, wiring.flipped(self.axi[self._slices + i]))
            wiring.connect(m, requester.host, wiring.flipped(self.host[i]))
            wiring.connect(m, requester.hbm, wiring.flipped(self.hbm[i]))
            m.d.comb += [
                requester.number.eq(i),
                self.issued[i].valid.eq(requester.issued_valid),
                self.issued[i].payload.eq(requester.issued),
            ]
        m.d.comb += [
            self.irq.eq(Cat(node.irq, *(requester.irq for requester in self._requesters))),
            self.restarting.eq(node.restarting),
            self.down.eq(node.down),
        ]
        return m

    def _link(self, m: Module, i: int, requester: Requester) -> None:
        """A requester and its port: connected, or with a link with replay between them."""
        node = self._node
        if not self._params.link.replay:
            wiring.connect(m, requester.link, node.links[i])
            m.d.comb += [requester.restarting.eq(node.down[i]), node.renewed[i].eq(requester.renewed)]
            return
        m.submodules[f"span_{i}"] = span = Span(self._params)
        wiring.connect(m, requester.link, span.requester)
        wiring.connect(m, span.node, node.links[i])
        m.d.comb += [
            span.down.eq(node.down[i]),
            span.renewed.eq(requester.renewed),
            requester.restarting.eq(span.restarting),
            node.renewed[i].eq(span.port_renewed),
        ]
