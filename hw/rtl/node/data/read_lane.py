"""The read side of one memory channel."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.rtl.arbiter import next_in_turn
from hw.rtl.axi import Burst, axi4_read, is_error
from hw.rtl.node.data.layouts import bank_beat_layout, lane_read_layout, read_id_layout, read_widths
from hw.rtl.node.data.read_bank import ReadBank
from hw.rtl.node.data.rows import rows_of
from hw.rtl.node.data.turns import READS
from hw.rtl.node.rota import Turn, rota_member
from hw.rtl.shared import shared


@shared
class ReadLane(wiring.Component):
    """Reads segments from a channel for all ports, one burst each, into a bank of buffers for each port.

    Parameters
    ----------
    params
        Section `memory`, `tables.ports`, and what `hw.params.striping` needs.

    Interface
    ---------
    rota : In, `turn_layout(params)`
        Only where partitions are isolated: whose reads may begin.
    reads : In, stream of `lane_read_layout(params)`, one a port
        The segments that a port wants.
    beats : Out, stream of `bank_beat_layout(params)`, one a port
        Their beats, in order.
    turn : Out, `READS`
        Whether reads wait or are under way, and whether they may begin.
    memory : Out, `axi4_read`
        Bursts of whole beats from the start of a segment. RUSER in the last beat is the CRC.

    Latency and throughput
    ----------------------
    A read a cycle, offered to memory in the cycle after it was taken; a beat a cycle, two cycles from memory to port.

    Ordering and stalls
    -------------------
    Ports take turns. A read waits for the `turn` of reads, and until its port has a free buffer here, so memory never
    waits: RREADY is always high. As long as enough are under way to keep the channel busy, a read that would follow
    one in another row of its bank waits for a read of another port (`Rows`). Each read in flight has an ID of its own:
    bursts may come back in any order, and interleaved.
    Where partitions are isolated, only ports of that whose turn it is are looked at, and each turn begins as after
    reset.

    Reset and errors
    ----------------
    Reset forgets all; the channel has to be reset too. SLVERR and DECERR in any beat become `error`. Memory that ends
    a burst early or late gives a segment of that length.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        ports = params.tables.ports
        super().__init__(
            {
                **rota_member(params),
                "reads": In(stream.Signature(lane_read_layout(params))).array(ports),
                "beats": Out(stream.Signature(bank_beat_layout(params))).array(ports),
                "turn": Out(READS),
                "memory": Out(axi4_read(**read_widths(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory, ports = self.memory, self._params.tables.ports
        their_id = Signal(read_id_layout(self._params))
        m.d.comb += their_id.eq(memory.rid)
        banks = []
        for i in range(ports):
            m.submodules[f"bank_{i}"] = bank = ReadBank(self._params)
            wiring.connect(m, bank.beats, wiring.flipped(self.beats[i]))
            fill = bank.fills.payload
            m.d.comb += [
                bank.fills.valid.eq(memory.rvalid & (their_id.port == i)),
                fill.slot.eq(their_id.slot),
                fill.beat.data.eq(memory.rdata),
                fill.beat.last.eq(memory.rlast),
                fill.beat.crc.eq(memory.ruser),
                fill.beat.error.eq(is_error(memory.rresp)),
            ]
            banks.append(bank)
        m.d.comb += memory.rready.eq(1)

        rota = Turn(self._params, self)
        asking = Cat(
            rota.memory(read.valid & bank.free, i) for i, (read, bank) in enumerate(zip(self.reads, banks, strict=True))
        )
        rows = rows_of(m, self._params)
        last = Signal(range(max(2, ports)))
        chosen = next_in_turn(m, rows.may, last)
        take, advance = Signal(), Signal()
        our_id = Signal(read_id_layout(self._params))
        under_way = Signal(range(ports * self._params.read_segments + 1))
        m.d.sync += under_way.eq(under_way + take - (memory.rvalid & memory.rlast))
        m.d.comb += [
            rows.asking.eq(asking),
            *(address.eq(read.payload.address) for address, read in zip(rows.addresses, self.reads, strict=True)),
            rows.patient.eq(under_way >= self._params.covering_bursts),
            rows.take.eq(take),
            rows.chosen.eq(chosen),
            advance.eq(~memory.arvalid | memory.arready),
            take.eq(advance & rows.may.any() & self.turn.may),
            self.turn.waits.eq(rows.may.any()),
            self.turn.begins.eq(take),
            self.turn.busy.eq(asking.any() | (under_way != 0)),
            our_id.port.eq(chosen),
            memory.arsize.eq(exact_log2(self._params.memory.beat_bytes)),
            memory.arburst.eq(Burst.INCR),
        ]
        with m.If(advance):
            m.d.sync += memory.arvalid.eq(take)
        with m.If(take):
            m.d.sync += last.eq(chosen)
        rota.begin_anew(m, last)
        for i, (read, bank) in enumerate(zip(self.reads, banks, strict=True)):
            with m.If(chosen == i):
                m.d.comb += [our_id.slot.eq(bank.slot), read.ready.eq(take), bank.claim.eq(take)]
                with m.If(take):
                    m.d.sync += [
                        memory.arid.eq(our_id),
                        memory.araddr.eq(read.payload.address),
                        memory.arlen.eq(read.payload.last),
                    ]
        return m
