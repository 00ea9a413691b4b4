"""cocotb tests of `hw.rtl.sram`."""

from typing import Any

import cocotb

from hw.tb.bench import Bench
from hw.tb.scoreboard import Scoreboard


class SramBench(Bench):
    """An agent of its own: one random access a cycle; what was never written is not compared."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.random = self.rng("accesses")
        self.reads = self.add_scoreboard(Scoreboard("reads"))
        self.rows = [self.random.randrange(self.settings["rows"]) for _ in range(7)] + [0, self.settings["rows"] - 1]
        self.content: dict[tuple[int, int], int] = {}
        self._codec = self.codec("read_data")
        self._expected: list[int | None] | None = None
        self.add(self)

    def drive(self) -> None:
        """Access a few rows; any lanes."""
        dut, random = self.dut, self.random
        enable, row = random.random() < 0.8, random.choice(self.rows)
        write = random.getrandbits(3) if random.random() < 0.5 else 0
        lanes = [random.getrandbits(7) for _ in range(3)]
        dut.enable.value, dut.address.value, dut.write.value = enable, row, write
        dut.write_data.value = self.codec("write_data").pack(lanes)
        self._owed = [self.content.get((row, lane)) for lane in range(3)] if enable and not write else None
        for lane in range(3):
            if enable and write >> lane & 1:
                self.content[row, lane] = lanes[lane]

    def sample(self) -> None:
        """Compare what the cycle before has read."""
        if self._expected is not None and None not in self._expected:
            self.reads.expect(self._expected)
            self.reads.observe(self._codec.unpack(int(self.dut.read_data.value)))
        self._expected = self._owed


@cocotb.test()
async def random_accesses(dut: Any) -> None:
    """Reads and writes of any lanes, back to back, in first, last and other rows."""
    async with SramBench(dut) as bench:
        await bench.cycles(3000)
