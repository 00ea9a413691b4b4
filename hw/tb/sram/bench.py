"""cocotb tests of `hw.rtl.sram`."""

from typing import Any

import cocotb

from hw.tb.bench import Bench
from hw.tb.scoreboard import Scoreboard


class Accesses:
    """Agent: a random access of a few rows a cycle; what was never written is not compared."""

    def __init__(self, bench: Bench):
        rows = bench.settings["rows"]
        self._dut = bench.dut
        self._random = bench.rng("accesses")
        self._rows = [self._random.randrange(rows) for _ in range(7)] + [0, rows - 1]
        self._content: dict[tuple[int, int], int] = {}
        self._codec = bench.codec("read_data")
        self._asked: list[int | None] | None = None
        self._owed: list[int | None] | None = None
        self._board = bench.add_scoreboard(Scoreboard("reads"))
        bench.add(self)

    def drive(self) -> None:
        """Make an access of any lanes, or none."""
        dut, random = self._dut, self._random
        enable, row = random.random() < 0.8, random.choice(self._rows)
        write = random.getrandbits(3) if random.random() < 0.5 else 0
        lanes = [random.getrandbits(7) for _ in range(3)]
        dut.enable.value, dut.address.value, dut.write.value = enable, row, write
        dut.write_data.value = self._codec.pack(lanes)
        self._asked = [self._content.get((row, lane)) for lane in range(3)] if enable and not write else None
        for lane in range(3):
            if enable and write >> lane & 1:
                self._content[row, lane] = lanes[lane]

    def sample(self) -> None:
        """Compare what the cycle before has read."""
        if self._owed is not None and None not in self._owed:
            self._board.expect(self._owed)
            self._board.observe(self._codec.unpack(int(self._dut.read_data.value)))
        self._owed = self._asked

    def reset(self) -> None:
        """Reset leaves the content alone."""


@cocotb.test()
async def random_accesses(dut: Any) -> None:
    """Reads and writes of any lanes, back to back, in first, last and other rows."""
    async with Bench(dut) as bench:
        Accesses(bench)
        await bench.cycles(3000)
