"""cocotb tests of `hw.rtl.node.data`: cycles, counted. Memory is late, and otherwise does all that is asked of it."""

from typing import Any

import cocotb

from hw.tb.data.base import Block
from hw.tb.data.bench import MemoryBench
from hw.tb.data.memory import Behaviour
from hw.tb.pace import Pace, randomly
from hw.tb.scoreboard import CheckError

READ_TO_ADDRESS, DATA_TO_BEAT = 3, 2
"""Cycles that the read path adds, before memory and behind it."""

LAST_BEAT_WAITS = 4
"""Cycles, and log2(beat_bytes) more, that the last beat of a segment alone waits for its CRC."""

LAST_BEAT_TO_ADDRESS, ANSWER_TO_LANDED = 2, 2
"""The same for the write path."""

LATENCY = 100
"""Of memory; what the parameters are made for."""

WINDOW = 3000
"""Cycles over which a rate is counted."""

WRITES, TURNAROUND = 0.3, 16
"""Share of the beats that are written where channels are shared, and cycles for which the bus rests between kinds."""


class RateBench(MemoryBench):
    """Long blocks, in whole segments, and memory with the latency that the parameters are made for."""

    def __init__(self, dut: Any, **paces: Pace):
        super().__init__(dut, behaviour=Behaviour(latency=LATENCY), **paces)
        self.whole_blocks = [self.whole(frame) for frame in range(self.params.frames)]

    def whole(self, frame: int) -> Block:
        """A block that fills its frame."""
        pool = max(i for i, first in enumerate(self.stripes.firsts) if first <= frame)
        return Block(frame, self.random.randbytes(self.params.pools[pool].frame_bytes))

    def show(self, name: str, value: float, limit: float) -> None:
        """Print a figure. Raises CheckError unless it reaches its limit."""
        memory, tables = self.params.memory, self.params.tables
        self.dut._log.info(
            f"FIGURE {name} {value:.4f} (limit {limit}): {memory.channels} channels, {tables.ports} ports,"
            f" {self.params.read_segments} segments of {self.params.segment_beats} beats for each of both,"
            f" latency {self.behaviour.latency}"
        )
        if value < limit:
            raise CheckError(f"{name} is {value:.4f}, expected at least {limit}")

    async def read_rates(self, ports: range) -> tuple[float, float]:
        """Keep ports busy with READs; return the fractions of their peak that channels, and these ports, reach.

        Each port in turn gets a READ as long as the others': `reads` would hold up who gets short ones.
        """
        self.queue_reads(ports)
        await self.cycles(500)
        before = self._counts(ports)
        await self.cycles(WINDOW)
        busy, beats = (now - then for now, then in zip(self._counts(ports), before, strict=True))
        if self.reads.pending == 0:
            raise CheckError("the READs did not last")
        return busy / WINDOW / len(self.channels), beats / WINDOW / len(ports)

    def queue_reads(self, ports: range) -> None:
        """Queue READs that last."""
        blocks = self.whole_blocks
        for block in blocks:
            self.store(block)
        lasting = 2 * WINDOW // self.params.segment_beats // self.stripes.sizes[0]
        for _ in range(lasting + self.params.memory.waiting_reads):
            length = len(self.random.choice(blocks).data)
            for port in ports:
                block = self.random.choice([block for block in blocks if len(block.data) == length])
                self.read(block, 0, len(self.pieces(block)), port)

    async def write_rate(self, ports: range, *, together: int = 1) -> float:
        """Keep ports busy with writes; return the fraction of their peak, a beat a cycle, that they reach.

        Every frame is written by one port only, again and again, some `together`.
        """
        self.queue_writes(ports, together, beats=WINDOW + 1000)
        await self.cycles(500)
        before = self._beats_written(ports)
        await self.cycles(WINDOW)
        beats = self._beats_written(ports) - before
        if any(self.beats_in[port].pending == 0 for port in ports):
            raise CheckError("the writes did not last")
        await self.settled()
        return beats / WINDOW / len(ports)

    def queue_writes(self, ports: range, together: int = 1, *, beats: int) -> None:
        """Queue writes of so many beats at least, for each port."""
        for port in ports:
            own, length = self.whole_blocks[port :: len(ports)], 0
            while length < beats:
                chosen = self.random.sample(own, min(together, len(own)))
                self.write(*chosen, port=port)
                length += sum(len(block.data) for block in chosen) // self.beat_bytes

    def _beats_written(self, ports: range) -> int:
        return sum(self.beats_in[port].monitor.transfers for port in ports)

    def shared_counts(self) -> tuple[int, int, int]:
        """Beats read and written, and turns, of all channels."""
        channels = self.channels
        return (
            sum(channel.busy_cycles for channel in channels),
            sum(channel.beats_written for channel in channels),
            sum(channel.turns for channel in channels),
        )

    def _counts(self, ports: range) -> tuple[int, int]:
        return (
            sum(channel.busy_cycles for channel in self.channels),
            sum(self.beats_out[port].monitor.transfers for port in ports),
        )


@cocotb.test()
async def all_ports_read(dut: Any) -> None:
    """As many ports as channels: every channel gives a beat a cycle."""
    async with RateBench(dut) as bench:
        busy, _ = await bench.read_rates(range(bench.params.tables.ports))
        bench.show("read_channels", busy, 0.99)
        await bench.settled()
        bench.touch_all()


@cocotb.test()
async def one_port_reads(dut: Any) -> None:
    """A port alone gets a beat a cycle."""
    async with RateBench(dut) as bench:
        _, beats = await bench.read_rates(range(1))
        bench.show("read_one_port", beats, 0.97)
        await bench.settled()
        bench.touch_all()


@cocotb.test()
async def all_ports_write(dut: Any) -> None:
    """As many ports as channels: every port gives a beat a cycle, and every channel takes one."""
    async with RateBench(dut) as bench:
        bench.show("write_ports", await bench.write_rate(range(bench.params.tables.ports)), 0.99)
        bench.touch_all()


@cocotb.test()
async def all_ports_write_side_by_side(dut: Any) -> None:
    """The same, with three blocks side by side at each port, which now and then want one channel all."""
    async with RateBench(dut) as bench:
        bench.show("write_mixed", await bench.write_rate(range(bench.params.tables.ports), together=3), 0.95)
        bench.touch_all()


@cocotb.test()
async def one_port_writes(dut: Any) -> None:
    """A port alone gives a beat a cycle."""
    async with RateBench(dut) as bench:
        bench.show("write_one_port", await bench.write_rate(range(1)), 0.97)
        bench.touch_all()


@cocotb.test()
async def reads_and_writes_share(dut: Any) -> None:
    """On a bus that both share, 70 % reads and 30 % writes lose only what its turnarounds take, and these are few."""
    async with RateBench(dut, idle=randomly(WRITES)) as bench:
        bench.behaviour.turnaround = TURNAROUND
        ports, channels = bench.params.tables.ports, bench.params.memory.channels
        bench.queue_writes(range(ports), beats=int(1.2 * WRITES * (WINDOW + 500)))
        bench.queue_reads(range(ports))
        await bench.cycles(500)
        before = bench.shared_counts()
        await bench.cycles(WINDOW)
        reads, writes, turns = (now - then for now, then in zip(bench.shared_counts(), before, strict=True))
        used = reads + writes + TURNAROUND * turns
        bench.show("mixed", used / WINDOW / min(ports, channels), 0.95)
        bench.show("mixed_writes", writes / (reads + writes), 0.5 * WRITES)
        bench.show("mixed_bursts_a_turn", (reads + writes) / bench.params.segment_beats / turns, 3.0)
        await bench.settled()
        bench.touch_all()


@cocotb.test()
async def unloaded_latency(dut: Any) -> None:
    """One READ and one write alone take the documented cycles beyond those of memory."""
    async with RateBench(dut) as bench:
        block = Block(0, bench.random.randbytes(bench.segment_bytes))
        bench.store(block)
        beats = bench.beats_out[0].monitor
        arrivals: list[int] = []
        beats.listeners.append(lambda _: arrivals.append(bench.cycle))
        for latency in (1, 10, 50):
            bench.behaviour.latency = latency
            start = beats.transfers
            arrivals.clear()
            bench.read(block, 0, 1, 0)
            await bench.settled()
            if beats.transfers - start != bench.params.segment_beats:
                raise CheckError("the READ was not alone")
            measured = arrivals[0] - bench.reads.monitor.last_cycle - latency
            if measured != READ_TO_ADDRESS + DATA_TO_BEAT:
                raise CheckError(f"a READ takes {measured} cycles, expected {READ_TO_ADDRESS + DATA_TO_BEAT}")
            waited = beats.last_cycle - arrivals[0] - (bench.params.segment_beats - 1)
            if waited != bench.beat_bytes.bit_length() - 1 + LAST_BEAT_WAITS:
                raise CheckError(f"the last beat waits {waited} cycles for its CRC")

            bench.write(block, port=0)
            await bench.settled()
            measured = bench.landed.monitor.last_cycle - bench.beats_in[0].monitor.last_cycle - latency
            sent = LAST_BEAT_TO_ADDRESS + 1 + bench.params.segment_beats - 1
            if measured != sent + ANSWER_TO_LANDED:
                raise CheckError(f"a write takes {measured} cycles, expected {sent + ANSWER_TO_LANDED}")
        bench.dut._log.info(f"FIGURE read_latency {READ_TO_ADDRESS + DATA_TO_BEAT} cycles beyond memory's")
