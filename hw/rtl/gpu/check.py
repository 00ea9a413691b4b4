"""What can be seen to be wrong with a descriptor."""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.utils import exact_log2

from hw.params import Params, crc32c
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.params.records import ALIGNMENT, PAGE_SHIFTS
from hw.rtl.gpu.layouts import ENGINE_OPCODES, engine_owners

CRC_BYTES = crc32c.WIDTH // 8


def check(m: Module, params: Params, descriptor: data.View, context: data.View) -> None:
    """Drive all of `context` but its ring and whose it is, by what `descriptor` says.

    These are a `context_layout(params)` and a `DESCRIPTOR`.

    It is refused INVALID for addresses that are not aligned, a page size that there is none of, too many keys, a PUT
    that is too short, or an engine that there is none of; else RANGE for a WRITE or PUT longer than the largest frame.
    All else is the node's to judge, or the engine's.
    """
    segment_shift = exact_log2(params.memory.segment_bytes)
    largest = max(pool.frame_bytes for pool in params.pools)
    segments = Signal(len(descriptor.length) + 1 - segment_shift)
    lookup, write, read = (Signal(name=name) for name in ("lookup", "write", "read"))
    invalid, loose, page = Signal(), Signal(), Signal()
    strict = ALIGNMENT.bit_length() - 1
    m.d.comb += [
        lookup.eq(descriptor.opcode == Opcode.LOOKUP),
        write.eq(descriptor.opcode == Opcode.WRITE),
        read.eq(descriptor.opcode == Opcode.READ),
        segments.eq((descriptor.length + (params.memory.segment_bytes - 1)) >> segment_shift),
        page.eq(
            (descriptor.page_shift < max(PAGE_SHIFTS.start, segment_shift))
            | (descriptor.page_shift >= PAGE_SHIFTS.stop)
        ),
        loose.eq(descriptor.data[:strict].any()),
    ]
    put = descriptor.opcode == EngineOpcode.PUT if params.requester.slots else Const(0)
    put_flags = descriptor.flags.engine.put
    moves = Signal()
    m.d.comb += moves.eq(write | put)
    here = {opcode for owner in engine_owners(params) for opcode in ENGINE_OPCODES[owner]}
    absent = {opcode for opcodes in ENGINE_OPCODES.values() for opcode in opcodes} - here
    with m.If(lookup):
        many = descriptor.count > params.tables.lookup_keys
        m.d.comb += invalid.eq(loose | descriptor.results[:strict].any() | many)
    with m.Elif(moves | read):
        # An empty end of a block has no data; a CRC32C goes on from the one before within the first four bytes.
        few = Mux(put_flags.appended, descriptor.length < CRC_BYTES, descriptor.length == 0)
        empty = put_flags.appended & ~put_flags.open & (descriptor.length == 0)
        wrong = Mux(descriptor.flags.scattered, loose | page, descriptor.data[:segment_shift].any())
        m.d.comb += invalid.eq(Mux(put, ~empty & (few | wrong), wrong))
    if EngineOpcode.PREFETCH in here:
        with m.Elif(descriptor.opcode == EngineOpcode.PREFETCH):
            m.d.comb += invalid.eq(loose | descriptor.results[:strict].any())
    if absent:
        with m.Elif(descriptor.opcode.matches(*absent)):
            m.d.comb += invalid.eq(1)
    if here:
        m.d.comb += context.task.eq(descriptor.opcode.matches(*here))
    m.d.comb += [
        context.tag.eq(descriptor.tag),
        context.lookup.eq(lookup),
        context.read.eq(read),
        context.count.eq(Mux(write, segments, Mux(lookup | read, descriptor.count, 0))),
        context.segment.eq(descriptor.segment),
        context.place.address.eq(descriptor.data),
        context.place.scattered.eq(descriptor.flags.scattered),
        context.place.page_shift.eq(descriptor.page_shift),
        context.room.eq(descriptor.length),
        context.results.eq(descriptor.results),
        context.refused.eq(invalid | (moves & (descriptor.length > largest))),
        context.refusal.eq(Mux(invalid, Status.INVALID, Status.RANGE)),
    ]
