"""A memory node: slices behind one set of ports."""

from typing import Any

from amaranth import Cat, Module, ResetInserter
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.axi import axi4_lite
from hw.rtl.csr.registers import ADDRESS_BITS
from hw.rtl.fabric import Fan, link
from hw.rtl.node.bond import Bond
from hw.rtl.node.data import memory_channel
from hw.rtl.node.layouts import log_layout
from hw.rtl.node.slice import Slice


class Node(wiring.Component):
    """S slices, each with its own memory and registers, and a `Fan` a port between them and the requester.

    Parameters
    ----------
    params
        Everything.

    Interface
    ---------
    links : In, `link(params)`, one a port
        The requesters.
    axi : In, AXI4-Lite, one a slice
    irq : Out, a bit a slice
        As of `Slice`.
    memory : Out, `axi4`
        Channel c of slice s, of C, is number s C + c.
    log : Out, stream of `log_layout()`, one a slice
        The order logs.
    restarting : Out, a bit a slice
        The slice forgets everything.
    down : Out, a bit a port
        The port is lost, or a slice restarts; the requester's end of the link has to be reset as long as this is high.
    renewed : In, a bit a port
        The requester's end of the link is being reset. Without it a port stays `down`; a port in service is lost with
        it. It falls with `down` at the latest.

    Latency and throughput
    ----------------------
    Those of `Slice`, and, of more slices than one, those of `Fan`.

    Ordering and stalls
    -------------------
    Those of each slice, for what is sent to it; nothing between slices. They share links as `Fan` says, and no more.

    Reset and errors
    ----------------
    A port that one slice has lost is lost at all of them, as `Bond` says. The restart of a slice is the loss of all
    ports at the others: these keep their sealed blocks, and what is not sealed is lost with its rings.

    Invariants
    ----------
    Those of `Slice`; 6 for each slice: one key has one home.

    Counters
    --------
    As the registers of each slice say.
    """

    def __init__(self, params: Params):
        self._params = params
        self._slices = [Slice(params) for _ in range(params.node.slices)]
        slices, ports = len(self._slices), params.tables.ports
        super().__init__(
            {
                "links": In(link(params)).array(ports),
                "axi": In(axi4_lite(address_bits=ADDRESS_BITS)).array(slices),
                "irq": Out(slices),
                "memory": Out(memory_channel(params)).array(slices * params.memory.channels),
                "log": Out(stream.Signature(log_layout())).array(slices),
                "restarting": Out(slices),
                "down": Out(ports),
                "renewed": In(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for s, slice_ in enumerate(self._slices):
            m.submodules[f"slice_{s}"] = slice_
            wiring.connect(m, slice_.axi, wiring.flipped(self.axi[s]))
            wiring.connect(m, slice_.log, wiring.flipped(self.log[s]))
            for c, channel in enumerate(slice_.memory):
                wiring.connect(m, channel, wiring.flipped(self.memory[s * len(slice_.memory) + c]))
            m.d.comb += slice_.number.eq(s)
        m.d.comb += [
            self.irq.eq(Cat(slice_.irq for slice_ in self._slices)),
            self.restarting.eq(Cat(slice_.restarting for slice_ in self._slices)),
        ]
        for p in range(self._params.tables.ports):
            if len(self._slices) == 1:
                self._join(m, p, self._slices[0])
            else:
                self._fan_out(m, p)
        return m

    def _join(self, m: Module, p: int, slice_: Slice) -> None:
        """A port of the only slice."""
        wiring.connect(m, wiring.flipped(self.links[p]), slice_.links[p])
        m.d.comb += [
            slice_.renewed[p].eq(self.renewed[p]),
            self.down[p].eq(slice_.down[p] | slice_.restarting),
        ]

    def _fan_out(self, m: Module, p: int) -> None:
        """A port of all slices."""
        m.submodules[f"bond_{p}"] = bond = Bond(self._params)
        fan = Fan(self._params)
        reset: Any = ResetInserter(bond.held)
        m.submodules[f"fan_{p}"] = reset(fan)
        wiring.connect(m, wiring.flipped(self.links[p]), fan.link)
        m.d.comb += [
            bond.renewed.eq(self.renewed[p]),
            bond.restarting.eq(self.restarting),
            self.down[p].eq(bond.held),
        ]
        for s, slice_ in enumerate(self._slices):
            wiring.connect(m, fan.slices[s], slice_.links[p])
            m.d.comb += [
                bond.down[s].eq(slice_.down[p]),
                bond.rested[s].eq(slice_.rested[p]),
                slice_.heard[p].eq(fan.heard),
                slice_.lose[p].eq(bond.lose[s]),
                slice_.renewed[p].eq(bond.ends),
            ]
