"""A table in SRAM: its rows are coded, decoded, and mended while nobody needs them."""

from amaranth import Cat, Const, Module, Mux, Shape, Signal
from amaranth.hdl import ShapeLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params.secded import secded, uncoded
from hw.rtl.secded import decode_lanes, encode_lanes
from hw.rtl.two_port_sram import TwoPortSram


def table_event_layout(depth: int) -> data.StructLayout:
    """Return the layout of what the scrubber of a table of `depth` rows reports.

    - `uncorrectable`: the row is lost; else a flipped bit was mended.
    - `row`: which row.
    """
    return data.StructLayout({"uncorrectable": 1, "row": range(depth)})


class Table(wiring.Component):
    """Rows that are read and written in the same cycle; what their SRAM flips is mended.

    The read register has two users: whoever owns the table, and the scrubber, which may read only while it is granted
    `idle`. Then it reads row after row, and writes a row with a flipped bit back in the cycle after, if it is still
    `idle`, so that nobody has written the row meanwhile.

    Parameters
    ----------
    shape, depth
        What a row holds, and the number of rows.
    lanes
        Equal parts of a row that are written separately; each is a codeword of its own.
    ecc
        With SECDED. Without, rows are stored bare, and nothing is ever found.
    lost
        What an uncorrectable row reads as, and is overwritten with by the scrubber. By default it reads as anything,
        and stays lost.

    Interface
    ---------
    write, write_address, write_data : In
        The lanes of the row that `write` has, a bit a lane, are written.
    read, read_address : In
        With `read`, the row is read.
    read_data : Out
        The row that was read last, mended. It stands until the next `read` or `idle`.
    uncorrectable : Out(1)
        The row that was read last, by owner or scrubber, is lost.
    idle : In(1)
        In this cycle nothing is read or written, and nobody needs what was read.
    events : Out, stream of `table_event_layout(depth)`, always ready
        What the scrubber has found.

    Latency and throughput
    ----------------------
    A read and a write a cycle; a read takes one cycle, and the decoder lies behind it. The scrubber looks at a row in
    two cycles.

    Ordering and stalls
    -------------------
    A read sees the writes of earlier cycles. A row that is read while it is written reads as anything. The scrubber
    waits for two idle cycles in a row for any time.

    Reset and errors
    ----------------
    Reset leaves the content alone, and there is none at power-up: every row is to be written before it is read, and
    before the first `idle`. One flipped bit in a codeword has no effect.

    Invariants
    ----------
    None of its own.

    Counters
    --------
    None here: the events are to be counted.
    """

    def __init__(self, *, shape: ShapeLike, depth: int, lanes: int = 1, ecc: bool, lost: int | None = None):
        self._depth = depth
        self._lanes = lanes
        self._lost = lost
        self._lane_bits = Shape.cast(shape).width // lanes
        self._code = (secded if ecc else uncoded)(self._lane_bits)
        super().__init__(
            {
                "write": In(lanes),
                "write_address": In(range(depth)),
                "write_data": In(shape),
                "read": In(1),
                "read_address": In(range(depth)),
                "read_data": Out(shape),
                "uncorrectable": Out(1),
                "idle": In(1),
                "events": Out(stream.Signature(table_event_layout(depth), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        code, lane_bits = self._code, self._lane_bits
        width = code.bits * self._lanes
        m.submodules.sram = sram = TwoPortSram(rows=self._depth, width=width, lanes=self._lanes)
        new = Signal(lane_bits * self._lanes)
        m.d.comb += [
            new.eq(self.write_data),
            sram.write.eq(self.write),
            sram.write_address.eq(self.write_address),
            sram.write_data.eq(encode_lanes(m, code, new, self._lanes)),
            sram.read.eq(self.read),
            sram.read_address.eq(self.read_address),
        ]

        decoded = decode_lanes(m, code, sram.read_data, self._lanes)
        mended, content = Signal(width), Signal(len(new))
        corrected, lost, found, known = Signal(), Signal(), Signal(), Signal()
        with m.If(sram.read):
            m.d.sync += known.eq(1)
        m.d.comb += [
            mended.eq(decoded.word),
            content.eq(Cat(mended[i : i + lane_bits] for i in range(0, width, code.bits))),
            corrected.eq(decoded.corrected.any()),
            lost.eq(decoded.uncorrectable.any()),
            found.eq(corrected | lost),
            self.uncorrectable.eq(known & lost),
        ]
        if self._lost is not None:
            parts = [self._lost >> i & (1 << lane_bits) - 1 for i in range(0, len(new), lane_bits)]
            with m.If(lost):
                m.d.comb += [
                    content.eq(self._lost),
                    mended.eq(Cat(Const(code.encode(part), code.bits) for part in parts)),
                ]
        m.d.comb += self.read_data.eq(content)
        if not code.check_bits:
            return m

        place = Signal.like(self.read_address)
        m.d.sync += [self.events.valid.eq(0), self.events.payload.eq(Cat(lost, place))]
        with m.FSM():
            with m.State("READ"), m.If(self.idle):
                m.d.comb += [sram.read.eq(1), sram.read_address.eq(place)]
                m.next = "MEND"
            with m.State("MEND"):
                m.next = "READ"
                with m.If(self.idle):
                    m.d.comb += [
                        sram.write.eq(found.replicate(self._lanes)),
                        sram.write_address.eq(place),
                        sram.write_data.eq(mended),
                    ]
                    m.d.sync += [
                        self.events.valid.eq(found),
                        place.eq(Mux(place == self._depth - 1, 0, place + 1)),
                    ]
        return m
