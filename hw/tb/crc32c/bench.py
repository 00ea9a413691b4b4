"""cocotb tests of `hw.rtl.transform.crc32c`."""

from typing import Any

import cocotb
import google_crc32c

from hw.tb.bench import Bench
from hw.tb.pace import Pace, always, bursts, never, randomly
from hw.tb.scoreboard import CheckError, Scoreboard
from hw.tb.stream import Sink, Source


class CrcBench(Bench):
    """Sends segments as beats; a CRC is owed for each segment whose last beat was taken."""

    def __init__(self, dut: Any, *, idle: Pace = always, backpressure: Pace = always):
        super().__init__(dut)
        self.random = self.rng("segments")
        self.beat_bytes: int = self.settings["beat_bytes"]
        self.source = Source(self, "beats", idle)
        self.sink = Sink(self, "crcs", backpressure)
        self.crcs = self.add_scoreboard(Scoreboard("crcs"))
        self._segment = bytearray()
        self.source.monitor.listeners.append(self.on_beat)
        self.sink.monitor.listeners.append(self.crcs.observe)

    def send(self, segment: bytes) -> None:
        """Queue one segment. The unused bytes of its last beat are noise."""
        beats = [segment[i : i + self.beat_bytes] for i in range(0, len(segment), self.beat_bytes)]
        for i, beat in enumerate(beats):
            noise = self.random.randbytes(self.beat_bytes - len(beat))
            self.source.send(
                {"data": int.from_bytes(beat + noise, "little"), "count": len(beat), "last": i == len(beats) - 1}
            )

    def segment(self, longest_beats: int = 8) -> bytes:
        """Return a random segment of a random length in bytes."""
        return self.random.randbytes(self.random.randint(1, longest_beats * self.beat_bytes))

    async def sent(self) -> None:
        """Wait until all queued beats were taken."""
        await self.until(lambda: not self.source.pending)

    def on_beat(self, beat: dict[str, int]) -> None:
        """A beat was taken: with the last of its segment, a CRC is owed."""
        self._segment += beat["data"].to_bytes(self.beat_bytes, "little")[: beat["count"]]
        if beat["last"]:
            self.crcs.expect(google_crc32c.value(bytes(self._segment)))
            self._segment.clear()

    async def reset(self, cycles: int = 1) -> None:
        """Reset in mid-segment: the bytes taken so far belong to nobody."""
        await super().reset(cycles)
        self._segment.clear()


PACES: dict[str, Pace] = {"always": always, "half": randomly(0.5), "bursts": bursts(20, 20)}


@cocotb.test()
@cocotb.parametrize(idle=list(PACES), backpressure=list(PACES))
async def random_segments(dut: Any, idle: str, backpressure: str) -> None:
    """Segments of random length under all idle and backpressure patterns."""
    async with CrcBench(dut, idle=PACES[idle], backpressure=PACES[backpressure]) as bench:
        for _ in range(60):
            bench.send(bench.segment())
        await bench.sent()


@cocotb.test()
async def last_beats(dut: Any) -> None:
    """Every number of bytes in the last beat, behind no and behind one full beat, and every one behind every other."""
    async with CrcBench(dut, idle=always, backpressure=randomly(0.8)) as bench:
        width = bench.beat_bytes
        for count in range(1, 2 * width + 1):
            bench.send(bench.random.randbytes(count))
        for _ in range(4 * width):
            bench.send(bench.random.randbytes(bench.random.randint(1, width)))
        await bench.sent()


@cocotb.test()
async def fixed_patterns(dut: Any) -> None:
    """All zeros and all ones, where a wrong initial or final value cannot hide, and the vectors of RFC 3720."""
    async with CrcBench(dut) as bench:
        for fill in (b"\0", b"\xff"):
            for length in (1, bench.beat_bytes, 3 * bench.beat_bytes + 1, 32):
                bench.send(fill * length)
        bench.send(bytes(range(32)))
        bench.send(bytes(reversed(range(32))))
        await bench.sent()


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """One beat a cycle without a bubble, also from one segment to the next."""
    async with CrcBench(dut) as bench:
        for beats in (1, 1, 1, 2, 5, 64, 1, 1, 3, 1):
            bench.send(bench.random.randbytes(beats * bench.beat_bytes))
        await bench.sent()
        bench.source.monitor.check_full_rate()


@cocotb.test()
async def latency(dut: Any) -> None:
    """A CRC is valid log2(beat_bytes) + 2 cycles after its last beat was taken."""
    async with CrcBench(dut) as bench:
        bench.send(bench.random.randbytes(bench.beat_bytes))
        await bench.until(lambda: bench.sink.monitor.transfers == 1)
        measured = bench.sink.monitor.last_cycle - bench.source.monitor.last_cycle
        promised = bench.beat_bytes.bit_length() - 1 + 2
        if measured != promised:
            raise CheckError(f"latency is {measured} cycles, expected {promised}")


@cocotb.test()
async def stall(dut: Any) -> None:
    """With its CRCs not taken the unit stops, loses nothing, and goes on."""
    async with CrcBench(dut, backpressure=never) as bench:
        for _ in range(50):
            bench.send(bench.segment(longest_beats=1))
        await bench.cycles(100)
        if not bench.source.pending:
            raise CheckError("50 segments were taken although no CRC was")
        bench.sink.set_pace(always)
        await bench.sent()


@cocotb.test()
async def reset_in_segment(dut: Any) -> None:
    """Reset forgets the segment under way: what follows is as after power-up."""
    async with CrcBench(dut, idle=randomly(0.7), backpressure=randomly(0.7)) as bench:
        for _ in range(20):
            for _ in range(4):
                bench.send(bench.segment())
            await bench.cycles(bench.random.randint(1, 25))
            await bench.reset()
        bench.send(bench.segment())
        await bench.sent()
