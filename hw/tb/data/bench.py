"""cocotb tests of `hw.rtl.node.data`, with a memory of our own behind every channel."""

import itertools
from functools import partial
from typing import Any

import cocotb
import google_crc32c

from hw.tb.data.base import Block, DataBench
from hw.tb.data.memory import SLVERR, Behaviour, Contents, MemoryChannel
from hw.tb.pace import Pace, always, bursts, never, randomly
from hw.tb.scoreboard import CheckError

PACES: dict[str, Pace] = {"always": always, "half": randomly(0.5), "bursts": bursts(20, 60)}


class MemoryBench(DataBench):
    """The data path with memory of its own."""

    def __init__(self, dut: Any, *, behaviour: Behaviour | None = None, **paces: Pace):
        super().__init__(dut, **paces)
        self.behaviour = behaviour or Behaviour()
        self.contents = [Contents(self.beat_bytes, self.segment_bytes) for _ in range(self.stripes.channels)]
        self.channels = [
            MemoryChannel(self, f"memory__{i}", i, contents, self.behaviour) for i, contents in enumerate(self.contents)
        ]
        for channel in self.channels:
            channel.answer_listeners.append(partial(self.answered, channel.number))

    def blocks(self, count: int) -> list[Block]:
        """Random blocks in frames of their own."""
        frames = self.random.sample(range(self.params.frames), count)
        return [Block(frame, self.random.randbytes(self.length(frame))) for frame in frames]

    def store(self, block: Block) -> None:
        """Put a block into memory behind the back of the data path."""
        for segment, data in enumerate(self.pieces(block)):
            channel, address = self.stripes.locate(block.frame, segment)
            contents = self.contents[channel]
            for start in range(0, len(data), self.beat_bytes):
                contents.beats[address + start] = data[start : start + self.beat_bytes].ljust(self.beat_bytes, b"\x5a")
            contents.crcs[address] = google_crc32c.value(data)

    def forget(self) -> None:
        """Make memory as if it had never been written."""
        for contents in self.contents:
            contents.beats.clear()
            contents.crcs.clear()

    def check_stored(self, block: Block) -> None:
        """Memory has every byte and CRC of a block, and the bytes behind each segment are untouched."""
        for segment, data in enumerate(self.pieces(block)):
            channel, address = self.stripes.locate(block.frame, segment)
            contents = self.contents[channel]
            whole = contents.segment(address, self.segment_bytes)
            if whole[: len(data)] != data or contents.crcs.get(address) != google_crc32c.value(data):
                raise CheckError(f"segment {segment} of frame {block.frame} is not what was written")
            if set(whole[len(data) :]) - {0xA5}:
                raise CheckError(f"behind segment {segment} of frame {block.frame}, memory was written")

    def read_somehow(self, block: Block, bad: dict[int, bytes] | None = None) -> None:
        """Queue a READ of a random part of a block to a random port."""
        segments = len(self.pieces(block))
        first = self.random.randrange(segments)
        count = self.random.randint(1, segments - first)
        self.read(block, first, count, self.random.randrange(self.params.tables.ports), bad)

    def touch_all(self) -> None:
        """Give every scoreboard something to compare."""
        block = Block(0, self.random.randbytes(self.beat_bytes))
        self.write(block)
        self.store(block)
        self.read(block, 0, 1, 0)


@cocotb.test()
@cocotb.parametrize(idle=list(PACES), backpressure=list(PACES))
async def write_then_read(dut: Any, idle: str, backpressure: str) -> None:
    """Blocks of any length, written side by side and read back in parts, with the bytes checked where they lie."""
    behaviour = Behaviour(
        jitter=30,
        reorder=True,
        interleave=True,
        address_pace=PACES[backpressure],
        data_pace=PACES[backpressure],
        answer_pace=PACES[idle],
    )
    paces = {"backpressure": PACES[backpressure], "landed_pace": PACES[backpressure], "done_pace": PACES[idle]}
    async with MemoryBench(dut, behaviour=behaviour, idle=PACES[idle], **paces) as bench:
        for _ in range(2):
            bench.forget()
            blocks = bench.blocks(3)
            bench.write(*blocks)
            await bench.settled()
            for block in blocks:
                bench.check_stored(block)
            for _ in range(8):
                bench.read_somehow(bench.random.choice(blocks))
            await bench.settled()


@cocotb.test()
async def short_segments(dut: Any) -> None:
    """Every number of bytes in the last beat, in the first and in a later segment, written and read."""
    async with MemoryBench(dut, behaviour=Behaviour(reorder=True, jitter=20)) as bench:
        frames = bench.params.frames
        for count in range(1, bench.beat_bytes + 1):
            lengths = (count, bench.segment_bytes + count, bench.segment_bytes - bench.beat_bytes + count)
            for i, length in enumerate(lengths):
                block = Block((3 * count + i) % frames, bench.random.randbytes(length))
                bench.write(block)
                await bench.until(lambda: not bench.landed_board.outstanding)
                segments = len(bench.pieces(block))
                bench.read(block, segments - 1, 1, i % bench.params.tables.ports)
                bench.read(block, 0, segments, (i + 1) % bench.params.tables.ports)
            await bench.settled()


@cocotb.test()
async def write_errors(dut: Any) -> None:
    """SLVERR for segments here and there: exactly these do not land, whatever is joined around them."""
    async with MemoryBench(dut, landed_pace=bursts(3, 8 * 32)) as bench:
        bad: set[tuple[int, int]] = set()
        bench.behaviour.write_response = lambda *place: SLVERR if place in bad else 0
        bench.behaviour.jitter, bench.behaviour.reorder = 40, True
        for together in (True, False) * 4:
            blocks = bench.blocks(2)
            for block in blocks:
                segments = range(len(bench.pieces(block)))
                block.failed = {segment for segment in segments if bench.random.random() < 0.3}
                bad |= {bench.stripes.locate(block.frame, segment) for segment in block.failed}
            for some in [blocks] if together else [[block] for block in blocks]:
                bench.write(*some)
            await bench.settled()
            bad.clear()
        bench.touch_all()


@cocotb.test()
async def answers_are_joined(dut: Any) -> None:
    """With `landed` stopped for long, what is behind comes as few entries; with it open, nothing waits to be joined."""
    async with MemoryBench(dut, landed_pace=never) as bench:
        block = Block(0, bench.random.randbytes(min(pool.frame_bytes for pool in bench.params.pools)))
        segments = len(bench.pieces(block))
        bench.write(block)
        await bench.cycles(40 * bench.params.segment_beats)
        bench.landed.set_pace(always)
        await bench.until(lambda: not bench.landed_board.outstanding)
        held = min(segments, bench.stripes.channels * bench.params.write_bursts)
        if bench.landed.monitor.transfers > 2 + segments - held + 1:
            raise CheckError(f"{segments} segments landed in {bench.landed.monitor.transfers} entries")
        bench.touch_all()


@cocotb.test()
async def discarded_blocks(dut: Any) -> None:
    """After a discard, what has been taken of the block goes on with its strobes off; its answers come all the same."""
    behaviour = Behaviour(data_pace=bursts(20, 20), address_pace=randomly(0.5))
    async with MemoryBench(dut, behaviour=behaviour) as bench:
        written: list[tuple[tuple[int, int], int, int]] = []

        def note(number: int, address: int, beat: int, strobes: int, cycle: int) -> None:
            written.append((bench.stripes.segment_at(number, address), strobes, cycle))

        for channel in bench.channels:
            channel.write_listeners.append(partial(note, channel.number))
        counted = {"on": 0, "off": 0}
        for _ in range(30):
            written.clear()
            kept, dropped = bench.blocks(2)
            bench.forget()
            bench.write(kept, dropped)
            await bench.cycles(bench.random.randint(1, 6 * bench.params.segment_beats))
            bench.discards.send(dropped.frame)
            await bench.until(lambda: not bench.discards.pending)
            cycle = bench.discards.monitor.last_cycle
            await bench.settled()
            bench.check_stored(kept)
            for segment, strobes, offered in written:
                off = segment[0] == dropped.frame and bench.first_taken[segment] <= cycle and offered > cycle + 1
                counted["off" if off else "on"] += 1
                if bool(strobes) == off:
                    raise CheckError(f"discard in cycle {cycle}: strobes {strobes:x} of {segment} in cycle {offered}")
        if min(counted.values()) < 100:
            raise CheckError(f"not enough beats to see: {counted}")
        bench.touch_all()


@cocotb.test()
async def read_errors(dut: Any) -> None:
    """RRESP errors, damaged bytes and damaged CRCs: exactly these segments and their READs are not `ok`."""
    async with MemoryBench(dut, behaviour=Behaviour(jitter=30, reorder=True, interleave=True)) as bench:
        blocks = bench.blocks(min(4, bench.params.frames))
        bad: dict[tuple[int, int], str] = {}
        damage: dict[int, dict[int, bytes]] = {}
        for block in blocks:
            bench.store(block)
            damage[block.frame] = {}
            for segment, data in enumerate(bench.pieces(block)):
                kind = bench.random.choice(["good", "good", "response", "byte", "crc"])
                if kind != "good":
                    bad[bench.stripes.locate(block.frame, segment)] = kind
                    damage[block.frame][segment] = bytes([data[0] ^ 4]) + data[1:] if kind == "byte" else data

        def spoil(channel: int, address: int, beat: int, data: bytes, crc: int) -> tuple[bytes, int]:
            kind = bad.get((channel, address))
            if kind == "byte" and beat == 0:
                data = bytes([data[0] ^ 4]) + data[1:]
            return data, crc ^ 0x100 if kind == "crc" else crc

        bench.behaviour.spoil = spoil
        bench.behaviour.read_response = lambda *place: SLVERR if bad.get(place) == "response" else 0
        for _ in range(16):
            block = bench.random.choice(blocks)
            bench.read_somehow(block, damage[block.frame])
        await bench.settled()
        bad.clear()
        bench.touch_all()


@cocotb.test()
async def one_stalled_port(dut: Any) -> None:
    """A port that takes nothing stops itself alone; then it gets everything."""
    async with MemoryBench(dut, behaviour=Behaviour(reorder=True, jitter=10)) as bench:
        ports = bench.params.tables.ports
        if ports > 1:
            bench.beats_out[0].set_pace(never)
        blocks = bench.blocks(2)
        for block in blocks:
            bench.store(block)
        for _ in range(bench.params.memory.waiting_reads):
            bench.read(blocks[0], 0, len(bench.pieces(blocks[0])), 0)
        for _ in range(6):
            for port in range(1, ports):
                bench.read(blocks[1], 0, len(bench.pieces(blocks[1])), port)
        await bench.until(lambda: not bench.reads.pending)
        owed = bench.params.memory.waiting_reads
        await bench.until(lambda: bench.ends_board.outstanding <= owed)
        bench.beats_out[0].set_pace(always)
        await bench.settled()
        bench.touch_all()


@cocotb.test()
async def one_port_without_data(dut: Any) -> None:
    """A port whose data stops within a segment stops itself alone; then it goes on."""
    async with MemoryBench(dut, landed_pace=randomly(0.3)) as bench:
        ports = bench.params.tables.ports
        blocks = [Block(frame, bench.random.randbytes(8 * bench.segment_bytes)) for frame in range(ports)]
        bench.write(blocks[0], port=0)
        await bench.cycles(bench.params.segment_beats // 2)
        bench.beats_in[0].set_pace(never)
        for port in range(1, ports):
            bench.write(blocks[port], port=port)
        await bench.until(lambda: not any(bench.unanswered(frame) for frame in range(1, ports)))
        if not bench.unanswered(0):
            raise CheckError("the port did not stop")
        bench.beats_in[0].set_pace(always)
        await bench.settled()
        for block in blocks:
            bench.check_stored(block)
        bench.touch_all()


@cocotb.test()
async def one_stalled_channel(dut: Any) -> None:
    """While a channel takes no writes, a port that wants none of it goes on; then so do the others."""
    async with MemoryBench(dut) as bench:
        bench.channels[0].set_address_pace(never)
        blocks = [Block(i, bench.random.randbytes(8 * bench.segment_bytes)) for i in range(bench.params.tables.ports)]
        elsewhere = [segment for segment in range(8) if bench.stripes.locate(0, segment)[0]]
        for block in blocks[1:]:
            bench.write(block, port=block.frame)
        for segment in elsewhere:
            bench.write_segment(blocks[0], segment, 0)
        await bench.until(lambda: not bench.unanswered(0))
        if any(not bench.unanswered(block.frame) for block in blocks[1:]):
            raise CheckError("the channel did not stop")
        bench.channels[0].set_address_pace(always)
        await bench.settled()
        for block in blocks[1:]:
            bench.check_stored(block)
        bench.touch_all()


@cocotb.test()
async def ports_take_turns(dut: Any) -> None:
    """Of ports that all have whole segments for one channel, which takes few addresses, each gets one burst in turn."""
    async with MemoryBench(dut) as bench:
        ports, beats = bench.params.tables.ports, bench.params.segment_beats
        bench.channels[0].set_address_pace(lambda _: itertools.cycle([True] + [False] * (2 * beats)))
        turns: list[int] = []

        def note(address: int, beat: int, strobes: int, when: int) -> None:
            if beat == 0:
                turns.append(bench.stripes.segment_at(0, address)[0] % ports)

        bench.channels[0].write_listeners.append(note)
        for frame in range(bench.params.frames // ports * ports):
            block = Block(frame, bench.random.randbytes(8 * bench.segment_bytes))
            for segment in range(min(8, 2 * bench.stripes.channels)):
                if not bench.stripes.locate(frame, segment)[0]:
                    bench.write_segment(block, segment, frame % ports)
        await bench.settled()
        middle = turns[2 * ports : len(turns) // 2]
        if any(len(set(middle[i : i + ports])) < ports for i in range(len(middle) - ports + 1)):
            raise CheckError(f"ports were given bursts in this order: {turns}")
        bench.touch_all()


@cocotb.test()
async def ends_are_held(dut: Any) -> None:
    """Without `done` taken, each port stops before the end of its next READ."""
    async with MemoryBench(dut, done_pace=never) as bench:
        block = Block(0, bench.random.randbytes(bench.beat_bytes))
        bench.store(block)
        for _ in range(4):
            for port in range(bench.params.tables.ports):
                bench.read(block, 0, 1, port)
        await bench.cycles(300)
        if not bench.beats_board.outstanding:
            raise CheckError("all beats were given though no end was taken")
        bench.done.set_pace(always)
        await bench.settled()
        bench.touch_all()


@cocotb.test()
async def reset_in_traffic(dut: Any) -> None:
    """Reset forgets everything: what follows is as after power-up."""
    async with MemoryBench(dut, behaviour=Behaviour(jitter=20, reorder=True), backpressure=randomly(0.7)) as bench:
        for _ in range(6):
            written, read = bench.blocks(2)
            bench.store(read)
            bench.write(written)
            for _ in range(3):
                bench.read_somehow(read)
            await bench.cycles(bench.random.randint(1, 200))
            await bench.reset()
        written, read = bench.blocks(2)
        bench.forget()
        bench.store(read)
        bench.write(written)
        bench.read_somehow(read)
        await bench.settled()
        bench.check_stored(written)
