"""What has come of the segments of one PREFETCH, marked in the order of its list."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, records
from hw.params.protocol import ITEM_BITS, Status
from hw.rtl.gpu.layouts import ADDRESS_BITS, DESCRIPTOR, record_layout
from hw.rtl.gpu.prefetch.layouts import ARRIVAL, COUNT_BITS, FATE, fill_bits, step_layout


class Arrivals(wiring.Component):
    """Takes the steps of a job in order, each when its fill is over, and writes an entry of the arrival table for each
    range that has arrived, and for each block.

    Parameters
    ----------
    params
        `requester.fills`.
    number
        Of the job: the token of its marks.

    Interface
    ---------
    begin : In(1)
        A PREFETCH begins: it is `descriptor` from the next cycle on.
    descriptor : In, `DESCRIPTOR`
    runs : In(1)
        Its ring runs; of any other, nothing is marked.
    steps : In, stream of `step_layout(params)`
    over, fate : as of `Fills`
    releases : Out, stream of the number of a fill
        Its fate is seen, in this cycle.
    marks : Out, stream of `record_layout(params, ARRIVAL)`
    marked, mark_failed : In(1)
        Memory has a mark, or has refused it.
    bad, block : Out
        Some of the block of this number has not arrived, and will not.
    arrived : Out
        Blocks that have.
    failed : Out(1)
        Memory has refused a mark.
    idle : Out(1)
        No step is in hand, and all marks are in memory.

    Latency and throughput
    ----------------------
    Two cycles from `over` to a mark; a step every two cycles, and one for each mark.

    Ordering and stalls
    -------------------
    In order, so a fill that is late holds up those behind it. Stalls with `marks`.

    Reset and errors
    ----------------
    Reset forgets all. The first status of a block that is not OK is that of its entry; behind it no range is marked.

    Invariants
    ----------
    Part of 10: every block that ends is marked once.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params, *, number: int):
        self._params = params
        self._number = number
        super().__init__(
            {
                "begin": In(1),
                "descriptor": In(DESCRIPTOR),
                "runs": In(1),
                "steps": In(stream.Signature(step_layout(params))),
                "over": In(params.requester.fills),
                "releases": Out(stream.Signature(fill_bits(params))),
                "fate": In(FATE),
                "marks": Out(stream.Signature(record_layout(params, ARRIVAL))),
                "marked": In(1),
                "mark_failed": In(1),
                "bad": Out(1),
                "block": Out(ITEM_BITS),
                "arrived": Out(ITEM_BITS),
                "failed": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        descriptor, new, mark = self.descriptor, self.steps.payload, self.marks.payload
        step, status, why = Signal(step_layout(self._params)), Signal(8), Signal(8)
        row, under_way = Signal(ADDRESS_BITS), Signal(ITEM_BITS)
        begun, segments, length = Signal(ITEM_BITS), Signal(ITEM_BITS), Signal(COUNT_BITS)  # of the range
        entry, of_block, writes = Signal(ITEM_BITS), Signal(COUNT_BITS), Signal()
        good = Signal()
        m.d.comb += [
            good.eq(~self.bad & (status == Status.OK)),
            self.releases.payload.eq(new.fill),
            mark.token.eq(self._number),
            mark.record.block.eq(self.block),
            mark.record.tag.eq(descriptor.tag),
        ]
        m.d.sync += under_way.eq(under_way + (self.marks.valid & self.marks.ready) - self.marked)
        with m.If(self.marked & self.mark_failed):
            m.d.sync += self.failed.eq(1)

        with m.FSM() as machine:
            with m.State("TAKE"):
                m.d.comb += self.releases.valid.eq(self.steps.valid & new.made & (self.over >> new.fill)[0])
                m.d.sync += [step.eq(new), status.eq(Mux(new.made, self.fate.status, Status.INVALID))]
                m.d.comb += self.steps.ready.eq(~new.made | ((self.over >> new.fill)[0] & self.releases.ready))
                with m.If(self.steps.valid & self.steps.ready):
                    with m.If(new.made):
                        m.d.sync += [
                            segments.eq(segments + new.count),
                            length.eq(length + self.fate.length),
                            of_block.eq(of_block + self.fate.length),
                        ]
                    m.next = "JUDGE"

            with m.State("JUDGE"):
                with m.If(~good & ~self.bad):
                    m.d.sync += [self.bad.eq(1), why.eq(status)]
                m.d.sync += writes.eq(self.runs)
                m.next = "TAKE"
                with m.If(step.block_ends):
                    m.next = "BLOCK"
                with m.If(step.range_ends):
                    m.d.sync += [entry.eq(entry + 1)]
                    m.next = "RANGE"

            with m.State("RANGE"):
                m.d.comb += [
                    self.marks.valid.eq(writes & ~self.bad),
                    mark.address.eq(row + entry * records.ARRIVAL.size),
                    mark.record.segment.eq(descriptor.segment + begun),
                    mark.record.count.eq(segments),
                    mark.record.length.eq(length),
                    mark.record.status.eq(Status.OK),
                    mark.record.flags.arrived.eq(1),
                ]
                with m.If(~self.marks.valid | self.marks.ready):
                    m.d.sync += [begun.eq(begun + segments), segments.eq(0), length.eq(0)]
                    m.next = "TAKE"
                    with m.If(step.block_ends):
                        m.next = "BLOCK"

            with m.State("BLOCK"):
                m.d.comb += [
                    self.marks.valid.eq(writes),
                    mark.address.eq(row),
                    mark.record.segment.eq(descriptor.segment),
                    mark.record.count.eq(Mux(self.bad, 0, begun)),
                    mark.record.length.eq(Mux(self.bad, 0, of_block)),
                    mark.record.status.eq(Mux(self.bad, why, Status.OK)),
                    mark.record.flags.arrived.eq(~self.bad),
                    mark.record.flags.failed.eq(self.bad),
                ]
                with m.If(~writes | self.marks.ready):
                    m.d.sync += [
                        self.arrived.eq(self.arrived + ~self.bad),
                        self.block.eq(self.block + 1),
                        row.eq(row + (records.ARRIVAL.size << descriptor.page_shift[:4])),
                        *(value.eq(0) for value in (self.bad, entry, begun, segments, length, of_block)),
                    ]
                    m.next = "TAKE"
        m.d.comb += self.idle.eq(machine.ongoing("TAKE") & (under_way == 0))
        fresh = (self.bad, entry, begun, segments, length, of_block, self.arrived, self.block, self.failed)
        with m.If(self.begin):
            m.d.sync += [value.eq(0) for value in fresh]
        started = Signal()
        m.d.sync += started.eq(self.begin)
        with m.If(started):
            m.d.sync += row.eq(descriptor.results)
        return m
