"""Reads: what the core has started, from the channels to the ports."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.params.striping import Striping
from hw.rtl.arbiter import merge
from hw.rtl.axi import axi4_read
from hw.rtl.node.data.layouts import read_beat_layout, read_done_layout, read_layout, read_widths
from hw.rtl.node.data.read_lane import ReadLane
from hw.rtl.node.data.read_port import ReadPort
from hw.rtl.node.data.striping import first_number
from hw.rtl.node.data.turns import READS
from hw.rtl.node.rota import pass_rota, rota_member


class ReadPath(wiring.Component):
    """Streams the segments of READs from C channels to P ports.

    Between every channel and every port is a bank of buffers of its own, so neither ports nor channels ever wait for
    each other: a channel fills a bank a cycle, a port empties a bank a cycle. A bank has `params.read_segments` buffers
    of a segment: enough, by the latency of memory, for all channels or all ports to be busy.

    Parameters
    ----------
    params
        Section `memory`, `tables.ports`, and what `hw.params.striping` needs.

    Interface
    ---------
    rota : In, `turn_layout(params)`
        As in `ReadLane`.
    reads : In, stream of `read_layout(params)`
        READs that the core has started.
    beats : Out, stream of `read_beat_layout(params)`, one a port
        Their beats. The last beat of a segment is its trailer too: `ok`, and the CRC32C as computed here.
    done : Out, stream of `read_done_layout(params)`, one a share
        READ_DONE: the last beat of a READ has been taken.
    turns : Out, `READS`, one a channel
    memory : Out, `axi4_read`, one a channel
        As in `ReadLane`.

    Latency and throughput
    ----------------------
    Three cycles from a READ taken to ARVALID, two from RVALID to the beat at the port: five in all beyond the
    memory's own. The last beat of a segment comes log2(beat_bytes) + 6 cycles after RVALID at the earliest, and without
    delay once the port is that much behind memory. A beat a cycle for each port and for each channel.

    Ordering and stalls
    -------------------
    The READs of a port come out in the order in which they were taken, each in the order of its segments, and not
    interleaved; `end` marks the last segment. Ports are independent, but for `reads`: a READ for a port that has
    `waiting_reads` waiting stops all behind it. A port that does not take its beats stops itself alone: nothing is
    lost, and no channel waits, since no read is issued without a free buffer. `done` takes the ports of its share in
    turn.

    Reset and errors
    ----------------
    Reset forgets all READs; the channels have to be reset too. A segment is poisoned (`ok` 0 in its last beat and
    in the READ's `done`) if a beat of it had SLVERR or DECERR, or if its CRC32C is not that on RUSER in its last beat.
    Until that beat nothing of a segment may be marked as arrived. A READ of no segments, or beyond its block's length,
    is the core's error.

    Invariants
    ----------
    Part of 2 (bytes that are not those stored are never `ok`) and of 10 (each READ ends once, given that memory answers
    and the port takes its beats).

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                **rota_member(params),
                "reads": In(stream.Signature(read_layout(params))),
                "beats": Out(stream.Signature(read_beat_layout(params))).array(params.tables.ports),
                "done": Out(stream.Signature(read_done_layout(params))).array(params.shares),
                "turns": Out(READS).array(params.memory.channels),
                "memory": Out(axi4_read(**read_widths(params))).array(params.memory.channels),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        lanes = [ReadLane(params) for _ in range(params.memory.channels)]
        ports = [ReadPort(params) for _ in range(params.tables.ports)]
        for i, lane in enumerate(lanes):
            m.submodules[f"lane_{i}"] = lane
            pass_rota(m, self, lane)
            wiring.connect(m, lane.memory, wiring.flipped(self.memory[i]))
            wiring.connect(m, lane.turn, wiring.flipped(self.turns[i]))
        for i, port in enumerate(ports):
            m.submodules[f"port_{i}"] = port
            wiring.connect(m, port.beats, wiring.flipped(self.beats[i]))
            for j, lane in enumerate(lanes):
                wiring.connect(m, port.lane_reads[j], lane.reads[i])
                wiring.connect(m, lane.beats[i], port.lane_beats[j])
        self._plan(m, ports)
        self._finish(m, ports)
        return m

    def _plan(self, m: Module, ports: list[ReadPort]) -> None:
        """Work out where a READ begins and how its last segment ends, and give it to its port."""
        params = self._params
        stripes = Striping(params)
        read, valid, advance = Signal(read_layout(params)), Signal(), Signal()
        first = Signal(stripes.number_bits)
        last_segment, last_byte = Signal.like(read.segment), Signal.like(read.length)
        taken = self.reads.payload
        with m.If(advance):
            m.d.sync += [
                valid.eq(self.reads.valid),
                read.eq(taken),
                first.eq(first_number(m, stripes, taken.frame)),
                last_segment.eq(taken.segment + taken.count - 1),
                last_byte.eq(taken.length - 1),
            ]
        m.d.comb += self.reads.ready.eq(advance)

        beat_bits = exact_log2(params.memory.beat_bytes)
        tail, ready = Signal(), Signal()
        number = Signal.like(first)
        m.d.comb += [
            advance.eq(~valid | ready),
            tail.eq(last_segment == last_byte[stripes.segment_bits :]),
            number.eq(first + read.segment),
        ]
        for i, port in enumerate(ports):
            plan = port.reads.payload
            m.d.comb += [
                plan.number.eq(number),
                plan.last.eq(Mux(tail, last_byte[beat_bits : stripes.segment_bits], params.segment_beats - 1)),
                plan.bytes.eq(Mux(tail, last_byte[:beat_bits] + 1, params.memory.beat_bytes)),
                *(plan[name].eq(read[name]) for name in ("frame", "segment", "count", "stamp", "tag")),
            ]
            with m.If(read.stamp.port == i):
                m.d.comb += [port.reads.valid.eq(valid), ready.eq(port.reads.ready)]

    def _finish(self, m: Module, ports: list[ReadPort]) -> None:
        """Tell the ends of READs, one port after the other."""
        for share, done in enumerate(self.done):
            merge(m, [port.done for port in ports[share :: len(self.done)]], done)
