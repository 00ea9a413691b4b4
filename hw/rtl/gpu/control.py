"""The registers of a requester, and what stands behind them."""

from amaranth import Cat, Const, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params, records
from hw.params.protocol import ITEM_BITS
from hw.rdl import requester_map
from hw.rtl.axi import axi4_lite
from hw.rtl.csr.registers import ADDRESS_BITS, Registers
from hw.rtl.gpu.layouts import COUNTED_PUTS, COUNTED_SESSIONS, RING_SETTINGS, RING_STATE, counts_layout
from hw.rtl.gpu.sessions import pins_layout

LOW_ZEROS = exact_log2(records.ALIGNMENT)
"""Bits of the address of a ring that are always 0."""


class RequesterControl(wiring.Component):
    """Everything of a requester that software reaches through AXI4-Lite.

    Parameters
    ----------
    params
        Capabilities, and the number of rings.

    Interface
    ---------
    axi : In, AXI4-Lite
        The software's side: the registers of `requester.rdl`.
    irq : Out(1)
        Level.
    rings, event_ring : Out, an array of `RING_SETTINGS`, and one
        What software says of each ring.
    consumed : Out, an array of numbers, one a ring
        CONSUMED of each ring, if there are prefetches.
    states, event_state : In, an array of `RING_STATE`, and one
        What it reads of each.
    away : In(1)
        The node cannot be reached.
    sessions, pins : In
        Sessions that are managed; pins of each ring.
    counts : In, `counts_layout()`
        What happens in this cycle.

    Latency and throughput, ordering and stalls
    -------------------------------------------
    As `Registers`. Nothing on the side of the rings ever waits for software.

    Reset and errors
    ----------------
    Reset clears everything.

    Invariants
    ----------
    None.

    Counters
    --------
    `fetched`, `refused`, `dropped`, `puts` and `sessions` of `counts`, since reset.
    """

    def __init__(self, params: Params):
        self._params = params
        rings = params.tables.rings_per_port
        super().__init__(
            {
                "axi": In(axi4_lite(address_bits=ADDRESS_BITS)),
                "irq": Out(1),
                "rings": Out(data.ArrayLayout(RING_SETTINGS, rings)),
                "event_ring": Out(RING_SETTINGS),
                "states": In(data.ArrayLayout(RING_STATE, rings)),
                "event_state": In(RING_STATE),
                "away": In(1),
                "sessions": In(bits_for(params.requester.sessions)),
                "pins": In(pins_layout(params)),
                "counts": In(counts_layout()),
            }
            | ({"consumed": Out(data.ArrayLayout(ITEM_BITS, rings))} if params.requester.prefetches else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.registers = registers = Registers(self._params, requester_map(self._params))
        software, hardware = registers.software, registers.hardware
        wiring.connect(m, wiring.flipped(self.axi), registers.axi)
        zeros = Const(0, LOW_ZEROS)
        for i in range(self._params.tables.rings_per_port):

            def says(name: str, ring: int = i) -> data.View:
                view: data.View = getattr(software, f"ring{ring}_{name}")
                return view

            ring, state = self.rings[i], self.states[i]
            m.d.comb += [
                ring.enable.eq(says("control").enable),
                ring.lose.eq(says("control").lose),
                ring.submission.eq(Cat(zeros, says("submission_low").low, says("submission_high").high)),
                ring.completion.eq(Cat(zeros, says("completion_low").low, says("completion_high").high)),
                ring.log2_entries.eq(says("size").log2_entries),
                ring.tail.eq(says("tail").tail),
                ring.head.eq(says("head").head),
                ring.fence.eq(says("fence").count),
                getattr(hardware, f"ring{i}_status").active.eq(state.active),
                getattr(hardware, f"ring{i}_status").failed.eq(state.failed),
                getattr(hardware, f"ring{i}_status").losing.eq(state.losing),
                getattr(hardware, f"ring{i}_status").outstanding.eq(state.outstanding),
                getattr(hardware, f"ring{i}_pins").pins.eq(self.pins[i]),
                getattr(hardware, f"ring{i}_tail").tail.eq(state.tail),
                getattr(hardware, f"ring{i}_head").head.eq(state.head),
            ]
            if self._params.requester.prefetches:
                m.d.comb += self.consumed[i].eq(says("consumed").segments)
        m.d.comb += [
            self.irq.eq(registers.irq),
            self.event_ring.enable.eq(software.event_control.enable),
            self.event_ring.completion.eq(Cat(zeros, software.event_base_low.low, software.event_base_high.high)),
            self.event_ring.log2_entries.eq(software.event_size.log2_entries),
            self.event_ring.head.eq(software.event_head.head),
            hardware.event_status.active.eq(self.event_state.active),
            hardware.event_status.failed.eq(self.event_state.failed),
            hardware.event_head.head.eq(self.event_state.head),
            hardware.link_status.away.eq(self.away),
            hardware.sessions.managed.eq(self.sessions),
        ]
        for name in ("fetched", "refused", "dropped"):
            m.d.comb += getattr(hardware, f"count_{name}").count.increment.eq(self.counts[name])
        for name, _ in COUNTED_PUTS:
            m.d.comb += getattr(hardware, f"count_puts_{name}").count.increment.eq(self.counts.puts[name])
        for name, _ in COUNTED_SESSIONS:
            m.d.comb += getattr(hardware, f"count_sessions_{name}").count.increment.eq(self.counts.sessions[name])
        for name in ("completion", "event", "failed", "inactive"):
            m.d.comb += hardware.interrupt_status[name].eq(self.counts[name])
        return m
