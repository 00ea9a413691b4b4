"""A cocotb test of `hw.rtl.node.data` for as long as one likes: every interface has moods of its own.

Memory is cocotbext-axi's AxiRam, which asserts the rules of AXI4 on all that reaches it.
"""

from typing import Any

import cocotb

from hw.tb.data.base import Block
from hw.tb.data.bench_axiram import RamBench
from hw.tb.pace import moods

LONGEST = 400
"""Cycles of a mood. A stream may be stopped for several of them in a row."""

READS = 40
"""READs beside the writes of a round."""

PATIENCE = 200_000
"""Cycles in which a round has ended, whatever the moods."""


class EnduranceBench(RamBench):
    """The data path with an AxiRam on every channel, and nothing that is willing for long."""

    def __init__(self, dut: Any):
        mood = moods(LONGEST)
        super().__init__(dut, idle=mood, backpressure=mood, landed_pace=mood, done_pace=mood)
        for number, ram in enumerate(self.rams):
            write, read = ram.write_if, ram.read_if
            channels = (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel)
            for channel, name in zip(channels, ("aw", "w", "b", "ar", "r"), strict=True):
                willing = mood(self.rng(f"memory {number} {name}"))
                channel.set_pause_generator(not each for each in willing)


@cocotb.test()
async def any_backpressure(dut: Any) -> None:
    """Blocks are written to half of the frames while those of the others are read, byte for byte, and so in turn."""
    async with EnduranceBench(dut) as bench:
        stored: list[Block] = []
        while bench.cycle < bench.settings["cycles"] or not bench.beats_board.compared:
            taken = {block.frame for block in stored}
            free = [frame for frame in range(bench.params.frames) if frame not in taken]
            frames = bench.random.sample(free, min(len(free), bench.params.frames // 2))
            written = [Block(frame, bench.random.randbytes(bench.length(frame))) for frame in frames]
            bench.write(*written)
            for _ in range(READS if stored else 0):
                block = bench.random.choice(stored)
                segments = len(bench.pieces(block))
                first = bench.random.randrange(segments)
                count = bench.random.randint(1, segments - first)
                bench.read(block, first, count, bench.random.randrange(bench.params.tables.ports))
            await bench.settled(within=PATIENCE)
            for block in written:
                bench.check_stored(block)
            stored = written
        dut._log.info("%d cycles, %d beats read", bench.cycle, bench.beats_board.compared)
