"""The write side of one memory channel."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params
from hw.rtl.arbiter import next_in_turn
from hw.rtl.axi import Burst, axi4_write, is_error
from hw.rtl.layouts import frame_bits
from hw.rtl.node.data.layouts import lane_beat_layout, write_beat_layout, write_id_layout, write_widths
from hw.rtl.node.data.rows import rows_of
from hw.rtl.node.data.turns import WRITES
from hw.rtl.node.data.write_bank import WriteBank
from hw.rtl.node.rota import Turn, rota_member
from hw.rtl.queue import Queue
from hw.rtl.shared import shared


@shared
class WriteLane(wiring.Component):
    """Writes segments of all ports to a channel, one burst each, from a bank of buffers for each port.

    When all beats of a segment are in its bank, its address is offered, and from the next cycle on its data, whether or
    not the address has been taken; so the data channel never waits for the lane.

    Parameters
    ----------
    params
        Section `memory`, `tables.ports`, and what `hw.params.striping` needs.

    Interface
    ---------
    rota : In, `turn_layout(params)`
        Only where partitions are isolated: whose bursts may begin.
    beats : In, stream of `lane_beat_layout(params)`, one a port
        The segments, one after the other; all but `beat` is the same in all beats of one.
    discard, discard_frame : In
        For one cycle: the data of this frame's segments no longer matters.
    answers : Out, stream of 1 bit, one a port
        Whether a segment has been stored, in the order in which they were taken.
    turn : Out, `WRITES`
        Whether bursts wait, and whether they may begin.
    memory : Out, `axi4_write`
        Bursts of whole beats from the start of a segment. The CRC is on WUSER in the last beat, 0 before.

    Latency and throughput
    ----------------------
    A beat a cycle from each port into its bank, and one a cycle to memory. AWVALID follows two cycles behind the last
    beat of a segment, WVALID one later, unless it waits for its `turn`. An answer follows one cycle behind BVALID.

    Ordering and stalls
    -------------------
    Ports take turns, a segment each, among those that have a whole one and an ID: such a segment waits for one of each
    other port at most, or two if that spares a row (`Rows`), and for the `turn` of writes. Those of a port go in order.
    Each burst in flight has an ID of its own, half of which is the port: they may be answered in any order, and no
    port's answers wait for those of another. BREADY is always high. Where partitions are
    isolated, only ports of that whose turn it is are looked at, and each turn begins as after reset.

    Reset and errors
    ----------------
    Reset forgets all; the channel has to be reset too. SLVERR and DECERR make the answer 0. Discarded segments are
    written with all strobes off, from the next beat on; their answers come as usual.

    Invariants
    ----------
    Part of 10: each segment is answered once, given that memory answers each burst.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        ports = params.tables.ports
        super().__init__(
            {
                **rota_member(params),
                "beats": In(stream.Signature(lane_beat_layout(params))).array(ports),
                "discard": In(1),
                "discard_frame": In(frame_bits(params)),
                "answers": Out(stream.Signature(1)).array(ports),
                "turn": Out(WRITES),
                "memory": Out(axi4_write(**write_widths(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory, ports = self.memory, self._params.tables.ports
        their_id = Signal(write_id_layout(self._params))
        m.d.comb += [their_id.eq(memory.bid), memory.bready.eq(1)]
        banks = []
        for i in range(ports):
            m.submodules[f"bank_{i}"] = bank = WriteBank(self._params)
            wiring.connect(m, wiring.flipped(self.beats[i]), bank.beats)
            wiring.connect(m, bank.answers, wiring.flipped(self.answers[i]))
            m.d.comb += [
                bank.discard.eq(self.discard),
                bank.discard_frame.eq(self.discard_frame),
                bank.answered.valid.eq(memory.bvalid & (their_id.port == i)),
                bank.answered.payload.slot.eq(their_id.slot),
                bank.answered.payload.ok.eq(~is_error(memory.bresp)),
            ]
            banks.append(bank)

        # AW, one port after the other; whose burst it is, for W: of a batch while that before it is sent.
        batch = self._params.memory.turn_bursts
        m.submodules.turns = turns = Queue(bits_for(ports - 1), depth=2 * batch)
        rota = Turn(self._params, self)
        asking = Cat(rota.memory(bank.bursts.valid, i) for i, bank in enumerate(banks))
        last = Signal(range(max(2, ports)))
        rows = rows_of(m, self._params)
        chosen = next_in_turn(m, rows.may, last)
        our_id = Signal(write_id_layout(self._params))
        advance, take = Signal(), Signal()
        m.d.comb += [
            rows.asking.eq(asking),
            *(address.eq(bank.bursts.payload.address) for address, bank in zip(rows.addresses, banks, strict=True)),
            rows.take.eq(take),
            rows.chosen.eq(chosen),
            advance.eq(~memory.awvalid | memory.awready),
            take.eq(advance & turns.i.ready & asking.any() & self.turn.may),
            self.turn.waits.eq(asking.any()),
            self.turn.begins.eq(take),
            self.turn.presses.eq(
                (sum(rota.counted(bank.waiting, i) for i, bank in enumerate(banks)) >= batch)
                | Cat(rota.only(bank.bursts.valid & ~bank.beats.ready, i) for i, bank in enumerate(banks)).any()
            ),
            turns.i.valid.eq(take),
            turns.i.payload.eq(chosen),
            our_id.port.eq(chosen),
            memory.awsize.eq(exact_log2(self._params.memory.beat_bytes)),
            memory.awburst.eq(Burst.INCR),
        ]
        with m.If(advance):
            m.d.sync += memory.awvalid.eq(take)
        with m.If(take):
            m.d.sync += last.eq(chosen)
        rota.begin_anew(m, last)
        for i, bank in enumerate(banks):
            with m.If(chosen == i):
                m.d.comb += [our_id.slot.eq(bank.bursts.payload.slot), bank.bursts.ready.eq(take)]
                with m.If(take):
                    m.d.sync += [
                        memory.awid.eq(our_id),
                        memory.awaddr.eq(bank.bursts.payload.address),
                        memory.awlen.eq(bank.bursts.payload.last),
                    ]

        # W: what a bank was read for stays on its output until it is taken.
        send, ends = Signal(), Signal()
        shown = Signal.like(turns.o.payload)
        beat = Signal(write_beat_layout(self._params))
        m.d.comb += [
            send.eq(turns.o.valid & (~memory.wvalid | memory.wready)),
            turns.o.ready.eq(send & ends),
            memory.wdata.eq(beat.data),
            memory.wstrb.eq(beat.strobes),
            memory.wlast.eq(beat.last),
            memory.wuser.eq(beat.crc),
        ]
        for i, bank in enumerate(banks):
            with m.If(turns.o.payload == i):
                m.d.comb += [bank.send.eq(send), ends.eq(bank.ends)]
            with m.If(shown == i):
                m.d.comb += beat.eq(bank.beat)
        with m.If(send):
            m.d.sync += [memory.wvalid.eq(1), shown.eq(turns.o.payload)]
        with m.Elif(memory.wready):
            m.d.sync += memory.wvalid.eq(0)
        return m
