"""CRC32C of each segment of a stream of beats."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import crc32c
from hw.rtl.layouts import beat_layout


class Crc32c(wiring.Component):
    """CRC32C of each segment, at one beat a cycle for any width of beat.

    A beat with fewer bytes than its width is taken as if padded with zeros, so one constant matrix serves all beats;
    behind the last beat an *unwind* pipeline takes the padding back, a power of two of zero bytes a stage, with the
    inverse matrices. The loop from state to state is thus one constant matrix, whatever the number of bytes.

    Parameters
    ----------
    beat_bytes
        Width of the data path: a power of two from 1 to 128.

    Interface
    ---------
    beats : In, stream of `beat_layout(beat_bytes)`
        The segments, one after the other.
    crcs : Out, stream of 32 bits
        One CRC32C for each segment.

    Latency and throughput
    ----------------------
    One beat a cycle, also across segments. A CRC is valid log2(beat_bytes) + 2 cycles after its last beat was taken.
    At most 8 LUT4 levels between registers; the loop from state to state has 3.

    Ordering and stalls
    -------------------
    In order. A CRC that is not taken stops the whole pipeline at once: `beats.ready` follows `crcs.ready` within the
    cycle (one gate). `crcs.valid` and `crcs.payload` come from registers.

    Reset and errors
    ----------------
    Reset forgets the segment under way and all CRCs not yet taken. A `count` of 0 or above `beat_bytes`, or less than
    `beat_bytes` in a beat that is not the last, is the initiator's error and gives a CRC without meaning.

    Invariants
    ----------
    Part of invariant 2: the CRC of the bytes stored is that of the bytes sent.

    Counters
    --------
    None.
    """

    def __init__(self, *, beat_bytes: int):
        self._beat_bytes = beat_bytes
        self._unwind_stages = exact_log2(beat_bytes)
        super().__init__(
            {
                "beats": In(stream.Signature(beat_layout(beat_bytes))),
                "crcs": Out(stream.Signature(crc32c.WIDTH)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_bytes = self._beat_bytes
        beat = self.beats.payload

        advance = Signal()
        m.d.comb += advance.eq(~self.crcs.valid | self.crcs.ready)
        m.d.comb += self.beats.ready.eq(advance)

        # What the beat adds to the state, and how many bytes of padding it has.
        fold_valid = Signal()
        fold_last = Signal(reset_less=True)
        fold_padding = Signal(self._unwind_stages, reset_less=True)
        fold = Signal(crc32c.WIDTH, reset_less=True)
        strobe = Signal(beat_bytes)
        padded = Signal(8 * beat_bytes)
        m.d.comb += [
            strobe.eq(Cat(i < beat.count for i in range(beat_bytes))),
            padded.eq(beat.data & Cat(bit.replicate(8) for bit in strobe)),
        ]
        with m.If(advance):
            m.d.sync += [
                fold_valid.eq(self.beats.valid),
                fold_last.eq(beat.last),
                fold_padding.eq(-beat.count),
                fold.eq(product(crc32c.data(beat_bytes), padded)),
            ]

        # The loop from state to state; the last beat leaves all ones to the next segment.
        state = Signal(crc32c.WIDTH, init=crc32c.ONES)
        after = Signal(crc32c.WIDTH)
        m.d.comb += after.eq(product(crc32c.zeros(beat_bytes), state) ^ fold)
        with m.If(advance & fold_valid):
            m.d.sync += state.eq(after | fold_last.replicate(crc32c.WIDTH))

        # The unwind pipeline: register 0 takes the state after the last beat; behind register i, 2**i bytes of zeros
        # are taken back if the padding has them.
        source = fold_valid & fold_last, fold_padding, after
        for i in range(self._unwind_stages + 1):
            valid = Signal(name=f"valid_{i}")
            padding = Signal(self._unwind_stages - i, name=f"padding_{i}", reset_less=True)
            crc = Signal(crc32c.WIDTH, name=f"crc_{i}", reset_less=True)
            with m.If(advance):
                m.d.sync += [valid.eq(source[0]), padding.eq(source[1]), crc.eq(source[2])]
            if i < self._unwind_stages:
                source = valid, padding[1:], Mux(padding[0], product(crc32c.zeros(-1 << i), crc), crc)

        m.d.comb += [self.crcs.valid.eq(valid), self.crcs.payload.eq(~crc)]
        return m


def product(matrix: crc32c.Matrix, vector: Value) -> Value:
    """Return matrix times vector: each row of the matrix is one parity."""
    return Cat((vector & row).xor() for row in crc32c.rows(matrix))
