"""The SECDED code: every single error corrected, every double error detected, in Python and in logic."""

from itertools import combinations

import pytest
from amaranth import Elaboratable, Module, Signal
from amaranth.sim import Simulator
from hypothesis import given
from hypothesis import strategies as st

from hw.params.secded import Code, Error, secded, uncoded
from hw.rtl.secded import decode, encode, lost, near, syndrome

WIDTHS = [1, 2, 4, 5, 11, 12]
CODES = st.integers(1, 200).map(secded)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_single_error_is_corrected_and_every_double_error_detected(width: int) -> None:
    code = secded(width)
    for data in (0, 1, (1 << width) - 1, 0x5A5 & (1 << width) - 1):
        word = code.encode(data)
        assert code.decode(word) == (word, Error.NONE)
        for bit in range(code.bits):
            assert code.decode(word ^ 1 << bit) == (word, Error.CORRECTED)
        for one, other in combinations(range(code.bits), 2):
            assert code.decode(word ^ 1 << one ^ 1 << other)[1] is Error.UNCORRECTABLE


@pytest.mark.parametrize("width", [w for w in WIDTHS if w <= 11])
def test_codewords_differ_in_four_bits(width: int) -> None:
    code = secded(width)
    assert min(code.encode(data).bit_count() for data in range(1, 1 << width)) >= 4


@given(CODES, st.data())
def test_errors_of_any_width(code: Code, draw: st.DataObject) -> None:
    data = draw.draw(st.integers(0, (1 << code.data_bits) - 1))
    flipped = draw.draw(st.sets(st.integers(0, code.bits - 1), max_size=2))
    word = code.encode(data) ^ sum(1 << bit for bit in flipped)
    expected = [(code.encode(data), Error.NONE), (code.encode(data), Error.CORRECTED), (word, Error.UNCORRECTABLE)]
    assert code.decode(word) == expected[len(flipped)]


@given(CODES)
def test_columns_are_hsiaos(code: Code) -> None:
    assert len(set(code.columns)) == code.bits
    assert all(column.bit_count() % 2 for column in code.columns)
    weights = [row.bit_count() for row in code.rows()]
    assert max(weights) - min(weights) <= 2


def test_widths_of_the_paper() -> None:
    assert [(secded(width).bits, width) for width in (16, 32, 64)] == [(22, 16), (39, 32), (72, 64)]


def test_one_bit_is_copied() -> None:
    assert [secded(1).encode(bit) for bit in (0, 1)] == [0b0000, 0b1111]


def test_no_code_is_the_data() -> None:
    code = uncoded(8)
    assert (code.bits, code.encode(0x5A), code.decode(0x5B)) == (8, 0x5A, (0x5B, Error.NONE))


class Coder(Elaboratable):
    """All functions of `hw.rtl.secded` for one code."""

    def __init__(self, code: Code):
        self.code = code
        self.data, self.word = Signal(code.data_bits), Signal(code.bits)
        self.encoded, self.mended = Signal(code.bits), Signal(code.bits)
        self.corrected, self.uncorrectable, self.lost, self.near = (Signal(name=name) for name in "culn")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        its_syndrome = Signal(self.code.check_bits)
        m.d.comb += its_syndrome.eq(syndrome(self.code, self.word))
        decoded = decode(m, self.code, self.word, its_syndrome)
        m.d.comb += [
            self.encoded.eq(encode(self.code, self.data)),
            self.mended.eq(decoded.word),
            self.corrected.eq(decoded.corrected),
            self.uncorrectable.eq(decoded.uncorrectable),
            self.lost.eq(lost(m, self.code, self.word)),
            self.near.eq(near(m, self.code, self.word, self.encoded)),
        ]
        return m


@pytest.mark.parametrize(
    "code", [*map(secded, (1, 4, 16)), uncoded(4)], ids=lambda code: f"{code.bits},{code.data_bits}"
)
def test_logic_agrees(code: Code) -> None:
    dut = Coder(code)
    mask = (1 << code.data_bits) - 1

    async def check(ctx) -> None:
        for data in (0, 1, mask, 0x5A5A & mask):
            word = code.encode(data)
            ctx.set(dut.data, data)
            for count in range(3):
                for flipped in combinations(range(code.bits), count):
                    damaged = word ^ sum(1 << bit for bit in flipped)
                    ctx.set(dut.word, damaged)
                    mended, error = code.decode(damaged)
                    assert ctx.get(dut.encoded) == word
                    assert ctx.get(dut.mended) == mended
                    assert ctx.get(dut.corrected) == (error is Error.CORRECTED)
                    assert ctx.get(dut.uncorrectable) == ctx.get(dut.lost) == (error is Error.UNCORRECTABLE)
                    assert ctx.get(dut.near) == (count <= code.tolerance)

    simulator = Simulator(dut)
    simulator.add_testbench(check)
    simulator.run()
