"""The SRAM of tables in the Amaranth simulator, open to flipped bits."""

import random

import pytest
from amaranth import Module, Signal, Value
from amaranth.sim import SimulatorContext

from hw.rtl.sram import Sram
from hw.rtl.table import Table
from hw.rtl.two_port_sram import TwoPortSram


class Content:
    """What a table has stored."""

    def __init__(self, table: Table, sram: TwoPortSram) -> None:
        self.table, self.code, self.lanes, self.depth = table, table._code, table._lanes, table._depth
        self._sram = sram

    def row(self, row: int) -> Value:
        """The bits of a row."""
        return Value.cast(self._sram.content[row])

    def codeword(self, ctx: SimulatorContext, row: int, lane: int = 0) -> int:
        """Read a codeword."""
        return ctx.get(self.row(row)) >> lane * self.code.bits & (1 << self.code.bits) - 1

    def flip(self, ctx: SimulatorContext, row: int, *bits: int, lane: int = 0) -> None:
        """Flip bits of a codeword."""
        flips = sum(1 << lane * self.code.bits + bit for bit in bits)
        ctx.set(self.row(row), ctx.get(self.row(row)) ^ flips)

    def flip_two(self, ctx: SimulatorContext) -> None:
        """Lose every codeword."""
        for row in range(self.depth):
            for lane in range(self.lanes):
                self.flip(ctx, row, 0, self.code.bits - 1, lane=lane)

    def flip_one(self, ctx: SimulatorContext, rng: random.Random) -> bool:
        """Flip a random bit, unless its codeword has lost one already; whether it was flipped."""
        row, lane = rng.randrange(self.depth), rng.randrange(self.lanes)
        if self.code.syndrome(self.codeword(ctx, row, lane)):
            return False
        self.flip(ctx, row, rng.randrange(self.code.bits), lane=lane)
        return True


def open_banks(monkeypatch: pytest.MonkeyPatch) -> list[Sram]:
    """Return a list that the SRAM of every bank of a CAM enters when it is elaborated, with its rows in `content`."""
    banks: list[Sram] = []
    elaborate = Sram.elaborate

    def sram(self: Sram, platform: object) -> Module:
        m = elaborate(self, platform)
        self.content = m.submodules.mem.data
        banks.append(self)
        return m

    monkeypatch.setattr(Sram, "elaborate", sram)
    return banks


def open_tables(monkeypatch: pytest.MonkeyPatch) -> list[Content]:
    """Return a list that every table enters when it is elaborated.

    A row that is read while it is written reads as its complement: nobody may rely on it.
    """
    tables: list[Content] = []
    elaborate_table, elaborate_sram = Table.elaborate, TwoPortSram.elaborate

    def table(self: Table, platform: object) -> Module:
        m = elaborate_table(self, platform)
        tables.append(Content(self, m.submodules.sram))
        return m

    def sram(self: TwoPortSram, platform: object) -> Module:
        m = elaborate_sram(self, platform)
        memory = m.submodules.mem
        self.content = memory.data
        spoilt = Signal()
        with m.If(self.read):
            m.d.sync += spoilt.eq(self.write.any() & (self.read_address == self.write_address))
        with m.If(spoilt):
            m.d.comb += self.read_data.eq(~Value.cast(memory.read_ports[0].data))
        return m

    monkeypatch.setattr(Table, "elaborate", table)
    monkeypatch.setattr(TwoPortSram, "elaborate", sram)
    return tables
