"""Flipped bits in the tables of a slice, as its registers tell of them: one is counted, two are logged."""

from collections.abc import Awaitable, Callable

import pytest
from amaranth import Value
from amaranth.sim import SimulatorContext

from hw.params.registers import ErrorKind
from hw.rdl import register_map
from hw.rtl.node import reports
from hw.rtl.node import slice as top
from hw.rtl.node.slice import Slice
from hw.rtl.sram import Sram
from hw.tb.mutate import mutate
from tests.hw.corebench import small
from tests.hw.flips import Content, open_banks, open_tables
from tests.hw.simulate import Restart, simulate
from tests.hw.test_csr_control import Bus

PARAMS = small()
QUIET = 300
"""Idle cycles in which every scrubber comes round."""


class Registers(Bus):
    """The registers of a slice, and what its tables have stored."""

    def __init__(self, ctx: SimulatorContext, dut: Slice, tables: list[Content], banks: list[Sram]) -> None:
        super().__init__(ctx, dut)
        self.frames = next(table for table in tables if table.table._lost is not None)
        self.others = [table for table in tables if table is not self.frames]
        self.banks = banks

    def flip_entry(self, bank: int, *bits: int) -> None:
        """Flip bits of a codeword of the CAM: whether a way of a bank is taken."""
        row = Value.cast(self.banks[bank].content[0])
        self.ctx.set(row, self.ctx.get(row) ^ sum(1 << bit for bit in bits))

    async def field(self, register: str, name: str) -> int:
        """A field of a register."""
        field = register_map()[register].field(name)
        return (await self.read(register) & field.mask) >> field.low

    async def counted(self) -> tuple[int, int]:
        """How many words were mended, and how many lost."""
        await self.ctx.tick().repeat(QUIET)
        return await self.read("COUNT_ECC_CORRECTED"), await self.read("COUNT_ECC_UNCORRECTED")

    async def logged(self) -> list[tuple[ErrorKind, int, int]]:
        """Kind, code and frame of each entry of the error log, which is empty then."""
        entries = []
        while await self.field("ERROR_ENTRY", "valid"):
            kind = ErrorKind(await self.field("ERROR_ENTRY", "kind"))
            entries.append((kind, await self.field("ERROR_ENTRY", "code"), await self.read("ERROR_FRAME")))
            await self.write("ERROR_POP", 1)
        return entries


Story = Callable[[Registers], Awaitable[None]]


def tell(monkeypatch: pytest.MonkeyPatch, *stories: Story) -> None:
    """Tell stories to a slice that nobody uses."""
    tables, banks = open_tables(monkeypatch), open_banks(monkeypatch)
    dut = Slice(PARAMS)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        registers = Registers(ctx, dut, tables, banks)
        while not await registers.field("STATUS", "ready"):
            pass
        for story in stories:
            await story(registers)

    simulate(dut, bench)


async def one_bit_flips(registers: Registers) -> None:
    """In every table: it is mended. Those of frames and of the CAM are counted; none is logged."""
    for table in (registers.frames, *registers.others):
        table.flip(registers.ctx, 1, 0)
    for bank in range(PARAMS.cam.banks):
        registers.flip_entry(bank, bank)
    assert await registers.counted() == (1 + PARAMS.cam.banks, 0)
    assert await registers.logged() == []


async def the_row_of_a_frame_is_lost(registers: Registers) -> None:
    """It is counted and logged once."""
    mended, _ = await registers.counted()
    registers.frames.flip(registers.ctx, 5, 0, 1)
    for _ in range(3):
        assert await registers.counted() == (mended, 1)
    assert await registers.logged() == [(ErrorKind.FRAME_ECC, 0, 5)]


async def an_entry_of_the_cam_is_lost(registers: Registers) -> None:
    """It is counted in each round of the scrubber, since nothing is written there, and logged once."""
    mended, before = await registers.counted()
    registers.flip_entry(1, 0, 1)
    for entries in ([(ErrorKind.CAM_ECC, 1, 0)], []):
        now, lost = await registers.counted()
        assert now == mended and lost > before
        assert await registers.logged() == entries
        before = lost


async def a_word_of_another_table_is_lost(registers: Registers) -> None:
    """It is logged once, and the core has failed."""
    registers.others[0].flip_two(registers.ctx)
    for entries in ([(ErrorKind.TABLE_ECC, 0, 0)], []):
        await registers.counted()
        assert await registers.logged() == entries


STORIES = (
    one_bit_flips,
    the_row_of_a_frame_is_lost,
    an_entry_of_the_cam_is_lost,
    a_word_of_another_table_is_lost,
)


def test_flipped_bits_are_counted_and_lost_words_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, *STORIES)


MUTANTS = {
    "a mended word is logged": (
        "self.table_event_valid & self.table_event.uncorrectable, fourth",
        "self.table_event_valid, fourth",
    ),
    "a lost row is not logged": (
        "self.table_event_valid & self.table_event.uncorrectable, fourth",
        "self.table_event_valid & 0, fourth",
    ),
    "a bank is told of for ever": ("entry_lost & ~banks.bit_select(place.bank, 1), third", "entry_lost, third"),
    "the bank is not told": ("third.code.eq(place.bank),", ""),
}
"""Name to what of `Reports` is right, and what is wrong."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "Reports", mutate(reports.Reports, *MUTANTS[name]))
    with pytest.raises(AssertionError):
        tell(monkeypatch, *STORIES)
