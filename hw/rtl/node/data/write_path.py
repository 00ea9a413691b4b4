"""Writes: what the core has accepted, from the ports to the channels that it belongs on, and memory's answers."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.arbiter import merge
from hw.rtl.axi import axi4_write
from hw.rtl.layouts import beat_layout, frame_bits
from hw.rtl.node.data.layouts import landed_layout, write_segment_layout, write_widths
from hw.rtl.node.data.turns import WRITES
from hw.rtl.node.data.write_lane import WriteLane
from hw.rtl.node.data.write_port import WritePort
from hw.rtl.node.rota import pass_rota, rota_member


class WritePath(wiring.Component):
    """Writes accepted segments of P ports to C channels, and reports per frame how many have landed.

    Between every port and every channel is a bank of buffers of its own, so ports and channels wait for each other only
    when a bank is full or empty: a port fills a bank a cycle, a channel empties a bank a cycle. A bank has
    `params.write_buffers` buffers of a segment, two or three, and `params.write_bursts` IDs.

    Parameters
    ----------
    params
        Section `memory`, `tables.ports`, and what `hw.params.striping` needs.

    Interface
    ---------
    rota : In, `turn_layout(params)`
        As in `WriteLane`.
    segments : In, stream of `write_segment_layout(params)`, one a port
        Which segment comes next. Its CRC is known before its data is taken: whoever feeds this has it all.
    beats : In, stream of `beat_layout(beat_bytes)`, one a port
        The data, in the order of its `segments`. The length of a segment follows from its beats.
    discards : In, stream of frame numbers, always ready
        The block in this frame has been abandoned: what has been taken of it is finished with strobes off from the
        next beat on. What is taken later is written as usual.
    landed : Out, stream of `landed_layout(params)`, one a share
        What memory has answered.
    turns : Out, `WRITES`, one a channel
    memory : Out, `axi4_write`, one a channel
        As in `WriteLane`.

    Latency and throughput
    ----------------------
    A beat a cycle from each port and to each channel. AWVALID comes two cycles after the last beat of a segment was
    taken, `landed` two cycles after BVALID.

    Ordering and stalls
    -------------------
    No burst begins before all its beats are there: the path never stalls a data channel within a burst. Ports take
    turns at each channel. A channel that stalls holds up a port only when the buffers, or the IDs, of that port there
    are used up and its next segment is for it; a port that stalls holds up no other.

    `landed` takes the ports of its share in turn. The segments of a port are in the order of its `segments`, over all
    frames: an answer waits for those of all segments before. So those of a frame are in order if it has unanswered
    segments of one port only. That holds: one session writes to a frame, and its ring changes in a migration, which
    ends when memory has answered all that the old ring wrote; a frame is given to the next session when all is
    answered. Answers for the same frame are joined while an entry before them is not taken, up to and including one
    that is not `ok`. Nothing is dropped, whatever `landed` does: without it, the IDs run out and the inputs stop.

    Reset and errors
    ----------------
    Reset forgets all; the channels have to be reset too. SLVERR or DECERR ends an entry of `landed` without `ok`, its
    last segment being the one that failed. A segment of more than `segment_beats` beats, of no bytes, or with a short
    beat before the last, is the initiator's error.

    Invariants
    ----------
    Part of 9 and 10: a segment has landed when memory has acknowledged it, and every segment does or is reported.

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
                "segments": In(stream.Signature(write_segment_layout(params))).array(ports),
                "beats": In(stream.Signature(beat_layout(params.memory.beat_bytes))).array(ports),
                "discards": In(stream.Signature(frame_bits(params), always_ready=True)),
                "landed": Out(stream.Signature(landed_layout(params))).array(params.shares),
                "turns": Out(WRITES).array(params.memory.channels),
                "memory": Out(axi4_write(**write_widths(params))).array(params.memory.channels),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        lanes = [WriteLane(params) for _ in range(params.memory.channels)]
        ports = [WritePort(params) for _ in range(params.tables.ports)]
        for i, lane in enumerate(lanes):
            m.submodules[f"lane_{i}"] = lane
            pass_rota(m, self, lane)
            wiring.connect(m, lane.memory, wiring.flipped(self.memory[i]))
            wiring.connect(m, lane.turn, wiring.flipped(self.turns[i]))
            m.d.comb += [lane.discard.eq(self.discards.valid), lane.discard_frame.eq(self.discards.payload)]
        for i, port in enumerate(ports):
            m.submodules[f"port_{i}"] = port
            wiring.connect(m, wiring.flipped(self.segments[i]), port.segments)
            wiring.connect(m, wiring.flipped(self.beats[i]), port.beats)
            for j, lane in enumerate(lanes):
                wiring.connect(m, port.lane_beats[j], lane.beats[i])
                wiring.connect(m, lane.answers[i], port.lane_answers[j])

        # What memory has answered, one port after the other.
        for share, landed in enumerate(self.landed):
            merge(m, [port.landed for port in ports[share :: len(self.landed)]], landed)
        return m
