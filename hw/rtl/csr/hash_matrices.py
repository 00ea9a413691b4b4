"""The hash matrices of the block CAM, behind a data window."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.toeplitz import diagonal_bits, diagonals

WORD = 32


class HashMatrices(wiring.Component):
    """The diagonals of each bank's Toeplitz matrix, read and written in words of 32 bits.

    Parameters
    ----------
    params
        Number and width of the diagonals, and their values after reset.

    Interface
    ---------
    bank, word : In, 8 bits
        Which word; word 0 has bits 31 to 0.
    write : In, 1 bit
        Keep `data` in that word.
    data : In, 32 bits
        What to keep; bits beyond the last diagonal are dropped.
    value : Out, 32 bits
        The word; 0 where there is none.
    diagonals : Out, an array of one number a bank
        What the block CAM hashes with.

    Latency and throughput
    ----------------------
    `value` follows `bank` and `word` within the cycle; a write is seen in the next.

    Ordering and stalls
    -------------------
    None. Nothing here keeps the matrices from being changed while the CAM holds something: the register's lock does.

    Reset and errors
    ----------------
    Reset gives the matrices that follow from `cam.seed`. A word that does not exist keeps nothing.

    Invariants, counters
    --------------------
    None.
    """

    def __init__(self, params: Params):
        self._diagonals = diagonals(params)
        self._width = diagonal_bits(params)
        super().__init__(
            {
                "bank": In(8),
                "word": In(8),
                "write": In(1),
                "data": In(WORD),
                "value": Out(WORD),
                "diagonals": Out(data.ArrayLayout(self._width, len(self._diagonals))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = []
        for bank, init in enumerate(self._diagonals):
            words = []
            for word, low in enumerate(range(0, self._width, WORD)):
                width = min(WORD, self._width - low)
                value = Signal(width, name=f"bank_{bank}_word_{word}", init=init >> low & (1 << width) - 1)
                with m.If((self.bank == bank) & (self.word == word)):
                    m.d.comb += self.value.eq(value)
                    with m.If(self.write):
                        m.d.sync += value.eq(self.data)
                words.append(value)
            banks.append(Cat(*words))
        m.d.comb += self.diagonals.eq(Cat(*banks))
        return m
