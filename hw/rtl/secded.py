"""Encoder, decoder and tolerant comparison of the codes in `hw.params.secded`, as logic.

Words are signals or parts of signals: what is used more than once is not written out more than once.
"""

from functools import reduce
from operator import and_, or_, xor
from typing import NamedTuple

from amaranth import Cat, Const, Module, Signal, Value

from hw.params.secded import Code


class Decoded(NamedTuple):
    """What is made of a word.

    - `word`: the codeword, with a single flipped bit mended; an uncorrectable word as it is.
    - `corrected`: one bit was mended.
    - `uncorrectable`: the word is lost.
    """

    word: Value
    corrected: Value
    uncorrectable: Value


def encode(code: Code, data: Value) -> Value:
    """Return the codeword of `data`: one parity a check bit."""
    mask = (1 << code.data_bits) - 1
    return Cat(data, *((data & (row & mask)).xor() for row in code.rows()))


def syndrome(code: Code, word: Value) -> Value:
    """Return the syndrome of `word`: one parity a check bit."""
    return Cat((word & row).xor() for row in code.rows())


def decode(m: Module, code: Code, word: Value, its_syndrome: Value) -> Decoded:
    """Return the codeword that `word` comes from; a pipeline may have a register before this half of the decoder."""
    if not code.check_bits:
        return Decoded(word, Const(0, 1), Const(0, 1))
    flips = Signal(code.bits)
    m.d.comb += flips.eq(Cat(its_syndrome == column for column in code.columns))
    return Decoded(word ^ flips, flips.any(), its_syndrome.any() & ~flips.any())


def encode_lanes(m: Module, code: Code, data: Value, lanes: int) -> Value:
    """Return the codewords of `lanes` equal parts of `data`, in their order."""
    if lanes == 1:
        return encode(code, data)
    planes = [data[bit :: code.data_bits] for bit in range(code.data_bits)]
    for row in range(code.check_bits):
        parity = Signal(lanes)
        m.d.comb += parity.eq(
            reduce(xor, (planes[bit] for bit in range(code.data_bits) if code.columns[bit] >> row & 1))
        )
        planes.append(parity)
    return Cat(plane[lane] for lane in range(lanes) for plane in planes)


def decode_lanes(m: Module, code: Code, words: Value, lanes: int) -> Decoded:
    """Return what is made of `lanes` words beside each other: the codewords in their order, and a bit for each word.

    Equal bits of all words are handled together, so that the netlist does not grow with the number of words.
    """
    if lanes == 1 or not code.check_bits:
        its_syndrome = Signal(code.check_bits)
        m.d.comb += its_syndrome.eq(syndrome(code, words))
        return decode(m, code, words, its_syndrome)
    planes = [words[bit :: code.bits] for bit in range(code.bits)]
    rows = []
    for row in range(code.check_bits):
        parity = Signal(lanes)
        m.d.comb += parity.eq(reduce(xor, (planes[bit] for bit in range(code.bits) if code.columns[bit] >> row & 1)))
        rows.append(parity)
    mended, flips = [], []
    for plane, column in zip(planes, code.columns, strict=True):
        flip, right = Signal(lanes), Signal(lanes)
        m.d.comb += [
            flip.eq(reduce(and_, (parity if column >> row & 1 else ~parity for row, parity in enumerate(rows)))),
            right.eq(plane ^ flip),
        ]
        flips.append(flip)
        mended.append(right)
    corrected = reduce(or_, flips)
    word = Cat(plane[lane] for lane in range(lanes) for plane in mended)
    return Decoded(word, corrected, reduce(or_, rows) & ~corrected)


def lost(m: Module, code: Code, word: Value) -> Value:
    """Return whether `word` has two flipped bits: its syndrome is not 0, but of even weight."""
    its_syndrome = Signal(code.check_bits)
    m.d.comb += its_syndrome.eq(syndrome(code, word))
    return its_syndrome.any() & ~its_syndrome.xor()


def near(m: Module, code: Code, word: Value, codeword: Value) -> Value:
    """Return whether `word` is `codeword` with no more flipped bits than the code corrects.

    For at most two flipped bits this equals decoding `word` and comparing, since codewords differ in four bits; but no
    decoder is needed: differences are paired until one is left, and two of them are seen by meeting in some pair.
    """
    differences = Signal(code.bits)
    m.d.comb += differences.eq(word ^ codeword)
    meetings: list[Value] = []
    while len(differences) > 1:
        half = (len(differences) + 1) // 2
        low, high = differences[:half], differences[half:]
        differences = Signal(half)
        m.d.comb += differences.eq(low | high)
        meetings.append((low & high).any())
    return ~(Cat(meetings).any() if code.tolerance else differences)
