"""The CRC32C of the data of slots, as it goes to the node."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, crc32c
from hw.rtl.gpu.write_back.layouts import sent_layout, slot_bits, sum_layout, writing_layout
from hw.rtl.layouts import beat_layout
from hw.rtl.queue import Queue
from hw.rtl.transform import Crc32c


class Checksum(wiring.Component):
    """Computes the CRC32C that a block has with the data of each WRITE, from what it had before.

    A CRC32C that is to go on from another is that of the data with the other one added to its first four bytes: so
    the first beat of a WRITE is changed, and all else is a plain CRC32C.

    Parameters
    ----------
    params
        Width of a beat, slots.

    Interface
    ---------
    begins : In, `writing_layout(params)`
        A WRITE of a slot begins. One that goes on has four bytes at least.
    sent : In, `sent_layout(params)`
        DATA flits, of slots and of others: those of a WRITE together, and WRITEs in the order in which they began.
    slot, before : Out and In
        The CRC32C that the block of a slot has before its WRITE, in the same cycle.
    sums : Out, stream of `sum_layout(params)`, always ready
        The CRC32C of each WRITE.

    Latency and throughput
    ----------------------
    A beat a cycle; log2(beat_bytes) + 4 cycles from the last beat of a WRITE.

    Ordering and stalls
    -------------------
    In order. Never stalls.

    Reset and errors
    ----------------
    Reset forgets the WRITE under way, of which then nothing may come.

    Invariants
    ----------
    Part of 2: the CRC32C of a SEAL is that of the bytes sent.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "begins": In(writing_layout(params)),
                "sent": In(sent_layout(params)),
                "slot": Out(slot_bits(params)),
                "before": In(crc32c.WIDTH),
                "sums": Out(stream.Signature(sum_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, params = Module(), self._params
        beat_bytes, slot = params.memory.beat_bytes, slot_bits(params)
        m.submodules.crc = crc = Crc32c(beat_bytes=beat_bytes)
        # Each has a segment ahead in the Mover at least, but for the one that it sends and the one that it is given.
        writes = {name: field.shape for name, field in writing_layout(params) if name != "valid"}
        m.submodules.writes = begun = Queue(data.StructLayout(writes), depth=params.requester.write_segments + 2)
        # As many as may end, a beat each, until the first CRC32C is there.
        m.submodules.order = order = Queue(slot, depth=beat_bytes.bit_length() + 2)
        flit, write, out = self.sent.flit, begun.o.payload, self.sums.payload
        beat = Signal(beat_layout(beat_bytes))
        here, end, amid, there = (Signal(name=name) for name in ("here", "end", "amid", "there"))
        before, of_slot = Signal(crc32c.WIDTH), Signal(slot)
        m.d.comb += [
            begun.i.valid.eq(self.begins.valid),
            *(begun.i.payload[name].eq(self.begins[name]) for name in writes),
            here.eq(self.sent.valid & begun.o.valid & (flit.tag == write.tag)),
            end.eq(flit.last & (flit.segment == write.last)),
            begun.o.ready.eq(here & end),
            self.slot.eq(write.slot),
            crc.beats.valid.eq(there),
            crc.beats.payload.data.eq(beat.data ^ before),
            crc.beats.payload.count.eq(beat.count),
            crc.beats.payload.last.eq(beat.last),
            order.i.valid.eq(there & beat.last),
            order.i.payload.eq(of_slot),
            crc.crcs.ready.eq(1),
            order.o.ready.eq(crc.crcs.valid),
            self.sums.valid.eq(crc.crcs.valid),
            out.slot.eq(order.o.payload),
            out.crc.eq(crc.crcs.payload),
        ]
        m.d.sync += [
            there.eq(here),
            beat.data.eq(flit.data),
            beat.count.eq(flit.count),
            beat.last.eq(end),
            before.eq(Mux(amid, 0, self.before)),
            of_slot.eq(write.slot),
        ]
        with m.If(here):
            m.d.sync += amid.eq(~end)
        return m
