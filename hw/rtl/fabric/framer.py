"""Words on a wire: in pieces, with a CRC."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, crc32c
from hw.rtl.fabric.words import crc_of, piece_bits, wire


class Framer(wiring.Component):
    """Puts words onto a wire.

    Parameters
    ----------
    params
        `link.flit_cycles`.
    bits
        Of a word.

    Interface
    ---------
    load, word : In
        A word, every `flit_cycles` cycles, beginning whenever it likes.
    wire : Out, `wire(piece_bits(params, bits))`

    Latency and throughput
    ----------------------
    One cycle to the first piece, a piece a cycle.

    Ordering and stalls
    -------------------
    In order. A word that comes too early ends the one before.

    Reset and errors
    ----------------
    Reset leaves the wire empty.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params, bits: int):
        self._pieces = params.link.flit_cycles
        self._piece_bits = piece_bits(params, bits)
        super().__init__({"load": In(1), "word": In(bits), "wire": Out(wire(self._piece_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(range(self._pieces + 1))
        pieces = Signal(self._pieces * self._piece_bits)
        m.d.comb += [self.wire.valid.eq(left != 0), self.wire.bits.eq(pieces)]
        m.d.sync += [
            left.eq(Mux(self.load, self._pieces, left - (left != 0))),
            self.wire.first.eq(self.load),
            pieces.eq(Mux(self.load, Cat(self.word, crc_of(self.word)), pieces >> self._piece_bits)),
        ]
        return m


class Deframer(wiring.Component):
    """Takes words off a wire, and those with an error away.

    Parameters
    ----------
    params
        `link.flit_cycles`.
    bits
        Of a word.

    Interface
    ---------
    wire : In, `wire(piece_bits(params, bits))`
    heard, word : Out
        A word, whole and as it was sent.

    Latency and throughput
    ----------------------
    Two cycles from the last piece. A piece a cycle.

    Ordering and stalls
    -------------------
    In order.

    Reset and errors
    ----------------
    Reset forgets the word under way. A word is dropped unless its pieces come in cycles behind each other, the first
    one marked and no other, and its CRC agrees.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params, bits: int):
        self._pieces = params.link.flit_cycles
        self._bits = bits
        self._piece_bits = piece_bits(params, bits)
        super().__init__({"wire": In(wire(self._piece_bits)), "heard": Out(1), "word": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        got = Signal(range(self._pieces + 1))
        pieces = Signal(self._pieces * self._piece_bits)
        crc, word = pieces[self._bits :][: crc32c.WIDTH], pieces[: self._bits]
        m.d.sync += [
            pieces.eq(Cat(pieces, self.wire.bits)[self._piece_bits :]),
            self.heard.eq((got == self._pieces) & (crc == crc_of(word))),
            self.word.eq(word),
            got.eq(0),
        ]
        with m.If(self.wire.valid & self.wire.first):
            m.d.sync += got.eq(1)
        with m.Elif(self.wire.valid & (got != 0) & (got != self._pieces)):
            m.d.sync += got.eq(got + 1)
        return m
